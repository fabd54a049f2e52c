// Six ways in which threads from `n` on do not come to a barrier of their block: barrier_ways WAY N. What compute-sanitizer
// and the CPU device say of each is in docs/records/hardware.md.
#include <cstdio>
#include <cstdlib>

enum Way { skip, early_return, store_then_return, loop, guarded, inside };

template <int way>
__global__ void one(int n, const int* in, int* out) {
    __shared__ int tile[128];
    const int t = threadIdx.x;
    tile[t] = in[t];
    if (way == skip) {
        if (t < n) __syncthreads();
        out[t] = tile[t] + 1;
    }
    if (way == early_return) {
        if (t >= n) return;
        __syncthreads();
        out[t] = tile[n - 1 - t];
    }
    if (way == store_then_return) {
        if (t >= n) {
            out[t] = -1;
            return;
        }
        __syncthreads();
        out[t] = tile[n - 1 - t];
    }
    if (way == loop) {
        int sum = 0;
        for (int i = 0; i < in[t / 32]; ++i) {
            __syncthreads();
            sum += tile[(t + i) % 128];
        }
        out[t] = sum;
    }
    if (way == guarded) {
        for (int block = 0; block < 3; ++block)
            if (block * 128 + t < 256 + n) {
                tile[t] += in[t];
                __syncthreads();
            }
        if (t == 0) {
            int sum = 0;
            for (int i = 0; i < 128; ++i) sum += tile[i];
            out[0] = sum;
        }
    }
    if (way == inside) {
        if (t < n) {
            tile[t] = in[t];
            __syncthreads();
            out[t] = tile[n - 1 - t];
        }
    }
}

int main(int count, char** words) {
    if (count != 3) return 2;
    const int n = std::atoi(words[2]);
    int host[128], *in, *out;
    for (int i = 0; i < 128; ++i) host[i] = i % 4 + 1;
    cudaMalloc(&in, sizeof host);
    cudaMalloc(&out, sizeof host);
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    switch (std::atoi(words[1])) {
        case skip: one<skip><<<1, 128>>>(n, in, out); break;
        case early_return: one<early_return><<<1, 128>>>(n, in, out); break;
        case store_then_return: one<store_then_return><<<1, 128>>>(n, in, out); break;
        case loop: one<loop><<<1, 128>>>(n, in, out); break;
        case guarded: one<guarded><<<1, 128>>>(n, in, out); break;
        default: one<inside><<<1, 128>>>(n, in, out); break;
    }
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 4;
}
