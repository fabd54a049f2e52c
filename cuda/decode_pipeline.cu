// The decode attention that flash decoding replaced, kept as an oracle: two cuBLASLt products and a softmax over
// the whole cache allocation, between two copies that change no byte.
//
//   1  queries   [B, NH * D] -> [B, NKV, group, D]: the same bytes for one token a sequence
//   2  scores    S[b, h, slot] = dot(Q[b, h], K[b, h / group, slot]), bf16 in, fp32 out, every slot
//   3  softmax   P = bf16(exp(scale * (S - max)) / sum) over the slots of the live band, 0 elsewhere
//   4  output    O[b, h] = P V, bf16 in, fp32 accumulators, bf16 out, every slot
//   5  output    [B, NKV, group, D] -> [B, NH * D]: the same bytes
//
// Products run over all `capacity` slots and the softmax masks what is not live, so a dead slot that holds NaN or
// infinity in V reaches the output (0 times NaN); finite garbage does not. cuBLASLt is loaded when the first
// call needs it, so nothing here depends on it at build time.

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <library_types.h>

#include <climits>
#include <cstddef>
#include <cstdint>

extern "C" {

// As in flash_decode_args; the workspace is 256-byte aligned.
struct decode_pipeline_args {
  const void* q;
  const void* k;
  const void* v;
  void* out;
  const int* lengths;
  void* workspace;
  size_t workspace_bytes;
  int batch, num_heads, num_kv_heads, head_dim;
  long long capacity;
  long long window;
  long long q_stride_b, out_stride_b;
  long long k_stride_b, k_stride_h, k_stride_s;
  long long v_stride_b, v_stride_h, v_stride_s;
  float scale;
};

struct decode_pipeline_plan_result {
  size_t workspace_bytes;
  size_t query_offset, score_offset, weight_offset, output_offset, library_offset;
};

// Host arithmetic only. cudaErrorInvalidValue for shapes that the pipeline does not take.
cudaError_t decode_pipeline_plan(const decode_pipeline_args* args, int sm_count,
                                 decode_pipeline_plan_result* result);

// Enqueues the five steps. cudaErrorSharedObjectInitFailed where cuBLASLt is not found, cudaErrorUnknown where it
// has no algorithm or fails. Not for graph capture.
cudaError_t decode_pipeline_launch(const decode_pipeline_args* args, cudaStream_t stream);

}  // extern "C"

namespace decode_pipeline {

constexpr size_t kLibraryBytes = size_t{4} << 20;
constexpr int kSoftmaxThreads = 256;
constexpr int kMaxBlocks = 65535;

// The part of cuBLASLt's C interface that is used, as its reference manual gives it.
struct Algorithm {
  uint64_t data[8];
};

struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

enum { kCompute32F = 68, kTransposeA = 3, kBatchCount = 5, kBatchStride = 6, kMaxWorkspace = 1 };

struct Library {
  int (*create)(void**);
  int (*matmul_desc_create)(void**, int, int);
  int (*matmul_desc_set)(void*, int, const void*, size_t);
  int (*matmul_desc_destroy)(void*);
  int (*layout_create)(void**, int, uint64_t, uint64_t, int64_t);
  int (*layout_set)(void*, int, const void*, size_t);
  int (*layout_destroy)(void*);
  int (*preference_create)(void**);
  int (*preference_set)(void*, int, const void*, size_t);
  int (*preference_destroy)(void*);
  int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*);
  int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*,
                void*, void*, const Algorithm*, void*, size_t, cudaStream_t);
  void* handle = nullptr;
  bool usable = false;
};

template <typename Function>
bool find(void* object, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(object, name));
  return function != nullptr;
}

Library load_library() {
  Library lib;
  void* object = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  if (!object) object = dlopen("libcublasLt.so", RTLD_NOW | RTLD_LOCAL);
  lib.usable = object && find(object, "cublasLtCreate", lib.create) &&
               find(object, "cublasLtMatmulDescCreate", lib.matmul_desc_create) &&
               find(object, "cublasLtMatmulDescSetAttribute", lib.matmul_desc_set) &&
               find(object, "cublasLtMatmulDescDestroy", lib.matmul_desc_destroy) &&
               find(object, "cublasLtMatrixLayoutCreate", lib.layout_create) &&
               find(object, "cublasLtMatrixLayoutSetAttribute", lib.layout_set) &&
               find(object, "cublasLtMatrixLayoutDestroy", lib.layout_destroy) &&
               find(object, "cublasLtMatmulPreferenceCreate", lib.preference_create) &&
               find(object, "cublasLtMatmulPreferenceSetAttribute", lib.preference_set) &&
               find(object, "cublasLtMatmulPreferenceDestroy", lib.preference_destroy) &&
               find(object, "cublasLtMatmulAlgoGetHeuristic", lib.heuristic) &&
               find(object, "cublasLtMatmul", lib.matmul) && lib.create(&lib.handle) == 0;
  return lib;
}

