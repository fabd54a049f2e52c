// FP4 matrix-vector product for decoding: y[b, n] = t * sum_g s[n, g] * sum_{k in g} W[n, k] * x[b, k].
//
//   W  packed E2M1, [N, K/2] bytes: weight 2j is the low nibble of byte j, weight 2j+1 the high one
//   s  one scale for `group` consecutive weights of a row (16 or 32), [N, K/group]: E4M3, E8M0 or bf16
//   t  one fp32 value in device memory
//   x  bf16 [B, K], B from 1 to 8         y  bf16 or fp32 [B, N]
//
// There are two kernels. `product_of_one` is for one vector, which is what most decoding is; `product` is for more
// of them, and for whoever pins its rows, so that a vector gets the same bits alone and in a batch.
//
// `product`: a block computes 16 or 32 rows for all vectors, and its warps share the depth. The tensor cores
// take weights as the rows of an mma and vectors as its 8 columns, so a further vector costs almost nothing. In
// one step a warp takes 128 consecutive weights of each row, in four chunks of 32. A chunk is 16 bytes of a row,
// of which each of a quad's four lanes decodes one word. Weights and scales go through a ring of shared memory by
// cp.async; a warp copies only what it reads itself, so the ring needs no block barrier. Weights, scales and
// activations are fetched one step ahead.
//
// One byte-permute decodes four weights, from a table of eight bytes in two registers: as long as no magnitude
// reaches 2, all that differs between bf16 magnitudes of E2M1 is the byte of their bits 13 to 6. So weights are
// decoded as -W / 4, and one product at the end takes that back.
//
// Order of additions (mma is mma.sync.m16n8k16, bf16 in, fp32 out, with the tensor core's truncation): the raw
// sum of a group is a chain of two mma, the first over the first four weights of each octet, the second over the
// last four. It is scaled and added to the warp's total by one FMA, group after group, step after step. The
// warps' totals are added in order; one product with -4, which is exact, one with t, one rounding to y. Products
// of a weight and an activation are exact.
//
// `product_of_one`: a block takes a run of rows, 32 at a time, and its warps share the depth. In one step a
// warp takes 256 weights of each row, in two slabs of 128. In a slab, lane 4 q + p decodes 32 consecutive weights,
// "place" p, of the rows q, q + 8, q + 16 and q + 24, which it copied itself. An mma sums over the places, which
// have different scales, so column 2 p of the activations is place p alone, with zeros for the others.
// Bits 15 and 11 to 9 of an fp16 number are E2M1, zero and the subnormal number among them, so weights are decoded
// as W * 2^-14 in fp16. Activations need more exponents than fp16 has: those of a group share a power of two that
// brings the largest into [2^15, 2^16). Those below 2^-32 of it are rounded to a multiple of 2^-24, all others exact.
//
// It is launched programmatically where the code is for sm_90 or later: its blocks are set up, and with
// `constant_weights` their first weights under way, while the kernel before is still ending.
//
// Its order of additions (mma is mma.sync.m16n8k16, fp16 in, fp32 out): the raw sum of a group is a chain of two
// mma for each octet, the first with weights 7, 5, 3 and 1, the second with the even ones. It is multiplied by
// its power of two (to that of W / 4: exact), scaled and added to the lane's total by one FMA, slab after slab and
// group after group of the place. Totals of the four places are added as (0 + 1) + (2 + 3), those of the warps
// in order; one product with 4, which is exact, one with t, one rounding to y.
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
  int64_t scale_pitch;   // elements, at least k / group, even where group is 16; fast as a multiple of 16 bytes
  int64_t x_pitch;       // elements, a multiple of 8, at least k
  int64_t y_pitch;       // elements, at least n
  int32_t b;
  int32_t group;
  int32_t scale_format;    // fp4_scale_format
  int32_t output_type;     // fp4_output_type
  // 0: chosen by the plan. 16 or 32 pins it, and the kernel for several vectors; a multiple of 32 from 64 on pins
  // the rows of the kernel for one vector.
  int32_t rows_per_block;
  // 1: no kernel before this one in the stream writes weights or scales, so the kernel for one vector may start to
  // copy them before its predecessor has ended. 0: nothing is read before that. Only code for sm_90 or later differs.
  int32_t constant_weights;
};

struct fp4_matvec_plan_result {
  int32_t warp_step;       // weights of one row that a warp takes in one iteration
  int32_t step;            // the same of a block
  int32_t pipeline_depth;  // iterations whose weights are in flight or in use at once
  int32_t warps_per_block;
  int32_t rows_per_block;
  int32_t passes;  // over a chunk: 2 where group is 16 and b more than 4, or 1
  int32_t iterations;
  int64_t grid;
};

// What the launch would do on a device whose blocks can have 227 KiB of shared memory (sm_90); one vector that
// does not fit is taken for several. cudaErrorInvalidValue for arguments that it refuses. Host only, no CUDA call.
cudaError_t fp4_matvec_plan(const fp4_matvec_args* args, int sm_count, fp4_matvec_plan_result* result);

// Enqueues the product on `stream`. Refuses bad arguments before anything is launched or touched. May be
// captured into a CUDA graph.
cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream);

}  // extern "C"

