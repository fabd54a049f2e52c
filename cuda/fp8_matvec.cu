// FP8 matrix-vector product for decoding: y[b, n] = s[n] * sum_k W[n, k] * x[b, k].
//
//   W  E4M3, [N, K] bytes          s  one fp32 scale for each row
//   x  bf16 [B, K], B from 1 to 8  y  bf16 or fp32 [B, N]
//
// One warp computes ROWS rows. In one step every lane takes 16 consecutive weights (16 bytes) of each row, a
// warp 512. Weights go through a ring of shared memory by cp.async; a lane copies only what it reads itself, so
// the ring needs a wait and no barrier. Activations are fetched eight ahead. Codes 0x7F and 0xFF are NaN and
// reach y; a negative scale is used with its sign.
//
// Order of additions: a lane has two fp32 chains of FMAs through all steps, one for each octet of a step; they
// are added; the lanes' sums are added in pairs 16, 8, 4, 2 and 1 lanes apart; one product with the row's scale,
// one rounding to y. Products of a weight and an activation are exact.

#include <cuda_runtime.h>

#include <cstdint>

extern "C" {

enum fp8_output_type { FP8_OUTPUT_BF16 = 0, FP8_OUTPUT_F32 = 1 };

// Pitches are distances from one row to the next; what lies between a row's end and the next row is never
// touched. Device pointers throughout.
struct fp8_matvec_args {
  const void* weights;  // 16-byte aligned
  const float* scales;  // [N]
  const void* x;        // 16-byte aligned
  void* y;              // aligned to its element
  int64_t n;
  int64_t k;             // at most 2^30
  int64_t weight_pitch;  // bytes, a multiple of 16, at least k
  int64_t x_pitch;       // elements, a multiple of 8, at least k
  int64_t y_pitch;       // elements, at least n
  int32_t b;
  int32_t output_type;    // fp8_output_type
  int32_t rows_per_warp;  // 0: chosen by the plan; 2 or 4 pins it where b is 1
};

struct fp8_matvec_plan_result {
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
cudaError_t fp8_matvec_plan(const fp8_matvec_args* args, int sm_count, fp8_matvec_plan_result* result);

// Enqueues the product on `stream`. Refuses bad arguments before anything is launched or touched. May be
// captured into a CUDA graph.
cudaError_t fp8_matvec_launch(const fp8_matvec_args* args, cudaStream_t stream);

}  // extern "C"

namespace fp8_matvec {

constexpr int kLanes = 32;
constexpr int kWarps = 4;
constexpr int kDepth = 4;
constexpr int kLaneWeights = 16;  // 16 bytes
constexpr int kWarpStep = kLanes * kLaneWeights;
constexpr int kOctets = kLaneWeights / 8;  // eight weights: two 32-bit words of W, 16 bytes of x
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

// Four E4M3 codes, first weight in the lowest byte, to fp32.
__device__ __forceinline__ void decode_weights(uint32_t codes, float* weight) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t pair = i == 0 ? codes : codes >> 16;
#if __CUDA_ARCH__ >= 890
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(pair)));
    const float2 value = halves_to_floats(halves);
#else
    // Exponent and fraction fit into fp16 at 2^-8 of their value, subnormals among fp16's own.
    const uint32_t spread = permute_bytes(pair, 0, 0x1404);
    const float2 scaled = halves_to_floats((spread & 0x80008000u) | ((spread & 0x7f007f00u) >> 1));
    const float nan = __uint_as_float(0x7fffffffu);
    const float2 value = {(pair & 0x7fu) == 0x7fu ? nan : scaled.x * 256.0f,
                          (pair & 0x7f00u) == 0x7f00u ? nan : scaled.y * 256.0f};
#endif
    weight[2 * i] = value.x;
    weight[2 * i + 1] = value.y;
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

