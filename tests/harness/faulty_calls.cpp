// Calls the real runtime inside the interposer's window and prints what came back; needs no driver.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>

int main() {
  const auto open = reinterpret_cast<void (*)(long)>(dlsym(RTLD_DEFAULT, "verify_fault_window_open"));
  const auto close = reinterpret_cast<long (*)()>(dlsym(RTLD_DEFAULT, "verify_fault_window_close"));
  const auto failed = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "verify_fault_window_failed"));
  if (open == nullptr || close == nullptr || failed == nullptr) return 3;
  const auto say = [](const char* what, cudaError_t status) { std::printf("%s %s\n", what, cudaGetErrorName(status)); };
  int version = 0;

  // Without a driver the runtime's own last error is always that.
  say("own", cudaGetLastError());
  open(2);
  say("first", cudaRuntimeGetVersion(&version));
  say("second", cudaFuncSetAttribute(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 0));
  say("peek", cudaPeekAtLastError());
  say("last", cudaGetLastError());
  say("again", cudaGetLastError());
  std::printf("calls %ld %s\n", close(), failed());

  open(1);
  say("chosen", cudaGetLastError());
  say("after", cudaGetLastError());
  std::printf("calls %ld %s\n", close(), failed());

  say("outside", cudaRuntimeGetVersion(&version));
  open(9);
  std::printf("calls %ld %s\n", close(), failed());
  return version == 0;
}
