// FP4 matrix-vector product for decoding: y[b, n] = t * sum_g s[n, g] * sum_{k in g} W[n, k] * x[b, k].
//
//   W  packed E2M1, [N, K/2] bytes: weight 2j is the low nibble of byte j, weight 2j+1 the high one
//   s  one scale for `group` consecutive weights of a row (16 or 32), [N, K/group]: E4M3, E8M0 or bf16
//   t  one fp32 value in device memory
//   x  bf16 [B, K], B from 1 to 8         y  bf16 or fp32 [B, N]
//
// One warp computes ROWS rows. In one step every lane takes 32 consecutive weights (16 bytes) of each row, a
// warp 1024. Weights go through a ring of shared memory by cp.async; a lane copies only what it reads itself,
// so the ring needs a wait and no barrier. Scales are fetched one step ahead, activations eight weights ahead.
//
// An E2M1 magnitude is the high byte of an fp16 number whose low byte is zero, so one byte-permute over a
// table of eight bytes decodes four weights: no table in memory.
//
// Order of additions: sixteen weights run into one raw fp32 chain by FMAs, a lane's step into two; each chain is
// then scaled and added to the lane's total by one FMA, chain after chain, step after step; the lanes' totals
// are added in pairs 16, 8, 4, 2 and 1 lanes apart; one product with t, one rounding to y. Products of a weight
// and an activation are exact.
//
// What a scale code means is what its format says: E4M3 0x7F and 0xFF and E8M0 0xFF are NaN and reach y, E8M0
// code 0 is 2^-127, and a negative scale is used with its sign. Do not compile with -ftz=true or
// -use_fast_math: 2^-127 is subnormal.

#include <cuda_runtime.h>

#include <cstdint>

extern "C" {

enum fp4_scale_format { FP4_SCALE_E4M3 = 0, FP4_SCALE_E8M0 = 1, FP4_SCALE_BF16 = 2 };
enum fp4_output_type { FP4_OUTPUT_BF16 = 0, FP4_OUTPUT_F32 = 1 };

// Pitches are distances from one row to the next; what lies between a row's end and the next row is never
// touched. Device pointers throughout.
struct fp4_matvec_args {
  const void* weights;        // 16-byte aligned
  const void* scales;         // aligned to two scales where group is 16, to one otherwise
  const float* tensor_scale;  // one value
  const void* x;              // 16-byte aligned
  void* y;                    // aligned to its element
  int64_t n;
  int64_t k;             // a multiple of group, at most 2^30
  int64_t weight_pitch;  // bytes, a multiple of 16, at least k / 2
  int64_t scale_pitch;   // elements, at least k / group, even where group is 16
  int64_t x_pitch;       // elements, a multiple of 8, at least k
  int64_t y_pitch;       // elements, at least n
  int32_t b;
  int32_t group;
  int32_t scale_format;   // fp4_scale_format
  int32_t output_type;    // fp4_output_type
  int32_t rows_per_warp;  // 0: chosen by the plan; 2 or 4 pins it where b is 1
};

struct fp4_matvec_plan_result {
  int32_t warp_step;       // weights of one row that a warp takes in one iteration
  int32_t lane_step;       // weights of one row that a lane takes in one iteration
  int32_t pipeline_depth;  // iterations whose weights are in flight or in use at once
  int32_t rows_per_warp;
  int32_t rows_per_block;
  int32_t columns;  // columns the chosen kernel computes, b rounded up to 1, 2, 4 or 8
  int32_t iterations;
  int64_t grid;
};

// What the launch would do; cudaErrorInvalidValue for arguments that it refuses. Host only, no CUDA call.
cudaError_t fp4_matvec_plan(const fp4_matvec_args* args, int sm_count, fp4_matvec_plan_result* result);

// Enqueues the product on `stream`. Refuses bad arguments before anything is launched or touched. May be
// captured into a CUDA graph.
cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream);

}  // extern "C"