const Library& library() {
  static const Library loaded = load_library();
  return loaded;
}

// A column-major matrix, `batches` of them `stride` elements apart.
struct Matrix {
  int type;
  int64_t rows, columns, pitch, batches, stride;
};

class Layout {
 public:
  explicit Layout(const Matrix& m) {
    const auto batches = static_cast<int32_t>(m.batches);
    ok_ = library().layout_create(&layout_, m.type, m.rows, m.columns, m.pitch) == 0 &&
          library().layout_set(layout_, kBatchCount, &batches, sizeof batches) == 0 &&
          library().layout_set(layout_, kBatchStride, &m.stride, sizeof m.stride) == 0;
  }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  ~Layout() {
    if (layout_) library().layout_destroy(layout_);
  }
  bool ok() const { return ok_; }
  void* get() const { return layout_; }

 private:
  void* layout_ = nullptr;
  bool ok_ = false;
};

// D = op(A) B in fp32 with the library's first choice of algorithm, built for these sizes once.
class Product {
 public:
  Product(bool transpose_a, const Matrix& a, const Matrix& b, const Matrix& d) : a_(a), b_(b), d_(d) {
    if (!a_.ok() || !b_.ok() || !d_.ok()) return;
    if (library().matmul_desc_create(&operation_, kCompute32F, CUDA_R_32F) != 0) return;
    const int32_t transposed = transpose_a ? 1 : 0;
    if (library().matmul_desc_set(operation_, kTransposeA, &transposed, sizeof transposed) != 0) return;
    void* preference = nullptr;
    if (library().preference_create(&preference) != 0) return;
    int found = 0;
    ok_ = library().preference_set(preference, kMaxWorkspace, &kLibraryBytes, sizeof kLibraryBytes) == 0 &&
          library().heuristic(library().handle, operation_, a_.get(), b_.get(), d_.get(), d_.get(), preference, 1,
                              &chosen_, &found) == 0 &&
          found == 1;
    library().preference_destroy(preference);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product() {
    if (operation_) library().matmul_desc_destroy(operation_);
  }
  bool ok() const { return ok_; }

  bool run(const void* a, const void* b, void* d, void* scratch, cudaStream_t stream) const {
    const float one = 1.0f, zero = 0.0f;
    return library().matmul(library().handle, operation_, &one, a, a_.get(), b, b_.get(), &zero, d, d_.get(), d,
                            d_.get(), &chosen_.algorithm, scratch, kLibraryBytes, stream) == 0;
  }

 private:
  Layout a_, b_, d_;
  void* operation_ = nullptr;
  Heuristic chosen_ = {};
  bool ok_ = false;
};

__device__ __forceinline__ float over_block(float value, float* shared, bool maximum) {
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, value, distance);
    value = maximum ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = shared[0];
  for (int warp = 1; warp < kSoftmaxThreads / 32; ++warp) {
    value = maximum ? fmaxf(value, shared[warp]) : value + shared[warp];
  }
  return value;
}

// One row (batch, head) a block at a time. The position in a slot is the last one before the length that maps
// to it; it is live unless it lies before the window.
__global__ void __launch_bounds__(kSoftmaxThreads)
    ring_softmax(const float* scores, __nv_bfloat16* weights, const int* lengths, int heads, long long rows,
                 long long capacity, long long window, float scale) {
  __shared__ float shared[kSoftmaxThreads / 32];
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const long long length = max(lengths[row / heads], 0);
    const long long low = window == 0 ? 0 : max(length - window, 0ll);
    const bool broken = length - low > capacity;
    const float* in = scores + row * capacity;
    __nv_bfloat16* out = weights + row * capacity;
    auto live = [&](long long slot) {
      const long long last = length - 1;
      const long long position = last - ((last - slot) % capacity + capacity) % capacity;
      return position >= low && length > 0;
    };
    float top = -INFINITY;
    for (long long slot = threadIdx.x; slot < capacity; slot += kSoftmaxThreads) {
      if (live(slot)) top = fmaxf(top, in[slot]);
    }
    top = over_block(top, shared, true);
    float sum = 0.0f;
    for (long long slot = threadIdx.x; slot < capacity; slot += kSoftmaxThreads) {
      if (live(slot)) sum += expf(scale * (in[slot] - top));
    }
    sum = over_block(sum, shared, false);
    for (long long slot = threadIdx.x; slot < capacity; slot += kSoftmaxThreads) {
      const float weight = live(slot) ? expf(scale * (in[slot] - top)) / sum : 0.0f;
      out[slot] = __float2bfloat16_rn(broken ? NAN : weight);
    }
  }
}

size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

