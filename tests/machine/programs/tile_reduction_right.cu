// A cooperative-groups reduction: tiles of eight threads with shuffles, tile.sync() before shared memory is read.
#include "require.cuh"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void tile_sums(const int* in, int* out) {
  __shared__ int scratch[64];
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  int total = cg::reduce(tile, in[threadIdx.x], cg::plus<int>());
  scratch[threadIdx.x] = total + int(tile.thread_rank());
  tile.sync();
  int first = threadIdx.x - tile.thread_rank();
  out[threadIdx.x] = scratch[first + 7 - tile.thread_rank()];
}

int main() {
  int *in, *out, host[64];
  for (int& v : host) v = 2;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  tile_sums<<<1, 64>>>(in, out);
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 23 && host[7] == 16 && host[63] == 16 ? 0 : 4;
}
