// What the program registered before main: fat binaries, kernels and variables, and how handles find them again.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "exec/machine.hpp"
#include "runtime/fatbinary.hpp"

namespace machine::runtime {

struct Variable {
  std::string name;  // as the PTX spells it
  std::size_t size = 0;
  bool constant = false;
  void** managed = nullptr;  // where the program keeps the address of a __managed__ variable
};

// One fat binary: one translation unit, or one library loaded at run time. Its PTX is loaded when first needed.
struct Program {
  FatBinary binary;
  std::string ptx;     // of a library that is plain PTX text
  std::string broken;  // why it cannot be used, one line, empty when it can
  std::unique_ptr<Module> module;
  std::vector<std::unique_ptr<CUkern_st>> kernels;
  std::vector<Variable> variables;

  // Loads the best PTX image. Refuses the run when there is none, naming the flags that mend it.
  Module& loaded();
};

// Program and kernel handles live as long as the process: work may still be pending when they are unregistered.
Program& add_program(std::unique_ptr<Program> program);
CUkern_st& add_kernel(Program& program, std::string name);

// The kernel behind a host function pointer or a cudaKernel_t. Throws ApiError(cudaErrorInvalidDeviceFunction).
CUkern_st& kernel_of(const void* function);
CUkern_st* find_kernel(const void* function);

// The variable behind the address of its host shadow. Throws ApiError(cudaErrorInvalidSymbol).
const Object& symbol_object(const void* host_variable);

}  // namespace machine::runtime

// A kernel as the runtime hands it out: cudaKernel_t and cudaFunction_t both point at it.
struct CUkern_st {
  machine::runtime::Program* program = nullptr;
  std::string name;  // mangled
  const machine::Kernel* resolved = nullptr;
  int max_dynamic_shared = -1;  // bytes, once set by cudaFuncSetAttribute
  int carveout = -1;
  int non_portable_cluster = 0;
  std::array<unsigned, 3> required_cluster{};  // once set by cudaFuncSetAttribute

  const machine::Kernel& kernel();     // refuses the run when the PTX lacks it
  std::size_t dynamic_shared_limit();  // bytes that a launch may ask for
};
