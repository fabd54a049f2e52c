// printf from the device reaches the program's standard output, in order.
#include <cstdio>

__global__ void speak(int n, float x) {
  if (threadIdx.x == 1) printf("thread %d of %d: %.2f %5.1f%% %llx\n", threadIdx.x, n, x, 12.5, 0xabcdefull);
}

__device__ const char word[] = "device text";
__global__ void spell() { printf("%s %c %-4d|\n", word, 'z', 7); }

int main() {
  printf("before\n");
  speak<<<1, 4>>>(4, 1.25f);
  spell<<<1, 1>>>();
  cudaDeviceSynchronize();
  printf("after\n");
  return 0;
}
