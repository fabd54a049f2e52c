// Code loaded at run time: PTX text with a kernel and a variable; code that is none.
#include "expect.cuh"

const char* const text = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 offset = 100;
.visible .entry shift(.param .u64 data) {
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [data];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [offset];
  add.s32 %r3, %r1, %r2;
  st.global.u32 [%rd4], %r3;
  ret;
}
)";

int main() {
  cudaLibrary_t library;
  OK(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  OK(cudaLibraryGetKernelCount(&count, library));
  EXPECT(count == 1);
  cudaKernel_t kernel;
  OK(cudaLibraryGetKernel(&kernel, library, "shift"));
  int *data, host[32];
  OK(cudaMalloc(&data, sizeof host));
  void* arguments[] = {&data};
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr));
  OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 100 && host[31] == 131);
  void* offset;
  size_t size;
  OK(cudaLibraryGetGlobal(&offset, &size, library, "offset"));
  EXPECT(size == 4);
  int changed = 200;
  OK(cudaMemcpy(offset, &changed, 4, cudaMemcpyHostToDevice));
  OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(32), arguments, 0, nullptr));
  OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[31] == 231);
  EXPECT_CODE(cudaErrorSymbolNotFound, cudaLibraryGetKernel(&kernel, library, "no_such"));
  cudaGetLastError();
  OK(cudaLibraryUnload(library));
  EXPECT_CODE(cudaErrorFileNotFound, cudaLibraryLoadFromFile(&library, "no-such-file.ptx", nullptr, nullptr, 0, nullptr, nullptr, 0));
  return finish();
}
