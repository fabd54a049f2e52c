// FP8 matrix-vector product for decoding: y[b, n] = s[n] * sum_k W[n, k] * x[b, k].
//
//   W  E4M3, [N, K] bytes          s  one fp32 scale for each row
//   x  bf16 [B, K], B from 1 to 8  y  bf16 or fp32 [B, N]
//
// A block computes 16 or 32 rows for all vectors, and its warps share the depth. The tensor cores take weights
// as the rows of an mma and vectors as its 8 columns, so a further vector costs almost nothing. In one step a
// warp takes 64 consecutive weights of each row, and a lane 16 of them (16 bytes) in one row of every eight.
// Weights go through a ring of shared memory by cp.async; a lane copies only what it reads itself, so the ring
// needs a wait and no barrier. Weights and activations are fetched one step ahead. Codes 0x7F and 0xFF are NaN
// and reach y; a negative scale is used with its sign.
//
// Order of additions (mma is mma.sync.m16n8k16, bf16 in, fp32 out, with the tensor core's truncation): the four
// words of a lane's 16 bytes take turns in two chains of mma, which run through all steps of a warp. The chains
// are added; the warps' sums are added in order; one product with the row's scale, one rounding to y. Products
// of a weight and an activation are exact.

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
  int32_t output_type;     // fp8_output_type
  int32_t rows_per_block;  // 0: chosen by the plan; 16 or 32 pins it
};

struct fp8_matvec_plan_result {
  int32_t warp_step;       // weights of one row that a warp takes in one iteration
  int32_t step;            // the same of a block
  int32_t pipeline_depth;  // iterations whose weights are in flight or in use at once
  int32_t warps_per_block;
  int32_t rows_per_block;
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
constexpr int kDepth = 2;
constexpr int kLaneWeights = 16;             // 16 bytes
constexpr int kWarpStep = 4 * kLaneWeights;  // a quad's lanes share a row
constexpr int kMaxBatch = 8;
constexpr int64_t kMaxK = int64_t{1} << 30;
constexpr int64_t kMaxGrid = 2147483647;
// A block's warps, and the blocks that registers leave room for on one SM. With 16 rows many warps share the
// depth, for matrices of few rows; with 32 rows a warp does more work with the activations that it fetches.
template <int ROWS>
constexpr int kWarps = ROWS == 16 ? 16 : 8;
template <int ROWS>
constexpr int kResidentBlocks = ROWS == 16 ? 2 : 4;

__device__ __forceinline__ uint32_t permute_bytes(uint32_t low, uint32_t high, uint32_t selector) {
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t shared, const void* source) {
  if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(source) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(source), "n"(BYTES)
                 : "memory");
  }
}

// Copies `bytes` (0 to BYTES) and zeroes the rest; bytes that are not copied are not read.
template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t shared, const void* source, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(source), "n"(BYTES),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// d += a * b, a 16x16 row-major, b 16x8 column-major.
__device__ __forceinline__ void mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                    uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
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

// Four E4M3 codes, first weight in the lowest byte, to bf16 pairs.
__device__ __forceinline__ void decode_weights(uint32_t codes, uint32_t (&pair)[2]) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t two = i == 0 ? codes : codes >> 16;
#if __CUDA_ARCH__ >= 890
    uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(two)));
    const float2 value = halves_to_floats(halves);
#else
    // Exponent and fraction fit into fp16 at 2^-8 of their value, subnormals among fp16's own.
    const uint32_t spread = permute_bytes(two, 0, 0x1404);
    const float2 scaled = halves_to_floats((spread & 0x80008000u) | ((spread & 0x7f007f00u) >> 1));
    const float nan = __uint_as_float(0x7fffffffu);
    const float2 value = {(two & 0x7fu) == 0x7fu ? nan : scaled.x * 256.0f,
                          (two & 0x7f00u) == 0x7f00u ? nan : scaled.y * 256.0f};
#endif
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair[i]) : "f"(value.y), "f"(value.x));
  }
}

