// What an address may be used for over its life: freed twice, freed in the middle, used after a stream-ordered free.
#include "expect.cuh"

int main() {
  char* p;
  OK(cudaMalloc(&p, 1000));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(p + 4));
  OK(cudaFree(p));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(p));
  int host = 0;
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(p, &host, 4, cudaMemcpyHostToDevice));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(&host));

  char* q;
  OK(cudaMalloc(&q, 1000));
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemset(q + 996, 0, 8));  // past the end
  EXPECT_CODE(cudaErrorInvalidValue, cudaMemcpy(q + 999, &host, 2, cudaMemcpyHostToDevice));
  OK(cudaMemset(q + 996, 0, 4));
  char* pinned;
  OK(cudaMallocHost(&pinned, 16));
  EXPECT_CODE(cudaErrorInvalidValue, cudaFree(pinned));  // wrong kind of free
  OK(cudaFreeHost(pinned));
  OK(cudaFree(q));
  OK(cudaDeviceReset());
  OK(cudaMalloc(&p, 16));
  OK(cudaFree(p));
  return finish();
}
