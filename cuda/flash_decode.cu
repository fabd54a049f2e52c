// Flash decoding: attention of one query token a sequence over a KV cache, split over the sequence.
//
//   out[b, h] = sum_p w_p V[b, h / group, p % capacity] / sum_p w_p,
//   w_p = exp(scale * dot(Q[b, h], K[b, h / group, p % capacity])),   p in the live band [lo, len)
//
// with group = num_heads / num_kv_heads, len = max(lengths[b], 0) and
// lo = window == 0 ? 0 : max(0, len - window). Everything is bf16 but the fp32 partials.
//
// Two kernels. `attend_split` gives each block one split of one KV head's live band and up to 16 of the
// query heads that share it, and writes an unnormalised partial (O, m, l). `merge_partials` merges the
// splits of a head. Neither grid depends on a length, so a captured graph replays at any length. Code for sm_90
// or later is launched programmatically: each kernel is set up while the one before is ending, and waits for its end
// before it touches memory. Only `lengths` is read earlier, by the merge: `attend_split` has waited by then.
//
// Where a value is rounded (mma is mma.sync.m16n8k16, bf16 in, fp32 out, with the tensor core's truncation):
//   scores   products are exact; kDimWarps slices of D with four chains of kScoreSteps / 4 mmas each, their
//            sums added in fp32. Scores are kept unscaled.
//   weights  p = ex2.approx.ftz((s - m) * c), m the running maximum, c = fl32(scale * log2 e): one rounding
//            in the difference, one in the product, 2^-22 in ex2, 0 below 2^-126; equal scores give 1.
//   l        fp32 sum of the fp32 p: a thread adds its tile / 4 of a tile as a chain of pairs, then
//            l = fma(l, alpha, sum), alpha = ex2((m_old - m_new) * c); at the end two additions over a quad.
//   O        p enters as hi = bf16(p) and lo = bf16(p - hi), |p - hi - lo| <= 2^-17 p; a tile adds tile / 16
//            mmas of each to O * alpha (one rounding).
//   merge    a lane takes every kMergeLanes-th split that is not empty, kMergeAtOnce at a time:
//            sum = fma(w, O_s, a * sum), w = ex2((m_s - top) * c), a = ex2((top_old - top) * c); the lanes, times
//            ex2((top - max) * c), are added in pairs and the pairs in a chain; l alike; one fp32 division, one
//            rounding to bf16.
// So with equal scores sums of integers below 2^24 are exact, O and l alike.

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <climits>
#include <cstddef>
#include <cstdint>

extern "C" {

// Strides are in elements. Q and out are [batch, num_heads * head_dim] with a row stride; K and V are
// [batch, num_kv_heads, capacity, head_dim] with three strides and contiguous head_dim. All tensor pointers
// and the workspace are 16-byte aligned, all strides non-negative multiples of 8.
typedef struct flash_decode_args {
  const void* q;
  const void* k;
  const void* v;
  void* out;
  const int* lengths;  // device, [batch]; below 0 counts as 0
  void* workspace;     // plan.workspace_bytes or more; nothing in it is read before it is written
  size_t workspace_bytes;
  int batch, num_heads, num_kv_heads, head_dim;  // head_dim in {64, 128, 256, 512}
  long long capacity;                            // cache slots a (batch, KV head)
  long long window;                              // 0 = unbounded, else at most capacity
  long long q_stride_b, out_stride_b;
  long long k_stride_b, k_stride_h, k_stride_s;
  long long v_stride_b, v_stride_h, v_stride_s;
  float scale;     // positive
  int num_splits;  // 0 = chosen from the SM count
} flash_decode_args;

// The only boundary rule so far. With T = ceil((len - lo) / tile) tiles counted from the band's low edge,
// split s covers the tiles [floor(s * T / S), floor((s + 1) * T / S)) of S = num_splits, which are the
// positions [lo + tile * first, min(len, lo + tile * last)). A split without tiles is empty.
enum { FLASH_DECODE_EVEN_TILES = 0 };

// Partials in the workspace, fp32, at byte offsets: O [batch, num_heads, num_splits, head_dim],
// m and l [batch, num_heads, num_splits]. m is the maximum of the unscaled scores dot(q, k), so the
// logarithm of a split's weight is scale * m + ln(l). An empty split has l = 0, m = -inf and O = 0.
typedef struct flash_decode_plan_result {
  int tile;
  int num_splits;
  int boundary_rule;
  int heads_per_block;     // query heads that share one reading of their KV head
  size_t workspace_bytes;
  size_t o_offset, m_offset, l_offset;
  int max_live;            // positions in the longest live band that these arguments allow
  int shared_bytes;        // of a block of the split kernel; it may be given more
  long long split_blocks;  // grid of the split kernel
  long long merge_blocks;  // grid of the merge kernel
} flash_decode_plan_result;

// Host arithmetic only; looks at the shape, window, scale and num_splits. Returns cudaErrorInvalidValue for
// arguments that no launch takes, cudaErrorInvalidConfiguration for a grid over the device's limit.
cudaError_t flash_decode_plan(const flash_decode_args* args, int sm_count, flash_decode_plan_result* plan);

// Enqueues both kernels. Returns the plan's errors, cudaErrorInvalidValue for null or misaligned pointers,
// unusable strides or a small workspace, all before anything is launched, and every error of a CUDA call.
// A row whose live band is longer than the capacity becomes NaN; a row of length 0 becomes 0.
cudaError_t flash_decode_launch(const flash_decode_args* args, cudaStream_t stream);

}  // extern "C"

