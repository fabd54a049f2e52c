#include "runtime/registry.hpp"

#include <unordered_map>

#include "runtime/api.hpp"
#include "runtime/exit.hpp"
#include "runtime/host_guard.hpp"
#include "runtime/host_watch.hpp"
#include "runtime/limits.hpp"
#include "runtime/options.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

struct Registered {
  Program* program;
  std::size_t variable;
};

// Filled before main and by dlopen, and still needed by exit handlers: never destroyed.
struct Registry {
  std::vector<std::unique_ptr<Program>> programs;
  std::unordered_map<const void*, CUkern_st*> functions;
  std::unordered_map<const void*, Registered> variables;
};

Registry& registry() {
  static Registry* const only = new Registry;
  return *only;
}

std::string architectures(const FatBinary& binary) {
  std::string text;
  for (const auto& entry : binary.ptx)
    text += (text.empty() ? "compute_" : ", compute_") + std::to_string(entry.architecture);
  return text;
}

std::string flags() {
  std::string number = std::to_string(options().architecture);
  return "-gencode arch=compute_" + number + ",code=compute_" + number;
}

[[noreturn]] void refuse_program(const Program& program) {
  const FatBinary& binary = program.binary;
  if (!program.broken.empty()) refuse("the program cannot be run: " + program.broken);
  if (binary.ptx.empty() && binary.relocatable)
    refuse(
        "the program holds relocatable device code, which is linked by nvlink and has no PTX left: build without "
        "-rdc=true (-dc) and with " +
        flags());
  if (binary.ptx.empty()) refuse("the program holds no PTX: build with " + flags());
  refuse("the program has PTX for " + architectures(binary) + " only, which sm_" +
         std::to_string(options().architecture) + " cannot run: build with " + flags());
}

void place_managed(Program& program) {
  for (const auto& variable : program.variables)
    if (variable.managed) {
      const Symbol* symbol = program.loaded().symbol(variable.name);
      if (!symbol || !symbol->object) refuse("__managed__ variable " + variable.name + " is not in the PTX");
      if (*variable.managed == reinterpret_cast<void*>(symbol->object->base)) continue;
      *variable.managed = reinterpret_cast<void*>(symbol->object->base);
      watch_host_memory(*symbol->object);
    }
}

Program& program_of(void** handle) { return *reinterpret_cast<Program*>(handle); }

void register_variable(Program& program, const void* host, Variable variable) {
  program.variables.push_back(std::move(variable));
  registry().variables[host] = {&program, program.variables.size() - 1};
}

}  // namespace

Module& Program::loaded() {
  if (module) return *module;
  start();
  const PtxEntry* entry = best_ptx(binary, options().architecture);
  if (ptx.empty() && (!broken.empty() || !entry)) refuse_program(*this);
  DeviceAccess access;  // symbols get their initial values
  try {
    std::string text = ptx.empty() ? unpacked(entry->text, options().unpacked) : ptx;
    while (!text.empty() && text.back() == '\0') text.pop_back();  // stored with padding
    module = load_ptx(text, machine_options());
  } catch (const BrokenFatBinary& error) {
    refuse("the program cannot be run: " + error.what);
  } catch (const PtxError& error) {
    refuse(error.what());
  }
  return *module;
}

Program& add_program(std::unique_ptr<Program> program) {
  registry().programs.push_back(std::move(program));
  return *registry().programs.back();
}

CUkern_st& add_kernel(Program& program, std::string name) {
  auto kernel = std::make_unique<CUkern_st>();
  kernel->program = &program;
  kernel->name = std::move(name);
  program.kernels.push_back(std::move(kernel));
  return *program.kernels.back();
}

CUkern_st* find_kernel(const void* function) {
  Registry& all = registry();
  if (auto found = all.functions.find(function); found != all.functions.end()) return found->second;
  for (const auto& program : all.programs)
    for (const auto& kernel : program->kernels)
      if (kernel.get() == function) return kernel.get();
  return nullptr;
}

