// A warp sends values to the others by st.async and adds to a count by red.async; the bytes of both are counted on the
// mbarrier that the readers wait for.
#include <cstdint>

#include "require.cuh"

__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__global__ void send(int* out) {
  __shared__ alignas(16) int values[64];
  __shared__ int sum;
  __shared__ uint64_t bar;
  if (threadIdx.x == 0) {
    sum = 0;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at(&bar)) : "memory");
    asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" ::"r"(at(&bar)), "r"(32 * 12) : "memory");
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    const int v = static_cast<int>(threadIdx.x);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.s32 [%0], {%1, %2}, [%3];" ::"r"(at(&values[2 * v])), "r"(3 * v),
                 "r"(5 * v), "r"(at(&bar))
                 : "memory");
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32 [%0], %1, [%2];" ::"r"(at(&sum)), "r"(v),
                 "r"(at(&bar))
                 : "memory");
    return;
  }
  asm volatile("{ .reg .pred p;\nL%=: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n@!p bra L%=; }" ::"r"(at(&bar)) : "memory");
  const int i = static_cast<int>(threadIdx.x) - 32;
  out[2 * i] = values[2 * i], out[2 * i + 1] = values[2 * i + 1];
  if (i == 0) out[64] = sum;
}

int main() {
  int *out, back[65];
  REQUIRE(cudaMalloc(&out, sizeof back));
  send<<<1, 64>>>(out);
  REQUIRE(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 32; ++i)
    if (back[2 * i] != 3 * i || back[2 * i + 1] != 5 * i) return 4;
  return back[64] == 496 ? 0 : 5;
}
