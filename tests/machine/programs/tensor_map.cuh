// Tensor maps by the driver function that the runtime hands out.
#pragma once

#include <cuda.h>

#include "require.cuh"

// A tensor of `rank` dimensions, innermost first, without gaps; boxes of it, each element.
inline CUtensorMap tensor_map(CUtensorMapDataType type, int bytes, int rank, void* tensor, const cuuint64_t* sizes, const cuuint32_t* box,
                              CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE) {
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
  cuuint64_t strides[5] = {};
  cuuint64_t stride = static_cast<cuuint64_t>(bytes);
  for (int d = 0; d + 1 < rank; ++d) strides[d] = stride *= sizes[d];
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMap map;
  const CUresult done = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
      &map, type, static_cast<cuuint32_t>(rank), tensor, sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (found != cudaDriverEntryPointSuccess || done != CUDA_SUCCESS) std::exit(8);
  return map;
}
