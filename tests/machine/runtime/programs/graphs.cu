// Graphs: capture with fork and join, replay, update, nodes made by hand, child graphs, forbidden calls.
#include "expect.cuh"

__global__ void add(int* p, int v) { *p += v; }
__global__ void mul(int* p, int v) { *p *= v; }
__global__ void join(int* out, const int* a, const int* b) { *out = *a * 100 + *b; }

int value_of(const int* p) {
  int v = -1;
  OK(cudaMemcpy(&v, p, sizeof v, cudaMemcpyDeviceToHost));
  return v;
}

void captured() {
  int *a, *b, *out;
  OK(cudaMalloc(&a, 4));
  OK(cudaMalloc(&b, 4));
  OK(cudaMalloc(&out, 4));
  cudaStream_t s, t;
  cudaEvent_t fork, back;
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&back));

  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaMemsetAsync(a, 0, 4, s));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork));
  OK(cudaMemsetAsync(b, 0, 4, t));
  add<<<1, 1, 0, s>>>(a, 2);
  mul<<<1, 1, 0, s>>>(a, 3);
  add<<<1, 1, 0, t>>>(b, 5);
  OK(cudaEventRecord(back, t));
  OK(cudaStreamWaitEvent(s, back));
  join<<<1, 1, 0, s>>>(out, a, b);
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(t, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(s, &graph));
  OK(cudaStreamIsCapturing(t, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  size_t nodes = 0, roots = 0, edges = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(nodes == 6 && roots == 1 && edges == 6);

  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaMemset(out, 0, 4));
  for (int i = 0; i < 3; ++i) OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  EXPECT(value_of(out) == 605);

  // The same shape with other arguments: an update, no new instance.
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaMemsetAsync(a, 0, 4, s));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork));
  OK(cudaMemsetAsync(b, 0, 4, t));
  add<<<1, 1, 0, s>>>(a, 4);
  mul<<<1, 1, 0, s>>>(a, 2);
  add<<<1, 1, 0, t>>>(b, 9);
  OK(cudaEventRecord(back, t));
  OK(cudaStreamWaitEvent(s, back));
  join<<<1, 1, 0, s>>>(out, a, b);
  cudaGraph_t changed;
  OK(cudaStreamEndCapture(s, &changed));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, changed, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  OK(cudaGraphLaunch(exec, s));
  OK(cudaStreamSynchronize(s));
  EXPECT(value_of(out) == 809);

  // A copy may get other addresses of the same kind of memory, and no others.
  int *from, number = 4321;
  OK(cudaMalloc(&from, 8));
  const int given[2] = {1234, 5678};
  OK(cudaMemcpy(from, given, 8, cudaMemcpyHostToDevice));
  cudaGraph_t within, across, moved;
  cudaGraphNode_t copy;
  cudaGraphExec_t copies;
  OK(cudaGraphCreate(&within, 0));
  OK(cudaGraphAddMemcpyNode1D(&copy, within, nullptr, 0, out, from, 4, cudaMemcpyDeviceToDevice));
  OK(cudaGraphCreate(&moved, 0));
  OK(cudaGraphAddMemcpyNode1D(&copy, moved, nullptr, 0, out, from + 1, 4, cudaMemcpyDeviceToDevice));
  OK(cudaGraphCreate(&across, 0));
  OK(cudaGraphAddMemcpyNode1D(&copy, across, nullptr, 0, out, &number, 4, cudaMemcpyHostToDevice));
  OK(cudaGraphInstantiate(&copies, within, 0));
  EXPECT_CODE(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(copies, across, &info));
  EXPECT(info.result == cudaGraphExecUpdateErrorParametersChanged);
  cudaGetLastError();
  OK(cudaGraphLaunch(copies, s));
  OK(cudaStreamSynchronize(s));
  EXPECT(value_of(out) == 1234);
  OK(cudaGraphExecUpdate(copies, moved, &info));
  OK(cudaGraphLaunch(copies, s));
  OK(cudaStreamSynchronize(s));
  EXPECT(value_of(out) == 5678);

  cudaGraph_t empty;
  OK(cudaGraphCreate(&empty, 0));
  EXPECT_CODE(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(exec, empty, &info));
  cudaGetLastError();
  OK(cudaGraphDestroy(empty));
  OK(cudaGraphDestroy(changed));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(graph));
}

