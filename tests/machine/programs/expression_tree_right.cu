// Trees of objects with virtual functions on the device's heap: built by recursion in one kernel, evaluated in the next, deleted
// by their own destructors in a third; each lane has a tree of its own. As the host computes.
#include "require.cuh"

struct Expression {
  __device__ virtual int value(int x) const = 0;
  __device__ virtual ~Expression() {}
};
struct Constant : Expression {
  int c;
  __device__ explicit Constant(int value) : c(value) {}
  __device__ int value(int) const override { return c; }
};
struct Variable : Expression {
  __device__ int value(int x) const override { return x; }
};
struct Operation : Expression {
  Expression *left, *right;
  int kind;
  __device__ Operation(int k, Expression* l, Expression* r) : left(l), right(r), kind(k) {}
  __device__ int value(int x) const override {
    const int a = left->value(x), b = right->value(x);
    return kind == 0 ? a + b : kind == 1 ? a ^ b : a - b;
  }
  __device__ ~Operation() override {
    delete left;
    delete right;
  }
};

__host__ __device__ unsigned next(unsigned& state) { return (state = state * 1664525 + 1013904223) >> 24; }

__device__ Expression* build(int depth, unsigned& state) {
  const unsigned drawn = next(state);
  if (depth == 0 || drawn < 20) {
    if (drawn & 1) return new Variable;
    return new Constant(static_cast<int>(drawn));
  }
  Expression* left = build(depth - 1, state);
  return new Operation(drawn % 3, left, build(depth - 1, state));
}

int on_host(int depth, unsigned& state, int x) {
  const unsigned drawn = next(state);
  if (depth == 0 || drawn < 20) return drawn & 1 ? x : static_cast<int>(drawn);
  const int a = on_host(depth - 1, state, x), b = on_host(depth - 1, state, x);
  return drawn % 3 == 0 ? a + b : drawn % 3 == 1 ? a ^ b : a - b;
}

__global__ void build_all(Expression** trees) {
  unsigned state = threadIdx.x + 1;
  trees[threadIdx.x] = build(4, state);
}
__global__ void evaluate_all(Expression** trees, int* out) { out[threadIdx.x] = trees[threadIdx.x]->value(threadIdx.x); }
__global__ void delete_all(Expression** trees) { delete trees[threadIdx.x]; }

int main() {
  constexpr int n = 48;
  Expression** trees;
  int *out, got[n];
  REQUIRE(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  REQUIRE(cudaMalloc(&trees, n * sizeof *trees));
  REQUIRE(cudaMalloc(&out, sizeof got));
  build_all<<<1, n>>>(trees);
  evaluate_all<<<1, n>>>(trees, out);
  delete_all<<<1, n>>>(trees);
  REQUIRE(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  for (int t = 0; t < n; ++t) {
    unsigned state = t + 1;
    if (got[t] != on_host(4, state, t)) return 9;
  }
  return 0;
}