namespace fp4_matvec {

constexpr int kLanes = 32;
constexpr int kWarps = 4;
constexpr int kDepth = 4;
constexpr int kChain = 16;                       // weights in one raw accumulator chain
constexpr int kLaneWeights = 32;                 // two chains, 16 bytes
constexpr int kWarpStep = kLanes * kLaneWeights;
constexpr int kOctets = kLaneWeights / 8;        // eight weights: one 32-bit word of W, 16 bytes of x
constexpr int kMaxBatch = 8;
constexpr int64_t kMaxK = int64_t{1} << 30;
constexpr int64_t kMaxGrid = 2147483647;
// Warps on one SM below which four rows a warp leave it without enough of them to hide latency.
constexpr int kBusyWarps = 12;
constexpr unsigned kFullWarp = 0xffffffffu;
// Blocks that registers must leave room for on one SM.
template <int BATCH>
constexpr int kResidentBlocks = BATCH <= 2 ? 5 : BATCH == 4 ? 4 : 0;

__device__ __forceinline__ uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

__device__ __forceinline__ void copy_async(uint4* destination, const uint8_t* source) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(destination));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(source) : "memory");
}

// Copies `bytes` (0 to 16) and zeroes the rest of the 16; bytes that are not copied are not read.
__device__ __forceinline__ void copy_async(uint4* destination, const uint8_t* source, int bytes) {
  const auto shared = static_cast<uint32_t>(__cvta_generic_to_shared(destination));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(source), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

__device__ __forceinline__ float2 halves_to_floats(uint32_t pair) {
  float2 result;
  asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %2;\n\t"
      "cvt.f32.f16 %0, low;\n\tcvt.f32.f16 %1, high;\n\t}"
      : "=f"(result.x), "=f"(result.y)
      : "r"(pair));
  return result;
}

__device__ __forceinline__ uint16_t round_to_bf16(float value) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// Eight E2M1 codes, first weight in the lowest nibble, to fp32.
__device__ __forceinline__ void decode_weights(uint32_t codes, float (&weight)[8]) {
  constexpr uint32_t kBelowTwo = 0x3e3c3800u;  // high bytes of the fp16 numbers 0, 0.5, 1, 1.5
  constexpr uint32_t kFromTwo = 0x46444240u;   // 2, 3, 4, 6
  // A selector's bit 3 would replicate the byte's sign bit, and a code's bit 3 is its sign: masked here, put
  // into the bytes' own sign bits below.
  const uint32_t magnitudes = codes & 0x77777777u;
  const uint32_t even_signs = codes << 4;
  const uint32_t first = permute_bytes(kBelowTwo, kFromTwo, magnitudes) |
                         (permute_bytes(even_signs, codes, 0x5140) & 0x80808080u);
  const uint32_t last = permute_bytes(kBelowTwo, kFromTwo, magnitudes >> 16) |
                        (permute_bytes(even_signs, codes, 0x7362) & 0x80808080u);
  const float2 pairs[4] = {
      halves_to_floats(permute_bytes(first, 0, 0x1404)), halves_to_floats(permute_bytes(first, 0, 0x3424)),
      halves_to_floats(permute_bytes(last, 0, 0x1404)), halves_to_floats(permute_bytes(last, 0, 0x3424))};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    weight[2 * i] = pairs[i].x;
    weight[2 * i + 1] = pairs[i].y;
  }
}