void count_up(void* data) { ++*static_cast<int*>(data); }

void by_hand() {
  int *p, host = 0, calls = 0;
  OK(cudaMalloc(&p, 4));
  cudaGraph_t graph;
  OK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, kernel, copy, call;
  cudaMemsetParams zero = {};
  zero.dst = p;
  zero.elementSize = 4;
  zero.width = 1;
  zero.height = 1;
  zero.value = 10;
  OK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &zero));
  int amount = 7;
  void* arguments[] = {&p, &amount};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void*>(add);
  launch.gridDim = launch.blockDim = dim3(1);
  launch.kernelParams = arguments;
  OK(cudaGraphAddKernelNode(&kernel, graph, &set, 1, &launch));
  amount = 99;  // arguments were taken when the node was made
  OK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, &host, p, 4, cudaMemcpyDeviceToHost));
  cudaHostNodeParams function = {count_up, &calls};
  OK(cudaGraphAddHostNode(&call, graph, &copy, 1, &function));
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(kernel, &type));
  EXPECT(type == cudaGraphNodeTypeKernel);
  cudaKernelNodeParams read = {};
  OK(cudaGraphKernelNodeGetParams(kernel, &read));
  EXPECT(*static_cast<int*>(read.kernelParams[1]) == 7);

  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host == 17 && calls == 1);
  amount = 5;
  OK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launch));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host == 15 && calls == 2);
  OK(cudaGraphNodeSetEnabled(exec, kernel, 0));
  OK(cudaGraphLaunch(exec, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host == 10 && calls == 3);

  // As a child of another graph, twice in a row.
  cudaGraph_t parent;
  cudaGraphNode_t once, twice;
  OK(cudaGraphCreate(&parent, 0));
  OK(cudaGraphAddChildGraphNode(&once, parent, nullptr, 0, graph));
  OK(cudaGraphAddChildGraphNode(&twice, parent, &once, 1, graph));
  cudaGraphExec_t both;
  OK(cudaGraphInstantiate(&both, parent, 0));
  OK(cudaGraphLaunch(both, nullptr));
  OK(cudaDeviceSynchronize());
  EXPECT(host == 17 && calls == 5);
  OK(cudaGraphAddDependencies(graph, &call, &set, nullptr, 1));  // a cycle, which only the next call looks for
  cudaGraphExec_t cyclic;
  EXPECT_CODE(cudaErrorInvalidValue, cudaGraphInstantiate(&cyclic, graph, 0));
  cudaGetLastError();
  OK(cudaGraphExecDestroy(both));
  OK(cudaGraphExecDestroy(exec));
  OK(cudaGraphDestroy(parent));
  OK(cudaGraphDestroy(graph));
}

void forbidden() {
  cudaStream_t s, t;
  OK(cudaStreamCreate(&s));
  OK(cudaStreamCreate(&t));
  cudaGraph_t graph = nullptr;
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  EXPECT_CODE(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(s));
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
  EXPECT(graph == nullptr);
  cudaGetLastError();

  int* p;
  OK(cudaMalloc(&p, 4));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  add<<<1, 1>>>(p, 1);  // the legacy stream would wait for the captured one
  EXPECT_CODE(cudaErrorStreamCaptureImplicit, cudaGetLastError());
  EXPECT_CODE(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(s, &graph));
  cudaGetLastError();

  cudaEvent_t fork;
  OK(cudaEventCreate(&fork));
  OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  OK(cudaEventRecord(fork, s));
  OK(cudaStreamWaitEvent(t, fork));
  add<<<1, 1, 0, t>>>(p, 1);
  EXPECT_CODE(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(s, &graph));
  cudaGetLastError();
  OK(cudaStreamSynchronize(t));
}

int main() {
  captured();
  by_hand();
  forbidden();
  return finish();
}