namespace flash_decode {
namespace {

constexpr int kHeads = 16;  // query heads a block: the M of the mma

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;
constexpr int kStages = 3;  // a stage is a K and a V tile; one is in use, the others are in flight

constexpr int kMergeColumns = 16;  // threads side by side, four dimensions each
constexpr int kMergeDims = 4 * kMergeColumns;
constexpr int kMergeLanes = 32;  // splits side by side, at most
constexpr int kMergeAtOnce = 5;  // splits that a lane loads together

// Blocks that share the reading of one KV head.
constexpr int head_groups_of(int group) { return (group - 1) / kHeads + 1; }

// A stage is 32 KiB at most, so that three fit the 99 KiB of the smaller architectures.
constexpr int tile_of(int head_dim) { return head_dim == 512 ? 16 : 32; }

// Blocks that an SM needs to keep its share of the memory bandwidth busy, which is what the plan aims at: more
// would multiply the partials. And blocks that its registers should hold when many rows make a larger grid.
constexpr int blocks_per_sm(int head_dim) { return head_dim == 512 ? 1 : head_dim == 64 ? 3 : 2; }
constexpr int resident_blocks(int head_dim) { return head_dim >= 256 ? 2 : 4; }

constexpr int shared_bytes_of(int head_dim) {
  return kStages * 2 * tile_of(head_dim) * head_dim * int(sizeof(__nv_bfloat16)) +  // K and V
         kWarps * 32 * int(sizeof(float4));                                         // scores
}

// How the warps share a tile: scores by groups of 8 positions and slices of D, output by slices of D.
template <int D>
struct Layout {
  static constexpr int kTile = tile_of(D);
  static constexpr int kRowBytes = D * int(sizeof(__nv_bfloat16));
  static constexpr int kTileBytes = kTile * kRowBytes;
  static constexpr int kStageBytes = 2 * kTileBytes;
  static constexpr int kRowChunks = D / 8;                   // a chunk is the 16 bytes of one cp.async
  static constexpr int kRowsAtOnce = kThreads / kRowChunks;  // rows that the block copies together
  static constexpr int kCopies = kTile / kRowsAtOnce;        // copies of a thread for a tile
  static constexpr int kPositionGroups = kTile / 8;
  static constexpr int kDimWarps = kWarps / kPositionGroups;
  static constexpr int kScoreDims = D / kDimWarps;  // dims of a score that one warp sums
  static constexpr int kScoreSteps = kScoreDims / 16;
  static constexpr int kOutDims = D / kWarps;  // dims of the output that one warp owns
  static constexpr int kOutBlocks = kOutDims / 8;
  static_assert(kPositionGroups * kDimWarps == kWarps && kScoreSteps % 4 == 0 && kOutBlocks % 2 == 0);
  static_assert(kThreads % kRowChunks == 0, "a thread keeps its column from row to row");
};

struct Params {
  flash_decode_args args;
  float *o, *m, *l;  // in the workspace
  int group, head_groups, num_splits, tile;
  int capacity, window;  // clamped to INT_MAX, which no position reaches
  float c;               // scale * log2(e)
};

__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Copies 16 bytes, or writes 16 zero bytes and reads nothing.
__device__ __forceinline__ void copy_async(uint32_t shared, const void* global, bool live) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"  //
               ::"r"(shared), "l"(global), "r"(live ? 16 : 0) : "memory");
}