// Eight activations of which `left` are left in the vector; zeros, and no read, past its end.
__device__ __forceinline__ uint4 load_activations(const uint16_t* source, int left) {
  if (left >= 8) return __ldg(reinterpret_cast<const uint4*>(source));
  if (left <= 0) return {0, 0, 0, 0};
  uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
  for (int i = 0; i < 7; ++i) {
    if (i < left) words[i / 2] |= static_cast<uint32_t>(__ldg(source + i)) << (i % 2 * 16);
  }
  return {words[0], words[1], words[2], words[3]};
}

__device__ __forceinline__ void store(const fp8_matvec_args& args, int column, int64_t row, float value) {
  const int64_t index = column * args.y_pitch + row;
  if (args.output_type == FP8_OUTPUT_F32) {
    static_cast<float*>(args.y)[index] = value;
  } else {
    static_cast<uint16_t*>(args.y)[index] = round_to_bf16(value);
  }
}

template <int ROWS>
__global__ void __launch_bounds__(kWarps<ROWS>* kLanes, kResidentBlocks<ROWS>)
    product(const fp8_matvec_args args) {
  constexpr int kOctets = ROWS / 8;  // of rows: a lane holds one row of each
  constexpr int kStep = kWarps<ROWS> * kWarpStep;
  __shared__ uint4 rings[kWarps<ROWS>][kDepth][kOctets][kLanes];

  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int quad = lane / 4;
  const int place = lane % 4;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * ROWS;
  const int rows = static_cast<int>(min(args.n - first_row, static_cast<int64_t>(ROWS)));
  const int first_k = warp * kWarpStep;
  const int depth = static_cast<int>(args.k) - first_k;  // of the row, from the warp's first step on
  auto& ring = rings[warp];

  const int64_t octet_pitch = 8 * args.weight_pitch;
  const auto* weights = static_cast<const uint8_t*>(args.weights) + (first_row + quad) * args.weight_pitch +
                        first_k + place * kLaneWeights;

  // Starts the copies of the warp's next step; from it on, `left` weights of a row are left. Asks about rows and
  // lanes only where some have no whole step.
  auto fetch = [&](int left, int stage) {
    if (rows == ROWS && left >= kWarpStep) {
      const uint8_t* from = weights;
#pragma unroll
      for (int octet = 0; octet < kOctets; ++octet, from += octet_pitch) {
        copy_async<16>(shared_address(&ring[stage][octet][lane]), from);
      }
    } else if (left > 0) {
#pragma unroll 1
      for (int octet = 0; octet < kOctets; ++octet) {
        const int in_row = min(max(left - place * kLaneWeights, 0), 16);
        const int bytes = octet * 8 + quad < rows ? in_row : 0;
        const void* from = bytes > 0 ? weights + octet * octet_pitch : args.weights;
        copy_async<16>(shared_address(&ring[stage][octet][lane]), from, bytes);
      }
    }
    commit_copies();
    weights += kStep;
  };

  // A lane's part of column `quad`: the activations of the weights that it decodes, or zeros.
  const auto* x = static_cast<const uint16_t*>(args.x) + quad * args.x_pitch + first_k + place * kLaneWeights;
  int x_left = quad < args.b ? depth - place * kLaneWeights : 0;
  uint4 next_x[2];
  auto fetch_x = [&](int octet) { next_x[octet] = load_activations(x + octet * 8, x_left - octet * 8); };

#pragma unroll 1
  for (int i = 0; i < kDepth - 1; ++i) fetch(depth - i * kStep, i);
  fetch_x(0);
  fetch_x(1);
  const int row = threadIdx.x % ROWS;
  const int column = threadIdx.x / ROWS;
  const float scale = row < rows ? __ldg(args.scales + first_row + row) : 0.0f;

  float chain[kOctets / 2][2][4] = {};
  int step = 0;
#pragma unroll 1
  for (int left = depth; left > 0; left -= kStep, ++step) {
    // The stage refilled here was read in the iteration before, by this lane alone.
    fetch(left - (kDepth - 1) * kStep, (step + kDepth - 1) % kDepth);
    wait_copies<kDepth - 1>();
    x += kStep;
    x_left -= kStep;
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // of a lane's 16 weights
#pragma unroll
      for (int tile = 0; tile < kOctets / 2; ++tile) {
        const auto* upper = reinterpret_cast<const uint2*>(&ring[step % kDepth][2 * tile][lane]);
        const auto* lower = reinterpret_cast<const uint2*>(&ring[step % kDepth][2 * tile + 1][lane]);
        const uint2 up_words = upper[half], low_words = lower[half];
        uint32_t up[2], low[2];
        decode_weights(up_words.x, up);
        decode_weights(low_words.x, low);
        mma(chain[tile][0], up[0], low[0], up[1], low[1], next_x[half].x, next_x[half].y);
        decode_weights(up_words.y, up);
        decode_weights(low_words.y, low);
        mma(chain[tile][1], up[0], low[0], up[1], low[1], next_x[half].z, next_x[half].w);
      }
      fetch_x(half);
    }
  }

  __syncwarp();  // the ring is free for the warp's sums, [vector][row]
