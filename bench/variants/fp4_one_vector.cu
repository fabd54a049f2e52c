// The FP4 matvec with a kernel of its own for one vector; for more vectors, and for pinned rows, that of cuda/.
// Same ABI: python3 bench/matvec_bench.py --source bench/variants/fp4_one_vector.cu checks and times it.
//
// `product_of_one`: a block an SM takes a run of rows, 32 at a time, and its warps share the depth. In one step a
// warp takes 256 weights of each row, in two slabs of 128. In a slab, lane 4 q + p decodes 32 consecutive weights,
// "place" p, of the rows q, q + 8, q + 16 and q + 24, which it copied itself. An mma sums over the places, which
// have different scales, so column 2 p of the activations is place p alone, with zeros for the others.
// Bits 15 and 11 to 9 of an fp16 number are E2M1, zero and the subnormal number among them, so weights are decoded
// as W * 2^-14 in fp16. Activations need more exponents than fp16 has: those of a group share a power of two that
// brings the largest into [2^15, 2^16). Those below 2^-32 of it are rounded to a multiple of 2^-24, all others exact.
//
// Its order of additions (mma is mma.sync.m16n8k16, fp16 in, fp32 out): the raw sum of a group is a chain of two
// mma for each octet, the first with weights 7, 5, 3 and 1, the second with the even ones. It is multiplied by
// its power of two (to that of W / 4: exact), scaled and added to the lane's total by one FMA, slab after slab and
// group after group of the place. Totals of the four places are added as (0 + 1) + (2 + 3), those of the warps
// in order; one product with 4, which is exact, one with t, one rounding to y.

#define fp4_matvec_launch fp4_matvec_launch_several
#include "../../cuda/fp4_matvec.cu"
#undef fp4_matvec_launch

extern "C" cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream);

namespace fp4_matvec {

constexpr int kPlaces = 4;
constexpr int kPlaceWeights = 32;  // 16 bytes of a row
constexpr int kSlabs = 2;          // of a warp's step
constexpr int kSlabWeights = kPlaces * kPlaceWeights;
constexpr int kOneWarpStep = kSlabs * kSlabWeights;
constexpr int kOneMaxWarps = 16;
constexpr int kOneLeastRows = 8;  // that a block is worth
constexpr int kOneMostRows = 1 << 30;
constexpr int kTileRows = 32;
constexpr int kTileOctets = kTileRows / 8;
constexpr int kTilesHeld = 4;  // tiles whose totals wait until the block adds them up
constexpr int kTileBytes = kTileRows * kOneWarpStep / 2;
constexpr int kPlaceBytes = 2 * kPlaceWeights;    // of activations
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
  uint4 octets[2];