__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kPending>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8x8 matrices of 16-bit elements, one row address a lane, each transposed on the way if asked for.
template <bool kTransposed>
__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t shared) {
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared) : "memory");
  }
}

// d += a * b, a 16x16 row-major, b 16x8 column-major.
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// p = hi + lo to 2^-17 of p, two values a register.
__device__ __forceinline__ void split_bf16(float low, float high, uint32_t& hi, uint32_t& lo) {
  hi = pack(low, high);
  lo = pack(low - __uint_as_float(hi << 16), high - __uint_as_float(hi & 0xffff0000u));
}

// Lets the next kernel be set up while this one runs.
__device__ __forceinline__ void allow_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until the kernel before has ended and what it wrote is visible.
__device__ __forceinline__ void wait_for_predecessor() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// (count * factor + more) / divisor. A division of 64 bits takes a hundred instructions, and blocks wait for their
// bounds.
__device__ __forceinline__ long long scaled(long long count, long long factor, int divisor, int more = 0) {
  const long long product = count * factor + more;
  return product <= UINT_MAX ? unsigned(product) / unsigned(divisor) : product / divisor;
}

// Shared address of a 16-byte chunk of a tile. The XOR spreads the 8 rows of an ldmatrix over all banks.
template <int D>
__device__ __forceinline__ uint32_t chunk_address(uint32_t tile, int row, int chunk) {
  return tile + row * Layout<D>::kRowBytes + ((chunk ^ (row & 7)) << 4);
}

// The part of a split that is still to be loaded.
struct Cursor {
  const __nv_bfloat16 *k, *v;
  unsigned slot;  // of the next row
  int rows;       // left; none when it is not positive
};

// Starts the copies of the next K and V tile, wrapping at the capacity. What has no row becomes zero, and
// reads nothing. A band is no longer than the capacity, so a tile wraps once at most.
template <int D>
__device__ __forceinline__ void load_tile(Cursor& cursor, const Params& p, uint32_t stage) {
  using L = Layout<D>;
  const unsigned capacity = p.capacity;
  const int chunk = threadIdx.x % L::kRowChunks, first_row = threadIdx.x / L::kRowChunks;
  const __nv_bfloat16 *k = cursor.k + 8 * chunk, *v = cursor.v + 8 * chunk;
  const long long k_stride = p.args.k_stride_s, v_stride = p.args.v_stride_s;
  if (cursor.rows >= L::kTile && cursor.slot + L::kTile <= capacity) {
    k += (cursor.slot + first_row) * k_stride, v += (cursor.slot + first_row) * v_stride;
#pragma unroll
    for (int i = 0; i < L::kCopies; ++i) {
      const uint32_t to = chunk_address<D>(stage, first_row + i * L::kRowsAtOnce, chunk);
      copy_async(to, k, true);
      copy_async(to + L::kTileBytes, v, true);
      k += L::kRowsAtOnce * k_stride, v += L::kRowsAtOnce * v_stride;
    }
  } else if (cursor.rows > 0) {
#pragma unroll
    for (int i = 0; i < L::kCopies; ++i) {
      const int row = first_row + i * L::kRowsAtOnce;
      const bool live = row < cursor.rows;
      unsigned slot = live ? cursor.slot + row : 0;
      if (slot >= capacity) slot -= capacity;
      const uint32_t to = chunk_address<D>(stage, row, chunk);
      copy_async(to, k + slot * k_stride, live);
      copy_async(to + L::kTileBytes, v + slot * v_stride, live);
    }
  }
  cursor.slot += L::kTile;
  if (cursor.slot >= capacity) cursor.slot -= capacity;
  cursor.rows -= L::kTile;
}

