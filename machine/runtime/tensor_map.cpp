#include "runtime/tensor_map.hpp"

#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "exec/tensor_map.hpp"

namespace machine::runtime {
namespace {

// Elements strides of a dimension that is not there, and box sizes of one.
constexpr std::uint8_t kOne = 1;

bool element_of(CUtensorMapDataType type, TensorElement& element) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: element = TensorElement::u8; return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16: element = TensorElement::u16; return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32: element = TensorElement::u32; return true;
    case CU_TENSOR_MAP_DATA_TYPE_INT32: element = TensorElement::s32; return true;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64: element = TensorElement::u64; return true;
    case CU_TENSOR_MAP_DATA_TYPE_INT64: element = TensorElement::s64; return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16: element = TensorElement::f16; return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32: element = TensorElement::f32; return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: element = TensorElement::f64; return true;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: element = TensorElement::bf16; return true;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ: element = TensorElement::f32_ftz; return true;
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: element = TensorElement::tf32; return true;
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: element = TensorElement::tf32_ftz; return true;
    default: return false;  // packed types of sm_100
  }
}

// What both modes say of the tensor and of how it is copied.
struct Tensor {
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t *dimensions, *strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

bool common(const Tensor& t, TensorMap& map) {
  if (t.rank < 1 || t.rank > kMostTensorRank || !t.dimensions || !t.element_strides || (t.rank > 1 && !t.strides))
    return false;
  if (!element_of(t.type, map.element)) return false;
  if (static_cast<unsigned>(t.interleave) > CU_TENSOR_MAP_INTERLEAVE_32B ||
      static_cast<unsigned>(t.swizzle) > CU_TENSOR_MAP_SWIZZLE_128B)
    return false;
  if (static_cast<unsigned>(t.promotion) > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) return false;
  if (static_cast<unsigned>(t.fill) > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) return false;
  map.rank = static_cast<std::uint8_t>(t.rank);
  map.address = reinterpret_cast<std::uint64_t>(t.address);
  map.interleave = static_cast<std::uint8_t>(t.interleave);
  map.swizzle = static_cast<std::uint8_t>(t.swizzle);
  map.fill_nan = t.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  map.box.fill(kOne), map.element_strides.fill(kOne);
  for (unsigned d = 0; d < t.rank; ++d) {
    if (t.dimensions[d] == 0 || t.dimensions[d] > std::uint64_t{1} << 32) return false;
    map.last[d] = static_cast<std::uint32_t>(t.dimensions[d] - 1);
    if (t.element_strides[d] == 0 || t.element_strides[d] > 8) return false;
    map.element_strides[d] = static_cast<std::uint8_t>(t.element_strides[d]);
    if (d != 0) map.strides[d - 1] = t.strides[d - 1];
  }
  return true;
}

CUresult finish(CUtensorMap* to, TensorMap& map) {
  if (!tensor_map_fault(map).empty()) return CUDA_ERROR_INVALID_VALUE;
  map.seal();
  std::memcpy(to, &map, sizeof map);
  return CUDA_SUCCESS;
}

bool aligned(const CUtensorMap* map) { return map != nullptr && reinterpret_cast<std::uintptr_t>(map) % 64 == 0; }

CUresult encode_tiled(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* dimensions, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  TensorMap map;
  if (!aligned(to) || !box ||
      !common({type, rank, address, dimensions, strides, element_strides, interleave, swizzle, promotion, fill}, map))
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned d = 0; d < rank; ++d) map.box[d] = static_cast<std::uint16_t>(std::min(box[d], 0xffffu));
  return finish(to, map);
}

CUresult encode_im2col(CUtensorMap* to, CUtensorMapDataType type, cuuint32_t rank, void* address,
                       const cuuint64_t* dimensions, const cuuint64_t* strides, const int* lower, const int* upper,
                       cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill) {
  TensorMap map;
  map.im2col = true;
  if (!aligned(to) || !lower || !upper || rank < 3 ||
      !common({type, rank, address, dimensions, strides, element_strides, interleave, swizzle, promotion, fill}, map))
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned d = 0; d + 2 < rank; ++d) {
    for (const int corner : {lower[d], upper[d]})
      if (corner < INT16_MIN || corner > INT16_MAX) return CUDA_ERROR_INVALID_VALUE;
    map.lower[d] = static_cast<std::int16_t>(lower[d]), map.upper[d] = static_cast<std::int16_t>(upper[d]);
  }
  map.channels = static_cast<std::uint16_t>(std::min(channels, 0xffffu));
  map.pixels = static_cast<std::uint16_t>(std::min(pixels, 0xffffu));
  return finish(to, map);
}

CUresult replace_address(CUtensorMap* at, void* address) {
  if (!aligned(at)) return CUDA_ERROR_INVALID_VALUE;
  TensorMap map;
  std::memcpy(static_cast<void*>(&map), at, sizeof map);
  if (!map.valid()) return CUDA_ERROR_INVALID_VALUE;
  map.address = reinterpret_cast<std::uint64_t>(address);
  return finish(at, map);
}

const DriverFunction functions[] = {
    {"cuTensorMapEncodeTiled", reinterpret_cast<void*>(encode_tiled)},
    {"cuTensorMapEncodeIm2col", reinterpret_cast<void*>(encode_im2col)},
    {"cuTensorMapReplaceAddress", reinterpret_cast<void*>(replace_address)},
};

}  // namespace

std::span<const DriverFunction> tensor_map_functions() { return functions; }

}  // namespace machine::runtime
