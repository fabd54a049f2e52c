// Conversions of device printf, with flags, widths, precisions and lengths, over edge values. Argument: which of them.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define EACH(F, ...)                                                                                             \
  printf("[%" F "]\n", __VA_ARGS__), printf("[%8" F "]\n", __VA_ARGS__), printf("[%-8" F "]\n", __VA_ARGS__),    \
      printf("[%08" F "]\n", __VA_ARGS__), printf("[%+" F "]\n", __VA_ARGS__), printf("[% " F "]\n", __VA_ARGS__), \
      printf("[%.3" F "]\n", __VA_ARGS__), printf("[%12.4" F "]\n", __VA_ARGS__), printf("[%#" F "]\n", __VA_ARGS__), \
      printf("[%*" F "]\n", 9, __VA_ARGS__), printf("[%-*" F "]\n", 9, __VA_ARGS__), printf("[%.*" F "]\n", 2, __VA_ARGS__), \
      printf("[%*.*" F "]\n", 11, 5, __VA_ARGS__), printf("[%*" F "]\n", -9, __VA_ARGS__), printf("[%.*" F "]\n", -1, __VA_ARGS__), \
      printf("[%.0" F "]\n", __VA_ARGS__), printf("[%0+9" F "]\n", __VA_ARGS__)

__global__ void zeros(int v) { EACH("d", v), EACH("i", v), EACH("u", v), EACH("x", v), EACH("X", v), EACH("o", v), EACH("hd", v); }
__global__ void wide(int zero) {
  for (long long v : {0ll, -1ll, 81985529216486895ll, -9223372036854775807ll - 1}) {
    v += zero;
    EACH("lld", v); EACH("llu", v); EACH("llx", v); EACH("ld", static_cast<long>(v)); EACH("lx", static_cast<long>(v)); EACH("zu", static_cast<size_t>(v));
    EACH("llo", v); EACH("jd", v); EACH("td", v);
  }
}
__global__ void floats(double zero) {
  for (double v : {0.0, -0.0, 1.0, -2.5, 3.14159265358979, 1e-310, 1e300, 123456.789, 1e10, 0.1, 0.5, 1.5, 1e-5, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0}) {
    v *= 1 + zero;
    EACH("f", v); EACH("e", v); EACH("g", v); EACH("a", v); EACH("F", v); EACH("E", v); EACH("G", v); EACH("A", v);
    EACH("lf", v);
  }
  printf("[%f] [%g] [%e]\n", 1.5f, 2.25f, static_cast<float>(zero + 1e-40));
}
__global__ void texts() {
  printf("[%s] [%10s] [%-10s] [%.2s] [%10.3s] [%*s] [%-*s] [%.*s]\n", "word", "word", "word", "word", "word", 7, "word", 7, "word", 3, "word");
  printf("[%c] [%5c] [%-5c] [%*c]\n", 'a', 'b', 'c', 4, 'd');
  printf("[%%] [%5d%%] [%d %s %f %lld %c]\n", 7, -3, "mix", 2.5, 1ll << 40, 'z');
  printf("[%p] [%p] [%20p] [%-20p]\n", nullptr, reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(0x1234));
  printf("plain text\n");
  printf("%s", "no newline|");
  printf("\n");
  printf("[%5%] [%k] [%] done\n", 3);
  printf("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20);
  printf("result %d\n", printf("three %d %d %d\n", 1, 2, 3));
  printf("result %d\n", printf("none\n"));
}
__global__ void others(int n, int v) {
  if (n == 5) printf("[%*d]|\n", 9, v);
  if (n == 6) printf("[%jd] [%td] [%zu]|\n", 42ll, 43ll, 44ull);
  if (n == 7) printf("[%*s] [%.*s]|\n", 7, "word", 2, "word");
  if (n == 8) printf("[%s]|\n", static_cast<const char*>(nullptr));
  if (n == 9) printf("[%lf] [%Lf]|\n", 1.5, 2.5);
  if (n == 10) printf("[%n]|\n", &v);
  if (n == 11) printf("[%5c] [%c] [%05c]|\n", 'a', 0, 'b');
}
__global__ void lanes() { printf("lane %u of %u\n", threadIdx.x, blockIdx.x); }

int main(int, char** arguments) {
  const int n = std::atoi(arguments[1]);
  if (n == 0) zeros<<<1, 1>>>(0);
  if (n == 1) wide<<<1, 1>>>(0);
  if (n == 2) floats<<<1, 1>>>(0);
  if (n == 3) texts<<<1, 1>>>();
  if (n == 4) lanes<<<1, 4>>>();
  if (n > 4) others<<<1, 1>>>(n, 42);
  return cudaDeviceSynchronize() != cudaSuccess;
}