// One block: one split of one (batch, KV head), up to 16 query heads.
template <int D>
__global__ void __launch_bounds__(kThreads, resident_blocks(D)) attend_split(const Params p) {
  using L = Layout<D>;
  extern __shared__ __align__(128) unsigned char shared[];
  float4* const scores = reinterpret_cast<float4*>(shared + kStages * L::kStageBytes);  // [kWarps][32]
  const uint32_t stages = uint32_t(__cvta_generic_to_shared(shared));
  const flash_decode_args& args = p.args;
  wait_for_predecessor();
  allow_dependents();  // after the wait, so that the merge may read what this kernel may

  const int split = blockIdx.x % p.num_splits;
  unsigned unit = blockIdx.x / p.num_splits;
  const int head_group = unit % p.head_groups;
  unit /= p.head_groups;
  const int kv_head = unit % args.num_kv_heads;
  const int batch = unit / args.num_kv_heads;
  const int first_head = kv_head * p.group + head_group * kHeads;
  const int heads = min(kHeads, p.group - head_group * kHeads);

  // The share of the live band. A band that cannot be in the cache is not read: NaN marks the row.
  const int len = max(args.lengths[batch], 0);
  const int lo = p.window != 0 && len > p.window ? len - p.window : 0;
  const bool fits = len - lo <= p.capacity;
  const long long band = fits ? len - lo : 0, tiles = (band + L::kTile - 1) / L::kTile;
  const long long begin = scaled(split, tiles, p.num_splits) * L::kTile;
  const long long end = min(scaled(split + 1, tiles, p.num_splits) * L::kTile, band);
  int live = int(end - begin);  // rows from the tile at hand to the end of the split

  const auto* const k = static_cast<const __nv_bfloat16*>(args.k) + batch * args.k_stride_b;
  const auto* const v = static_cast<const __nv_bfloat16*>(args.v) + batch * args.v_stride_b;
  Cursor cursor = {k + kv_head * args.k_stride_h, v + kv_head * args.v_stride_h,
                   unsigned(lo + begin) % unsigned(p.capacity), live};
#pragma unroll
  for (int stage = 0; stage < kStages - 1; ++stage) {
    load_tile<D>(cursor, p, stages + stage * L::kStageBytes);
    copy_commit();
  }

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = lane / 4;           // a fragment has the query heads row and row + 8,
  const int column = 2 * (lane % 4);  // and the columns column and column + 1 of 8
  const int position_group = warp % L::kPositionGroups, dim_warp = warp / L::kPositionGroups;

  uint32_t q[L::kScoreSteps][4] = {};
  const auto* const q_rows = static_cast<const __nv_bfloat16*>(args.q) + batch * args.q_stride_b +
                             static_cast<long long>(first_head) * D + dim_warp * L::kScoreDims + column;
#pragma unroll
  for (int step = 0; step < L::kScoreSteps; ++step) {
    for (int i = 0; i < 4; ++i) {
      const int head = row + i % 2 * 8, dim = step * 16 + i / 2 * 8;
      if (head < heads) q[step][i] = *reinterpret_cast<const uint32_t*>(q_rows + head * D + dim);
    }
  }

  float o[L::kOutBlocks][4] = {};
  float m[2] = {-INFINITY, -INFINITY};
  float l[2] = {fits ? 0.0f : NAN, fits ? 0.0f : NAN};  // this thread's columns only, until the end

  for (unsigned index = 0; live > 0; ++index, live -= L::kTile) {
    const uint32_t k_tile = stages + index % kStages * L::kStageBytes, v_tile = k_tile + L::kTileBytes;
    copy_wait<kStages - 2>();
    __syncthreads();  // the tile is there for all, and all have left the last one and its scores

    // This warp's dims of the scores of its 8 positions, handed over in fragment order.
    float sum[4][4] = {};
#pragma unroll
    for (int step = 0; step < L::kScoreSteps; step += 2) {
      uint32_t b[4];
      const int chunk = dim_warp * (L::kScoreDims / 8) + step * 2 + lane / 8;
      load_matrices<false>(b, chunk_address<D>(k_tile, position_group * 8 + lane % 8, chunk));
      mma(sum[step % 4], q[step], b[0], b[1]);
      mma(sum[step % 4 + 1], q[step + 1], b[2], b[3]);
    }
    load_tile<D>(cursor, p, stages + (index + kStages - 1) % kStages * L::kStageBytes);
    copy_commit();
    for (int i = 0; i < 4; ++i) sum[0][i] = (sum[0][i] + sum[1][i]) + (sum[2][i] + sum[3][i]);
    scores[warp * 32 + lane] = make_float4(sum[0][0], sum[0][1], sum[0][2], sum[0][3]);
    __syncthreads();  // the scores of the tile are there for all

    // Every warp takes all scores of the tile, so that the weights are already where the next mma wants them.
    float s[L::kPositionGroups][4];
    float top[2] = {m[0], m[1]};
#pragma unroll
    for (int g = 0; g < L::kPositionGroups; ++g) {
      float4 score = scores[g * 32 + lane];
      for (int w = 1; w < L::kDimWarps; ++w) {
        const float4 more = scores[(w * L::kPositionGroups + g) * 32 + lane];
        score.x += more.x, score.y += more.y, score.z += more.z, score.w += more.w;
      }
      const bool live0 = g * 8 + column < live, live1 = g * 8 + column + 1 < live;
      s[g][0] = live0 ? score.x : -INFINITY;
      s[g][1] = live1 ? score.y : -INFINITY;
      s[g][2] = live0 ? score.z : -INFINITY;
      s[g][3] = live1 ? score.w : -INFINITY;
      top[0] = fmaxf(top[0], fmaxf(s[g][0], s[g][1]));
      top[1] = fmaxf(top[1], fmaxf(s[g][2], s[g][3]));
    }
    float alpha[2], tile_l[2] = {};
    for (int r = 0; r < 2; ++r) {
      top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffu, top[r], 1));
      top[r] = fmaxf(top[r], __shfl_xor_sync(0xffffffffu, top[r], 2));
      alpha[r] = exp2_approx((m[r] - top[r]) * p.c);
      m[r] = top[r];
    }
    uint32_t hi[L::kTile / 16][4], lo_part[L::kTile / 16][4];