__device__ __forceinline__ void unpack_activations(const uint4& octet, float (&value)[8]) {
  const uint32_t words[4] = {octet.x, octet.y, octet.z, octet.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    value[2 * i] = __uint_as_float(words[i] << 16);
    value[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

// Scales of a lane's two chains, packed as they lie in memory: two bytes, or two bf16 numbers.
using ScalePair = uint32_t;

template <fp4_scale_format FORMAT>
struct ScaleStorage {
  using Single = uint8_t;
  using Pair = uint16_t;
};

template <>
struct ScaleStorage<FP4_SCALE_BF16> {
  using Single = uint16_t;
  using Pair = uint32_t;
};

__device__ __forceinline__ float decode_e8m0(uint32_t code) {
  const uint32_t bits = code == 0 ? 0x00400000u : code << 23;
  return __uint_as_float(code == 0xff ? 0x7fffffffu : bits);
}

template <fp4_scale_format FORMAT>
__device__ __forceinline__ float2 decode_scales(ScalePair pair) {
  if constexpr (FORMAT == FP4_SCALE_BF16) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  } else if constexpr (FORMAT == FP4_SCALE_E8M0) {
    return {decode_e8m0(pair & 0xffu), decode_e8m0(pair >> 8)};
  } else {
#if __CUDA_ARCH__ >= 890
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
    return halves_to_floats(halves);
#else
    // Exponent and fraction fit into fp16 at 2^-8 of their value, subnormals among fp16's own.
    const uint32_t spread = permute_bytes(pair, 0, 0x1404);
    const float2 scaled = halves_to_floats((spread & 0x80008000u) | ((spread & 0x7f007f00u) >> 1));
    const float nan = __uint_as_float(0x7fffffffu);
    return {(pair & 0x7fu) == 0x7fu ? nan : scaled.x * 256.0f,
            (pair & 0x7f00u) == 0x7f00u ? nan : scaled.y * 256.0f};
#endif
  }
}

// Loads the scales of 32 weights of which `remaining` are left in the row (more than 32 count as 32). A chain
// past the row's end gets a scale of zero, and nothing is read for it.
template <fp4_scale_format FORMAT>
__device__ __forceinline__ ScalePair load_scales(const void* source, bool two, int remaining) {
  using Single = typename ScaleStorage<FORMAT>::Single;
  using Pair = typename ScaleStorage<FORMAT>::Pair;
  if (two && remaining > kChain) return __ldg(static_cast<const Pair*>(source));
  if (remaining <= 0) return 0;
  const ScalePair first = __ldg(static_cast<const Single*>(source));
  return two ? first : first * ((1u << 8 * sizeof(Single)) + 1);
}

// Eight activations of one column; zeros, and no read, past K and for columns that only round b up.
template <int BATCH>
__device__ __forceinline__ uint4 load_activations(const fp4_matvec_args& args, int column, int k) {
  if ((BATCH > 2 && column >= args.b) || k >= static_cast<int>(args.k)) return {0, 0, 0, 0};
  const auto* row = static_cast<const uint16_t*>(args.x) + column * args.x_pitch;
  return __ldg(reinterpret_cast<const uint4*>(row + k));
}

__device__ __forceinline__ float sum_over_warp(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, distance);
  }
  return value;
}

__device__ __forceinline__ void store(const fp4_matvec_args& args, int column, int64_t row, float value) {
  const int64_t index = column * args.y_pitch + row;
  if (args.output_type == FP4_OUTPUT_F32) {
    static_cast<float*>(args.y)[index] = value;
  } else {
    static_cast<uint16_t*>(args.y)[index] = round_to_bf16(value);
  }
}

template <fp4_scale_format FORMAT, int BATCH, int ROWS>
__global__ void __launch_bounds__(kWarps * kLanes, kResidentBlocks<BATCH>)
    product(const fp4_matvec_args args) {
  __shared__ uint4 ring[kWarps][kDepth][ROWS][kLanes];

  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int64_t first_row = (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * ROWS;
  if (first_row >= args.n) return;

  const int depth = static_cast<int>(args.k);
  const int iterations = (depth + kWarpStep - 1) / kWarpStep;
  const int rows = static_cast<int>(min(args.n - first_row, static_cast<int64_t>(ROWS)));
  const bool two_scales = args.group == kChain;
  const int lane_scales = two_scales ? 2 : 1;
  constexpr int kScaleBytes = sizeof(typename ScaleStorage<FORMAT>::Single);
  const auto* weights = static_cast<const uint8_t*>(args.weights) + first_row * args.weight_pitch + lane * 16;
  const auto* scales = static_cast<const uint8_t*>(args.scales) +
                       (first_row * args.scale_pitch + lane * lane_scales) * kScaleBytes;
  const int row_bytes = depth / 2;
  const int64_t scale_row_bytes = args.scale_pitch * kScaleBytes;
  const int scale_step_bytes = kLanes * lane_scales * kScaleBytes;

  // Both fetch a whole step of all rows without a question, and ask about every lane and row otherwise.
  auto fetch_weights = [&](int iteration) {
    auto& stage = ring[warp][iteration % kDepth];
    const uint8_t* source = weights + iteration * (kWarpStep / 2);
    if (rows == ROWS && (iteration + 1) * kWarpStep <= depth) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r, source += args.weight_pitch) copy_async(&stage[r][lane], source);
    } else {
      const int left = min(max(row_bytes - iteration * (kWarpStep / 2) - lane * 16, 0), 16);
#pragma unroll 1
      for (int r = 0; r < ROWS; ++r, source += args.weight_pitch) {
        const int bytes = r < rows ? left : 0;
        copy_async(&stage[r][lane], bytes > 0 ? source : weights, bytes);
      }
    }
    commit_copies();
  };

  ScalePair next_scales[ROWS];
  auto fetch_scales = [&](int iteration) {
    const uint8_t* source = scales + iteration * scale_step_bytes;
    if (two_scales && rows == ROWS && (iteration + 1) * kWarpStep <= depth) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r, source += scale_row_bytes) {
        next_scales[r] = load_scales<FORMAT>(source, true, kLaneWeights);
      }
    } else {
      const int left = depth - iteration * kWarpStep - lane * kLaneWeights;
#pragma unroll
      for (int r = 0; r < ROWS; ++r, source += scale_row_bytes) {
        next_scales[r] = load_scales<FORMAT>(source, two_scales, r < rows ? left : 0);
      }
    }
  };