#pragma unroll
  for (int octet = 0; octet < kOctets; ++octet) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const auto& tile = chain[octet / 2];
      const int i = octet % 2 * 2 + c;
      reinterpret_cast<float*>(&ring)[(2 * place + c) * ROWS + octet * 8 + quad] = tile[0][i] + tile[1][i];
    }
  }
  __syncthreads();
  if (row < rows && column < args.b) {
    float sum = 0.0f;
#pragma unroll
    for (const auto& sums : rings) sum += reinterpret_cast<const float*>(&sums)[threadIdx.x];
    store(args, column, first_row + row, sum * scale);
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
  if (a.rows_per_block != 0 && a.rows_per_block != 16 && a.rows_per_block != 32) return false;
  // A row of weights takes more bytes than its scale, so the scales can be counted as well.
  return countable(a.n, a.weight_pitch, 1) && countable(a.b, a.x_pitch, 2) && countable(a.b, a.y_pitch, 4);
}

bool pointers_accepted(const fp8_matvec_args& a) {
  if (!a.weights || !a.scales || !a.x || !a.y) return false;
  return aligned(a.weights, 16) && aligned(a.x, 16) && aligned(a.scales, 4) &&
         aligned(a.y, a.output_type == FP8_OUTPUT_F32 ? 4 : 2);
}

int rows_per_block(const fp8_matvec_args& a, int sm_count) {
  if (a.rows_per_block != 0) return a.rows_per_block;
  return (a.n + 15) / 16 <= int64_t{kResidentBlocks<16>} * sm_count ? 16 : 32;
}

}  // namespace fp8_matvec

extern "C" cudaError_t fp8_matvec_plan(const fp8_matvec_args* args, int sm_count,
                                       fp8_matvec_plan_result* result) {
  using namespace fp8_matvec;
  if (!args || !result || sm_count < 1 || !shapes_accepted(*args)) return cudaErrorInvalidValue;
  const int rows = rows_per_block(*args, sm_count);
  const int64_t grid = (args->n + rows - 1) / rows;
  if (grid > kMaxGrid) return cudaErrorInvalidConfiguration;
  const int warps = rows == 16 ? kWarps<16> : kWarps<32>;
  const int step = warps * kWarpStep;
  *result = {kWarpStep, step, kDepth, warps, rows, static_cast<int32_t>((args->k + step - 1) / step), grid};
  return cudaSuccess;
}

extern "C" cudaError_t fp8_matvec_launch(const fp8_matvec_args* args, cudaStream_t stream) {
  using namespace fp8_matvec;
  if (!args || !pointers_accepted(*args)) return cudaErrorInvalidValue;
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
  const void* kernel = plan.rows_per_block == 16 ? reinterpret_cast<const void*>(product<16>)
                                                 : reinterpret_cast<const void*>(product<32>);
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(plan.grid)),
                          dim3(static_cast<unsigned>(plan.warps_per_block * kLanes)), arguments, 0, stream);
}
