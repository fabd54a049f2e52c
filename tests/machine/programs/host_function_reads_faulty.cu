// A host function of one stream reads pinned memory that a kernel of another stream writes, and nothing orders the two.
#include "require.cuh"

__global__ void fill(int* result) { result[threadIdx.x] = 7; }

int seen;

void look(void* result) { seen = *static_cast<int*>(result); }

int main() {
  cudaStream_t one, other;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  int* result;
  REQUIRE(cudaMallocHost(&result, 64 * sizeof *result));
  fill<<<1, 64, 0, one>>>(result);
  REQUIRE(cudaLaunchHostFunc(other, look, result));
  REQUIRE(cudaStreamSynchronize(other));
  REQUIRE(cudaStreamSynchronize(one));
  return 0;
}
