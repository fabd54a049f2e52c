// Order on streams: what the default stream waits for, events, queries, host functions, priorities.
#include "expect.cuh"

#include <vector>

__global__ void append(int* list, int value) {
  int n = list[0];
  list[++n] = value;
  list[0] = n;
}

struct List {
  int* device;
  List() { OK(cudaMalloc(&device, 64 * sizeof(int))); clear(); }
  ~List() { OK(cudaFree(device)); }
  void clear() { OK(cudaMemset(device, 0, 64 * sizeof(int))); OK(cudaDeviceSynchronize()); }
  std::vector<int> values() {
    int host[64];
    OK(cudaDeviceSynchronize());
    OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    return {host + 1, host + 1 + host[0]};
  }
};

// A legacy default stream launch follows the blocking streams and holds them back; never the others.
void default_stream() {
  List list;
  cudaStream_t a, b;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreate(&b));
  append<<<1, 1, 0, a>>>(list.device, 1);
  append<<<1, 1>>>(list.device, 2);
  append<<<1, 1, 0, b>>>(list.device, 3);
  EXPECT((list.values() == std::vector<int>{1, 2, 3}));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
}

void events() {
  List list;
  cudaStream_t first, second;
  OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
  cudaEvent_t begin, done;
  OK(cudaEventCreate(&begin));
  OK(cudaEventCreate(&done));
  OK(cudaEventQuery(begin));  // never recorded: complete
  OK(cudaEventRecord(begin, first));
  for (int i = 1; i <= 3; ++i) append<<<1, 1, 0, first>>>(list.device, i);
  OK(cudaEventRecord(done, first));
  OK(cudaStreamWaitEvent(second, done));
  append<<<1, 1, 0, second>>>(list.device, 10);
  OK(cudaStreamSynchronize(second));
  OK(cudaEventSynchronize(done));
  EXPECT((list.values() == std::vector<int>{1, 2, 3, 10}));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, begin, done));
  EXPECT(milliseconds >= 0);
  cudaEvent_t untimed;
  OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  OK(cudaEventRecord(untimed, first));
  OK(cudaEventSynchronize(untimed));
  EXPECT_CODE(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, begin, untimed));
  cudaGetLastError();
  OK(cudaEventDestroy(untimed));
  OK(cudaEventDestroy(begin));
  OK(cudaEventDestroy(done));
  OK(cudaStreamDestroy(first));
  OK(cudaStreamDestroy(second));
}

// Polling alone must get the work done.
void queries() {
  List list;
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  OK(cudaStreamQuery(stream));
  append<<<1, 1, 0, stream>>>(list.device, 4);
  append<<<1, 1, 0, stream>>>(list.device, 5);
  long polls = 0;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) ++polls;
  OK(cudaGetLastError());  // not ready is no error to remember
  EXPECT((list.values() == std::vector<int>{4, 5}));
  OK(cudaStreamDestroy(stream));
}

void note(void* data) { *static_cast<int*>(data) += 1; }
void remember(cudaStream_t, cudaError_t status, void* data) { *static_cast<int*>(data) = status == cudaSuccess ? 7 : -1; }

void host_functions() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int count = 0, status = 0;
  OK(cudaLaunchHostFunc(stream, note, &count));
  OK(cudaLaunchHostFunc(stream, note, &count));
  OK(cudaStreamAddCallback(stream, remember, &status, 0));
  OK(cudaStreamSynchronize(stream));
  EXPECT(count == 2 && status == 7);
  OK(cudaStreamDestroy(stream));
}

void properties() {
  int least, greatest, priority;
  unsigned flags;
  OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest < least);
  cudaStream_t stream;
  OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  OK(cudaStreamGetPriority(stream, &priority));
  OK(cudaStreamGetFlags(stream, &flags));
  EXPECT(priority == greatest && flags == cudaStreamNonBlocking);
  OK(cudaStreamDestroy(stream));
  EXPECT_CODE(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 99));
  cudaGetLastError();
}

// A destroyed stream still finishes its work, and the default stream still follows it.
void destroyed() {
  List list;
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  append<<<1, 1, 0, stream>>>(list.device, 1);
  OK(cudaStreamDestroy(stream));
  append<<<1, 1>>>(list.device, 2);
  EXPECT((list.values() == std::vector<int>{1, 2}));
}

int main() {
  default_stream();
  events();
  queries();
  host_functions();
  properties();
  destroyed();
  return finish();
}