#pragma unroll
    for (int g = 0; g < L::kPositionGroups; ++g) {
      for (int r = 0; r < 2; ++r) {
        const float p0 = exp2_approx((s[g][2 * r] - m[r]) * p.c);
        const float p1 = exp2_approx((s[g][2 * r + 1] - m[r]) * p.c);
        tile_l[r] += p0 + p1;
        split_bf16(p0, p1, hi[g / 2][g % 2 * 2 + r], lo_part[g / 2][g % 2 * 2 + r]);
      }
    }
    for (int r = 0; r < 2; ++r) l[r] = fmaf(l[r], alpha[r], tile_l[r]);
#pragma unroll
    for (int n = 0; n < L::kOutBlocks; ++n) {
      for (int i = 0; i < 4; ++i) o[n][i] *= alpha[i / 2];
    }
#pragma unroll
    for (int step = 0; step < L::kTile / 16; ++step) {
#pragma unroll
      for (int n = 0; n < L::kOutBlocks; n += 2) {
        uint32_t b[4];
        const int chunk = warp * L::kOutBlocks + n + lane / 16;
        load_matrices<true>(b, chunk_address<D>(v_tile, step * 16 + lane % 16, chunk));
        mma(o[n], hi[step], b[0], b[1]);
        mma(o[n + 1], hi[step], b[2], b[3]);
        mma(o[n], lo_part[step], b[0], b[1]);
        mma(o[n + 1], lo_part[step], b[2], b[3]);
      }
    }
  }

  for (int r = 0; r < 2; ++r) {
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 1);
    l[r] += __shfl_xor_sync(0xffffffffu, l[r], 2);
    const int head = row + 8 * r;
    if (head >= heads) continue;
    const long long state = static_cast<long long>(batch) * args.num_heads + first_head + head;
    const long long partial = state * p.num_splits + split;
    if (warp == 0 && column == 0) {
      p.m[partial] = m[r];
      p.l[partial] = l[r];
    }
    float* const out = p.o + partial * D + warp * L::kOutDims + column;
#pragma unroll
    for (int n = 0; n < L::kOutBlocks; ++n) {
      *reinterpret_cast<float2*>(out + n * 8) = make_float2(o[n][2 * r], o[n][2 * r + 1]);
    }
  }
}

