// A stand-in for libcudart.so.13, just enough to run a harness's host side without a driver: device memory is
// host memory, streams are synchronous, and the few kernels of the tests are C++ functions found by name.
// Faults for the tests are switched on by FAKE_CUDART, a comma-separated list of words:
//   lost-stamp      the stamp behind the entry is never written, as if the device ran nothing
//   reject-launch   the production kernel's launches are refused with cudaErrorInvalidConfiguration
//   sticky          the production kernel poisons the context
//   little-memory   4 KiB are free
//   write-input     the production kernel also writes the first byte of its input
//   write-before    ... and the byte before its output
//   shared-state    the production kernel returns a value that counts its calls
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

struct dim3 {
  unsigned x, y, z;
};
using Error = int;
using Work = std::function<void()>;

static std::map<const void*, std::string> kernels;
static std::vector<Work>* capture = nullptr;
static bool capturing = false, poisoned = false;
static Error last = 0;
static dim3 pushed_grid, pushed_block;
static std::size_t pushed_shared;
static void* pushed_stream;

static bool fault(const char* word) {
  const char* set = std::getenv("FAKE_CUDART");
  return set != nullptr && ("," + std::string(set) + ",").find("," + std::string(word) + ",") != std::string::npos;
}
static Error answer(Error status) {
  if (poisoned) status = 700;
  if (status != 0) last = status;
  return status;
}
template <class T>
static T argument(void** args, int index) {
  return *static_cast<T*>(args[index]);
}

static void row_softmax(const float* x, float* y, int columns, long long pitch, unsigned rows) {
  static float calls = 0;
  ++calls;
  if (fault("write-input")) reinterpret_cast<std::uint8_t*>(const_cast<float*>(x))[0] ^= 1;
  if (fault("write-before")) reinterpret_cast<std::uint8_t*>(y)[-1] ^= 1;
  for (unsigned r = 0; r < rows; ++r) {
    float largest = -INFINITY, sum = 0;
    for (int c = 0; c < columns; ++c) largest = std::fmax(largest, x[r * pitch + c]);
    for (int c = 0; c < columns; ++c) sum += std::exp(x[r * pitch + c] - largest);
    for (int c = 0; c < columns; ++c)
      y[r * pitch + c] = fault("shared-state") ? calls : std::exp(x[r * pitch + c] - largest) / sum;
  }
}

static Error launch(const void* function, dim3 grid, void** args) {
  const std::string& name = kernels[function];
  const auto is = [&](const char* part) { return name.find(part) != std::string::npos; };
  Work work = [] {};
  if (is("stamp_kernel")) {
    int* where = argument<int*>(args, 0);
    const int value = argument<int>(args, 1);
    if (!fault("lost-stamp")) work = [=] { *where = value; };
  } else if (is("dirty_shared_kernel")) {
    unsigned* seen = argument<unsigned*>(args, 3);
    work = [=] {
      for (unsigned i = 0; i < grid.x; ++i) seen[i] = 1;
    };
  } else if (is("move_segments")) {
    struct Segment {
      std::uint64_t offset, length, position;
    };
    auto* buffer = argument<unsigned char*>(args, 0);
    auto* packed = argument<unsigned char*>(args, 1);
    const auto* segments = argument<const Segment*>(args, 2);
    const bool to_buffer = argument<bool>(args, 3);
    work = [=] {
      for (unsigned i = 0; i < grid.x; ++i) {
        unsigned char *there = buffer + segments[i].offset, *here = packed + segments[i].position;
        std::memcpy(to_buffer ? there : here, to_buffer ? here : there, segments[i].length);
      }
    };
  } else if (is("row_softmax")) {
    if (fault("reject-launch")) return answer(9);
    if (fault("sticky")) poisoned = true;
    const float* x = argument<const float*>(args, 0);
    float* y = argument<float*>(args, 1);
    const int columns = argument<int>(args, 2);
    const long long pitch = argument<long long>(args, 3);
    work = [=] {
      if (!poisoned) row_softmax(x, y, columns, pitch, grid.x);
    };
  } else if (is("guarded_copy")) {
    const float* x = argument<const float*>(args, 0);
    float* y = argument<float*>(args, 1);
    const int n = argument<int>(args, 2);
    const float scale = argument<float>(args, 3);
    work = [=] {
      for (int i = 0; i < n; ++i) y[i] = scale * x[i];
    };
  } else if (!is("sleep_kernel") && !is("load_kernel")) {
    return answer(98);
  }
  if (capturing) capture->push_back(work);
  else work();
  return 0;
}

