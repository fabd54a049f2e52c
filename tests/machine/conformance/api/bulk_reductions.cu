// What reductions of bulk copies leave in memory. Argument: adjacent bytes in global memory, in shared memory, by tensor maps.
#include <cstdlib>

#include "tensor.cuh"

constexpr int kBytes = 128;

// Integers that wrap, and floats of every kind, by the width of the type.
__host__ __device__ inline unsigned long long left_value(int i) {
  const unsigned long long values[] = {0x7fffffff80000000, 0xfffffffffffffffe, 5, 0x8000000000000000, 0x3ff8000000000000, 0x3f8000003f800000, 0x7fc000007f800000, 0x0000000100000001,
                                       0x3c003c0003ff0001, 0x7c00fc007bff7bff, 0x7f7fffff00800000, 0x807fffff80000001, 0x4000c00040004000, 0, 0x7ff0000000000001, 0xfff8000000000000};
  return values[i % 16];
}
__host__ __device__ inline unsigned long long right_value(int i) {
  const unsigned long long values[] = {0x0000000180000000, 0x0000000000000003, 7, 0x8000000000000001, 0x4004000000000000, 0xbf800000b3800000, 0x7f800000ff800000, 0x0000000280000003,
                                       0x00013c0180010400, 0x7c007c0038007bff, 0x7f7fffff80800001, 0x807fffff00000001, 0x40013c01c0003555, 0x8000000000000000, 0x3ff0000000000000, 0x7ff8000000000123};
  return values[i % 16];
}

#define GLOBAL(k, spelling)                                                                                                              \
  case k:                                                                                                                                \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." spelling " [%0], [%1], %2;" ::"l"(out), "r"(shared_at(source)), "r"(kBytes) : "memory"); \
    break;
#define SHARED(k, spelling)                                                                                                         \
  case k:                                                                                                                           \
    asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." spelling " [%0], [%1], %2, [%3];" ::"r"( \
                     shared_at(target)),                                                                                            \
                 "r"(shared_at(source)), "r"(kBytes), "r"(shared_at(&bar))                                                          \
                 : "memory");                                                                                                       \
    break;
#define TENSOR(k, spelling)                                                                                                                         \
  case k:                                                                                                                                           \
    asm volatile("cp.reduce.async.bulk.tensor.1d.global.shared::cta." spelling ".tile.bulk_group [%0, {%1}], [%2];" ::"l"(&map), "r"(-2), "r"(shared_at(source)) \
                 : "memory");                                                                                                                       \
    break;

__device__ void finish() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void into_global(int which, unsigned long long* out) {
  __shared__ __align__(128) unsigned long long source[kBytes / 8];
  for (int i = 0; i < kBytes / 8; ++i) source[i] = right_value(i);
  asm volatile("fence.proxy.async;" ::: "memory");
  switch (which) {
    GLOBAL(0, "add.u32") GLOBAL(1, "add.s32") GLOBAL(2, "add.u64") GLOBAL(3, "add.f32") GLOBAL(4, "add.f64") GLOBAL(5, "add.noftz.f16") GLOBAL(6, "add.noftz.bf16")
    GLOBAL(7, "min.u32") GLOBAL(8, "min.s32") GLOBAL(9, "min.u64") GLOBAL(10, "min.s64") GLOBAL(11, "min.f16") GLOBAL(12, "min.bf16")
    GLOBAL(13, "max.u32") GLOBAL(14, "max.s32") GLOBAL(15, "max.u64") GLOBAL(16, "max.s64") GLOBAL(17, "max.f16") GLOBAL(18, "max.bf16")
    GLOBAL(19, "inc.u32") GLOBAL(20, "dec.u32") GLOBAL(21, "and.b32") GLOBAL(22, "or.b32") GLOBAL(23, "xor.b32") GLOBAL(24, "and.b64") GLOBAL(25, "or.b64") GLOBAL(26, "xor.b64")
  }
  finish();
}

__global__ void into_shared(int which, unsigned long long* out) {
  __shared__ __align__(128) unsigned long long source[kBytes / 8], target[kBytes / 8];
  __shared__ uint64_t bar;
  for (int i = 0; i < kBytes / 8; ++i) source[i] = right_value(i), target[i] = left_value(i);
  asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_at(&bar)) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  switch (which) {
    SHARED(0, "add.u32") SHARED(1, "add.s32") SHARED(2, "add.u64") SHARED(3, "min.u32") SHARED(4, "min.s32") SHARED(5, "max.u32") SHARED(6, "max.s32")
    SHARED(7, "inc.u32") SHARED(8, "dec.u32") SHARED(9, "and.b32") SHARED(10, "or.b32") SHARED(11, "xor.b32")
  }
  arrives(&bar, kBytes);
  for (int i = 0; i < kBytes / 8; ++i) out[i] = target[i];
}

__global__ void by_tensor(const __grid_constant__ CUtensorMap map, int which) {
  __shared__ __align__(128) unsigned long long source[kBytes / 8];
  for (int i = 0; i < kBytes / 8; ++i) source[i] = right_value(i);
  asm volatile("fence.proxy.async;" ::: "memory");
  switch (which) { TENSOR(0, "add") TENSOR(1, "min") TENSOR(2, "max") TENSOR(3, "inc") TENSOR(4, "dec") TENSOR(5, "and") TENSOR(6, "or") TENSOR(7, "xor") }
  finish();
}

void show_words(const char* name, int which, const unsigned long long* device) {
  unsigned long long back[kBytes / 8];
  std::printf("%s %d: %s\n ", name, which, cudaGetErrorName(cudaMemcpy(back, device, kBytes, cudaMemcpyDeviceToHost)));
  for (const auto v : back) std::printf(" %016llx", v);
  std::printf("\n");
}

int main(int, char** arguments) {
  unsigned long long host[kBytes / 8], *out;
  for (int i = 0; i < kBytes / 8; ++i) host[i] = left_value(i);
  cudaMalloc(&out, kBytes);
  const int part = std::atoi(arguments[1]);
  const auto reset = [&] { cudaMemcpy(out, host, kBytes, cudaMemcpyHostToDevice); };
  for (int which = 0; part == 0 && which < 27; ++which) reset(), into_global<<<1, 1>>>(which, out), show_words("global", which, out);
  for (int which = 0; part == 1 && which < 12; ++which) reset(), into_shared<<<1, 1>>>(which, out), show_words("shared", which, out);
  if (part != 2) return 0;
  // The operations that a data type has; the copy begins two elements before the tensor, and ends before it does.
  static const struct {
    CUtensorMapDataType type;
    int operations;
  } kTypes[] = {{CU_TENSOR_MAP_DATA_TYPE_UINT32, 8}, {CU_TENSOR_MAP_DATA_TYPE_INT32, 3},    {CU_TENSOR_MAP_DATA_TYPE_UINT64, 3},  {CU_TENSOR_MAP_DATA_TYPE_INT64, 3},
                {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 3}, {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1}, {CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, 1},
                {CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 1}};
  for (const auto& t : kTypes)
    for (int which = 0; which < t.operations; ++which) {
      reset();
      Case c;
      c.type = t.type;
      c.sizes = {static_cast<cuuint64_t>(kBytes / bytes_of(t.type))};
      c.box = {static_cast<cuuint32_t>(kBytes / bytes_of(t.type))};
      CUtensorMap map;
      if (encode(c, out, map) != CUDA_SUCCESS) return 3;
      by_tensor<<<1, 1>>>(map, which);
      std::printf("type %d, ", static_cast<int>(t.type));
      show_words("tensor", which, out);
    }
  return 0;
}
