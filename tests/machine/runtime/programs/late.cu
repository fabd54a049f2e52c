// Stream work runs as late as synchronisation allows: what was not waited for has not happened. A right program on
// hardware may see either; the CPU device always shows the late one, so that a missing wait is found.
#include "expect.cuh"

__global__ void put(int* p, int v) { *p = v; }

int main() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int *device, *pinned;
  OK(cudaMalloc(&device, 4));
  OK(cudaMallocHost(&pinned, 4));
  *pinned = -1;
  put<<<1, 1, 0, stream>>>(device, 5);
  OK(cudaMemcpyAsync(pinned, device, 4, cudaMemcpyDeviceToHost, stream));
  EXPECT(*pinned == -1);
  OK(cudaStreamSynchronize(stream));
  EXPECT(*pinned == 5);

  // A copy from pinned memory reads it when it happens; one from ordinary memory has taken it at the call.
  int ordinary = 10, back = 0;
  *pinned = 10;
  OK(cudaMemcpyAsync(device, pinned, 4, cudaMemcpyHostToDevice, stream));
  *pinned = 11;
  OK(cudaMemcpyAsync(&back, device, 4, cudaMemcpyDeviceToHost, stream));
  EXPECT(back == 11);
  OK(cudaMemcpyAsync(device, &ordinary, 4, cudaMemcpyHostToDevice, stream));
  ordinary = 12;
  OK(cudaMemcpyAsync(&back, device, 4, cudaMemcpyDeviceToHost, stream));
  EXPECT(back == 10);
  return finish();
}