// One block: 64 dims of one head. The partials are read by ordinary loads, never through the read-only
// path: the kernel may have started before they were written. Of T tiles over S > T splits each lies in a split of
// its own, tile i in ((i + 1) S - 1) / T; so partials that count are asked for at once, without a look at l.
__global__ void __launch_bounds__(kMergeColumns* kMergeLanes) merge_partials(const Params p) {
  constexpr int kMaxWarps = kMergeColumns * kMergeLanes / 32;
  __shared__ float lane_top[kMergeLanes];
  __shared__ float4 pair_o[kMaxWarps][kMergeColumns];
  __shared__ float pair_l[kMaxWarps];
  const int head_dim = p.args.head_dim, num_heads = p.args.num_heads, parts = head_dim / kMergeDims;
  const int row = blockIdx.x / parts;  // batch * num_heads + head
  const int batch = row / num_heads, head = row % num_heads;
  const int column = threadIdx.x % kMergeColumns, lane = threadIdx.x / kMergeColumns;
  const int lanes = blockDim.x / kMergeColumns;
  const int dim = blockIdx.x % parts * kMergeDims + 4 * column;
  const long long first_partial = static_cast<long long>(row) * p.num_splits;
  const float *const m = p.m + first_partial, *const l = p.l + first_partial;
  const float* const o = p.o + first_partial * head_dim + dim;

  // A band that cannot be in the cache has its NaN in every split.
  const int len = max(p.args.lengths[batch], 0);
  const int band = p.window != 0 ? min(len, p.window) : len;
  const int tiles = band / p.tile + (band % p.tile != 0);
  const int count = band > p.capacity || tiles > p.num_splits ? p.num_splits : tiles;
  const auto split_of = [&](int number) { return scaled(number + 1, p.num_splits, count, -1); };
  const long long first_split = lane < count ? split_of(lane) : 0;  // divided for while waiting
  wait_for_predecessor();
  allow_dependents();

  float top = -INFINITY, sum_l = 0.0f;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  const auto scale_sum = [&](float factor) {
    sum.x *= factor, sum.y *= factor, sum.z *= factor, sum.w *= factor, sum_l *= factor;
  };
  for (long long first = lane; first < count; first += kMergeAtOnce * lanes) {
    float part_l[kMergeAtOnce], part_m[kMergeAtOnce];
    float4 part[kMergeAtOnce];
#pragma unroll
    for (int i = 0; i < kMergeAtOnce; ++i) {
      part_l[i] = 0.0f, part_m[i] = 0.0f, part[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      if (first + i * lanes < count) {
        const long long s = i == 0 && first == lane ? first_split : split_of(int(first) + i * lanes);
        part_l[i] = l[s], part_m[i] = m[s];
        part[i] = *reinterpret_cast<const float4*>(o + s * head_dim);
      }
    }
    float new_top = top;
#pragma unroll
    for (int i = 0; i < kMergeAtOnce; ++i) {
      if (part_l[i] != 0.0f) new_top = fmaxf(new_top, part_m[i]);
    }
    if (new_top != top) scale_sum(exp2_approx((top - new_top) * p.c));
    top = new_top;
#pragma unroll
    for (int i = 0; i < kMergeAtOnce; ++i) {
      const float w = part_l[i] != 0.0f ? exp2_approx((part_m[i] - top) * p.c) : 0.0f;
      sum.x = fmaf(w, part[i].x, sum.x);
      sum.y = fmaf(w, part[i].y, sum.y);
      sum.z = fmaf(w, part[i].z, sum.z);
      sum.w = fmaf(w, part[i].w, sum.w);
      sum_l = fmaf(w, part_l[i], sum_l);
    }
  }

  if (column == 0) lane_top[lane] = top;
  __syncthreads();
  float max_top = -INFINITY;
  for (int i = 0; i < lanes; ++i) max_top = fmaxf(max_top, lane_top[i]);
  if (max_top != top) scale_sum(exp2_approx((top - max_top) * p.c));
  // The two lanes of a warp, then the warps.
  sum.x += __shfl_xor_sync(0xffffffffu, sum.x, kMergeColumns);
  sum.y += __shfl_xor_sync(0xffffffffu, sum.y, kMergeColumns);
  sum.z += __shfl_xor_sync(0xffffffffu, sum.z, kMergeColumns);
  sum.w += __shfl_xor_sync(0xffffffffu, sum.w, kMergeColumns);
  sum_l += __shfl_xor_sync(0xffffffffu, sum_l, kMergeColumns);
  if (lane % 2 == 0) {
    pair_o[lane / 2][column] = sum;
    if (column == 0) pair_l[lane / 2] = sum_l;
  }
  __syncthreads();
  if (lane != 0) return;

  for (int pair = 1; pair < lanes / 2; ++pair) {
    const float4 more = pair_o[pair][column];
    sum.x += more.x, sum.y += more.y, sum.z += more.z, sum.w += more.w;
    sum_l += pair_l[pair];
  }
  const float divisor = sum_l == 0.0f ? 1.0f : sum_l;  // an empty row: 0 / 1
  const uint2 rounded = {pack(sum.x / divisor, sum.y / divisor), pack(sum.z / divisor, sum.w / divisor)};
  __nv_bfloat16* const out = static_cast<__nv_bfloat16*>(p.args.out) + batch * p.args.out_stride_b;
  *reinterpret_cast<uint2*>(out + head * head_dim + dim) = rounded;
}

// value * factor, or false when it does not fit.
bool multiply(size_t& value, size_t factor) {
  if (factor != 0 && value > SIZE_MAX / factor) return false;
  value *= factor;
  return true;
}

// Whether `count` rows `stride` elements apart can be addressed; adds the last row's offset to `extent`.
bool add_extent(size_t& extent, long long count, long long stride) {
  if (stride < 0 || stride % 8 != 0) return false;
  size_t offset = size_t(count - 1);
  if (!multiply(offset, size_t(stride)) || offset > size_t(PTRDIFF_MAX) / 2 - extent) return false;
  extent += offset;
  return true;
}

bool usable_pointer(const void* pointer, size_t alignment) {
  return pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

// The share of the SMs' time that is used when every block takes as long and an SM takes them one by one.
double balance(long long blocks, long long sm_count) {
  const long long rounds = (blocks + sm_count - 1) / sm_count;
  return double(blocks) / double(rounds * sm_count);
}

// As many blocks as keep the SMs busy, or some more where those would leave SMs waiting for others.
long long choose_splits(long long units, long long sm_count, long long blocks_wanted, long long max_splits) {
  const long long fewest = blocks_wanted > units ? blocks_wanted / units : 1;
  long long best = fewest;
  for (long long splits = fewest; splits <= 4 * fewest + 4; ++splits) {
    if (balance(units * best, sm_count) >= 0.9) break;
    if (balance(units * splits, sm_count) > balance(units * best, sm_count)) best = splits;
  }
  return best < max_splits ? best : max_splits;
}

float exponent_factor(float scale) { return float(double(scale) * 1.4426950408889634); }

bool usable_strides(const flash_decode_args& a) {
  const size_t row = size_t(a.num_heads) * size_t(a.head_dim);
  size_t q = row, out = row, k = size_t(a.head_dim), v = k;
  return add_extent(q, a.batch, a.q_stride_b) && add_extent(out, a.batch, a.out_stride_b) &&
         (a.batch == 1 || size_t(a.out_stride_b) >= row) &&  // rows of the output must not overlap
         add_extent(k, a.batch, a.k_stride_b) && add_extent(k, a.num_kv_heads, a.k_stride_h) &&
         add_extent(k, a.capacity, a.k_stride_s) && add_extent(v, a.batch, a.v_stride_b) &&
         add_extent(v, a.num_kv_heads, a.v_stride_h) && add_extent(v, a.capacity, a.v_stride_s);
}

cudaError_t enqueue(void (*kernel)(Params), long long blocks, int threads, int shared_bytes, bool early_start,
                    cudaStream_t stream, const Params& params) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(unsigned(blocks));
  config.blockDim = dim3(unsigned(threads));
  config.dynamicSmemBytes = size_t(shared_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early_start ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, params);
}

// Shared memory that keeps a further block than the plan wants off an SM of sm_90, with its 228 KiB of which a block
// takes 1 besides its own: blocks that start while another kernel ends would otherwise crowd where it ended first.
constexpr int spread_bytes(int head_dim) { return (228 / (blocks_per_sm(head_dim) + 1)) * 1024; }

template <int D>
cudaError_t launch(const Params& params, const flash_decode_plan_result& plan, int sm_count, cudaStream_t stream) {
  // Only code made for sm_90 or later waits for the kernel before, so only then may kernels start early.
  cudaFuncAttributes code = {};
  cudaError_t error = cudaFuncGetAttributes(&code, merge_partials);
  if (error != cudaSuccess) return error;
  const bool early_start = code.ptxVersion >= 90;
  const bool one_round = plan.split_blocks <= 1ll * sm_count * blocks_per_sm(D);
  const int shared_bytes =
      early_start && one_round && plan.shared_bytes < spread_bytes(D) ? spread_bytes(D) : plan.shared_bytes;
  error = cudaFuncSetAttribute(attend_split<D>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  error = enqueue(attend_split<D>, plan.split_blocks, kThreads, shared_bytes, early_start, stream, params);
  if (error != cudaSuccess) return error;
  int lanes = 2;  // a whole warp at least
  while (lanes < plan.num_splits && lanes < kMergeLanes) lanes *= 2;
  return enqueue(merge_partials, plan.merge_blocks, kMergeColumns * lanes, 0, early_start, stream, params);
}

}  // namespace
}  // namespace flash_decode

