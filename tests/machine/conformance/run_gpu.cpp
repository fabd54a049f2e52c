// Runs a conformance plan on a GPU through the driver: run_gpu FOLDER. Modules are FOLDER/m<k>.cubin. The driver is
// loaded at run time, so that nothing needs linking.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

static void* driver() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "libcuda.so.1: %s\n", dlerror());
    std::exit(1);
  }
  return library;
}

// cuda.h names some entry points by macro (cuMemAlloc is cuMemAlloc_v2); the macro is expanded before the name is
// taken.
#define NAME_OF(f) #f
#define CALL(f) (reinterpret_cast<decltype(&f)>(dlsym(driver(), NAME_OF(f))))

static void check(CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  CALL(cuGetErrorString)(result, &text);
  std::fprintf(stderr, "%s: %s\n", what.c_str(), text != nullptr ? text : "unknown error");
  std::exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  check(CALL(cuInit)(0), "cuInit");
  CUdevice device;
  check(CALL(cuDeviceGet)(&device, 0), "cuDeviceGet");
  CUcontext context;
  check(CALL(cuDevicePrimaryCtxRetain)(&context, device), "context");
  check(CALL(cuCtxSetCurrent)(context), "context");
  std::ifstream file(folder + "/inputs.bin", std::ios::binary);
  const std::vector<char> inputs((std::istreambuf_iterator<char>(file)), {});
  constexpr std::size_t kRoom = 1 << 20;
  CUdeviceptr in, out, room;
  check(CALL(cuMemAlloc)(&in, inputs.size() + 16), "cuMemAlloc");
  check(CALL(cuMemAlloc)(&out, kRoom), "cuMemAlloc");
  check(CALL(cuMemAlloc)(&room, kRoom), "cuMemAlloc");
  check(CALL(cuMemcpyHtoD)(in, inputs.data(), inputs.size()), "copy");
  std::ifstream plan(folder + "/plan.txt");
  std::ofstream answers(folder + "/answers.bin", std::ios::binary);
  std::map<int, CUmodule> modules;
  std::string line;
  while (std::getline(plan, line)) {
    std::istringstream words(line);
    int module_index;
    std::string kernel;
    unsigned grid, block;
    std::size_t out_bytes;
    long long offsets[3];
    words >> module_index >> kernel >> grid >> block >> out_bytes >> offsets[0] >> offsets[1] >> offsets[2];
    if (modules.find(module_index) == modules.end())
      check(
          CALL(cuModuleLoad)(&modules[module_index], (folder + "/m" + std::to_string(module_index) + ".cubin").c_str()),
          "module " + std::to_string(module_index));
    CUfunction function;
    check(CALL(cuModuleGetFunction)(&function, modules[module_index], kernel.c_str()), kernel);
    CUdeviceptr pointers[5] = {out, in, in, in, room};
    for (int k = 0; k < 3; ++k)
      if (offsets[k] >= 0) pointers[k + 1] = in + static_cast<std::size_t>(offsets[k]);
    void* params[5];
    for (int k = 0; k < 5; ++k) params[k] = &pointers[k];
    check(CALL(cuMemsetD8)(out, 0, out_bytes), "set");
    check(CALL(cuLaunchKernel)(function, grid, 1, 1, block, 1, 1, 0, nullptr, params, nullptr), kernel);
    check(CALL(cuCtxSynchronize)(), kernel);
    std::vector<char> result(out_bytes);
    check(CALL(cuMemcpyDtoH)(result.data(), out, out_bytes), "copy");
    answers.write(result.data(), static_cast<std::streamsize>(out_bytes));
  }
  answers.close();
  char name[256];
  int version = 0;
  CALL(cuDeviceGetName)(name, sizeof name, device);
  CALL(cuDriverGetVersion)(&version);
  std::printf("%s, driver API %d.%d\n", name, version / 1000, version % 1000 / 10);
  return 0;
}