namespace fp4_matvec {

constexpr int kLanes = 32;
constexpr int kDepth = 2;
constexpr int kChunkWeights = 32;  // 16 bytes of a row
constexpr int kChunks = 4;         // of a warp's step
constexpr int kWarpStep = kChunks * kChunkWeights;
constexpr int kRowBytes = kWarpStep / 2;  // of a row and a warp's step
constexpr int kMaxBatch = 8;
constexpr int64_t kMaxK = int64_t{1} << 30;
constexpr int64_t kMaxGrid = 2147483647;
// A block's warps, and the blocks that registers leave room for on one SM. With 16 rows many warps share the
// depth, for matrices of few rows; with 32 rows a warp does more work with the activations that it fetches.
template <int ROWS>
constexpr int kWarps = ROWS == 16 ? 16 : 8;
template <int ROWS>
constexpr int kResidentBlocks = ROWS == 16 ? 2 : 3;
constexpr float kUndoDecode = -4.0f;  // weights are decoded as -W / 4

template <fp4_scale_format FORMAT>
constexpr int kScaleSize = FORMAT == FP4_SCALE_BF16 ? 2 : 1;

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

// The same for 16 bytes that no other lane needs.
__device__ __forceinline__ void copy_async_own(uint32_t shared, const void* source, int bytes) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared), "l"(source), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Four 8x8 matrices of 16-bit elements, one row address a lane: two chunks of 16 rows.
__device__ __forceinline__ void load_matrices(uint32_t (&upper)[2], uint32_t (&lower)[2], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(upper[0]), "=r"(lower[0]), "=r"(upper[1]), "=r"(lower[1])
               : "r"(row)
               : "memory");
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

// What the byte-permutes select from.
struct Tables {
  uint32_t below_two;  // bits 13 to 6 of the bf16 numbers 0, 0.5, 1 and 1.5, each divided by 4
  uint32_t from_two;   // the same of 2, 3, 4 and 6
  uint32_t positive;   // in every byte a 2 and no sign

  // `zero`: one that the compiler cannot see, or it would load these constants anew for every use.
  __device__ __forceinline__ explicit Tables(uint32_t zero)
      : below_two(0xfbfaf800u | zero), from_two(0xfffefdfcu), positive(0x02020202u | zero) {}
};

// Eight E2M1 codes, first weight in the lowest nibble, to bf16 pairs of -weight / 4.
__device__ __forceinline__ void decode_weights(const Tables& tables, uint32_t codes, uint32_t (&pair)[4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t four = half == 0 ? codes : codes >> 16;
    // A code's bit 3 is its sign, and a selector's bit 3 replicates the sign bit of the byte selected: masked
    // for the magnitudes; without the mask it turns a byte of `positive` into 0.
    const uint32_t magnitudes = permute_bytes(tables.below_two, tables.from_two, four & 0x7777u);
    const uint32_t signs = permute_bytes(tables.positive, tables.positive, four);
    pair[2 * half] = permute_bytes(magnitudes, signs, 0x5140) << 6;
    pair[2 * half + 1] = permute_bytes(magnitudes, signs, 0x7362) << 6;
  }
}

__device__ __forceinline__ float decode_e8m0(uint32_t code) {
  const float value = fmaxf(__uint_as_float(code << 23), 0x1p-127f);  // code 0 is 2^-127
  return fmaf(value, 0.0f, value);                                    // infinity, code 0xFF, becomes NaN
}

// Scales 2 * number and 2 * number + 1 of those packed in `words`.
template <fp4_scale_format FORMAT>
__device__ __forceinline__ float2 decode_scales(const uint32_t* words, int number) {
  if constexpr (FORMAT == FP4_SCALE_BF16) {
    return {__uint_as_float(words[number] << 16), __uint_as_float(words[number] & 0xffff0000u)};
  } else {
    const uint32_t pair = number % 2 == 0 ? words[number / 2] & 0xffffu : words[number / 2] >> 16;
    if constexpr (FORMAT == FP4_SCALE_E8M0) {
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
}

template <int WORDS>
__device__ __forceinline__ void load_words(uint32_t (&words)[WORDS], const uint8_t* shared) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4);
  if constexpr (WORDS == 1) {
    words[0] = *reinterpret_cast<const uint32_t*>(shared);
  } else if constexpr (WORDS == 2) {
    const uint2 loaded = *reinterpret_cast<const uint2*>(shared);
    words[0] = loaded.x;
    words[1] = loaded.y;
  } else {
    const uint4 loaded = *reinterpret_cast<const uint4*>(shared);
    words[0] = loaded.x;
    words[1] = loaded.y;
    words[2] = loaded.z;
    words[3] = loaded.w;
  }
}

__device__ __forceinline__ void store(const fp4_matvec_args& args, int column, int64_t row, float value) {
  const int64_t index = column * args.y_pitch + row;
  if (args.output_type == FP4_OUTPUT_F32) {
    static_cast<float*>(args.y)[index] = value;
  } else {
    static_cast<uint16_t*>(args.y)[index] = round_to_bf16(value);
  }
}

