// Parts of a warp work by themselves, under masks that name each part alone, and then all of it together: in branches,
// as coalesced groups, in a scan whose groups grow, and before a part returns.
#include <cooperative_groups.h>

#include "require.cuh"

namespace cg = cooperative_groups;

__device__ unsigned half_mask(int lane) { return lane < 16 ? 0x0000ffffu : 0xffff0000u; }

__global__ void parts(const int* in, int* out) {
  const int lane = threadIdx.x;
  int value = in[lane];
  // One half meets alone, while the other waits for both.
  if (lane >= 16) value += __shfl_xor_sync(0xffff0000u, value, 1);
  value += __shfl_xor_sync(0xffffffffu, value, 16);
  // Both, each under its own mask, in one instruction.
  value += __shfl_xor_sync(half_mask(lane), value, 2);
  value += __popc(__ballot_sync(half_mask(lane), value > 0));
  // Groups that grow: those who join late wait for those who work already.
  for (int d = 1; d < 32; d *= 2)
    if (lane < 2 * d) value += __shfl_xor_sync(d == 16 ? 0xffffffffu : (1u << 2 * d) - 1, lane, d);
  if (lane % 3 == 0) {
    cg::coalesced_group group = cg::coalesced_threads();
    value += group.shfl(value, 0);
    group.sync();
  }
  __syncwarp();
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
  for (int i = 0; i <= lane / 8; ++i) value += tile.shfl_down(value, 1);
  out[lane] = value;
  if (lane >= 16) {
    out[lane] = __reduce_add_sync(0xffff0000u, value);
    return;
  }
  out[lane] += __shfl_xor_sync(0x0000ffffu, value, 1);
  __syncwarp();  // those that have returned do not count
}

int main() {
  int *in, *out, host[32];
  for (int i = 0; i < 32; ++i) host[i] = i;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  parts<<<1, 32>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return 0;
}