extern "C" {
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  kernels[host] = name;
}
Error __cudaGetKernel(const void** kernel, const void* host) {
  *kernel = host;
  return 0;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, void* stream) {
  pushed_grid = grid, pushed_block = block, pushed_shared = shared, pushed_stream = stream;
  return 0;
}
Error __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void** stream) {
  *grid = pushed_grid, *block = pushed_block, *shared = pushed_shared, *stream = pushed_stream;
  return 0;
}
Error __cudaLaunchKernel(const void* f, dim3 grid, dim3, void** args, std::size_t, void*) {
  return launch(f, grid, args);
}
Error cudaMalloc(void** p, std::size_t n) {
  *p = std::aligned_alloc(256, (n + 255) / 256 * 256);
  return answer(0);
}
Error cudaFree(void* p) {
  std::free(p);
  return answer(0);
}
Error cudaMemcpy(void* to, const void* from, std::size_t n, int) {
  std::memcpy(to, from, n);
  return answer(0);
}
Error cudaMemset(void* to, int value, std::size_t n) {
  std::memset(to, value, n);
  return answer(0);
}
Error cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = fault("little-memory") ? 4096 : std::size_t(8) << 30;
  *total = std::size_t(8) << 30;
  return answer(0);
}
Error cudaGetDevice(int* device) {
  *device = 0;
  return answer(0);
}
Error cudaGetDeviceProperties(void* properties, int) {
  std::strcpy(static_cast<char*>(properties), "fake \"device\"");
  return answer(0);
}
Error cudaDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 4 : attribute == 97 ? 232448 : attribute == 75 ? 9 : 0;
  return answer(0);
}
Error cudaDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
Error cudaRuntimeGetVersion(int* version) {
  *version = 13050;
  return 0;
}
Error cudaFuncSetAttribute(const void*, int, int) { return answer(0); }
Error cudaDeviceSynchronize() { return answer(0); }
Error cudaStreamSynchronize(void*) { return answer(0); }
Error cudaStreamCreateWithFlags(void** stream, unsigned) {
  *stream = std::malloc(1);
  return answer(0);
}
Error cudaStreamDestroy(void* stream) {
  std::free(stream);
  return 0;
}
Error cudaEventCreateWithFlags(void** event, unsigned) {
  *event = std::malloc(1);
  return answer(0);
}
Error cudaEventRecord(void*, void*) { return answer(0); }
Error cudaStreamWaitEvent(void*, void*, unsigned) { return answer(0); }
Error cudaEventDestroy(void* event) {
  std::free(event);
  return 0;
}
Error cudaGetLastError() {
  const Error status = last;
  last = poisoned ? 700 : 0;
  return status;
}
Error cudaPeekAtLastError() { return last; }
const char* cudaGetErrorName(Error status) {
  switch (status) {
    case 0: return "cudaSuccess";
    case 1: return "cudaErrorInvalidValue";
    case 9: return "cudaErrorInvalidConfiguration";
    case 700: return "cudaErrorIllegalAddress";
    case 701: return "cudaErrorLaunchOutOfResources";
    default: return "cudaErrorOther";
  }
}
const char* cudaGetErrorString(Error) { return "as the fake says"; }
Error cudaStreamBeginCapture(void*, int) {
  capture = new std::vector<Work>;
  capturing = true;
  return answer(0);
}
Error cudaStreamEndCapture(void*, void** graph) {
  capturing = false;
  *graph = capture;
  return answer(0);
}
Error cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  *executable = graph;
  return answer(0);
}
Error cudaGraphLaunch(void* graph, void*) {
  for (Work& work : *static_cast<std::vector<Work>*>(graph)) work();
  return answer(0);
}
Error cudaGraphExecDestroy(void*) { return answer(0); }
Error cudaGraphDestroy(void* graph) {
  delete static_cast<std::vector<Work>*>(graph);
  return answer(0);
}
}
