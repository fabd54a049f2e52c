// What a program asks of the device before it does anything.
#include "expect.cuh"

int main() {
  int count = 0, runtime = 0, driver = 0;
  OK(cudaGetDeviceCount(&count));
  EXPECT(count == 1);
  OK(cudaRuntimeGetVersion(&runtime));
  OK(cudaDriverGetVersion(&driver));
  EXPECT(runtime >= 13000 && runtime < 14000 && driver >= runtime);
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  EXPECT(p.name[0] != 0 && p.warpSize == 32 && p.maxThreadsPerBlock == 1024 && p.maxGridSize[1] == 65535);
  EXPECT(p.totalGlobalMem > 0 && p.multiProcessorCount > 0);
  int value = 0;
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT(value == p.multiProcessorCount);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT(value == p.major);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  EXPECT(static_cast<size_t>(value) == p.sharedMemPerBlockOptin);
  EXPECT(p.major != 9 || p.sharedMemPerBlockOptin == 232448);
  EXPECT(p.major != 8 || p.sharedMemPerBlockOptin == 166912);
  EXPECT_CODE(cudaErrorInvalidDevice, cudaGetDeviceProperties(&p, 1));
  cudaGetLastError();

  size_t limit = 0;
  OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 4 << 20));
  OK(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize));
  EXPECT(limit >= 4 << 20);

  void* function = &count;
  cudaDriverEntryPointQueryResult status;
  OK(cudaGetDriverEntryPointByVersion("cuDriverGetVersion", &function, 12000, cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSuccess && function != nullptr);
  OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &status));
  EXPECT(status == cudaDriverEntryPointSymbolNotFound);
  return finish();
}
