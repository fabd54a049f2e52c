// What the designs of the NVFP4 matvec in this folder share: decoding, tensor cores, activations.
//
// One vector, scales in E4M3 for 16 weights, K a multiple of 256. They are for measuring; what decides about a
// kernel of cuda/ is the suite.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace variants {

struct Args {
  const uint8_t* weights;  // [n, k / 2]
  const uint8_t* scales;   // [n, k / 16]
  const float* tensor_scale;
  const uint16_t* x;  // bf16
  uint16_t* y;        // bf16
  int n, k;
};

constexpr int kSlab = 128;           // weights of a row: lane 4 q + p has the 32 of place p
constexpr int kSlabX = 2 * kSlab;    // bytes of activations
constexpr int kSlabUndo = 8 * 4;     // and of what undoes their scaling, for each group
constexpr int kZeros = 64;           // bytes that stand for the activations of other places

__device__ __forceinline__ uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

template <int TABLE>
__device__ __forceinline__ uint32_t bitwise(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
  return result;
}

template <bool HALF>
__device__ __forceinline__ void mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                    uint32_t b1) {
  if constexpr (HALF) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  }
}

__device__ __forceinline__ float2 decode_scales(uint32_t pair) {
  uint32_t halves;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
  float2 result;
  asm("{.reg .b16 l,h; mov.b32 {l,h},%2; cvt.f32.f16 %0,l; cvt.f32.f16 %1,h;}"
      : "=f"(result.x), "=f"(result.y)
      : "r"(halves));
  return result;
}

__device__ __forceinline__ uint16_t round_to_bf16(float value) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// HALF: fp16 pairs (3,7) (1,5) (2,6) (0,4) of weight * 2^-14, in 11 operations. Otherwise bf16 pairs in order, of
// -weight / 4, in 15, as cuda/fp4_matvec.cu decodes; `zero` is a 0 that the compiler cannot see.
template <bool HALF>
__device__ __forceinline__ void decode(uint32_t codes, uint32_t zero, uint32_t (&pair)[4]) {
  if constexpr (HALF) {
    const uint32_t odd = bitwise<0xc0>(codes, 0xf0f0f0f0u, 0), odd_magnitudes = odd >> 3;
    pair[0] = bitwise<0xa8>(odd, odd_magnitudes, 0x8e008e00u);
    pair[1] = bitwise<0xa8>(odd, odd_magnitudes, 0x008e008eu) * 256u;
    const uint32_t even = bitwise<0xc0>(codes, 0x0f0f0f0fu, 0), signs = even * 16u, magnitudes = even * 2u;
    pair[2] = bitwise<0xa8>(signs, magnitudes, 0x8e008e00u);
    pair[3] = bitwise<0xa8>(signs, magnitudes, 0x008e008eu) * 256u;
  } else {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t four = half == 0 ? codes : codes >> 16;
      const uint32_t positive = 0x02020202u | zero;
      const uint32_t magnitudes = permute_bytes(0xfbfaf800u | zero, 0xfffefdfcu, four & 0x7777u);
      const uint32_t signs = permute_bytes(positive, positive, four);
      pair[2 * half] = permute_bytes(magnitudes, signs, 0x5140) << 6;
      pair[2 * half + 1] = permute_bytes(magnitudes, signs, 0x7362) << 6;
    }
  }
}

// 16 activations as the decoder's partner, and what takes a raw sum to that of -W / 4 or W / 4.
template <bool HALF>
__device__ __forceinline__ float convert(const uint4 (&in)[2], uint4* out) {
  if constexpr (!HALF) {
    out[0] = in[0], out[1] = in[1];
    return 1.0f;
  } else {
    uint32_t largest = 0;
#pragma unroll
    for (const uint4& octet : in) {
      for (const uint32_t pair : {octet.x, octet.y, octet.z, octet.w}) {
        largest = max(largest, max(pair << 16 & 0x7fff0000u, pair & 0x7fff0000u));
      }
    }
    const uint32_t exponent = max(largest >> 23, 15u);
    const float scale = __uint_as_float((127 + 15 + 127 - exponent) << 23);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t pairs[4] = {in[i].x, in[i].y, in[i].z, in[i].w};
      float x[8];
      uint32_t halves[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        x[2 * j] = __uint_as_float(pairs[j] << 16) * scale;
        x[2 * j + 1] = __uint_as_float(pairs[j] & 0xffff0000u) * scale;
      }
      const int order[4] = {3, 1, 2, 0};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(halves[j]) : "f"(x[order[j] + 4]), "f"(x[order[j]]));
      }
      out[i] = {halves[0], halves[1], halves[2], halves[3]};
    }
    return __uint_as_float((exponent - 3) << 23);
  }
}

__device__ __forceinline__ uint32_t word_of(const uint4& words, int number) {
  return number == 0 ? words.x : number == 1 ? words.y : number == 2 ? words.z : words.w;
}

// The rows of a block: every block has its share, within one.
struct Rows {
  int begin, end;

  __device__ __forceinline__ explicit Rows(const Args& a)
      : begin(static_cast<int>(static_cast<int64_t>(blockIdx.x) * a.n / gridDim.x)),
        end(static_cast<int>(static_cast<int64_t>(blockIdx.x + 1) * a.n / gridDim.x)) {}
};

}  // namespace variants