// An mma adds up what a quad's lanes hold. With a scale for 16 weights, lanes 0 and 1 hold one group of a chunk
// and lanes 2 and 3 the next. Up to four vectors then have two columns each, with the activations of one group
// and zeros for the other; TWO_PASSES, for more vectors, takes the groups one by one, a column for each vector.
template <fp4_scale_format FORMAT, int GROUP, bool TWO_PASSES, int ROWS>
__global__ void __launch_bounds__(kWarps<ROWS>* kLanes, kResidentBlocks<ROWS>)
    product(const fp4_matvec_args args) {
  constexpr int kGroups = kChunkWeights / GROUP;         // of a chunk
  constexpr int kOwnColumns = TWO_PASSES ? 1 : kGroups;  // of a vector
  constexpr int kOwnVectors = 2 / kOwnColumns;           // a lane holds two columns of an mma's result
  constexpr int kOctets = ROWS / 8;                      // of rows: a lane holds one row of each
  constexpr int kStep = kWarps<ROWS> * kWarpStep;
  constexpr int kScaleBytes = kWarpStep / GROUP * kScaleSize<FORMAT>;  // of a row and a warp's step
  constexpr int kWeightBytes = ROWS * kRowBytes;
  constexpr int kStage = kWeightBytes + ROWS * kScaleBytes;  // weights row after row, then scales
  __shared__ __align__(128) uint8_t rings[kWarps<ROWS>][kDepth * kStage];

  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int quad = lane / 4;
  const int place = lane % 4;
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * ROWS;
  const int rows = static_cast<int>(min(args.n - first_row, static_cast<int64_t>(ROWS)));
  const int first_k = warp * kWarpStep;
  const int depth = static_cast<int>(args.k) - first_k;  // of the row, from the warp's first step on
  uint8_t* const ring = rings[warp];

  // A lane copies chunk `place` of row `quad` in every octet of rows, and the scales of row `lane`. The XOR
  // spreads the rows of an ldmatrix over all banks.
  const int64_t octet_pitch = 8 * args.weight_pitch;
  const int64_t scale_pitch = args.scale_pitch * kScaleSize<FORMAT>;
  const auto* weights = static_cast<const uint8_t*>(args.weights) + (first_row + quad) * args.weight_pitch +
                        first_k / 2 + place * 16;
  const auto* scales = static_cast<const uint8_t*>(args.scales) + (first_row + lane) * scale_pitch +
                       first_k / GROUP * kScaleSize<FORMAT>;
  const bool scales_aligned =
      (reinterpret_cast<uintptr_t>(args.scales) | static_cast<uintptr_t>(scale_pitch)) % kScaleBytes == 0;
  const bool whole_rows = rows == ROWS && scales_aligned;
  const uint32_t weights_to = shared_address(ring) + (quad * kChunks + (place ^ quad / 2)) * 16;
  const uint32_t scales_to = shared_address(ring) + kWeightBytes + lane * kScaleBytes;

  // Starts the copies of the warp's next step; from it on, `left` weights of a row are left. Asks about rows and
  // lanes only where some have no whole step.
  auto fetch = [&](int left, int stage) {
    if (whole_rows && left >= kWarpStep) {
      const uint8_t* from = weights;
#pragma unroll
      for (int octet = 0; octet < kOctets; ++octet, from += octet_pitch) {
        copy_async<16>(weights_to + stage + octet * 8 * kRowBytes, from);
      }
      if (lane < ROWS) copy_async<kScaleBytes>(scales_to + stage, scales);
    } else if (left > 0) {
#pragma unroll 1
      for (int octet = 0; octet < kOctets; ++octet) {
        const int in_row = min(max((left - place * kChunkWeights) / 2, 0), 16);
        const int bytes = octet * 8 + quad < rows ? in_row : 0;
        copy_async<16>(weights_to + stage + octet * 8 * kRowBytes,
                       bytes > 0 ? weights + octet * octet_pitch : args.weights, bytes);
      }
      if (lane < ROWS) {
        const int bytes = lane < rows ? min(left / GROUP * kScaleSize<FORMAT>, kScaleBytes) : 0;
        if (scales_aligned) {
          copy_async<kScaleBytes>(scales_to + stage, bytes > 0 ? scales : args.scales, bytes);
        } else {
#pragma unroll 1
          for (int i = 0; i < kScaleBytes; ++i) {
            ring[stage + kWeightBytes + lane * kScaleBytes + i] = i < bytes ? __ldg(scales + i) : 0;
          }
        }
      }
    }
    commit_copies();
    weights += kStep / 2;
    scales += kStep / GROUP * kScaleSize<FORMAT>;
  };

  // A lane's part of column `quad`: the activations of the words that it decodes, or zeros.
  const int vector = quad / kOwnColumns;
  const bool has_x = vector < args.b && (kOwnColumns == 1 || place / 2 == quad % 2);
  const auto* x = static_cast<const uint16_t*>(args.x) + vector * args.x_pitch + first_k + place * 8;
  int x_left = has_x ? depth - place * 8 : 0;
  uint4 next_x[kChunks];
  auto fetch_x = [&](int chunk) {
    next_x[chunk] = {0, 0, 0, 0};
    if (x_left > chunk * kChunkWeights) {
      next_x[chunk] = __ldg(reinterpret_cast<const uint4*>(x + chunk * kChunkWeights));
    }
  };

#pragma unroll 1
  for (int i = 0; i < kDepth - 1; ++i) fetch(depth - i * kStep, i * kStage);
#pragma unroll
  for (int chunk = 0; chunk < kChunks; ++chunk) fetch_x(chunk);
  const float tensor_scale = __ldg(args.tensor_scale);

  // A lane's row for ldmatrix: the matrices are rows 0 to 7 and 8 to 15 of one chunk, then of the next.
  const int matrix_row = lane % 16;
  const uint32_t matrix =
      shared_address(ring) + (matrix_row * kChunks + (lane / 16 ^ matrix_row / 2 % kChunks)) * 16;
  const uint8_t* const own_scales = ring + kWeightBytes + quad * kScaleBytes;
  const Tables tables(static_cast<uint32_t>(args.k >> 32));  // k is below 2^32

  float total[kOctets][kOwnVectors] = {};
  int step = 0;
#pragma unroll 1
  for (int left = depth; left > 0; left -= kStep, ++step) {
    wait_copies<kDepth - 2>();
    __syncwarp();  // every lane's copies are there, and every lane is done with the stage refilled now
    fetch(left - (kDepth - 1) * kStep, (step + kDepth - 1) % kDepth * kStage);
    x += kStep;
    x_left -= kStep;

    const int stage = step % kDepth * kStage;
    uint32_t scale_words[kOctets][kScaleBytes / 4];
#pragma unroll
    for (int octet = 0; octet < kOctets; ++octet) {
      load_words(scale_words[octet], own_scales + stage + octet * 8 * kScaleBytes);
    }
    uint32_t codes[kOctets][2];
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
#pragma unroll
      for (int octet = 0; octet < kOctets; octet += 2) {
        if (chunk % 2 == 0) {
          const uint32_t first_chunk = matrix + stage + octet * 8 * kRowBytes;
          load_matrices(codes[octet], codes[octet + 1], first_chunk ^ chunk * 16);
        }
        uint32_t upper[4], lower[4];  // of two octets of rows
        decode_weights(tables, codes[octet][chunk % 2], upper);
        decode_weights(tables, codes[octet + 1][chunk % 2], lower);
#pragma unroll
        for (int pass = 0; pass < (TWO_PASSES ? 2 : 1); ++pass) {
          const bool takes_part = !TWO_PASSES || place / 2 == pass;
          const uint4 own_x = takes_part ? next_x[chunk] : uint4{0, 0, 0, 0};
          float raw[4] = {};
          mma(raw, upper[0], lower[0], upper[1], lower[1], own_x.x, own_x.y);
          mma(raw, upper[2], lower[2], upper[3], lower[3], own_x.z, own_x.w);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int row = octet + i / 2, column = i % 2;
            const int group = chunk * kGroups + (TWO_PASSES ? pass : column / kOwnVectors);
            const float2 scale = decode_scales<FORMAT>(scale_words[row], group / 2);
            float& sum = total[row][column % kOwnVectors];
            sum = fmaf(group % 2 == 0 ? scale.x : scale.y, raw[i], sum);
          }
        }
      }
      fetch_x(chunk);
    }
  }

  __syncwarp();  // the ring is free for the warp's totals, [vector][row]
