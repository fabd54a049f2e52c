// A launcher with everything that a launcher can have: a struct, a plan, a workspace, refusals.
#include <cuda_runtime.h>

#include "guarded.cuh"

__global__ void guarded_copy(const float* x, float* y, int n, float scale) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scale * x[i];
}

extern "C" cudaError_t guarded_plan_of(const guarded_args* args, int sm_count, guarded_plan* plan) {
    if (args->n <= 0 || args->x == nullptr) return cudaErrorInvalidValue;
    plan->blocks = (args->n + guarded_block - 1) / guarded_block;
    plan->rounds = (plan->blocks + sm_count - 1) / sm_count;
    plan->workspace_bytes = 16 * static_cast<size_t>(plan->blocks);
    return cudaSuccess;
}

extern "C" cudaError_t guarded_launch(const guarded_args* args, cudaStream_t stream) {
    guarded_plan plan;
    cudaError_t status = guarded_plan_of(args, 1, &plan);
    if (status != cudaSuccess) return status;
    if (args->y == nullptr || reinterpret_cast<size_t>(args->y) % 16 != 0) return cudaErrorInvalidValue;
    if (args->workspace_bytes < plan.workspace_bytes) return cudaErrorInvalidValue;
    status = cudaFuncSetAttribute(guarded_copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
    if (status != cudaSuccess && !args->swallow) return status;
    if (status != cudaSuccess) cudaGetLastError();  // the fault that the launch check must see
    guarded_copy<<<plan.blocks, guarded_block, 0, stream>>>(args->x, args->y, args->n, args->scale);
    return cudaGetLastError();
}
