// Ends the program with the failing call and its error: a right program that cannot run must not look right.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

inline void require(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(status));
  std::exit(9);
}

#define REQUIRE(call) require((call), #call)
