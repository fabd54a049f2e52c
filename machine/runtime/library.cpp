// Code that a program loads at run time: PTX text, or a fat binary in memory or in a file.
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "runtime/api.hpp"
#include "runtime/limits.hpp"
#include "runtime/registry.hpp"

struct CUlib_st {
  machine::runtime::Program* program = nullptr;
  std::string bytes;  // of a file, which the fat binary's entries point into
};

using namespace machine::runtime;

namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::uint64_t kUnknownSize = std::uint64_t{1} << 40;

std::set<CUlib_st*>& live_libraries() {
  static auto* const only = new std::set<CUlib_st*>;
  return *only;
}

CUlib_st& library_of(cudaLibrary_t library) {
  if (!live_libraries().contains(library))
    fail(cudaErrorInvalidResourceHandle, "the library does not exist (unloaded?)");
  return *library;
}

// `size` is what is known of the code's length. PTX text ends with a NUL.
void load(CUlib_st& library, const void* code, std::uint64_t size) {
  auto program = std::make_unique<Program>();
  std::uint32_t magic = 0;
  if (size >= sizeof magic) std::memcpy(&magic, code, sizeof magic);
  try {
    if (magic == kWrapperMagic) program->binary = read_fat_binary(code);
    else if (magic == kContainerMagic) program->binary = read_container(code, size);
    else if (std::memcmp(code,
                         "\x7f"
                         "ELF",
                         4) == 0)
      fail(cudaErrorNoKernelImageForDevice, "the code is machine code; the CPU device runs PTX");
    else program->ptx = static_cast<const char*>(code);
  } catch (const BrokenFatBinary& error) {
    fail(cudaErrorInvalidKernelImage, error.what);
  }
  if (program->ptx.empty() && !best_ptx(program->binary, limits().architecture))
    fail(cudaErrorNoKernelImageForDevice, "the library holds no PTX for this device");
  library.program = &add_program(std::move(program));
  for (auto& name : library.program->loaded().kernels()) add_kernel(*library.program, name);
}

cudaError_t find_symbol(const char* call, void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return entry(call, [&](Lock&) {
    require(name && (address || size), cudaErrorInvalidValue, "the name or the result's address is null");
    const machine::Symbol* symbol = library_of(library).program->loaded().symbol(name);
    if (!symbol || !symbol->object) fail(cudaErrorSymbolNotFound, std::string("the library has no variable ") + name);
    if (address) *address = reinterpret_cast<void*>(symbol->object->base);
    if (size) *size = symbol->object->size;
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  return entry("cudaLibraryLoadData", [&](Lock&) {
    require(library && code, cudaErrorInvalidValue, "the library's address or the code is null");
    auto loaded = std::make_unique<CUlib_st>();
    load(*loaded, code, kUnknownSize);
    *library = loaded.release();
    live_libraries().insert(*library);
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* file, cudaJitOption*, void**, unsigned,
                                    cudaLibraryOption*, void**, unsigned) {
  return entry("cudaLibraryLoadFromFile", [&](Lock&) {
    require(library && file, cudaErrorInvalidValue, "the library's address or the file name is null");
    std::ifstream stream(file, std::ios::binary);
    if (!stream) fail(cudaErrorFileNotFound, std::string(file) + " cannot be read");
    std::ostringstream content;
    content << stream.rdbuf();
    auto loaded = std::make_unique<CUlib_st>();
    loaded->bytes = std::move(content).str();
    require(loaded->bytes.size() >= 4, cudaErrorInvalidKernelImage, "the file is empty");
    load(*loaded, loaded->bytes.c_str(), loaded->bytes.size());
    *library = loaded.release();
    live_libraries().insert(*library);
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return entry("cudaLibraryUnload", [&](Lock& lock) {
    library_of(library);
    schedule().wait_for_all(lock);
    live_libraries().erase(library);  // its kernels stay readable for the report
    return cudaSuccess;
  });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return entry("cudaLibraryGetKernel", [&](Lock&) {
    require(kernel && name, cudaErrorInvalidValue, "the name or the result's address is null");
    for (const auto& known : library_of(library).program->kernels)
      if (known->name == name) return (void)(*kernel = known.get()), cudaSuccess;
    fail(cudaErrorSymbolNotFound, std::string("the library has no kernel ") + name);
  });
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return entry("cudaLibraryGetKernelCount", [&](Lock&) {
    require(count, cudaErrorInvalidValue, "the result's address is null");
    *count = static_cast<unsigned>(library_of(library).program->kernels.size());
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  return entry("cudaLibraryEnumerateKernels", [&](Lock&) {
    const auto& known = library_of(library).program->kernels;
    for (unsigned i = 0; i < count && i < known.size(); ++i) kernels[i] = known[i].get();
    return cudaSuccess;
  });
}
cudaError_t cudaLibraryGetGlobal(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return find_symbol("cudaLibraryGetGlobal", address, size, library, name);
}
cudaError_t cudaLibraryGetManaged(void** address, size_t* size, cudaLibrary_t library, const char* name) {
  return find_symbol("cudaLibraryGetManaged", address, size, library, name);
}
}
