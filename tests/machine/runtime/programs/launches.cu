// Launching: every entry, arguments by value, limits of the architecture, function attributes, occupancy.
#include "expect.cuh"

#include <cooperative_groups.h>

struct Padded {
  char tag;
  double value;
  int numbers[3];
};

__global__ void by_value(Padded p, short s, float* out) {
  out[0] = static_cast<float>(p.value) + p.numbers[2];
  out[1] = static_cast<float>(p.tag) + s;
}

__global__ void geometry(int* out) {
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
    out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] = blockDim.x * 10000 + blockDim.y * 100 + blockDim.z;
}

__global__ void dynamic(int* out) {
  extern __shared__ int scratch[];
  scratch[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = scratch[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded(int* out) { out[0] = 1; }

__global__ void grid_sum(int* partial, int* total) {
  auto grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) partial[blockIdx.x] = blockIdx.x + 1;
  grid.sync();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += partial[i];
    *total = sum;
  }
}

int main() {
  float *out, host[2];
  OK(cudaMalloc(&out, sizeof host));
  Padded padded = {3, 1.5, {1, 2, 30}};
  by_value<<<1, 1>>>(padded, -2, out);
  OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 31.5f && host[1] == 1.0f);

  int *cells, back[64];
  OK(cudaMalloc(&cells, sizeof back));
  OK(cudaMemset(cells, 0, sizeof back));
  void* arguments[] = {&cells};
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(geometry), dim3(2, 3, 4), dim3(4, 2, 3), arguments, 0, nullptr));
  OK(cudaMemcpy(back, cells, sizeof back, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == 40203 && back[23] == 40203 && back[24] == 0);

  // Limits: grid and block dimensions, threads a block, launch bounds.
  geometry<<<0, 1>>>(cells);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  geometry<<<dim3(1, 65536), 1>>>(cells);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  geometry<<<1, 1025>>>(cells);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  geometry<<<1, dim3(1, 1, 65)>>>(cells);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  bounded<<<1, 256>>>(cells);
  EXPECT(cudaGetLastError() != cudaSuccess);
  bounded<<<1, 128>>>(cells);
  OK(cudaGetLastError());

  // Shared memory: 48 KB without opting in, then the architecture's.
  int optin = 0;
  OK(cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  dynamic<<<1, 64, 48 * 1024>>>(cells);
  OK(cudaGetLastError());
  dynamic<<<1, 64, 48 * 1024 + 4>>>(cells);
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_CODE(cudaErrorInvalidValue, cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, optin + 1));
  EXPECT_CODE(cudaErrorInvalidValue, cudaGetLastError());
  OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, optin));
  dynamic<<<1, 64, optin>>>(cells);
  OK(cudaGetLastError());
  OK(cudaMemcpy(back, cells, sizeof back, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == 63 && back[63] == 0);

  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, bounded));
  EXPECT(attributes.maxThreadsPerBlock == 128 && attributes.sharedSizeBytes == 0);
  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 1024, 0));
  EXPECT(blocks == 2);
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 64, optin));
  EXPECT(blocks == 1);
  int grid = 0, block = 0;
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, geometry, 0, 0));
  EXPECT(block >= 32 && grid >= 1);

  // Cooperative: resident at a time, or refused.
  int *partial, *total, sum = 0;
  OK(cudaMalloc(&partial, 1024 * sizeof(int)));
  OK(cudaMalloc(&total, sizeof(int)));
  void* pair[] = {&partial, &total};
  OK(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_sum), dim3(20), dim3(64), pair, 0, nullptr));
  OK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
  EXPECT(sum == 210);
  EXPECT_CODE(cudaErrorCooperativeLaunchTooLarge,
              cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(grid_sum), dim3(100000), dim3(64), pair, 0, nullptr));
  cudaGetLastError();

  // The typed launch with attributes.
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(32);
  config.dynamicSmemBytes = 32 * sizeof(int);
  OK(cudaLaunchKernelEx(&config, dynamic, cells));
  OK(cudaMemcpy(back, cells, sizeof back, cudaMemcpyDeviceToHost));
  EXPECT(back[0] == 31);
  int not_a_kernel = 0;
  EXPECT_CODE(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&not_a_kernel, dim3(1), dim3(1), nullptr, 0, nullptr));
  return finish();
}
