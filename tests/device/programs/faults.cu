// Small programs of known truth, one a name, whose compute-sanitizer logs are recorded under tests/device/logs.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

namespace {

__global__ void right_copy(const float* in, float* out, int n) {
    __shared__ float tile[64];
    const int i = threadIdx.x;
    tile[i] = i < n ? in[i] : 0.0f;
    __syncthreads();
    if (i < n) {
        out[i] = tile[n - 1 - i];
    }
}

__device__ __noinline__ float fetch(const float* in, int i) { return in[i]; }

template <typename T, int N>
__global__ void nested_out_of_bounds(const T* in, T* out) {
    if (threadIdx.x == 5 && blockIdx.x == 1) {
        out[0] = fetch(in, N + 1);
    }
}

__global__ void misaligned_write(char* out) { *reinterpret_cast<int*>(out + 1) = 1; }

__global__ void shared_out_of_bounds(float* out, int n) {
    __shared__ float tile[32];
    tile[threadIdx.x % 32] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x + n];
}

__global__ void same_value_writes(int* out) {
    __shared__ int flag;
    flag = 7;
    __syncthreads();
    out[threadIdx.x] = flag;
}

__global__ void missing_syncwarp(int* out) {
    __shared__ int tile[32];
    tile[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void overlapping_writes(int* out) {
    __shared__ int slot;
    if (threadIdx.x % 32 == 0) {
        slot = threadIdx.x;
    }
    __syncthreads();
    out[threadIdx.x] = slot;
}

__global__ void invalid_syncwarp(int* out) {
    if (threadIdx.x < 17) {
        __syncwarp(0xffffu);
    }
    out[threadIdx.x] = 1;
}

__global__ void trap() { asm volatile("trap;"); }

float* allocate(int n) {
    float* p = nullptr;
    cudaMalloc(&p, n * sizeof(float));
    cudaMemset(p, 0, n * sizeof(float));
    return p;
}

int run_right() {
    float *in = allocate(64), *out = allocate(64);
    right_copy<<<1, 64>>>(in, out, 50);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "right";
    const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
    if (is("no_cuda")) {
        return 0;
    }
    std::printf("@begin %s\n", name);
    std::fflush(stdout);
    int code = 0;
    if (is("right")) {
        code = run_right();
    } else if (is("nested")) {
        nested_out_of_bounds<float, 64><<<2, 32>>>(allocate(64), allocate(64));
    } else if (is("two_kernels")) {
        misaligned_write<<<1, 1>>>(reinterpret_cast<char*>(allocate(4)));
        std::printf("first: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
        shared_out_of_bounds<<<1, 32>>>(allocate(32), 8);
    } else if (is("same_value")) {
        same_value_writes<<<1, 64>>>(reinterpret_cast<int*>(allocate(64)));
    } else if (is("missing_syncwarp")) {
        missing_syncwarp<<<1, 32>>>(reinterpret_cast<int*>(allocate(32)));
    } else if (is("overlapping_writes")) {
        overlapping_writes<<<1, 128>>>(reinterpret_cast<int*>(allocate(128)));
    } else if (is("invalid_syncwarp")) {
        invalid_syncwarp<<<1, 32>>>(reinterpret_cast<int*>(allocate(32)));
    } else if (is("trap")) {
        trap<<<1, 32>>>();
    } else if (is("api_error")) {
        void* p = nullptr;
        code = run_right();
        std::printf("malloc: %s\n", cudaGetErrorName(cudaMalloc(&p, size_t(1) << 60)));
    } else if (is("refused_launch")) {
        right_copy<<<1, 4096>>>(allocate(64), allocate(64), 50);
        std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
    } else if (is("exit_code")) {
        run_right();
        code = 3;
    } else if (is("abort")) {
        run_right();
        std::abort();
    } else {
        std::fprintf(stderr, "no program %s\n", name);
        return 2;
    }
    const cudaError_t end = cudaDeviceSynchronize();
    std::printf("@launched %s kernels=1\n@refused %s %s\n@done %s\n", name, name, cudaGetErrorName(end), name);
    std::fflush(stdout);
    return code;
}