#pragma unroll 1
  for (int i = 0; i < kDepth - 1; ++i) fetch_weights(i);
  fetch_scales(0);
  uint4 next_x[BATCH];
#pragma unroll
  for (int c = 0; c < BATCH; ++c) next_x[c] = load_activations<BATCH>(args, c, lane * kLaneWeights);
  const float tensor_scale = __ldg(args.tensor_scale);

  float total[ROWS][BATCH] = {};
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    // The stage refilled here was read in the iteration before, by this lane alone.
    fetch_weights(i + kDepth - 1);
    const int k = i * kWarpStep + lane * kLaneWeights;
    float2 scale[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) scale[r] = decode_scales<FORMAT>(next_scales[r]);
    fetch_scales(i + 1);
    wait_copies<kDepth - 1>();

    uint32_t codes[ROWS][kOctets];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const uint4 words = ring[warp][i % kDepth][r][lane];
      codes[r][0] = words.x;
      codes[r][1] = words.y;
      codes[r][2] = words.z;
      codes[r][3] = words.w;
    }

    float raw[ROWS][BATCH];
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      const bool starts_chain = octet % 2 == 0;
      float weight[ROWS][8];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) decode_weights(codes[r][octet], weight[r]);
      const int next_k = octet + 1 < kOctets ? k + (octet + 1) * 8 : k + kWarpStep;
#pragma unroll
      for (int c = 0; c < BATCH; ++c) {
        float value[8];
        unpack_activations(next_x[c], value);
        next_x[c] = load_activations<BATCH>(args, c, next_k);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          float sum = starts_chain ? weight[r][0] * value[0] : fmaf(weight[r][0], value[0], raw[r][c]);
#pragma unroll
          for (int j = 1; j < 8; ++j) sum = fmaf(weight[r][j], value[j], sum);
          raw[r][c] = sum;
          if (!starts_chain) {
            total[r][c] = fmaf(octet < kOctets / 2 ? scale[r].x : scale[r].y, sum, total[r][c]);
          }
        }
      }
    }
  }
  wait_copies<0>();

#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < BATCH; ++c) {
      const float value = sum_over_warp(total[r][c]) * tensor_scale;
      if (lane == r * BATCH + c && c < args.b && r < rows) store(args, c, first_row + r, value);
    }
  }
}