#pragma unroll
  for (int octet = 0; octet < kOctets; ++octet) {
#pragma unroll
    for (int v = 0; v < kOwnVectors; ++v) {
      reinterpret_cast<float*>(ring)[(place * kOwnVectors + v) * ROWS + octet * 8 + quad] = total[octet][v];
    }
  }
  __syncthreads();
  const int row = threadIdx.x % ROWS;
  const int column = threadIdx.x / ROWS;
  if (row < rows && column < args.b) {
    float sum = 0.0f;
#pragma unroll
    for (const auto& totals : rings) sum += reinterpret_cast<const float*>(totals)[threadIdx.x];
    // Adding zero keeps the zero of an empty sum positive.
    store(args, column, first_row + row, fmaf(sum, kUndoDecode, 0.0f) * tensor_scale);
  }
}

// ---- One vector ----

constexpr int kPlaces = 4;
constexpr int kPlaceWeights = 32;  // 16 bytes of a row
constexpr int kSlabs = 2;          // of a warp's step
constexpr int kSlabWeights = kPlaces * kPlaceWeights;
constexpr int kOneWarpStep = kSlabs * kSlabWeights;
constexpr int kOneMaxWarps = 16;   // of a block, and of an SM, whose registers they fill
constexpr int kOneLeastRows = 8;   // that a block is worth
constexpr int kFewRounds = 4;      // that half the warps of an SM may take for a row
constexpr int kOneMostRows = 1 << 30;
constexpr int kTileRows = 32;
constexpr int kTileOctets = kTileRows / 8;
constexpr int kTilesHeld = 8;  // tiles whose totals wait until the block adds them up
constexpr int kTileBytes = kTileRows * kOneWarpStep / 2;
constexpr int kPlaceBytes = 2 * kPlaceWeights;    // of activations
constexpr int kPlanSharedBytes = 232448;          // what a block can have on sm_90
constexpr int kPlanSmBytes = 233472;              // what the blocks of an SM can have there
constexpr int kReservedBytes = 1024;              // of them, that each block takes besides its own
constexpr float kUndoQuarter = 4.0f;              // totals are those of W / 4

__host__ __device__ constexpr int one_scale_bytes(int format, int group) {  // of a row and a step
  return kOneWarpStep / group * (format == FP4_SCALE_BF16 ? 2 : 1);
}
__host__ __device__ constexpr int one_stage_bytes(int format, int group) {
  return kTileBytes + kTileRows * one_scale_bytes(format, group);
}

// One operation on three words, bit by bit; TABLE is its truth table.
template <int TABLE>
__device__ __forceinline__ uint32_t bitwise(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
  return result;
}

// Eight E2M1 codes to fp16 pairs of weight * 2^-14: weights 3 and 7, 1 and 5, 2 and 6, 0 and 4. A code's sign
// goes to the highest bit of a byte, its magnitude to bits 3 to 1.
__device__ __forceinline__ void decode_halves(uint32_t codes, uint32_t (&pair)[4]) {
  constexpr int kAnd = 0xc0, kOrThenAnd = 0xa8;
  constexpr uint32_t kHighBytes = 0x8e008e00u, kLowBytes = 0x008e008eu;
  const uint32_t odd = bitwise<kAnd>(codes, 0xf0f0f0f0u, 0), odd_magnitudes = odd >> 3;
  pair[0] = bitwise<kOrThenAnd>(odd, odd_magnitudes, kHighBytes);
  pair[1] = bitwise<kOrThenAnd>(odd, odd_magnitudes, kLowBytes) << 8;
  const uint32_t even = bitwise<kAnd>(codes, 0x0f0f0f0fu, 0), signs = even << 4, magnitudes = even << 1;
  pair[2] = bitwise<kOrThenAnd>(signs, magnitudes, kHighBytes);
  pair[3] = bitwise<kOrThenAnd>(signs, magnitudes, kLowBytes) << 8;
}

