// Design "lanes": weights through a ring of cp.async, of which a lane reads back what it copied itself.
//
// Warp step: 128 * SLABS weights of 16 * TILES rows. Column 2 p of the activations is place p alone: a raw sum for each
// group, scaled once a slab. The totals of up to eight tiles of rows wait for one block barrier. HALF: weights in fp16,
// activations scaled in shared memory; otherwise both in bf16, activations from global memory a step ahead.

#pragma once

#include "fp4_parts.cuh"

namespace variants {

constexpr int kTilesHeld = 8;

template <int TILES, int SLABS>
constexpr int kLanesStage = TILES * SLABS * (2 * 512 + 16 * 8);  // bytes: weights, then scales

template <int TILES, int SLABS, bool HALF, int DEPTH, int THREADS, int BLOCKS>
__global__ void __launch_bounds__(THREADS, BLOCKS) lanes(const Args a) {
  extern __shared__ __align__(128) uint8_t shared[];
  constexpr int kRows = 16 * TILES, kOctets = 2 * TILES;
  constexpr int kWeights = kOctets * SLABS * 512, kScales = SLABS * 8, kStage = kLanesStage<TILES, SLABS>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, quad = lane / 4, place = lane % 4;
  const int warps = blockDim.x / 32, slabs = a.k / kSlab, steps = slabs / SLABS;
  uint8_t* const ring = shared + warp * DEPTH * kStage;
  auto* const parts = reinterpret_cast<float*>(shared + warps * DEPTH * kStage);  // [kTilesHeld][warps][kRows]
  uint8_t* const zeros = reinterpret_cast<uint8_t*>(parts + kTilesHeld * warps * kRows);
  uint8_t* const xs = zeros + kZeros;
  auto* const undo = reinterpret_cast<float*>(xs + slabs * kSlabX);
  const Rows rows(a);
  const int64_t weight_pitch = a.k / 2, scale_pitch = a.k / 16;
  const uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(ring));
  const uint32_t zero = static_cast<uint32_t>(a.k) >> 30;

  const uint8_t *weights[kOctets], *scales;
  int next_row = rows.begin, next_step = warp, next_stage = 0;
  auto seek = [&]() {
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      const int row = min(next_row + 8 * octet + quad, rows.end - 1);
      weights[octet] = a.weights + row * weight_pitch + next_step * (SLABS * 64) + place * 16;
    }
    scales = a.scales + min(next_row + lane % kRows, rows.end - 1) * scale_pitch + next_step * kScales;
  };
  auto fetch = [&]() {
    if (next_row < rows.end) {
#pragma unroll
      for (int octet = 0; octet < kOctets; ++octet) {
#pragma unroll
        for (int slab = 0; slab < SLABS; ++slab) {
          const uint32_t at = to + next_stage + (octet * SLABS + slab) * 512 + lane * 16;
          asm volatile("cp.async.cg.shared.global.L2::128B [%0],[%1],16;" ::"r"(at), "l"(weights[octet] + slab * 64)
                       : "memory");
        }
      }
      if (TILES == 2 || lane < kRows) {
#pragma unroll
        for (int slab = 0; slab < SLABS; ++slab) {
          const uint32_t at = to + next_stage + kWeights + lane * kScales + slab * 8;
          asm volatile("cp.async.ca.shared.global [%0],[%1],8;" ::"r"(at), "l"(scales + slab * 8) : "memory");
        }
      }
      next_step += warps;
      if (next_step < steps) {
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) weights[octet] += warps * SLABS * 64;
        scales += warps * kScales;
      } else {
        next_step = warp, next_row += kRows;
        if (next_row < rows.end) seek();
      }
      next_stage = next_stage + kStage == DEPTH * kStage ? 0 : next_stage + kStage;
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  uint4 half_place[2] = {};  // asked for before the weights, which would hold it up
  if (HALF && threadIdx.x < slabs * 8) {
    half_place[0] = __ldg(reinterpret_cast<const uint4*>(a.x) + 2 * threadIdx.x);
    half_place[1] = __ldg(reinterpret_cast<const uint4*>(a.x) + 2 * threadIdx.x + 1);
  }
  seek();
  if (warp >= steps) next_row = rows.end;
#pragma unroll 1
  for (int i = 0; i < DEPTH - 1; ++i) fetch();
  if constexpr (HALF) {
    for (int group = threadIdx.x; group < slabs * 8; group += blockDim.x) {
      if (group != static_cast<int>(threadIdx.x)) {
        half_place[0] = __ldg(reinterpret_cast<const uint4*>(a.x) + 2 * group);
        half_place[1] = __ldg(reinterpret_cast<const uint4*>(a.x) + 2 * group + 1);
      }
      undo[group] = convert<true>(half_place, reinterpret_cast<uint4*>(xs) + 2 * group);
    }
    if (threadIdx.x < kZeros / 4) reinterpret_cast<uint32_t*>(zeros)[threadIdx.x] = 0;
    __syncthreads();
  }
  const float tensor_scale = __ldg(a.tensor_scale);
  const bool active = quad % 2 == 0 && place == quad / 2;
  const uint16_t* const first_x = a.x + warp * SLABS * kSlab + place * 32;
  const uint16_t* global_x = first_x;
  uint4 next_x[SLABS][4] = {};
  if (!HALF && active) {
#pragma unroll
    for (int slab = 0; slab < SLABS; ++slab) {
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        next_x[slab][word] = __ldg(reinterpret_cast<const uint4*>(global_x) + slab * 16 + word);
      }
    }
  }

  float total[kOctets] = {};
  int step = warp, row = rows.begin, held = 0, stage = 0;