// Eight activations of one column; zeros, and no read, past K and for columns that only round b up.
template <int BATCH>
__device__ __forceinline__ uint4 load_activations(const fp8_matvec_args& args, int column, int k) {
  const int left = static_cast<int>(args.k) - k;
  if ((BATCH > 2 && column >= args.b) || left <= 0) return {0, 0, 0, 0};
  const auto* source = static_cast<const uint16_t*>(args.x) + column * args.x_pitch + k;
  if (left >= 8) return __ldg(reinterpret_cast<const uint4*>(source));
  uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 7; ++i) {
    if (i < left) words[i / 2] |= static_cast<uint32_t>(__ldg(source + i)) << (i % 2 * 16);
  }
  return {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ float sum_over_warp(float value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, distance);
  }
  return value;
}

__device__ __forceinline__ void store(const fp8_matvec_args& args, int column, int64_t row, float value) {
  const int64_t index = column * args.y_pitch + row;
  if (args.output_type == FP8_OUTPUT_F32) {
    static_cast<float*>(args.y)[index] = value;
  } else {
    static_cast<uint16_t*>(args.y)[index] = round_to_bf16(value);
  }
}

template <int BATCH, int ROWS>
__global__ void __launch_bounds__(kWarps * kLanes, kResidentBlocks<BATCH>)
    product(const fp8_matvec_args args) {
  __shared__ uint4 ring[kWarps][kDepth][ROWS][kLanes];

  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int64_t first_row = (static_cast<int64_t>(blockIdx.x) * kWarps + warp) * ROWS;
  if (first_row >= args.n) return;

  const int depth = static_cast<int>(args.k);
  const int iterations = (depth + kWarpStep - 1) / kWarpStep;
  const int rows = static_cast<int>(min(args.n - first_row, static_cast<int64_t>(ROWS)));
  const auto* weights = static_cast<const uint8_t*>(args.weights) + first_row * args.weight_pitch + lane * 16;

  // Fetches a whole step of all rows without a question, and asks about every lane and row otherwise.
  auto fetch_weights = [&](int iteration) {
    auto& stage = ring[warp][iteration % kDepth];
    const uint8_t* source = weights + iteration * kWarpStep;
    if (rows == ROWS && (iteration + 1) * kWarpStep <= depth) {
#pragma unroll
      for (int r = 0; r < ROWS; ++r, source += args.weight_pitch) copy_async(&stage[r][lane], source);
    } else {
      const int left = min(max(depth - iteration * kWarpStep - lane * kLaneWeights, 0), 16);
#pragma unroll 1
      for (int r = 0; r < ROWS; ++r, source += args.weight_pitch) {
        const int bytes = r < rows ? left : 0;
        copy_async(&stage[r][lane], bytes > 0 ? source : weights, bytes);
      }
    }
    commit_copies();
  };

#pragma unroll 1
  for (int i = 0; i < kDepth - 1; ++i) fetch_weights(i);
  uint4 next_x[BATCH];
#pragma unroll
  for (int c = 0; c < BATCH; ++c) next_x[c] = load_activations<BATCH>(args, c, lane * kLaneWeights);
  float scale[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) scale[r] = r < rows ? __ldg(args.scales + first_row + r) : 0.0f;

  float chain[ROWS][BATCH][kOctets] = {};
#pragma unroll 1
  for (int i = 0; i < iterations; ++i) {
    // The stage refilled here was read in the iteration before, by this lane alone.
    fetch_weights(i + kDepth - 1);
    const int k = i * kWarpStep + lane * kLaneWeights;
    wait_copies<kDepth - 1>();

    uint4 codes[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) codes[r] = ring[warp][i % kDepth][r][lane];

#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      float weight[ROWS][8];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        decode_weights(octet == 0 ? codes[r].x : codes[r].z, weight[r]);
        decode_weights(octet == 0 ? codes[r].y : codes[r].w, weight[r] + 4);
      }
      const int next_k = octet + 1 < kOctets ? k + (octet + 1) * 8 : k + kWarpStep;
#pragma unroll
      for (int c = 0; c < BATCH; ++c) {
        float value[8];
        unpack_activations(next_x[c], value);
        next_x[c] = load_activations<BATCH>(args, c, next_k);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
#pragma unroll
          for (int j = 0; j < 8; ++j) chain[r][c][octet] = fmaf(weight[r][j], value[j], chain[r][c][octet]);
        }
      }
    }
  }
  wait_copies<0>();