extern "C" cudaError_t flash_decode_plan(const flash_decode_args* args, int sm_count,
                                         flash_decode_plan_result* plan) {
  using namespace flash_decode;
  if (args == nullptr || plan == nullptr || sm_count < 1) return cudaErrorInvalidValue;
  const flash_decode_args& a = *args;
  const bool known_dim = a.head_dim == 64 || a.head_dim == 128 || a.head_dim == 256 || a.head_dim == 512;
  const bool known_heads = a.num_heads >= 1 && a.num_kv_heads >= 1 && a.num_heads % a.num_kv_heads == 0;
  if (!known_dim || !known_heads || a.batch < 1 || a.capacity < 1 || a.window < 0 || a.window > a.capacity ||
      a.num_splits < 0) {
    return cudaErrorInvalidValue;
  }
  const float c = exponent_factor(a.scale);
  if (!(c >= FLT_MIN && c <= FLT_MAX)) return cudaErrorInvalidValue;  // also refuses NaN

  const int tile = tile_of(a.head_dim), group = a.num_heads / a.num_kv_heads;
  const long long band = a.window != 0 ? a.window : a.capacity;
  const int max_live = int(band < INT_MAX ? band : INT_MAX);
  const long long units = 1ll * a.batch * a.num_kv_heads * head_groups_of(group);
  if (units > INT_MAX) return cudaErrorInvalidConfiguration;
  const long long blocks_wanted = 1ll * sm_count * blocks_per_sm(a.head_dim);
  const long long max_splits = (1ll * max_live + tile - 1) / tile;
  const int splits =
      a.num_splits != 0 ? a.num_splits : int(choose_splits(units, sm_count, blocks_wanted, max_splits));

  const long long merge_blocks = 1ll * a.batch * a.num_heads;
  const int merge_parts = a.head_dim / kMergeDims;
  if (units > INT_MAX / splits || merge_blocks > INT_MAX / merge_parts) return cudaErrorInvalidConfiguration;

  // Within these grids there are fewer than 2^35 partials, so that no size below needs more than 46 bits.
  const size_t partials = size_t(merge_blocks) * size_t(splits);
  const size_t o_bytes = partials * size_t(a.head_dim) * sizeof(float);
  const size_t state_bytes = (partials * sizeof(float) + 15) / 16 * 16;  // of m, and of l

  *plan = {};
  plan->tile = tile;
  plan->num_splits = splits;
  plan->boundary_rule = FLASH_DECODE_EVEN_TILES;
  plan->heads_per_block = group < kHeads ? group : kHeads;
  plan->o_offset = 0;
  plan->m_offset = o_bytes;
  plan->l_offset = o_bytes + state_bytes;
  plan->workspace_bytes = o_bytes + 2 * state_bytes;
  plan->max_live = max_live;
  plan->shared_bytes = shared_bytes_of(a.head_dim);
  plan->split_blocks = units * splits;
  plan->merge_blocks = merge_blocks * merge_parts;
  return cudaSuccess;
}