#pragma unroll 1
  while (true) {
    asm volatile("cp.async.wait_group %0;" ::"n"(DEPTH - 2) : "memory");
    __syncwarp();
    fetch();
    const bool last = step + warps >= steps;
    const uint16_t* const x_after = last ? first_x : global_x + warps * SLABS * kSlab;
    if (step < steps) {
#pragma unroll
      for (int slab = 0; slab < SLABS; ++slab) {
        const int number = step * SLABS + slab;
        float raw[2][TILES][4] = {};
        uint4 codes[kOctets];
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) {
          codes[octet] = *reinterpret_cast<const uint4*>(ring + stage + (octet * SLABS + slab) * 512 + lane * 16);
        }
        const uint8_t* const x = active ? xs + (number * 4 + place) * 64 : zeros;
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const uint4 own = HALF ? *reinterpret_cast<const uint4*>(x + word * 16) : next_x[slab][word];
#pragma unroll
          for (int tile = 0; tile < TILES; ++tile) {
            uint32_t upper[4], lower[4];
            decode<HALF>(word_of(codes[2 * tile], word), zero, upper);
            decode<HALF>(word_of(codes[2 * tile + 1], word), zero, lower);
            mma<HALF>(raw[word / 2][tile], upper[0], lower[0], upper[1], lower[1], own.x, own.y);
            mma<HALF>(raw[word / 2][tile], upper[2], lower[2], upper[3], lower[3], own.z, own.w);
          }
          if (!HALF && active) {
            next_x[slab][word] = __ldg(reinterpret_cast<const uint4*>(x_after) + slab * 16 + word);
          }
        }
        float2 factor = {1.0f, 1.0f};
        if (HALF) factor = reinterpret_cast<const float2*>(undo)[number * 4 + place];
#pragma unroll
        for (int octet = 0; octet < kOctets; ++octet) {
          const float2 scale = decode_scales(*reinterpret_cast<const uint16_t*>(
              ring + stage + kWeights + (8 * octet + quad) * kScales + slab * 8 + 2 * place));
          const float sums[2] = {raw[0][octet / 2][octet % 2 * 2], raw[1][octet / 2][octet % 2 * 2]};
          total[octet] = fmaf(scale.x, sums[0] * factor.x, total[octet]);
          total[octet] = fmaf(scale.y, sums[1] * factor.y, total[octet]);
        }
      }
      stage = stage + kStage == DEPTH * kStage ? 0 : stage + kStage;
    }
    step += warps, global_x = x_after;
    if (!last) continue;
    step = warp;
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      total[octet] += __shfl_xor_sync(~0u, total[octet], 1);
      total[octet] += __shfl_xor_sync(~0u, total[octet], 2);
      if (place == 0) parts[(held * warps + warp) * kRows + 8 * octet + quad] = total[octet];
      total[octet] = 0.0f;
    }
    row += kRows;
    if (++held == kTilesHeld || row >= rows.end) {
      __syncthreads();
      const int first = row - held * kRows;
      for (int i = threadIdx.x; i < held * kRows && first + i < rows.end; i += blockDim.x) {
        const float* const from = parts + i / kRows * warps * kRows + i % kRows;
        float sum = 0.0f;
        for (int w = 0; w < warps; ++w) sum += from[w * kRows];
        a.y[first + i] = round_to_bf16(sum * (HALF ? 4.0f : -4.0f) * tensor_scale);
      }
      if (row < rows.end) __syncthreads();
      held = 0;
    }
    if (row >= rows.end) break;
  }
}

}  // namespace variants
