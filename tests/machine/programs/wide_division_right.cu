// Quotients and remainders of 128-bit integers, against the host's own: nvcc divides with chains of carries, in which an
// addition asks for the carry of a subtraction. Numbers of all lengths, both signs, powers of two and their neighbours.
#include "require.cuh"

using u128 = unsigned __int128;
using s128 = __int128;

struct Results {
  u128 quotient, remainder;
  s128 signed_quotient, signed_remainder;
};

__host__ __device__ Results divide(u128 a, u128 b) {
  return {a / b, a % b, static_cast<s128>(a) / static_cast<s128>(b), static_cast<s128>(a) % static_cast<s128>(b)};
}

__global__ void divide_all(const u128* a, const u128* b, Results* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = divide(a[i], b[i]);
}

unsigned long long state = 0x9e3779b97f4a7c15;
unsigned long long draw() {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}
u128 number() {
  u128 v = (static_cast<u128>(draw()) << 64 | draw()) >> draw() % 128;
  if (draw() % 6 == 0) v = (static_cast<u128>(1) << draw() % 128) + draw() % 3 - 1;
  return draw() % 2 ? v : -v;
}

int main() {
  constexpr int n = 2048;
  static u128 a[n], b[n];
  static Results got[n];
  for (int i = 0; i < n; ++i) {
    a[i] = number();
    do b[i] = number();
    while (b[i] == 0 || b[i] == ~u128{0});  // the host cannot divide the least number by -1
  }
  u128 *da, *db;
  Results* out;
  REQUIRE(cudaMalloc(&da, sizeof a));
  REQUIRE(cudaMalloc(&db, sizeof b));
  REQUIRE(cudaMalloc(&out, sizeof got));
  REQUIRE(cudaMemcpy(da, a, sizeof a, cudaMemcpyHostToDevice));
  REQUIRE(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
  divide_all<<<n / 64, 64>>>(da, db, out);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    const Results want = divide(a[i], b[i]);
    if (got[i].quotient != want.quotient || got[i].remainder != want.remainder) return 8;
    if (got[i].signed_quotient != want.signed_quotient || got[i].signed_remainder != want.signed_remainder) return 9;
  }
  return 0;
}