// As mma, of fp16 numbers.
__device__ __forceinline__ void mma_halves(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3,
                                           uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pack_halves(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// The scales of a place: two where GROUP is 16, one where it is 32.
template <fp4_scale_format FORMAT, int GROUP>
__device__ __forceinline__ float2 place_scales(const uint8_t* scales) {
  constexpr int kBytes = kPlaceWeights / GROUP * kScaleSize<FORMAT>;
  uint32_t packed;
  if constexpr (kBytes == 4) {
    packed = *reinterpret_cast<const uint32_t*>(scales);
  } else if constexpr (kBytes == 2) {
    packed = *reinterpret_cast<const uint16_t*>(scales);
  } else {
    packed = *scales;
  }
  return decode_scales<FORMAT>(&packed, 0);
}

// Half a place of activations, 16 of them; both halves are in neighbouring lanes.
struct HalfPlace {
  uint4 octets[2] = {};

  __device__ __forceinline__ void load(const fp4_matvec_args& args, int number) {
    octets[0] = octets[1] = {};
    if (number * (kPlaceWeights / 2) < args.k) {
      const auto* const from = static_cast<const uint4*>(args.x) + 2 * number;
      octets[0] = __ldg(from);
      octets[1] = __ldg(from + 1);
    }
  }

  // Stores them as fp16 numbers, in the order of decode_halves, and what takes a group's raw sum to that of W / 4.
  // All lanes of a warp take part; numbers from `end` on are not stored.
  template <int GROUP>
  __device__ __forceinline__ void convert(int number, int end, uint8_t* places, float* factors) const {
    uint32_t largest = 0;
#pragma unroll
    for (const uint4& octet : octets) {
      for (const uint32_t pair : {octet.x, octet.y, octet.z, octet.w}) {
        largest = max(largest, max(pair << 16 & 0x7fff0000u, pair & 0x7fff0000u));
      }
    }
    if (GROUP == kPlaceWeights) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    if (number >= end) return;
    // The exponent as it is stored, 127 for 1. Below 15 the power of two would not be a number of fp32.
    const uint32_t exponent = max(largest >> 23, 15u);
    const float scale = __uint_as_float((127 + 15 + 127 - exponent) << 23);
    auto* const to = reinterpret_cast<uint4*>(places) + 2 * number;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t pairs[4] = {octets[i].x, octets[i].y, octets[i].z, octets[i].w};
      float x[8];
#pragma unroll
      for (int pair = 0; pair < 4; ++pair) {
        x[2 * pair] = __uint_as_float(pairs[pair] << 16) * scale;
        x[2 * pair + 1] = __uint_as_float(pairs[pair] & 0xffff0000u) * scale;
      }
      to[i] = {pack_halves(x[3], x[7]), pack_halves(x[1], x[5]), pack_halves(x[2], x[6]),
               pack_halves(x[0], x[4])};
    }
    if (GROUP < kPlaceWeights || number % 2 == 0) {
      factors[number * (kPlaceWeights / 2) / GROUP] = __uint_as_float((exponent - 15 + 14 - 2) << 23);
    }
  }
};

// Waits until the kernel before has ended and what it wrote is visible.
__device__ __forceinline__ void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel be set up while this one runs.
__device__ __forceinline__ void allow_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <fp4_scale_format FORMAT, int GROUP>
__global__ void __launch_bounds__(kOneMaxWarps* kLanes, 1)
    product_of_one(const fp4_matvec_args args, const int rows_per_block) {
  constexpr int kGroups = kPlaceWeights / GROUP;  // of a place
  constexpr int kWords = 4 / kGroups;             // of a group
  constexpr int kHalves = kTileOctets / 2;        // of a tile: the 16 rows of an mma
  constexpr int kScaleBytes = one_scale_bytes(FORMAT, GROUP);
  constexpr int kScaleCopy = kScaleBytes < 16 ? kScaleBytes : 16;
  constexpr int kStage = one_stage_bytes(FORMAT, GROUP);
  extern __shared__ __align__(128) uint8_t shared[];

  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int warps = blockDim.x / kLanes;
  const int quad = lane / 4;
  const int place = lane % 4;
  const int step = warps * kOneWarpStep;
  const int places = (static_cast<int>(args.k) - 1) / step * warps * kSlabs * kPlaces + warps * kSlabs * kPlaces;
  uint8_t* const ring = shared + warp * (kDepth * kStage);
  auto* const totals = reinterpret_cast<float*>(shared + warps * (kDepth * kStage));
  uint8_t* const zeros = reinterpret_cast<uint8_t*>(totals + kTilesHeld * warps * kTileRows);
  uint8_t* const all_x = zeros + kPlaceBytes;
  auto* const factors = reinterpret_cast<float*>(all_x + places * kPlaceBytes);

  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * rows_per_block;
  const int rows = static_cast<int>(min(args.n - first_row, static_cast<int64_t>(rows_per_block)));
  const int first_k = warp * kOneWarpStep;
  const int depth = static_cast<int>(args.k) - first_k;

  // A lane copies the 16 bytes of its place in each octet of rows and slab, and the scales of row `lane`.
  const int64_t octet_pitch = 8 * args.weight_pitch;
  const int64_t scale_pitch = args.scale_pitch * kScaleSize<FORMAT>;
  const auto* const first_weights = static_cast<const uint8_t*>(args.weights) +
                                    (first_row + quad) * args.weight_pitch + first_k / 2 + place * 16;
  const auto* const first_scales = static_cast<const uint8_t*>(args.scales) +
                                   (first_row + lane) * scale_pitch + first_k / GROUP * kScaleSize<FORMAT>;
  const bool scales_aligned =
      (reinterpret_cast<uintptr_t>(args.scales) | static_cast<uintptr_t>(scale_pitch)) % kScaleCopy == 0;
  const uint32_t weights_to = shared_address(ring) + lane * 16;
  const uint32_t scales_to = shared_address(ring) + kTileBytes + lane * kScaleBytes;

  // The next copies: from row `next_row` of the block on, with `next_left` weights of a row left.
  const auto* weights = first_weights;
  const auto* scales = first_scales;
  int next_row = depth > 0 ? 0 : rows, next_left = depth, next_stage = 0;
  // Starts the copies of the warp's next step. Asks about rows only in the last tile, and about lanes only where
  // some have no whole step. What no row has becomes zero.
  auto fetch = [&]() {
    if (next_row < rows) {
      const bool whole_step = next_left >= kOneWarpStep && scales_aligned;
      if (whole_step && next_row + kTileRows <= rows) {
        const uint8_t* from = weights;
#pragma unroll
        for (int octet = 0; octet < kTileOctets; ++octet, from += octet_pitch) {
#pragma unroll
          for (int slab = 0; slab < kSlabs; ++slab) {
            copy_async<16>(weights_to + next_stage + (octet * kSlabs + slab) * (kLanes * 16),
                           from + slab * (kSlabWeights / 2));
          }
        }
#pragma unroll
        for (int i = 0; i < kScaleBytes; i += kScaleCopy) {
          copy_async<kScaleCopy>(scales_to + next_stage + i, scales + i);
        }
      } else if (whole_step) {
        const uint8_t* from = weights;
#pragma unroll
        for (int octet = 0; octet < kTileOctets; ++octet, from += octet_pitch) {
          const bool has_row = next_row + octet * 8 + quad < rows;
          const auto* const own = has_row ? from : static_cast<const uint8_t*>(args.weights);
#pragma unroll
          for (int slab = 0; slab < kSlabs; ++slab) {
            copy_async_own(weights_to + next_stage + (octet * kSlabs + slab) * (kLanes * 16),
                           own + slab * (kSlabWeights / 2), has_row ? 16 : 0);
          }
        }
        const bool has_scales = next_row + lane < rows;
#pragma unroll
        for (int i = 0; i < kScaleBytes; i += kScaleCopy) {
          copy_async<kScaleCopy>(scales_to + next_stage + i, has_scales ? scales + i : args.scales,
                                 has_scales ? kScaleCopy : 0);
        }
      } else {
#pragma unroll 1
        for (int i = 0; i < kTileOctets * kSlabs; ++i) {
          const int octet = i / kSlabs, slab = i % kSlabs;
          const int own_left = next_left - slab * kSlabWeights - place * kPlaceWeights;
          const int bytes = next_row + octet * 8 + quad < rows ? min(max(own_left / 2, 0), 16) : 0;
          copy_async<16>(weights_to + next_stage + i * (kLanes * 16),
                         bytes > 0 ? weights + octet * octet_pitch + slab * (kSlabWeights / 2) : args.weights,
                         bytes);
        }
        const int own_scales = min(next_left / GROUP * kScaleSize<FORMAT>, kScaleBytes);
        const int bytes = next_row + lane < rows ? own_scales : 0;
        if (scales_aligned) {
#pragma unroll 1
          for (int i = 0; i < kScaleBytes; i += kScaleCopy) {
            const int left = min(max(bytes - i, 0), kScaleCopy);
            copy_async<kScaleCopy>(scales_to + next_stage + i, left > 0 ? scales + i : args.scales, left);
          }
        } else {
#pragma unroll 1
          for (int i = 0; i < kScaleBytes; ++i) {
            ring[next_stage + kTileBytes + lane * kScaleBytes + i] = i < bytes ? __ldg(scales + i) : 0;
          }
        }
      }
      next_stage = next_stage + kStage == kDepth * kStage ? 0 : next_stage + kStage;
      next_left -= step;
      weights += step / 2;
      scales += step / GROUP * kScaleSize<FORMAT>;
      if (next_left <= 0) {
        next_row += kTileRows;
        next_left = depth;
        weights = first_weights + next_row * args.weight_pitch;
        scales = first_scales + next_row * scale_pitch;
      }
    }
    commit_copies();
  };

  // Weights that may not be read yet would hold up the activations, and are asked for after them.
  HalfPlace own_half;
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    if ((turn == 0) == (args.constant_weights != 0)) {
#pragma unroll 1
      for (int i = 0; i < kDepth - 1; ++i) fetch();
    } else {
      wait_for_predecessor();
      allow_dependents();
      own_half.load(args, threadIdx.x);
    }
  }
  const int halves = 2 * places, threads = blockDim.x;
#pragma unroll 1
  for (int first = 0; first < halves; first += threads) {
    const int number = first + threadIdx.x;
    if (first > 0) own_half.load(args, number);
    if (number - lane < halves) own_half.convert<GROUP>(number, halves, all_x, factors);
  }
  if (threadIdx.x < kPlaceBytes / 4) reinterpret_cast<uint32_t*>(zeros)[threadIdx.x] = 0;
  const float tensor_scale = __ldg(args.tensor_scale);
  __syncthreads();

  const bool active = quad % 2 == 0 && quad / 2 == place;  // the lane's column has activations of its place
  const int first_place = first_k / kPlaceWeights + place;
  int stage = 0, held = 0;
#pragma unroll 1
  for (int row = 0; row < rows; row += kTileRows) {
    float total[kTileOctets] = {};
    int number = first_place;
#pragma unroll 1
    for (int left = depth; left > 0; left -= step, number += step / kPlaceWeights) {
      wait_copies<kDepth - 2>();
      __syncwarp();  // the scales that other lanes copied are there, and no lane reads the stage refilled now
      fetch();
#pragma unroll
      for (int slab = 0; slab < kSlabs; ++slab) {
        const uint8_t* const x = active ? all_x + (number + slab * kPlaces) * kPlaceBytes : zeros;
        const float* const place_factors = factors + (number + slab * kPlaces) * kGroups;
        uint4 codes[kTileOctets];
#pragma unroll
        for (int octet = 0; octet < kTileOctets; ++octet) {
          const int copied = (octet * kSlabs + slab) * kLanes + lane;
          codes[octet] = *reinterpret_cast<const uint4*>(ring + stage + copied * 16);
        }
        // All groups before the first is scaled, which waits for its mma.
        float raw[kGroups][kHalves][4] = {};
#pragma unroll
        for (int word = 0; word < 4; ++word) {
          const uint4 own_x = *reinterpret_cast<const uint4*>(x + word * 16);
          const int group = word / kWords;
#pragma unroll
          for (int half = 0; half < kHalves; ++half) {
            const uint4 &above = codes[2 * half], &below = codes[2 * half + 1];
            uint32_t upper[4], lower[4];
            decode_halves(word == 0 ? above.x : word == 1 ? above.y : word == 2 ? above.z : above.w, upper);
            decode_halves(word == 0 ? below.x : word == 1 ? below.y : word == 2 ? below.z : below.w, lower);
            mma_halves(raw[group][half], upper[0], lower[0], upper[1], lower[1], own_x.x, own_x.y);
            mma_halves(raw[group][half], upper[2], lower[2], upper[3], lower[3], own_x.z, own_x.w);
          }
        }
#pragma unroll
        for (int octet = 0; octet < kTileOctets; ++octet) {
          const float2 scale = place_scales<FORMAT, GROUP>(
              ring + stage + kTileBytes + (octet * 8 + quad) * kScaleBytes +
              (slab * kPlaces + place) * kGroups * kScaleSize<FORMAT>);
#pragma unroll
          for (int group = 0; group < kGroups; ++group) {
            const float sum = raw[group][octet / 2][octet % 2 * 2] * place_factors[group];
            total[octet] = fmaf(group == 0 ? scale.x : scale.y, sum, total[octet]);
          }
        }
      }
      stage = stage + kStage == kDepth * kStage ? 0 : stage + kStage;
    }

#pragma unroll
    for (int octet = 0; octet < kTileOctets; ++octet) {
      total[octet] += __shfl_xor_sync(0xffffffffu, total[octet], 1);
      total[octet] += __shfl_xor_sync(0xffffffffu, total[octet], 2);
      if (place == 0) totals[(held * warps + warp) * kTileRows + octet * 8 + quad] = total[octet];
    }
    const bool last = row + kTileRows >= rows;
    if (++held < kTilesHeld && !last) continue;
    __syncthreads();  // the totals of all warps are there
    const int held_row = row - (held - 1) * kTileRows;
#pragma unroll 1
    for (int i = threadIdx.x; i < held * kTileRows && held_row + i < rows; i += threads) {
      const float* const from = totals + i / kTileRows * warps * kTileRows + i % kTileRows;
      float sum = 0.0f;
      for (int w = 0; w < warps; ++w) sum += from[w * kTileRows];
      // Adding zero keeps the zero of an empty sum positive.
      store(args, 0, first_row + held_row + i, fmaf(sum, kUndoQuarter, 0.0f) * tensor_scale);
    }
    held = 0;
    if (!last) __syncthreads();  // and added up
  }
}

