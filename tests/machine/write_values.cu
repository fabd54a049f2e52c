// Two threads store to one place: the same value or another one, in every width, by lanes of a warp, by warps and by
// blocks, in every kind of memory. Values differ in their highest byte alone, and memory holds that of the later store.
#include <cstdio>
#include <cstring>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

enum Who { kLanes, kWarps, kBlocks };
struct alignas(16) Sixteen { unsigned char bytes[16]; };

template <class T>
__host__ __device__ T value(unsigned high) {
  T v;
  unsigned char bytes[sizeof(T)];
  for (unsigned i = 0; i < sizeof(T); ++i) bytes[i] = i + 1 == sizeof(T) ? 0x30 + high : 0x5a;
  memcpy(&v, bytes, sizeof(T));
  return v;
}

// 0 or 1: the writer that this thread is; 2: none.
template <Who who>
__device__ unsigned writer() {
  const unsigned t = threadIdx.x, b = blockIdx.x;
  if (who == kLanes) return b == 0 && t < 2 ? t : 2;
  if (who == kWarps) return b == 0 && t % 32 == 0 ? t / 32 : 2;
  return t == 0 ? b : 2;
}

template <class T, Who who>
__global__ void equal(T* place) {
  if (writer<who>() < 2) *place = value<T>(1);
}
template <class T, Who who>
__global__ void differ(T* place) {
  if (const unsigned w = writer<who>(); w < 2) *place = value<T>(w);
}
template <class T, Who who>
__global__ void equal_shared(T* out) {
  __shared__ T place;
  if (writer<who>() < 2) place = value<T>(1);
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = place;
}
template <class T, Who who>
__global__ void differ_shared(T* out) {
  __shared__ T place;
  if (const unsigned w = writer<who>(); w < 2) place = value<T>(w);
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = place;
}
// A plain store against a volatile one.
template <Who who>
__global__ void equal_volatile(unsigned* place) {
  const unsigned w = writer<who>();
  if (w == 0) *place = 0x315a5a5a;
  if (w == 1) *static_cast<volatile unsigned*>(place) = 0x315a5a5a;
}
template <Who who>
__global__ void differ_volatile(unsigned* place) {
  const unsigned w = writer<who>();
  if (w == 0) *place = 0x305a5a5a;
  if (w == 1) *static_cast<volatile unsigned*>(place) = 0x315a5a5a;
}
// One word in eight bytes differs, and the stores overlap only there.
__global__ void differ_overlap(unsigned* place) {
  if (threadIdx.x == 0) *reinterpret_cast<uint2*>(place) = make_uint2(7, 8);
  if (threadIdx.x == 32) place[1] = 9;
}
__global__ void equal_overlap(unsigned* place) {
  if (threadIdx.x == 0) *reinterpret_cast<uint2*>(place) = make_uint2(7, 8);
  if (threadIdx.x == 32) place[1] = 8;
}

char* memory[3];

template <class T, Who who>
void each_memory() {
  for (char* m : memory) {
    const T before = value<T>(1);
    for (bool same : {false, true}) {
      cudaMemcpy(m, &before, sizeof before, cudaMemcpyDefault);
      if (same) equal<T, who><<<2, 64>>>(reinterpret_cast<T*>(m));
      else differ<T, who><<<2, 64>>>(reinterpret_cast<T*>(m));
      cudaDeviceSynchronize();
    }
  }
  if (who == kBlocks) return;
  equal_shared<T, who><<<1, 64>>>(reinterpret_cast<T*>(memory[0]));
  differ_shared<T, who><<<1, 64>>>(reinterpret_cast<T*>(memory[0]));
  cudaDeviceSynchronize();
}
template <class T>
void each_writer() {
  each_memory<T, kLanes>();
  each_memory<T, kWarps>();
  each_memory<T, kBlocks>();
}

int main() {
  cudaMalloc(&memory[0], 64);
  cudaMallocManaged(&memory[1], 64);
  cudaMallocHost(&memory[2], 64);
  each_writer<unsigned char>();
  each_writer<unsigned short>();
  each_writer<unsigned>();
  each_writer<unsigned long long>();
  each_writer<float>();
  each_writer<double>();
  each_writer<__half>();
  each_writer<__nv_bfloat162>();
  each_writer<uint2>();
  each_writer<float4>();
  each_writer<double2>();
  each_writer<Sixteen>();
  auto* word = reinterpret_cast<unsigned*>(memory[0]);
  equal_volatile<kWarps><<<1, 64>>>(word);
  differ_volatile<kWarps><<<1, 64>>>(word);
  equal_volatile<kBlocks><<<2, 64>>>(word);
  differ_volatile<kBlocks><<<2, 64>>>(word);
  equal_overlap<<<1, 64>>>(word);
  differ_overlap<<<1, 64>>>(word);
  return cudaDeviceSynchronize();
}