bool accepted(const decode_pipeline_args& a) {
  if (a.batch < 1 || a.num_heads < 1 || a.num_kv_heads < 1 || a.head_dim < 8 || a.head_dim % 8 != 0) return false;
  if (a.num_heads % a.num_kv_heads != 0 || a.capacity < 1 || a.window < 0 || a.window > a.capacity) return false;
  const long long row = static_cast<long long>(a.num_heads) * a.head_dim;
  if (a.q_stride_b < row || a.out_stride_b < row || a.k_stride_s < a.head_dim || a.v_stride_s < a.head_dim) {
    return false;
  }
  const long long most = LLONG_MAX / 16 / a.batch / a.num_heads;
  return !(a.scale <= 0.0f) && a.capacity <= most && a.head_dim <= most;
}

}  // namespace decode_pipeline

extern "C" cudaError_t decode_pipeline_plan(const decode_pipeline_args* args, int,
                                            decode_pipeline_plan_result* result) {
  using namespace decode_pipeline;
  if (!args || !result || !accepted(*args)) return cudaErrorInvalidValue;
  const size_t heads = static_cast<size_t>(args->batch) * args->num_heads;
  result->query_offset = 0;
  result->score_offset = rounded(heads * args->head_dim * 2);
  result->weight_offset = result->score_offset + rounded(heads * args->capacity * 4);
  result->output_offset = result->weight_offset + rounded(heads * args->capacity * 2);
  result->library_offset = result->output_offset + rounded(heads * args->head_dim * 2);
  result->workspace_bytes = result->library_offset + kLibraryBytes;
  return cudaSuccess;
}

extern "C" cudaError_t decode_pipeline_launch(const decode_pipeline_args* args, cudaStream_t stream) {
  using namespace decode_pipeline;
  decode_pipeline_plan_result plan;
  cudaError_t status = decode_pipeline_plan(args, 0, &plan);
  if (status != cudaSuccess) return status;
  const decode_pipeline_args& a = *args;
  if (!a.q || !a.k || !a.v || !a.out || !a.lengths || !a.workspace) return cudaErrorInvalidValue;
  if (a.workspace_bytes < plan.workspace_bytes) return cudaErrorInvalidValue;
  if (!library().usable) return cudaErrorSharedObjectInitFailed;

  const int64_t dim = a.head_dim, group = a.num_heads / a.num_kv_heads, kv_heads = a.num_kv_heads;
  const int64_t capacity = a.capacity;
  const Product scores(true, {CUDA_R_16BF, dim, capacity, a.k_stride_s, kv_heads, a.k_stride_h},
                       {CUDA_R_16BF, dim, group, dim, kv_heads, group * dim},
                       {CUDA_R_32F, capacity, group, capacity, kv_heads, group * capacity});
  const Product values(false, {CUDA_R_16BF, dim, capacity, a.v_stride_s, kv_heads, a.v_stride_h},
                       {CUDA_R_16BF, capacity, group, capacity, kv_heads, group * capacity},
                       {CUDA_R_16BF, dim, group, dim, kv_heads, group * dim});
  if (!scores.ok() || !values.ok()) return cudaErrorUnknown;

  auto* base = static_cast<uint8_t*>(a.workspace);
  auto* queries = reinterpret_cast<__nv_bfloat16*>(base + plan.query_offset);
  auto* score = reinterpret_cast<float*>(base + plan.score_offset);
  auto* weight = reinterpret_cast<__nv_bfloat16*>(base + plan.weight_offset);
  auto* output = reinterpret_cast<__nv_bfloat16*>(base + plan.output_offset);
  void* scratch = base + plan.library_offset;
  const size_t row_bytes = static_cast<size_t>(a.num_heads) * dim * 2;

  status = cudaMemcpy2DAsync(queries, row_bytes, a.q, a.q_stride_b * 2, row_bytes, a.batch,
                             cudaMemcpyDeviceToDevice, stream);
  if (status != cudaSuccess) return status;
  const int64_t rows = static_cast<int64_t>(a.batch) * a.num_heads;
  for (int64_t b = 0; b < a.batch; ++b) {
    const auto* k = static_cast<const __nv_bfloat16*>(a.k) + b * a.k_stride_b;
    if (!scores.run(k, queries + b * a.num_heads * dim, score + b * a.num_heads * capacity, scratch, stream)) {
      return cudaErrorUnknown;
    }
  }
  const int blocks = static_cast<int>(rows < kMaxBlocks ? rows : kMaxBlocks);
  ring_softmax<<<blocks, kSoftmaxThreads, 0, stream>>>(score, weight, a.lengths, a.num_heads, rows, capacity,
                                                       a.window, a.scale);
  status = cudaGetLastError();
  if (status != cudaSuccess) return status;
  for (int64_t b = 0; b < a.batch; ++b) {
    const auto* v = static_cast<const __nv_bfloat16*>(a.v) + b * a.v_stride_b;
    if (!values.run(v, weight + b * a.num_heads * capacity, output + b * a.num_heads * dim, scratch, stream)) {
      return cudaErrorUnknown;
    }
  }
  return cudaMemcpy2DAsync(a.out, a.out_stride_b * 2, output, row_bytes, row_bytes, a.batch,
                           cudaMemcpyDeviceToDevice, stream);
}