CUkern_st& kernel_of(const void* function) {
  CUkern_st* kernel = function ? find_kernel(function) : nullptr;
  if (!kernel) fail(cudaErrorInvalidDeviceFunction, "the pointer is no __global__ function of this program");
  return *kernel;
}

const Object& symbol_object(const void* host_variable) {
  auto found = registry().variables.find(host_variable);
  if (found == registry().variables.end()) {
    // The host names a __managed__ variable by its address in managed memory.
    const Object* object = AddressSpace::instance().find(reinterpret_cast<std::uint64_t>(host_variable));
    if (object && object->base == reinterpret_cast<std::uint64_t>(host_variable) && !object->name.empty())
      return *object;
  }
  if (found == registry().variables.end())
    fail(cudaErrorInvalidSymbol, "the pointer is no __device__, __constant__ or __managed__ variable of this program");
  Program& program = *found->second.program;
  const Variable& variable = program.variables[found->second.variable];
  const Symbol* symbol = program.loaded().symbol(variable.name);
  if (!symbol || !symbol->object) fail(cudaErrorInvalidSymbol, "the PTX holds no variable " + variable.name);
  return *symbol->object;
}

}  // namespace machine::runtime

const machine::Kernel& CUkern_st::kernel() {
  if (!resolved) {
    resolved = program->loaded().kernel(name);
    if (!resolved) machine::runtime::refuse("kernel " + name + " is not in the PTX that was chosen for this device");
  }
  return *resolved;
}

std::size_t CUkern_st::dynamic_shared_limit() {
  if (max_dynamic_shared >= 0) return static_cast<std::size_t>(max_dynamic_shared);
  std::size_t used = kernel().attributes().static_shared;
  std::size_t all = machine::runtime::limits().shared_per_block;
  return used > all ? 0 : all - used;
}

using namespace machine::runtime;

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Lock lock(state_mutex());
  auto program = std::make_unique<Program>();
  try {
    program->binary = read_fat_binary(wrapper);
  } catch (const BrokenFatBinary& error) {
    program->broken = error.what;
  }
  return reinterpret_cast<void**>(&add_program(std::move(program)));
}

void __cudaRegisterFatBinaryEnd(void** handle) {
  Lock lock(state_mutex());
  place_managed(program_of(handle));
}

char __cudaInitModule(void** handle) {
  Lock lock(state_mutex());
  place_managed(program_of(handle));
  return 1;
}

void __cudaUnregisterFatBinary(void**) {}  // its kernels may still be pending; they end with the process

void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  Lock lock(state_mutex());
  registry().functions[host] = &add_kernel(program_of(handle), name);
}

void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t size, int constant, int) {
  Lock lock(state_mutex());
  register_variable(program_of(handle), host, {name, size, constant != 0, nullptr});
}

void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int, size_t size, int, int) {
  Lock lock(state_mutex());
  register_variable(program_of(handle), host, {name, size, false, host});
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  Lock lock(state_mutex());
  CUkern_st* found = find_kernel(function);
  if (!found) return cudaErrorInvalidDeviceFunction;
  *kernel = found;
  return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return entry("cudaGetKernel", [&](Lock&) {
    require(kernel, cudaErrorInvalidValue, "the handle's address is null");
    *kernel = &kernel_of(function);
    return cudaSuccess;
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return entry("cudaGetFuncBySymbol", [&](Lock&) {
    require(function, cudaErrorInvalidValue, "the handle's address is null");
    *function = reinterpret_cast<cudaFunction_t>(&kernel_of(symbol));
    return cudaSuccess;
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return entry("cudaGetSymbolAddress", [&](Lock&) {
    require(address, cudaErrorInvalidValue, "the result's address is null");
    const auto base = symbol_object(symbol).base;  // an unknown symbol is the first error, a failed kernel the second
    if (context_error()) return context_error();
    *address = reinterpret_cast<void*>(base);
    return cudaSuccess;
  });
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return entry("cudaGetSymbolSize", [&](Lock&) {
    require(size, cudaErrorInvalidValue, "the result's address is null");
    *size = symbol_object(symbol).size;
    return cudaSuccess;
  });
}
}
