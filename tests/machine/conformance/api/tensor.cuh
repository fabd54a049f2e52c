// Boxes of tensors copied through shared memory, and what lies there printed in hexadecimal.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include <cuda.h>

#include "say.cuh"

constexpr int kRoom = 16384;  // bytes of shared memory that a case may show

struct Case {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
  std::vector<cuuint64_t> sizes;
  std::vector<cuuint32_t> box, steps;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  std::vector<int> lower, upper;  // im2col
  cuuint32_t channels = 0, pixels = 0;
};

inline int bytes_of(CUtensorMapDataType t) {
  switch (t) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
    default: return 4;
  }
}

inline void* driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found) != cudaSuccess || found != cudaDriverEntryPointSuccess)
    std::printf("no %s\n", name);
  return function;
}

inline CUresult encode(const Case& c, void* tensor, CUtensorMap& map) {
  std::vector<cuuint64_t> strides(5);
  cuuint64_t stride = static_cast<cuuint64_t>(bytes_of(c.type));
  for (std::size_t d = 0; d + 1 < c.sizes.size(); ++d) strides[d] = stride = (stride * c.sizes[d] + 15) / 16 * 16;
  std::vector<cuuint32_t> steps = c.steps;
  steps.resize(5, 1);
  const auto rank = static_cast<cuuint32_t>(c.sizes.size());
  if (c.pixels != 0)
    return reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(driver_function("cuTensorMapEncodeIm2col"))(
        &map, c.type, rank, tensor, c.sizes.data(), strides.data(), c.lower.data(), c.upper.data(), c.channels, c.pixels, steps.data(), c.interleave,
        c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, c.fill);
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(driver_function("cuTensorMapEncodeTiled"))(
      &map, c.type, rank, tensor, c.sizes.data(), strides.data(), c.box.data(), steps.data(), c.interleave, c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      c.fill);
}

struct Coordinates {
  int at[5];
  unsigned short offset[3];
};

__device__ inline unsigned shared_at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Whether `bytes` arrive before patience ends.
__device__ inline bool arrives(uint64_t* bar, unsigned bytes) {
  asm volatile("{ .reg .b64 t; mbarrier.arrive.expect_tx.shared.b64 t, [%0], %1; }" ::"r"(shared_at(bar)), "r"(bytes) : "memory");
  for (int k = 0; k < 10000; ++k) {
    int done = 0;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.b32 %0, 1, 0, p; }" : "=r"(done) : "r"(shared_at(bar)) : "memory");
    if (done) return true;
  }
  return false;
}

#define LOAD(form, coordinates, tail)                                                                                                  \
  asm volatile("cp.async.bulk.tensor." form ".mbarrier::complete_tx::bytes [%0], [%1, {" coordinates "}], [%2]" tail ";" ::"r"(tile), "l"(&map), \
               "r"(shared_at(&bar)), "r"(c.at[0]), "r"(c.at[1]), "r"(c.at[2]), "r"(c.at[3]), "r"(c.at[4]), "h"(c.offset[0]), "h"(c.offset[1]),   \
               "h"(c.offset[2])                                                                                                        \
               : "memory")
#define TO_SHARED ".shared::cluster.global"

__global__ void load(const __grid_constant__ CUtensorMap map, Coordinates c, int rank, bool im2col, unsigned bytes, unsigned char* out) {
  extern __shared__ __align__(1024) unsigned char room[];
  __shared__ uint64_t bar;
  for (int i = 0; i < kRoom; ++i) room[i] = 0xee;
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_at(&bar)) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  const unsigned tile = shared_at(room);
  if (im2col) {
    if (rank == 3) LOAD("3d" TO_SHARED ".im2col", "%3, %4, %5", ", {%8}");
    if (rank == 4) LOAD("4d" TO_SHARED ".im2col", "%3, %4, %5, %6", ", {%8, %9}");
    if (rank == 5) LOAD("5d" TO_SHARED ".im2col", "%3, %4, %5, %6, %7", ", {%8, %9, %10}");
  } else {
    if (rank == 1) LOAD("1d" TO_SHARED, "%3", "");
    if (rank == 2) LOAD("2d" TO_SHARED ".tile", "%3, %4", "");
    if (rank == 3) LOAD("3d" TO_SHARED ".tile", "%3, %4, %5", "");
    if (rank == 4) LOAD("4d" TO_SHARED ".tile", "%3, %4, %5, %6", "");
    if (rank == 5) LOAD("5d" TO_SHARED ".tile", "%3, %4, %5, %6, %7", "");
  }
  out[kRoom] = arrives(&bar, bytes);
  for (int i = 0; i < kRoom; ++i) out[i] = room[i];
}