extern "C" cudaError_t flash_decode_launch(const flash_decode_args* args, cudaStream_t stream) {
  using namespace flash_decode;
  // The shape and the pointers are judged before the device is asked anything.
  flash_decode_plan_result plan;
  cudaError_t error = flash_decode_plan(args, 1, &plan);
  if (error != cudaSuccess) return error;
  const flash_decode_args& a = *args;
  if (!usable_pointer(a.q, 16) || !usable_pointer(a.k, 16) || !usable_pointer(a.v, 16) ||
      !usable_pointer(a.out, 16) || !usable_pointer(a.workspace, 16) ||
      !usable_pointer(a.lengths, alignof(int)) || !usable_strides(a)) {
    return cudaErrorInvalidValue;
  }
  int device = 0, sm_count = 0;
  error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  error = cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device);
  if (error != cudaSuccess) return error;
  error = flash_decode_plan(args, sm_count, &plan);
  if (error != cudaSuccess) return error;
  if (a.workspace_bytes < plan.workspace_bytes) return cudaErrorInvalidValue;

  unsigned char* const workspace = static_cast<unsigned char*>(a.workspace);
  Params params = {};
  params.args = a;
  params.o = reinterpret_cast<float*>(workspace + plan.o_offset);
  params.m = reinterpret_cast<float*>(workspace + plan.m_offset);
  params.l = reinterpret_cast<float*>(workspace + plan.l_offset);
  params.group = a.num_heads / a.num_kv_heads;
  params.head_groups = head_groups_of(params.group);
  params.num_splits = plan.num_splits;
  params.tile = plan.tile;
  params.capacity = int(a.capacity < INT_MAX ? a.capacity : INT_MAX);
  params.window = int(a.window < INT_MAX ? a.window : INT_MAX);
  params.c = exponent_factor(a.scale);
  switch (a.head_dim) {
    case 64: return launch<64>(params, plan, sm_count, stream);
    case 128: return launch<128>(params, plan, sm_count, stream);
    case 256: return launch<256>(params, plan, sm_count, stream);
    default: return launch<512>(params, plan, sm_count, stream);
  }
}
