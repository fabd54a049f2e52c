// What every tripwire shares: it speaks the harness's markers, so that the same session runs and reads it.
// A tripwire is a program with one planted fault, on the line that ends in "// fault". A tool that does not
// report that line on this machine cannot be believed when it reports nothing.
#pragma once

#include <cstdio>

#include <cuda_runtime.h>

inline int tripwire(cudaError_t (*body)()) {
    std::printf("@begin tripwire\n");
    std::fflush(stdout);
    const cudaError_t status = body();
    // Launch errors are the tool's doing (it ends the faulty kernel), so the status is told but not judged.
    std::printf("@launched tripwire kernels=1\n@refused tripwire %s\n@done tripwire\n",
                cudaGetErrorName(status));
    std::fflush(stdout);
    return 0;
}
