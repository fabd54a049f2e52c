// Errors: remembered, peeked, taken; the texts; what a failed kernel leaves behind.
#include "expect.cuh"

__global__ void stop() { __trap(); }

// 800 KB of local memory a thread: ptxas compiles it, no architecture has it.
__global__ void hoard(float* out, int n) {
  float large[200000];
  for (int i = 0; i < n; ++i) large[i * 7919 % 200000] = i;
  *out = large[n];
}

int main() {
  OK(cudaGetLastError());
  EXPECT_CODE(cudaErrorInvalidValue, cudaMalloc(static_cast<void**>(nullptr), 4));
  EXPECT_CODE(cudaErrorInvalidValue, cudaPeekAtLastError());
  int device = -1;
  OK(cudaGetDevice(&device));  // a success does not clear it
  EXPECT(device == 0);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  OK(cudaGetLastError());
  EXPECT_CODE(cudaErrorInvalidDevice, cudaSetDevice(99));
  cudaGetLastError();

  EXPECT(std::strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
  EXPECT(std::strcmp(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory") == 0);
  EXPECT(std::strcmp(cudaGetErrorString(static_cast<cudaError_t>(12345)), "unrecognized error code") == 0);

  int* p;
  OK(cudaMalloc(&p, 4));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(reinterpret_cast<char*>(p) + 1));
  OK(cudaFree(p));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(p));
  int local = 0;
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(&local, nullptr, 4, cudaMemcpyDeviceToHost));
  EXPECT_CODE(cudaErrorInvalidMemcpyDirection, cudaMemcpy(&local, &local, 4, static_cast<cudaMemcpyKind>(77)));
  cudaGetLastError();
  hoard<<<1, 32>>>(nullptr, 0);
  EXPECT_CODE(cudaErrorLaunchOutOfResources, cudaGetLastError());

  // A kernel's failure appears where the host waits, and stays.
  stop<<<1, 1>>>();
  OK(cudaGetLastError());
  EXPECT_CODE(cudaErrorLaunchFailure, cudaDeviceSynchronize());
  EXPECT_CODE(cudaErrorLaunchFailure, cudaMalloc(&p, 4));
  EXPECT_CODE(cudaErrorLaunchFailure, cudaGetLastError());
  EXPECT_CODE(cudaSuccess, cudaGetLastError());  // fetched: only calls that need the context go on failing
  return finish();
}
