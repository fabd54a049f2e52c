// What threads may leave out: an early return before all barriers, also from a loop; a named barrier that counts others; all
// of the kernel inside the condition; a loop that ends at once for all; and a return after rounds, or a loop in a called
// function, whose barriers nobody met or all did. Nothing here passes a barrier by.
#include "require.cuh"

__global__ void returns(const int* in, int* out, int rows) {
  __shared__ int tile[128];
  int t = threadIdx.x;
  if (t >= rows) return;
  tile[t] = in[t];
  __syncthreads();
  out[t] = tile[rows - 1 - t];
  __syncthreads();
}

__global__ void returns_from_loop(const int* in, int* out, int rows) {
  __shared__ int tile[128];
  int t = threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < 4; ++turn) {
    if (t >= rows - 16 * turn) return;
    tile[t] = in[t] + turn;
    __syncthreads();
    out[t] = tile[rows - 16 * turn - 1 - t];
    __syncthreads();
  }
}

__global__ void inside(const int* in, int* out, int rows) {
  __shared__ int tile[128];
  int t = threadIdx.x;
  if (t < rows) {
    for (int turn = 0; turn < 2; ++turn) {
      tile[t] = in[t];
      __syncthreads();
      out[t] = tile[rows - 1 - t];
      __syncthreads();
    }
  }
}

__global__ void specialised(const int* in, int* out) {
  __shared__ int tile[128];
  int t = threadIdx.x;
  if (t < 64) {
    tile[t] = in[t];
    asm volatile("bar.arrive 1, 96;" ::: "memory");
  } else if (t < 96) {
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[t] = tile[t - 32];
  }
  __syncthreads();
  if (t >= 96) out[t] = tile[t - 96];
}

__global__ void even(const int* in, int* out, int turns) {
  __shared__ int tile[128];
  int t = threadIdx.x, sum = 0;
  for (int turn = 0; turn < turns; ++turn) {
    tile[t] = in[t] + turn;
    __syncthreads();
    sum += tile[127 - t];
    if (in[0] == 7) break;
    __syncthreads();
  }
  if (t % 3 == 0) sum += 1;
  out[t] = sum;
}

__global__ void left_out_by_all(int* out, int rounds) {
  int t = threadIdx.x;
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
    if (round % 2) __syncthreads();
    out[t] = round;
    if (round >= 2 && t >= 64) return;
  }
}

__global__ void returns_after_rows(int* out, int rows, int steps) {
  __shared__ int tile[128];
  int t = threadIdx.x, sum = 0;
#pragma unroll 1
  for (int row = 0; row < rows; ++row) {
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
      tile[t] = t + k;
      __syncthreads();
      sum += tile[(t + 1) % (128 - 32 * row)];
      __syncthreads();
    }
    out[t] = sum;
    if (t >= 96 - 32 * row) return;
  }
}

__device__ __noinline__ int neighbour(int* tile, int value) {
  tile[threadIdx.x] = value;
  __syncthreads();
  value = tile[threadIdx.x ^ 1];
  __syncthreads();
  return value;
}

__global__ void all_call(int* out, int turns) {
  __shared__ int tile[128];
  int t = threadIdx.x;
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    if (turn > 0) out[t] += neighbour(tile, t);
    if (t >= 128 - 32 * turn) return;
  }
}

int main() {
  constexpr int threads = 128;
  int *in, *out, host[threads];
  for (int i = 0; i < threads; ++i) host[i] = i % 4 + 1;
  REQUIRE(cudaMalloc(&in, sizeof host));
  REQUIRE(cudaMalloc(&out, 2 * sizeof host));
  REQUIRE(cudaMemset(out, 0, 2 * sizeof host));
  REQUIRE(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  for (const int rows : {64, 77}) {
    returns<<<1, threads>>>(in, out, rows);
    returns_from_loop<<<1, threads>>>(in, out, rows);
    inside<<<1, threads>>>(in, out, rows);
  }
  specialised<<<1, threads>>>(in, out);
  for (const int turns : {0, 1, 5}) even<<<1, threads>>>(in, out, turns);
  left_out_by_all<<<1, threads>>>(out + threads, 6);
  returns_after_rows<<<1, threads>>>(out + threads, 3, 2);
  all_call<<<1, threads>>>(out + threads, 4);
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  return host[0] == 5 * 4 + 10 + 1 ? 0 : 4;
}
