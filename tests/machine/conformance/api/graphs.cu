// Graphs: nodes that are switched off, updated instances, cycles, wrong handles, and what ran afterwards.
#include "say.cuh"

__global__ void add(int* p, int v) { *p += v; }
__global__ void triple(int* p) { *p *= 3; }

int *device, *source;
cudaStream_t stream;

void run(const char* what, cudaGraphExec_t exec) {
  cudaMemset(device, 0, 16);
  const cudaError_t launched = cudaGraphLaunch(exec, stream);
  const cudaError_t done = cudaStreamSynchronize(stream);
  int v[4] = {};
  cudaMemcpy(v, device, 16, cudaMemcpyDeviceToHost);
  cudaGetLastError();
  std::printf("%s: %s %s: %d %d %d %d\n", what, cudaGetErrorName(launched), cudaGetErrorName(done), v[0], v[1], v[2], v[3]);
  std::fflush(stdout);
}

cudaKernelNodeParams kernel(int** p, int* v, void** arguments) {
  cudaKernelNodeParams k{};
  arguments[0] = p, arguments[1] = v;
  k.func = reinterpret_cast<void*>(add), k.gridDim = 1, k.blockDim = 1, k.kernelParams = arguments;
  return k;
}

int main() {
  cudaMalloc(&device, 16), cudaMalloc(&source, 64), cudaStreamCreate(&stream);
  int numbers[16];
  for (int i = 0; i < 16; ++i) numbers[i] = 10 * (i + 1);
  cudaMemcpy(source, numbers, 64, cudaMemcpyHostToDevice);
  int* second = device + 1;
  int v = 5;
  void* arguments[2];
  cudaGraph_t graph;
  cudaGraphNode_t kernel_node, copy_node, set_node, empty;
  SAY(cudaGraphCreate(&graph, 0));
  cudaKernelNodeParams k = kernel(&device, &v, arguments);
  SAY(cudaGraphAddKernelNode(&kernel_node, graph, nullptr, 0, &k));
  SAY(cudaGraphAddMemcpyNode1D(&copy_node, graph, &kernel_node, 1, second, source, 4, cudaMemcpyDeviceToDevice));
  cudaMemsetParams m{};
  m.dst = device + 2, m.value = 7, m.elementSize = 4, m.width = 1, m.height = 1;
  SAY(cudaGraphAddMemsetNode(&set_node, graph, &copy_node, 1, &m));
  SAY(cudaGraphAddEmptyNode(&empty, graph, &set_node, 1));
  cudaGraphExec_t exec;
  SAY(cudaGraphInstantiate(&exec, graph, 0));
  run("all", exec);
  unsigned on = 7;
  for (auto node : {kernel_node, copy_node, set_node, empty}) {
    SAY(cudaGraphNodeSetEnabled(exec, node, 0));
    SAY(cudaGraphNodeGetEnabled(exec, node, &on));
    say("enabled", static_cast<long long>(on));
    run("one off", exec);
    SAY(cudaGraphNodeSetEnabled(exec, node, 1));
    run("on again", exec);
  }
  SAY(cudaGraphNodeSetEnabled(exec, copy_node, 0));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, second, source + 1, 4, cudaMemcpyDeviceToDevice));
  run("changed while off", exec);
  SAY(cudaGraphNodeGetEnabled(exec, copy_node, &on));
  say("enabled", static_cast<long long>(on));
  SAY(cudaGraphNodeSetEnabled(exec, copy_node, 1));
  run("changed, on", exec);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, device + 3, source + 2, 4, cudaMemcpyDeviceToDevice));
  run("other place", exec);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, second, numbers, 4, cudaMemcpyHostToDevice));
  run("from the host", exec);
  v = 9;
  k = kernel(&device, &v, arguments);
  SAY(cudaGraphExecKernelNodeSetParams(exec, kernel_node, &k));
  run("kernel changed", exec);
  m.value = 8;
  SAY(cudaGraphExecMemsetNodeSetParams(exec, set_node, &m));
  run("set changed", exec);
  SAY(cudaGraphMemcpyNodeSetParams1D(copy_node, second, source + 4, 4, cudaMemcpyDeviceToDevice));
  run("graph changed, instance not", exec);
  cudaGraphExecUpdateResultInfo info{};
  SAY(cudaGraphNodeSetEnabled(exec, kernel_node, 0));
  SAY(cudaGraphExecUpdate(exec, graph, &info));
  say("result", static_cast<long long>(info.result));
  run("updated", exec);
  SAY(cudaGraphNodeGetEnabled(exec, kernel_node, &on));
  say("enabled", static_cast<long long>(on));
  SAY(cudaGraphNodeSetEnabled(exec, kernel_node, 1));
  run("updated, on", exec);
  cudaGraph_t another;
  cudaGraphNode_t first_node, last_node;
  SAY(cudaGraphCreate(&another, 0));
  SAY(cudaGraphAddEmptyNode(&first_node, another, nullptr, 0));
  SAY(cudaGraphExecUpdate(exec, another, &info));
  say("result", static_cast<long long>(info.result));
  SAY(cudaGraphAddEmptyNode(&last_node, another, &first_node, 1));
  SAY(cudaGraphAddDependencies(another, &last_node, &first_node, nullptr, 1));
  cudaGraphExec_t cyclic = nullptr;
  SAY(cudaGraphInstantiate(&cyclic, another, 0));
  SAY(cudaGraphAddDependencies(another, &first_node, &first_node, nullptr, 1));
  SAY(cudaGraphAddDependencies(another, &first_node, &last_node, nullptr, 1));
  SAY(cudaGraphRemoveDependencies(another, &last_node, &first_node, nullptr, 1));
  SAY(cudaGraphRemoveDependencies(another, &last_node, &first_node, nullptr, 1));
  SAY(cudaGraphInstantiate(&cyclic, another, 0));
  SAY(cudaGraphAddDependencies(another, &kernel_node, &first_node, nullptr, 1));
  SAY(cudaGraphAddEmptyNode(&empty, another, &kernel_node, 1));
  SAY(cudaGraphAddKernelNode(&empty, another, nullptr, 0, nullptr));
  k.gridDim = 0;
  SAY(cudaGraphAddKernelNode(&empty, another, nullptr, 0, &k));
  k.gridDim = 1, k.blockDim = 2000;
  SAY(cudaGraphAddKernelNode(&empty, another, nullptr, 0, &k));
  k.blockDim = 1, k.func = reinterpret_cast<void*>(triple);
  SAY(cudaGraphExecKernelNodeSetParams(exec, kernel_node, &k));
  run("other kernel", exec);
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, kernel_node, second, source, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, second, source, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, copy_node, nullptr, source, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphNodeSetEnabled(exec, first_node, 0));
  SAY(cudaGraphDestroyNode(set_node));
  SAY(cudaGraphExecUpdate(exec, graph, &info));
  say("result", static_cast<long long>(info.result));
  run("after a node was removed", exec);
  SAY(cudaGraphDestroy(graph));
  run("graph destroyed", exec);
  SAY(cudaGraphExecDestroy(exec));
  SAY(cudaGraphLaunch(nullptr, stream));
  SAY(cudaGraphInstantiate(&exec, nullptr, 0));
  SAY(cudaGraphCreate(nullptr, 0));
  SAY(cudaGraphCreate(&graph, 1));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add<<<1, 1, 0, stream>>>(device, 1);
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  SAY(cudaStreamEndCapture(stream, &graph));
  SAY(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  add<<<1, 1, 0, stream>>>(device, 2);
  cudaMemcpyAsync(second, source + 5, 4, cudaMemcpyDeviceToDevice, stream);
  SAY(cudaStreamEndCapture(stream, &graph));
  size_t count = 0;
  SAY(cudaGraphGetNodes(graph, nullptr, &count));
  say("nodes", static_cast<long long>(count));
  SAY(cudaGraphInstantiate(&exec, graph, 0));
  run("captured", exec);
  return 0;
}