// How one vector is shared out.
struct OneVector {
  int rounds;      // of steps over a row
  int warps;       // of a block: as few as these rounds need
  int64_t shared;  // bytes of a block
  int rows;        // of a block

  OneVector(const fp4_matvec_args& a, int sm_count) {
    // Blocks of half an SM's warps: one ends while another computes. Not for long vectors, which take up the memory.
    share_depth(a, kOneMaxWarps / 2);
    if (rounds > kFewRounds || resident() < 2) share_depth(a, kOneMaxWarps);
    const int64_t slots = int64_t{sm_count} * (resident() > 0 ? resident() : 1);
    // Where half of them can hold all rows in a tile each, the other half is for the next kernel to start in.
    const int64_t blocks = resident() > 1 && a.n <= slots / 2 * kTileRows ? slots / 2 : slots;
    const int64_t share = (a.n - 1) / blocks + 1;
    rows = static_cast<int>(share < kOneLeastRows ? kOneLeastRows : share > kOneMostRows ? kOneMostRows : share);
    if (a.rows_per_block != 0) rows = a.rows_per_block;
  }

 private:
  void share_depth(const fp4_matvec_args& a, int most_warps) {
    const int64_t steps = (a.k - 1) / kOneWarpStep + 1;
    rounds = static_cast<int>((steps - 1) / most_warps + 1);
    warps = static_cast<int>((steps - 1) / rounds + 1);
    const int64_t x_bytes = int64_t{rounds} * warps * kSlabs * kPlaces *
                            (kPlaceBytes + 4 * (kPlaceWeights / a.group));
    shared = warps * (kDepth * one_stage_bytes(a.scale_format, a.group) + kTilesHeld * kTileRows * 4) + kPlaceBytes +
             x_bytes;
  }

