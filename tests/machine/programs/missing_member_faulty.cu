// A kernel fills structs but for a member that lies between the others, where nothing would have to be aligned.
#include "require.cuh"

struct Row {
  float value;
  int valid;
  float weight;
};

__global__ void fill(Row* rows) {
  rows[threadIdx.x].value = 1.0f;
  rows[threadIdx.x].weight = 2.0f;
}

int main() {
  Row *rows, host[64];
  REQUIRE(cudaMalloc(&rows, sizeof host));
  fill<<<1, 64>>>(rows);
  REQUIRE(cudaMemcpy(host, rows, sizeof host, cudaMemcpyDeviceToHost));
  return host[5].weight == 2.0f ? 0 : 4;
}
