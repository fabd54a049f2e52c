// Every way to get memory and to move bytes: plain, pitched, 3D, pinned, managed, registered, symbols.
#include "expect.cuh"

#include <cstdlib>
#include <vector>

__device__ int device_table[8];
__constant__ float constant_table[4];
__device__ int device_initialised[3] = {7, 8, 9};
__managed__ int managed_counter = 40;

__global__ void add_one(int* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] += 1;
}

__global__ void read_tables(float* out) {
  out[0] = constant_table[0] + constant_table[3];
  out[1] = static_cast<float>(device_table[5]);
  out[2] = static_cast<float>(device_initialised[2]);
  managed_counter += 2;
}

void plain() {
  int host[100], back[100] = {};
  for (int i = 0; i < 100; ++i) host[i] = i;
  int *a, *b;
  OK(cudaMalloc(&a, sizeof host));
  OK(cudaMalloc(&b, sizeof host));
  EXPECT(reinterpret_cast<size_t>(a) % 256 == 0);
  OK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(b, a, sizeof host, cudaMemcpyDeviceToDevice));
  add_one<<<2, 64>>>(b, 100);
  OK(cudaMemcpy(back, b, sizeof back, cudaMemcpyDefault));
  EXPECT(back[0] == 1 && back[99] == 100);
  OK(cudaMemset(b, 0x11, 40));
  OK(cudaMemcpy(back, b, sizeof back, cudaMemcpyDeviceToHost));
  EXPECT(back[9] == 0x11111111 && back[10] == 11);
  void* nothing = &a;
  OK(cudaMalloc(&nothing, 0));
  EXPECT(nothing == nullptr);
  OK(cudaFree(nullptr));
  OK(cudaFree(a));
  OK(cudaFree(b));
}

void pitched() {
  constexpr size_t width = 100, height = 5;
  unsigned char host[height][width], back[height][width] = {};
  for (size_t y = 0; y < height; ++y)
    for (size_t x = 0; x < width; ++x) host[y][x] = static_cast<unsigned char>(y * 16 + x);
  void* plane;
  size_t pitch;
  OK(cudaMallocPitch(&plane, &pitch, width, height));
  EXPECT(pitch >= width && pitch % 32 == 0);
  OK(cudaMemcpy2D(plane, pitch, host, width, width, height, cudaMemcpyHostToDevice));
  OK(cudaMemset2D(plane, pitch, 0xee, 3, 2));
  OK(cudaMemcpy2D(back, width, plane, pitch, width, height, cudaMemcpyDeviceToHost));
  EXPECT(back[0][2] == 0xee && back[0][3] == host[0][3] && back[2][0] == host[2][0]);
  EXPECT(std::memcmp(back[4], host[4], width) == 0);
  EXPECT_CODE(cudaErrorInvalidPitchValue, cudaMemcpy2D(plane, width - 1, host, width, width, height, cudaMemcpyHostToDevice));
  OK(cudaFree(plane));
}

void volume() {
  constexpr size_t w = 8, h = 3, d = 2;
  std::vector<unsigned char> host(w * h * d), back(w * h * d);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<unsigned char>(i + 1);
  cudaPitchedPtr box;
  OK(cudaMalloc3D(&box, make_cudaExtent(w, h, d)));
  cudaMemcpy3DParms in = {}, out = {};
  in.srcPtr = make_cudaPitchedPtr(host.data(), w, w, h);
  in.dstPtr = box;
  in.extent = out.extent = make_cudaExtent(w, h, d);
  in.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&in));
  OK(cudaMemset3D(make_cudaPitchedPtr(box.ptr, box.pitch, box.xsize, box.ysize), 0, make_cudaExtent(2, 1, 1)));
  out.srcPtr = box;
  out.dstPtr = make_cudaPitchedPtr(back.data(), w, w, h);
  out.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&out));
  EXPECT(back[0] == 0 && back[1] == 0 && back[2] == 3 && back.back() == host.back());
  OK(cudaFree(box.ptr));
}

void symbols() {
  int table[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  float values[4] = {1.5f, 0, 0, 2.25f};
  OK(cudaMemcpyToSymbol(device_table, table, sizeof table));
  int fifty = 50;
  OK(cudaMemcpyToSymbol(device_table, &fifty, sizeof fifty, 5 * sizeof(int)));
  OK(cudaMemcpyToSymbol(constant_table, values, sizeof values));
  float *out, host[3];
  OK(cudaMalloc(&out, sizeof host));
  read_tables<<<1, 1>>>(out);
  OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 3.75f && host[1] == 50.0f && host[2] == 9.0f);
  EXPECT(managed_counter == 42);
  int last = 0;
  OK(cudaMemcpyFromSymbol(&last, device_initialised, sizeof last, 2 * sizeof(int)));
  EXPECT(last == 9);
  void* address;
  size_t size;
  OK(cudaGetSymbolAddress(&address, device_table));
  OK(cudaGetSymbolSize(&size, device_table));
  EXPECT(size == sizeof table);
  OK(cudaMemcpy(&last, static_cast<int*>(address) + 5, sizeof last, cudaMemcpyDeviceToHost));
  EXPECT(last == 50);
  EXPECT_CODE(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size, &failures));
  cudaGetLastError();
  OK(cudaFree(out));
}

void host_memory() {
  int *pinned, *managed, *mapped;
  OK(cudaMallocHost(&pinned, 64 * sizeof(int)));
  OK(cudaMallocManaged(&managed, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) pinned[i] = managed[i] = i;
  OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  add_one<<<1, 64>>>(mapped, 64);
  add_one<<<1, 64>>>(managed, 64);
  OK(cudaDeviceSynchronize());
  EXPECT(pinned[63] == 64 && managed[0] == 1);

  cudaPointerAttributes attributes;
  int local = 0;
  OK(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
  OK(cudaPointerGetAttributes(&attributes, managed));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&attributes, &local));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  OK(cudaFreeHost(pinned));
  OK(cudaFree(managed));

  int* ordinary = static_cast<int*>(std::aligned_alloc(4096, 4096));
  ordinary[0] = 5;
  OK(cudaHostRegister(ordinary, 4096, cudaHostRegisterDefault));
  add_one<<<1, 1>>>(ordinary, 1);
  OK(cudaDeviceSynchronize());
  EXPECT(ordinary[0] == 6);
  EXPECT_CODE(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(ordinary, 4096, 0));
  OK(cudaHostUnregister(ordinary));
  EXPECT_CODE(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(ordinary));
  cudaGetLastError();
  std::free(ordinary);
}

void amounts() {
  size_t before, after, total;
  OK(cudaMemGetInfo(&before, &total));
  void* big;
  OK(cudaMalloc(&big, size_t{1} << 30));
  OK(cudaMemGetInfo(&after, &total));
  EXPECT(before - after >= size_t{1} << 30 && before <= total);
  OK(cudaFree(big));
  EXPECT_CODE(cudaErrorMemoryAllocation, cudaMalloc(&big, total * 2));
  EXPECT_CODE(cudaErrorMemoryAllocation, cudaGetLastError());
  OK(cudaGetLastError());
}

int main() {
  plain();
  pitched();
  cudaGetLastError();
  volume();
  symbols();
  host_memory();
  amounts();
  return finish();
}
