// Design "registers": weights go from global memory straight into registers, one step ahead.
//
// Warp step: 128 * SLABS weights of 16 * TILES rows. The compiler gives the loads of a step and of the next one the
// same scoreboard, so that a step waits for the loads that were meant to be in flight meanwhile.

#pragma once

#include "fp4_parts.cuh"

namespace variants {

template <int TILES, int SLABS, int WARPS, int BLOCKS>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) registers(const Args a) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kRows = 16 * TILES, kOctets = 2 * TILES;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, place = lane % 4;
  const int slabs = a.k / kSlab, steps = slabs / SLABS;
  uint8_t* const xs = shared;
  uint8_t* const zeros = xs + slabs * kSlabX;
  auto* const undo = reinterpret_cast<float*>(zeros + kZeros);
  float* const parts = undo + slabs * 8;  // [2][WARPS][kRows]
  const Rows rows(a);
  const int64_t weight_pitch = a.k / 2, scale_pitch = a.k / 16;
  struct Step {
    uint4 weights[kOctets][SLABS];
    uint32_t scales[kOctets][SLABS];
  };

  const uint8_t *weights[kOctets], *scales[kOctets];
  int next_row = rows.begin, next_step = warp;
  auto seek = [&]() {
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      const int row = min(next_row + 8 * octet + quad, rows.end - 1);
      weights[octet] = a.weights + row * weight_pitch + next_step * (SLABS * 64) + place * 16;
      scales[octet] = a.scales + row * scale_pitch + next_step * (SLABS * 8) + place * 2;
    }
  };
  auto load = [&](Step& step) {
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
#pragma unroll
      for (int slab = 0; slab < SLABS; ++slab) {
        uint4& words = step.weights[octet][slab];
        asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3},[%4];"
                     : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
                     : "l"(weights[octet] + slab * 64));
        uint16_t pair;
        asm volatile("ld.global.nc.u16 %0,[%1];" : "=h"(pair) : "l"(scales[octet] + slab * 8));
        step.scales[octet][slab] = pair;
      }
    }
    next_step += WARPS;
    if (next_step < steps) {
#pragma unroll
      for (int octet = 0; octet < kOctets; ++octet) {
        weights[octet] += WARPS * SLABS * 64;
        scales[octet] += WARPS * SLABS * 8;
      }
    } else {
      next_step = warp, next_row += kRows;
      if (next_row < rows.end) seek();
    }
  };
  Step first, second;
  seek();
  load(first);
  for (int group = threadIdx.x; group < slabs * 8; group += WARPS * 32) {
    const auto* const from = reinterpret_cast<const uint4*>(a.x) + 2 * group;
    const uint4 in[2] = {__ldg(from), __ldg(from + 1)};
    undo[group] = convert<true>(in, reinterpret_cast<uint4*>(xs) + 2 * group);
  }
  if (threadIdx.x < kZeros / 4) reinterpret_cast<uint32_t*>(zeros)[threadIdx.x] = 0;
  const float tensor_scale = __ldg(a.tensor_scale);
  __syncthreads();

  // Column q has group q of a slab: place q / 2, first or second half.
  const bool mine = place == quad / 2, odd = quad % 2 != 0;
  const uint8_t* const even_x = mine && !odd ? xs + quad * 32 : zeros;
  const uint8_t* const odd_x = mine && odd ? xs + quad * 32 : zeros;
  const int even_stride = mine && !odd ? kSlabX : 0, odd_stride = mine && odd ? kSlabX : 0;
  float total[kOctets] = {};
  int step = warp, row = rows.begin, buffer = 0, owner = 0;
  auto take = [&](const Step& now, Step& next) {
    if (next_row < rows.end) load(next);
    float raw[SLABS][TILES][4] = {};
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
      const int number = step * SLABS + slab;
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const uint8_t* const x = word < 2 ? even_x + number * even_stride : odd_x + number * odd_stride;
        const uint4 own = *reinterpret_cast<const uint4*>(x + word % 2 * 16);
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile) {
          uint32_t upper[4], lower[4];
          decode<true>(word_of(now.weights[2 * tile][slab], word), 0, upper);
          decode<true>(word_of(now.weights[2 * tile + 1][slab], word), 0, lower);
          mma<true>(raw[slab][tile], upper[0], lower[0], upper[1], lower[1], own.x, own.y);
          mma<true>(raw[slab][tile], upper[2], lower[2], upper[3], lower[3], own.z, own.w);
        }
      }
      const float2 factor = reinterpret_cast<const float2*>(undo)[number * 4 + place];
#pragma unroll
      for (int octet = 0; octet < kOctets; ++octet) {
        const float2 scale = decode_scales(now.scales[octet][slab]);
        const float* const sums = raw[slab][octet / 2] + octet % 2 * 2;
        total[octet] = fmaf(scale.x, sums[0] * factor.x, total[octet]);
        total[octet] = fmaf(scale.y, sums[1] * factor.y, total[octet]);
      }
    }
    step += WARPS;
    if (step < steps) return;
    step = warp;
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      total[octet] += __shfl_xor_sync(~0u, total[octet], 1);
      total[octet] += __shfl_xor_sync(~0u, total[octet], 2);
      if (place == 0) parts[(buffer * WARPS + warp) * kRows + 8 * octet + quad] = total[octet];
      total[octet] = 0.0f;
    }
    __syncthreads();
    if (warp == owner && lane < kRows && row + lane < rows.end) {
      float sum = 0.0f;
#pragma unroll
      for (int i = 0; i < WARPS; ++i) sum += parts[(buffer * WARPS + i) * kRows + lane];
      a.y[row + lane] = round_to_bf16(sum * 4.0f * tensor_scale);
    }
    owner = owner + 1 == WARPS ? 0 : owner + 1, buffer ^= 1, row += kRows;
  };
  while (true) {
    take(first, second);
    if (row >= rows.end) break;
    take(second, first);
    if (row >= rows.end) break;
  }
}

}  // namespace variants
