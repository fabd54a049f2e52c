// Stream-ordered allocation: use, free, reuse by order, attributes of the pool.
#include "expect.cuh"

__global__ void fill(int* p, int n, int v) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = v;
}

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int host[64] = {};
  for (int round = 0; round < 3; ++round) {
    int* p;
    OK(cudaMallocAsync(&p, sizeof host, stream));
    fill<<<1, 32, 0, stream>>>(p, 64, round);
    OK(cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaStreamSynchronize(stream));
    EXPECT(host[0] == round && host[63] == round);
  }
  cudaMemPool_t pool;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  unsigned long long threshold = 1 << 20, read = 0;
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
  EXPECT(read == threshold);
  OK(cudaMemPoolTrimTo(pool, 0));
  int* q;
  OK(cudaMallocFromPoolAsync(&q, 16, pool, stream));
  OK(cudaMemsetAsync(q, 0, 16, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaFree(q));  // memory of a pool may be freed plainly, too
  return finish();
}