  // Blocks that an SM of sm_90 holds at once.
  int resident() const {
    const int by_memory = static_cast<int>(kPlanSmBytes / (shared + kReservedBytes));
    return by_memory < kOneMaxWarps / warps ? by_memory : kOneMaxWarps / warps;
  }
};

bool for_one(const fp4_matvec_args& a) {
  return a.b == 1 && a.rows_per_block != 16 && a.rows_per_block != 32;
}

using OneKernel = void (*)(fp4_matvec_args, int);

template <fp4_scale_format FORMAT>
OneKernel one_kernel_for(int group) {
  return group == 16 ? product_of_one<FORMAT, 16> : product_of_one<FORMAT, 32>;
}

OneKernel one_kernel_for(const fp4_matvec_args& a) {
  switch (a.scale_format) {
    case FP4_SCALE_E4M3:
      return one_kernel_for<FP4_SCALE_E4M3>(a.group);
    case FP4_SCALE_E8M0:
      return one_kernel_for<FP4_SCALE_E8M0>(a.group);
    default:
      return one_kernel_for<FP4_SCALE_BF16>(a.group);
  }
}

// ---- The launch ----

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
  if (a.rows_per_block < 0 || a.rows_per_block > kOneMostRows) return false;
  if (a.rows_per_block != 16 && a.rows_per_block % kTileRows != 0) return false;
  if (a.rows_per_block > 32 && a.b != 1) return false;
  if (a.constant_weights != 0 && a.constant_weights != 1) return false;
  return countable(a.n, a.weight_pitch, 1) && countable(a.n, a.scale_pitch, 2) &&
         countable(a.b, a.x_pitch, 2) && countable(a.b, a.y_pitch, 4);
}

