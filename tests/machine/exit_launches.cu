// Launches after main has returned, from an exit handler and from the destructor of a static object: the first
// thread's own variables are gone then, and of the static ones those that came later. With an argument the last
// launch writes behind its allocation.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void add(int* sum, int place, int value) {
    if (threadIdx.x == 0) sum[place] += value;
}

static int* sum;
static int last_place = 0;

static void add_late(const char* who, int place, int value) {
    int seen = 0;
    add<<<1, 32>>>(sum, place, value);
    cudaMemcpy(&seen, sum, sizeof(int), cudaMemcpyDeviceToHost);
    std::printf("%s sees %d\n", who, seen);
}

static struct Last {
    ~Last() {
        add_late("static object", last_place, 100);
        cudaFree(sum);
    }
} last;

int main(int count, char**) {
    if (count > 1) last_place = 1000;
    if (cudaMalloc(&sum, sizeof(int)) != cudaSuccess || cudaMemset(sum, 0, sizeof(int)) != cudaSuccess) return 1;
    std::atexit([] { add_late("exit handler", 0, 10); });
    add<<<1, 32>>>(sum, 0, 1);
    return cudaDeviceSynchronize() != cudaSuccess;
}