// Rows of 32 bytes, those left alone once for many.
inline void show(const unsigned char* bytes, int count) {
  bool quiet = false;
  for (int i = 0; i < count; i += 32) {
    bool untouched = true;
    for (int k = 0; k < 32; ++k) untouched &= bytes[i + k] == 0xee;
    if (untouched) {
      if (!quiet) std::printf("  ...\n");
      quiet = true;
      continue;
    }
    quiet = false;
    std::printf("  %05x", i);
    for (int k = 0; k < 32; ++k) std::printf("%s%02x", k % 4 == 0 ? " " : "", bytes[i + k]);
    std::printf("\n");
  }
}

// A tensor whose elements all differ: byte k of element e.
inline unsigned char element_byte(CUtensorMapDataType t, unsigned e, int k) {
  const bool real = bytes_of(t) == 4 && (t == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || t == CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ ||
                                         t == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 || t == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
  // Of each float kind some: subnormal, with low bits that tf32 lacks, negative, infinite, NaN.
  static const unsigned kReal[] = {0x00000001, 0x807fffff, 0x3f801000, 0x3f800fff, 0x3f801001, 0xbf803000, 0x7f7fffff, 0x7f800000,
                                   0xff800000, 0x7fc01234, 0x7f800001, 0x3f801fff, 0x00800fff, 0x40490fdb, 0x80000001, 0x007ff000};
  if (real) return static_cast<unsigned char>(kReal[e % 16] >> 8 * k);
  return static_cast<unsigned char>((bytes_of(t) == 1 ? e * 7 + e / 256 : k < 2 ? e + 1 : e * 3 + static_cast<unsigned>(k)) >> (k == 1 ? 8 : 0));
}

inline void run(const char* name, const Case& c, Coordinates at, unsigned bytes) {
  std::size_t tensor_bytes = static_cast<std::size_t>(bytes_of(c.type));
  for (std::size_t d = 0; d < c.sizes.size(); ++d) tensor_bytes = d + 1 < c.sizes.size() ? (tensor_bytes * c.sizes[d] + 15) / 16 * 16 : tensor_bytes * c.sizes[d];
  std::vector<unsigned char> host(tensor_bytes), back(kRoom + 1);
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = element_byte(c.type, static_cast<unsigned>(i / static_cast<unsigned>(bytes_of(c.type))), static_cast<int>(i) % bytes_of(c.type));
  unsigned char *tensor, *out;
  cudaMalloc(&tensor, host.size());
  cudaMalloc(&out, back.size());
  cudaMemcpy(tensor, host.data(), host.size(), cudaMemcpyHostToDevice);
  CUtensorMap map;
  const CUresult made = encode(c, tensor, map);
  std::printf("%s: encode %d\n", name, static_cast<int>(made));
  if (made == CUDA_SUCCESS) {
    load<<<1, 1, kRoom>>>(map, at, static_cast<int>(c.sizes.size()), c.pixels != 0, bytes, out);
    say("  load", cudaMemcpy(back.data(), out, back.size(), cudaMemcpyDeviceToHost));
    std::printf("  %u bytes arrive: %d\n", bytes, back[kRoom]);
    show(back.data(), kRoom);
  }
  cudaFree(tensor), cudaFree(out);
}