bool pointers_accepted(const fp4_matvec_args& a) {
  if (!a.weights || !a.scales || !a.tensor_scale || !a.x || !a.y) return false;
  return aligned(a.weights, 16) && aligned(a.x, 16) && aligned(a.tensor_scale, 4) &&
         aligned(a.scales, (a.scale_format == FP4_SCALE_BF16 ? 2 : 1) * (a.group == 16 ? 2 : 1)) &&
         aligned(a.y, a.output_type == FP4_OUTPUT_F32 ? 4 : 2);
}

int rows_per_block(const fp4_matvec_args& a, int sm_count) {
  if (a.rows_per_block != 0) return a.rows_per_block;
  return (a.n + 15) / 16 <= int64_t{kResidentBlocks<16>} * sm_count ? 16 : 32;
}

// Without rows that only the kernel for one vector knows.
fp4_matvec_args for_several(fp4_matvec_args a) {
  if (a.rows_per_block > 32) a.rows_per_block = 0;
  return a;
}

bool two_passes(const fp4_matvec_args& a) { return a.group == 16 && a.b > 4; }

template <fp4_scale_format FORMAT, int ROWS>
const void* kernel_for(const fp4_matvec_args& a) {
  if (a.group == 32) return reinterpret_cast<const void*>(product<FORMAT, 32, false, ROWS>);
  return two_passes(a) ? reinterpret_cast<const void*>(product<FORMAT, 16, true, ROWS>)
                       : reinterpret_cast<const void*>(product<FORMAT, 16, false, ROWS>);
}

template <fp4_scale_format FORMAT>
const void* kernel_for(const fp4_matvec_args& a, int rows) {
  return rows == 16 ? kernel_for<FORMAT, 16>(a) : kernel_for<FORMAT, 32>(a);
}

const void* kernel_for(const fp4_matvec_args& a, int rows) {
  switch (a.scale_format) {
    case FP4_SCALE_E4M3:
      return kernel_for<FP4_SCALE_E4M3>(a, rows);
    case FP4_SCALE_E8M0:
      return kernel_for<FP4_SCALE_E8M0>(a, rows);
    default:
      return kernel_for<FP4_SCALE_BF16>(a, rows);
  }
}

}  // namespace fp4_matvec

extern "C" cudaError_t fp4_matvec_plan(const fp4_matvec_args* args, int sm_count,
                                       fp4_matvec_plan_result* result) {
  using namespace fp4_matvec;
  if (!args || !result || sm_count < 1 || !shapes_accepted(*args)) return cudaErrorInvalidValue;
  const OneVector one(*args, sm_count);
  if (for_one(*args) && one.shared <= kPlanSharedBytes) {
    const int64_t blocks = (args->n - 1) / one.rows + 1;
    if (blocks > kMaxGrid) return cudaErrorInvalidConfiguration;
    *result = {kOneWarpStep, one.warps * kOneWarpStep, kDepth, one.warps, one.rows, 1, one.rounds, blocks};
    return cudaSuccess;
  }
  const int rows = rows_per_block(for_several(*args), sm_count);
  const int64_t grid = (args->n + rows - 1) / rows;
  if (grid > kMaxGrid) return cudaErrorInvalidConfiguration;
  const int warps = rows == 16 ? kWarps<16> : kWarps<32>;
  const int step = warps * kWarpStep;
  *result = {kWarpStep,
             step,
             kDepth,
             warps,
             rows,
             two_passes(*args) ? 2 : 1,
             static_cast<int32_t>((args->k + step - 1) / step),
             grid};
  return cudaSuccess;
}

extern "C" cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream) {
  using namespace fp4_matvec;
  if (!args || !pointers_accepted(*args)) return cudaErrorInvalidValue;
  int device = 0;
  int sm_count = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  fp4_matvec_plan_result plan = {};
  status = fp4_matvec_plan(args, sm_count, &plan);
  if (status != cudaSuccess) return status;

  if (for_one(*args)) {
    int shared = 0;
    status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (status != cudaSuccess) return status;
    const OneVector one(*args, sm_count);
    if (one.shared <= shared && one.shared <= kPlanSharedBytes) {
      const OneKernel kernel = one_kernel_for(*args);
      const int bytes = static_cast<int>(one.shared);
      status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
      if (status != cudaSuccess) return status;
      // Only code made for sm_90 or later waits for the kernel before, so only then may it start early.
      cudaFuncAttributes code = {};
      status = cudaFuncGetAttributes(&code, kernel);
      if (status != cudaSuccess) return status;
      cudaLaunchAttribute early_start = {};
      early_start.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      early_start.val.programmaticStreamSerializationAllowed = 1;
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(static_cast<unsigned>(plan.grid));
      config.blockDim = dim3(static_cast<unsigned>(one.warps * kLanes));
      config.dynamicSmemBytes = static_cast<size_t>(one.shared);
      config.stream = stream;
      config.attrs = &early_start;
      config.numAttrs = code.ptxVersion >= 90 ? 1 : 0;
      return cudaLaunchKernelEx(&config, kernel, *args, one.rows);
    }
    fp4_matvec_args pinned = *args;
    pinned.rows_per_block = rows_per_block(for_several(*args), sm_count);
    return fp4_matvec_launch(&pinned, stream);
  }

  fp4_matvec_args passed = *args;
  void* arguments[] = {&passed};
  return cudaLaunchKernel(kernel_for(*args, plan.rows_per_block), dim3(static_cast<unsigned>(plan.grid)),
                          dim3(static_cast<unsigned>(plan.warps_per_block * kLanes)), arguments, 0, stream);
}