#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < BATCH; ++c) {
      const float value = sum_over_warp(chain[r][c][0] + chain[r][c][1]) * scale[r];
      if (lane == r * BATCH + c && c < args.b && r < rows) store(args, c, first_row + r, value);
    }
  }
}

bool aligned(const void* pointer, uintptr_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

// Whether `rows` rows of `pitch` elements of `size` bytes can be counted in bytes by 63 bits.
bool countable(int64_t rows, int64_t pitch, int64_t size) { return pitch <= INT64_MAX / size / rows; }

bool shapes_accepted(const fp8_matvec_args& a) {
  if (a.n < 1 || a.b < 1 || a.b > kMaxBatch || a.k < 1 || a.k > kMaxK) return false;
  if (a.output_type != FP8_OUTPUT_BF16 && a.output_type != FP8_OUTPUT_F32) return false;
  if (a.weight_pitch < a.k || a.weight_pitch % 16 != 0) return false;
  if (a.x_pitch < a.k || a.x_pitch % 8 != 0) return false;
  if (a.y_pitch < a.n) return false;
  if (a.rows_per_warp != 0 && (a.b != 1 || (a.rows_per_warp != 2 && a.rows_per_warp != 4))) return false;
  return countable(a.n, a.weight_pitch, 1) && countable(a.b, a.x_pitch, 2) && countable(a.b, a.y_pitch, 4) &&
         countable(a.n, 1, 4);
}

bool pointers_accepted(const fp8_matvec_args& a) {
  if (!a.weights || !a.scales || !a.x || !a.y) return false;
  return aligned(a.weights, 16) && aligned(a.x, 16) && aligned(a.scales, 4) &&
         aligned(a.y, a.output_type == FP8_OUTPUT_F32 ? 4 : 2);
}

int columns_for(int b) { return b <= 2 ? b : b <= 4 ? 4 : 8; }

int rows_per_warp(const fp8_matvec_args& a, int sm_count) {
  if (a.rows_per_warp != 0) return a.rows_per_warp;
  const int64_t warps = (a.n + 3) / 4;
  return a.b == 1 && warps >= static_cast<int64_t>(kBusyWarps) * sm_count ? 4 : 2;
}

const void* kernel_for(const fp8_matvec_plan_result& plan) {
  switch (plan.columns) {
    case 1:
      return plan.rows_per_warp == 4 ? reinterpret_cast<const void*>(product<1, 4>)
                                     : reinterpret_cast<const void*>(product<1, 2>);
    case 2:
      return reinterpret_cast<const void*>(product<2, 2>);
    case 4:
      return reinterpret_cast<const void*>(product<4, 2>);
    default:
      return reinterpret_cast<const void*>(product<8, 2>);
  }
}

}  // namespace fp8_matvec

extern "C" cudaError_t fp8_matvec_plan(const fp8_matvec_args* args, int sm_count,
                                       fp8_matvec_plan_result* result) {
  using namespace fp8_matvec;
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

extern "C" cudaError_t fp8_matvec_launch(const fp8_matvec_args* args, cudaStream_t stream) {
  using namespace fp8_matvec;
  if (!args || !shapes_accepted(*args) || !pointers_accepted(*args)) return cudaErrorInvalidValue;
  int device = 0;
  int sm_count = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  fp8_matvec_plan_result plan;
  status = fp8_matvec_plan(args, sm_count, &plan);
  if (status != cudaSuccess) return status;

  fp8_matvec_args passed = *args;
  void* arguments[] = {&passed};
  return cudaLaunchKernel(kernel_for(plan), dim3(static_cast<unsigned>(plan.grid)),
                          dim3(kWarps * kLanes), arguments, 0, stream);
}