bool aligned(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// Whether `rows` rows of `pitch` elements of `size` bytes can be counted in bytes by 63 bits.
bool countable(int64_t rows, int64_t pitch, int64_t size) { return pitch <= INT64_MAX / size / rows; }

bool shapes_accepted(const fp4_matvec_args& a) {
  if (a.n < 1 || a.b < 1 || a.b > kMaxBatch) return false;
  if (a.group != 16 && a.group != 32) return false;
  if (a.k < a.group || a.k > kMaxK || a.k % a.group != 0) return false;
  if (a.scale_format < FP4_SCALE_E4M3 || a.scale_format > FP4_SCALE_BF16) return false;
  if (a.output_type != FP4_OUTPUT_BF16 && a.output_type != FP4_OUTPUT_F32) return false;
  if (a.weight_pitch < a.k / 2 || a.weight_pitch % 16 != 0) return false;
  if (a.scale_pitch < a.k / a.group || (a.group == 16 && a.scale_pitch % 2 != 0)) return false;
  if (a.x_pitch < a.k || a.x_pitch % 8 != 0) return false;
  if (a.y_pitch < a.n) return false;
  if (a.rows_per_warp != 0 && (a.b != 1 || (a.rows_per_warp != 2 && a.rows_per_warp != 4))) return false;
  return countable(a.n, a.weight_pitch, 1) && countable(a.n, a.scale_pitch, 2) &&
         countable(a.b, a.x_pitch, 2) && countable(a.b, a.y_pitch, 4);
}

bool pointers_accepted(const fp4_matvec_args& a) {
  if (!a.weights || !a.scales || !a.tensor_scale || !a.x || !a.y) return false;
  return aligned(a.weights, 16) && aligned(a.x, 16) && aligned(a.tensor_scale, 4) &&
         aligned(a.scales, (a.scale_format == FP4_SCALE_BF16 ? 2 : 1) * (a.group == 16 ? 2 : 1)) &&
         aligned(a.y, a.output_type == FP4_OUTPUT_F32 ? 4 : 2);
}

int columns_for(int b) { return b <= 2 ? b : b <= 4 ? 4 : 8; }

int rows_per_warp(const fp4_matvec_args& a, int sm_count) {
  if (a.rows_per_warp != 0) return a.rows_per_warp;
  const int64_t warps = (a.n + 3) / 4;
  return a.b == 1 && warps >= static_cast<int64_t>(kBusyWarps) * sm_count ? 4 : 2;
}

template <fp4_scale_format FORMAT>
const void* kernel_for(const fp4_matvec_plan_result& plan) {
  switch (plan.columns) {
    case 1:
      return plan.rows_per_warp == 4 ? reinterpret_cast<const void*>(product<FORMAT, 1, 4>)
                                     : reinterpret_cast<const void*>(product<FORMAT, 1, 2>);
    case 2:
      return reinterpret_cast<const void*>(product<FORMAT, 2, 2>);
    case 4:
      return reinterpret_cast<const void*>(product<FORMAT, 4, 2>);
    default:
      return reinterpret_cast<const void*>(product<FORMAT, 8, 2>);
  }
}

const void* kernel_for(int scale_format, const fp4_matvec_plan_result& plan) {
  switch (scale_format) {
    case FP4_SCALE_E4M3:
      return kernel_for<FP4_SCALE_E4M3>(plan);
    case FP4_SCALE_E8M0:
      return kernel_for<FP4_SCALE_E8M0>(plan);
    default:
      return kernel_for<FP4_SCALE_BF16>(plan);
  }
}

}  // namespace fp4_matvec

extern "C" cudaError_t fp4_matvec_plan(const fp4_matvec_args* args, int sm_count,
                                       fp4_matvec_plan_result* result) {
  using namespace fp4_matvec;
  if (!args || !result || sm_count < 1 || !shapes_accepted(*args)) return cudaErrorInvalidValue;
  const int rows = rows_per_warp(*args, sm_count);
  const int64_t grid = (args->n + kWarps * rows - 1) / (kWarps * rows);
  if (grid > kMaxGrid) return cudaErrorInvalidConfiguration;
  *result = {kWarpStep,
             kLaneWeights,
             kDepth,
             rows,
             kWarps * rows,
             columns_for(args->b),
             static_cast<int32_t>((args->k + kWarpStep - 1) / kWarpStep),
             grid};
  return cudaSuccess;
}

extern "C" cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream) {
  using namespace fp4_matvec;
  if (!args || !shapes_accepted(*args) || !pointers_accepted(*args)) return cudaErrorInvalidValue;
  int device = 0;
  int sm_count = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  fp4_matvec_plan_result plan;
  status = fp4_matvec_plan(args, sm_count, &plan);
  if (status != cudaSuccess) return status;

  fp4_matvec_args passed = *args;
  void* arguments[] = {&passed};
  return cudaLaunchKernel(kernel_for(args->scale_format, plan), dim3(static_cast<unsigned>(plan.grid)),
                          dim3(kWarps * kLanes), arguments, 0, stream);
}
