// Every entry of the real library exists here as a weak function that ends the process and says which one was
// called. An entry that the CPU device provides overrides it at link time. This file sees no CUDA header, so
// that the plain declarations clash with nothing.
#include <string>

#include "runtime/exit.hpp"

namespace machine::runtime {
void start();  // session.hpp says what it does
}

namespace {
[[noreturn]] void unprovided(const char* name) {
  machine::runtime::start();
  machine::runtime::refuse(std::string(name) + " is not provided by the CPU device");
}
}  // namespace

#define CUDA_ENTRY(name) \
  extern "C" __attribute__((weak)) void name() { unprovided(#name); }
#include "runtime/entries.inc"
#undef CUDA_ENTRY
