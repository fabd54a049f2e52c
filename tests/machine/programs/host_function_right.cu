// Host functions in step: one behind the copy of its stream and before the next into the same memory, one that another stream
// waits for by an event, one that uses half of a buffer while a copy fills the other half, and one that sets a flag which a
// kernel polls.
#include "require.cuh"

constexpr int count = 1024;

__global__ void fill(int* data, int value) { data[blockIdx.x * blockDim.x + threadIdx.x] = value; }

__global__ void wait_for(volatile int* flag, int* seen) {
  while (*flag == 0) {}
  *seen = *flag;
}

struct Sum {
  const int* data;
  int total;
};

void add(void* given) {
  auto* sum = static_cast<Sum*>(given);
  for (int i = 0; i < count; ++i) sum->total += sum->data[i];
}

void count_up(void* memory) {
  for (int i = 0; i < count; ++i) static_cast<int*>(memory)[i] = i;
}

void raise(void* flag) { *static_cast<volatile int*>(flag) = 1; }

int main() {
  cudaStream_t one, other;
  cudaEvent_t done;
  REQUIRE(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  REQUIRE(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  REQUIRE(cudaEventCreate(&done));
  int *buffer, *data, *flag, *seen, host;
  REQUIRE(cudaMallocHost(&buffer, 2 * count * sizeof *buffer));
  REQUIRE(cudaMalloc(&data, count * sizeof *data));
  static Sum sums[2];
  sums[0].data = sums[1].data = buffer;
  for (int round = 0; round < 2; ++round) {
    fill<<<count / 64, 64, 0, one>>>(data, round + 1);
    REQUIRE(cudaMemcpyAsync(buffer, data, count * sizeof *buffer, cudaMemcpyDeviceToHost, one));
    REQUIRE(cudaLaunchHostFunc(one, add, &sums[round]));
    REQUIRE(cudaMemcpyAsync(buffer + count, data, count * sizeof *buffer, cudaMemcpyDeviceToHost, one));
  }
  REQUIRE(cudaStreamSynchronize(one));
  REQUIRE(cudaLaunchHostFunc(one, count_up, buffer));
  REQUIRE(cudaEventRecord(done, one));
  REQUIRE(cudaStreamWaitEvent(other, done, 0));
  REQUIRE(cudaMemcpyAsync(data, buffer, count * sizeof *buffer, cudaMemcpyHostToDevice, other));
  REQUIRE(cudaDeviceSynchronize());
  REQUIRE(cudaMallocHost(&flag, sizeof *flag));
  REQUIRE(cudaMalloc(&seen, sizeof *seen));
  *flag = 0;
  REQUIRE(cudaLaunchHostFunc(one, raise, flag));
  REQUIRE(cudaStreamSynchronize(one));
  wait_for<<<1, 1, 0, other>>>(flag, seen);
  REQUIRE(cudaStreamSynchronize(other));
  REQUIRE(cudaMemcpy(&host, seen, sizeof host, cudaMemcpyDeviceToHost));
  return sums[0].total == count && sums[1].total == 2 * count && host == 1 ? 0 : 4;
}
