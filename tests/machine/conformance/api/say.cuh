// What a call answered, one line each: compared with the lines that the hardware gave.
#pragma once

#include <cstdio>

#include <cuda_runtime.h>

inline void say(const char* what, cudaError_t code) {
  std::printf("%s: %s\n", what, cudaGetErrorName(code));
  std::fflush(stdout);
}
inline void say(const char* what, long long value) { std::printf("%s: %lld\n", what, value), std::fflush(stdout); }

// A call, and what it left as last error.
#define SAY(call)                                                       \
  do {                                                                  \
    const cudaError_t code = (call);                                    \
    say(#call, code);                                                   \
    if (cudaPeekAtLastError() != code) say("  last", cudaGetLastError()); \
    cudaGetLastError();                                                 \
  } while (0)