  __device__ __forceinline__ HalfPlace(const fp4_matvec_args& args, int number) : octets{} {
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

template <fp4_scale_format FORMAT, int GROUP>
__global__ void __launch_bounds__(kOneMaxWarps* kLanes, 1)
    product_of_one(const fp4_matvec_args args, const int rows_per_block) {
  constexpr int kGroups = kPlaceWeights / GROUP;  // of a place
  constexpr int kWords = 4 / kGroups;             // of a group
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
  // Starts the copies of the warp's next step. Asks about rows and lanes only where some have no whole step.
  auto fetch = [&]() {
    if (next_row < rows) {
      if (next_row + kTileRows <= rows && next_left >= kOneWarpStep && scales_aligned) {
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

  HalfPlace own_half(args, threadIdx.x);  // asked for before the weights, which would hold it up
#pragma unroll 1
  for (int i = 0; i < kDepth - 1; ++i) fetch();
  const int halves = 2 * places, threads = blockDim.x;
#pragma unroll 1
  for (int first = 0; first < halves; first += threads) {
    const int number = first + threadIdx.x;
    if (first > 0) own_half = HalfPlace(args, number);
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
        float2 scale[kTileOctets];
#pragma unroll
        for (int octet = 0; octet < kTileOctets; ++octet) {
          const int copied = (octet * kSlabs + slab) * kLanes + lane;
          codes[octet] = *reinterpret_cast<const uint4*>(ring + stage + copied * 16);
          scale[octet] = place_scales<FORMAT, GROUP>(
              ring + stage + kTileBytes + (octet * 8 + quad) * kScaleBytes +
              (slab * kPlaces + place) * kGroups * kScaleSize<FORMAT>);
        }
#pragma unroll
        for (int group = 0; group < kGroups; ++group) {
          float raw[kTileOctets / 2][4] = {};
#pragma unroll
          for (int word = group * kWords; word < (group + 1) * kWords; ++word) {
            const uint4 own_x = *reinterpret_cast<const uint4*>(x + word * 16);
#pragma unroll
            for (int half = 0; half < kTileOctets / 2; ++half) {
              const uint4 &above = codes[2 * half], &below = codes[2 * half + 1];
              uint32_t upper[4], lower[4];
              decode_halves(word == 0 ? above.x : word == 1 ? above.y : word == 2 ? above.z : above.w, upper);
              decode_halves(word == 0 ? below.x : word == 1 ? below.y : word == 2 ? below.z : below.w, lower);
              mma_halves(raw[half], upper[0], lower[0], upper[1], lower[1], own_x.x, own_x.y);
              mma_halves(raw[half], upper[2], lower[2], upper[3], lower[3], own_x.z, own_x.w);
            }
          }
#pragma unroll
          for (int octet = 0; octet < kTileOctets; ++octet) {
            const float sum = raw[octet / 2][octet % 2 * 2] * place_factors[group];
            total[octet] = fmaf(group == 0 ? scale[octet].x : scale[octet].y, sum, total[octet]);
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
  int warps;          // that the fewest rounds need
  int rounds;         // of steps over a row
  int64_t shared;     // bytes of a block
  int rows;           // of a block

  OneVector(const fp4_matvec_args& a, int sm_count) {
    const int64_t steps = (a.k - 1) / kOneWarpStep + 1;
    rounds = static_cast<int>((steps - 1) / kOneMaxWarps + 1);
    warps = static_cast<int>((steps - 1) / rounds + 1);
    const int64_t x_bytes = int64_t{rounds} * warps * kSlabs * kPlaces *
                            (kPlaceBytes + 4 * (kPlaceWeights / a.group));
    shared = warps * (kDepth * one_stage_bytes(a.scale_format, a.group) + kTilesHeld * kTileRows * 4) + kPlaceBytes +
             x_bytes;
    const int64_t share = (a.n - 1) / (int64_t{sm_count} * (kOneMaxWarps / warps)) + 1;
    rows = static_cast<int>(share < kOneLeastRows ? kOneLeastRows : share > kOneMostRows ? kOneMostRows : share);
  }
};

bool for_one(const fp4_matvec_args& a) { return a.b == 1 && a.rows_per_block == 0; }

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

}  // namespace fp4_matvec

extern "C" cudaError_t fp4_matvec_launch(const fp4_matvec_args* args, cudaStream_t stream) {
  using namespace fp4_matvec;
  if (!args || !shapes_accepted(*args) || !pointers_accepted(*args)) return cudaErrorInvalidValue;
  int device = 0, sm_count = 0, shared = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (status != cudaSuccess) return status;
  const OneVector one(*args, sm_count);
  if (!for_one(*args) || one.shared > shared) return fp4_matvec_launch_several(args, stream);

  const OneKernel kernel = one_kernel_for(*args);
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(one.shared));
  if (status != cudaSuccess) return status;
  fp4_matvec_args passed = *args;
  int rows = one.rows;
  void* arguments[] = {&passed, &rows};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel),
                          dim3(static_cast<unsigned>((args->n - 1) / one.rows + 1)),
                          dim3(static_cast<unsigned>(one.warps * kLanes)), arguments, one.shared, stream);
}
