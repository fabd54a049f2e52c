// A program's own expectations: each that does not hold is printed, and makes the exit code 1.
#pragma once

#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>
#include <type_traits>

inline int failures = 0;

#define EXPECT(condition)                                                  \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::printf("line %d: not so: %s\n", __LINE__, #condition);          \
      ++failures;                                                          \
    }                                                                      \
  } while (0)

#define EXPECT_CODE(expected, call)                                                                        \
  do {                                                                                                     \
    cudaError_t code_ = (call);                                                                             \
    if (code_ != (expected)) {                                                                               \
      std::printf("line %d: %s gave %s, not %s\n", __LINE__, #call, cudaGetErrorName(code_), #expected);     \
      ++failures;                                                                                          \
    }                                                                                                      \
  } while (0)

#define OK(call) EXPECT_CODE(cudaSuccess, call)

inline int finish() {
  std::printf(failures ? "%d expectations failed\n" : "all expectations hold\n", failures);
  return failures ? 1 : 0;
}
