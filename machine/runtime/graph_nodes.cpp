// The nodes of a graph: adding them, reading and changing what they do.
#include <cstring>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "runtime/api.hpp"
#include "runtime/graph.hpp"
#include "runtime/session.hpp"
#include "runtime/transfer.hpp"

namespace machine::runtime {}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

template <class Make>
cudaError_t add(const char* call, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after, size_t count,
                cudaGraphNodeType type, Make make) {
  return entry(call, [&](Lock&) {
    require(node, cudaErrorInvalidValue, "the node's address is null");
    *node = &add_node(graph_of(graph), type, make(), after, count);
    return cudaSuccess;
  });
}

cudaMemcpy3DParms linear(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.dstPtr = {to, bytes, bytes, 1};
  p.srcPtr = {const_cast<void*>(from), bytes, bytes, 1};
  p.extent = {bytes, 1, 1};
  p.kind = kind;
  return p;
}

void* in_symbol(const void* symbol, size_t offset, size_t bytes) {
  const machine::Object& object = symbol_object(symbol);
  require(offset <= object.size && bytes <= object.size - offset, cudaErrorInvalidValue, "the range leaves the symbol");
  return reinterpret_cast<void*>(object.base + offset);
}

template <class Params>
cudaError_t add_copy(const char* call, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* after,
                     size_t count, Params params) {
  cudaMemcpy3DParms kept{};
  cudaError_t code = add(call, node, graph, after, count, cudaGraphNodeTypeMemcpy, [&]() -> Work {
    kept = params();
    return memcpy_node(&kept);
  });
  if (code == cudaSuccess) (*node)->copy_params = kept;
  return code;
}

// `find` gives the node to change: one of a graph, or its twin in an instantiated graph.
template <class Find, class Params>
cudaError_t change_copy(const char* call, Find find, Params params) {
  return entry(call, [&](Lock&) {
    CUgraphNode_st& node = find();
    const cudaMemcpy3DParms changed = params();
    Work work = memcpy_node(&changed);
    replace_work(node, std::move(work));
    node.copy_params = changed;
    return cudaSuccess;
  });
}

template <class Find, class Make>
cudaError_t change(const char* call, Find find, Make make) {
  return entry(call, [&](Lock&) {
    replace_work(find(), make());
    return cudaSuccess;
  });
}

auto in_graph(cudaGraphNode_t node) {
  return [node]() -> CUgraphNode_st& { return node_of(node); };
}

// Nodes that can be switched off are those that do something on the device.
CUgraphNode_st& switchable(CUgraphNode_st& node) {
  require(node.type == cudaGraphNodeTypeKernel || node.type == cudaGraphNodeTypeMemcpy ||
              node.type == cudaGraphNodeTypeMemset,
          cudaErrorInvalidValue, "only kernel, memcpy and memset nodes can be switched off");
  return node;
}

auto in_exec(cudaGraphExec_t exec, cudaGraphNode_t node) {
  return [exec, node]() -> CUgraphNode_st& {
    for (const auto& twin : exec_of(exec).graph->nodes)
      if (twin->original == node) return *twin;
    fail(cudaErrorInvalidValue, "the node is not of the graph that was instantiated");
  };
}

template <class W>
const W& work_of(cudaGraphNode_t node) {
  const W* work = std::get_if<W>(&node_of(node).work);
  if (!work) fail(cudaErrorInvalidValue, "the node is of another type");
  return *work;
}

cudaError_t describe_kernel(cudaGraphNode_t handle, cudaKernelNodeParams* result) {
  const auto& work = work_of<KernelWork>(handle);
  CUgraphNode_st& node = node_of(handle);
  node.argument_pointers.clear();
  for (const auto& param : work.kernel->kernel().params())
    node.argument_pointers.push_back(const_cast<std::byte*>(work.params.data()) + param.offset);
  *result = {};
  result->func = work.kernel;
  result->gridDim = {work.grid.x, work.grid.y, work.grid.z};
  result->blockDim = {work.block.x, work.block.y, work.block.z};
  result->sharedMemBytes = work.dynamic_shared;
  result->kernelParams = node.argument_pointers.data();
  return cudaSuccess;
}

void set_kernel_attribute(KernelWork& work, cudaLaunchAttributeID which, const cudaLaunchAttributeValue& value) {
  if (which == cudaLaunchAttributeCooperative) work.cooperative = value.cooperative != 0;
  if (which == cudaLaunchAttributeProgrammaticStreamSerialization)
    work.programmatic = value.programmaticStreamSerializationAllowed != 0;
  if (which == cudaLaunchAttributeClusterDimension)
    work.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
}

// The typed parameters of cudaGraphAddNode and its relatives.
Work work_from(const cudaGraphNodeParams& p) {
  switch (p.type) {
    case cudaGraphNodeTypeKernel: {
      const auto& k = p.kernel;
      require(!k.extra, cudaErrorNotSupported,
              "kernel arguments as one buffer (extra) are not provided by the CPU device");
      return checked_launch(k.func, k.gridDim, k.blockDim, k.kernelParams, k.sharedMemBytes);
    }
    case cudaGraphNodeTypeMemcpy: return memcpy_node(&p.memcpy.copyParams);
    case cudaGraphNodeTypeMemset: {
      cudaMemsetParams set{p.memset.dst,         p.memset.pitch, p.memset.value,
                           p.memset.elementSize, p.memset.width, p.memset.height};
      return memset_node(&set);
    }
    case cudaGraphNodeTypeHost: {
      cudaHostNodeParams host{p.host.fn, p.host.userData};
      return host_node(&host);
    }
    case cudaGraphNodeTypeEmpty: return MarkerWork{};
    default: fail(cudaErrorNotSupported, "this type of node is not provided by cudaGraphAddNode on the CPU device");
  }
}

}  // namespace

extern "C" {

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                   const cudaKernelNodeParams* p) {
  return add("cudaGraphAddKernelNode", node, g, after, n, cudaGraphNodeTypeKernel, [&] { return kernel_node(p); });
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                   const cudaMemsetParams* p) {
  return add("cudaGraphAddMemsetNode", node, g, after, n, cudaGraphNodeTypeMemset, [&] { return memset_node(p); });
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                 const cudaHostNodeParams* p) {
  return add("cudaGraphAddHostNode", node, g, after, n, cudaGraphNodeTypeHost, [&] { return host_node(p); });
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n) {
  return add("cudaGraphAddEmptyNode", node, g, after, n, cudaGraphNodeTypeEmpty, [] { return MarkerWork{}; });
}
cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after,
                             const cudaGraphEdgeData*, size_t n, cudaGraphNodeParams* p) {
  return add("cudaGraphAddNode", node, g, after, n, p ? p->type : cudaGraphNodeTypeEmpty, [&] {
    require(p, cudaErrorInvalidValue, "the parameters are null");
    return work_from(*p);
  });
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                   const cudaMemcpy3DParms* p) {
  return add_copy("cudaGraphAddMemcpyNode", node, g, after, n, [&] {
    require(p, cudaErrorInvalidValue, "the parameters are null");
    return *p;
  });
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                     void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return add_copy("cudaGraphAddMemcpyNode1D", node, g, after, n, [&] { return linear(to, from, bytes, kind); });
}
cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                           const void* symbol, const void* from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind) {
  return add_copy("cudaGraphAddMemcpyNodeToSymbol", node, g, after, n,
                  [&] { return linear(in_symbol(symbol, offset, bytes), from, bytes, kind); });
}
cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after,
                                             size_t n, void* to, const void* symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind) {
  return add_copy("cudaGraphAddMemcpyNodeFromSymbol", node, g, after, n,
                  [&] { return linear(to, in_symbol(symbol, offset, bytes), bytes, kind); });
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                       cudaGraph_t child) {
  return entry("cudaGraphAddChildGraphNode", [&](Lock&) {
    require(node, cudaErrorInvalidValue, "the node's address is null");
    CUgraph_st* copy = clone_graph(graph_of(child));
    *node = &add_node(graph_of(g), cudaGraphNodeTypeGraph, MarkerWork{}, after, n);
    (*node)->child = copy;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  return entry("cudaGraphChildGraphNodeGetGraph", [&](Lock&) {
    require(graph && node_of(node).child, cudaErrorInvalidValue, "the node is no child graph");
    *graph = node_of(node).child;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                        cudaEvent_t event) {
  cudaError_t code =
      add("cudaGraphAddEventRecordNode", node, g, after, n, cudaGraphNodeTypeEventRecord, [] { return MarkerWork{}; });
  if (code == cudaSuccess) (*node)->event = event;
  return code;
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                      cudaEvent_t event) {
  cudaError_t code =
      add("cudaGraphAddEventWaitNode", node, g, after, n, cudaGraphNodeTypeWaitEvent, [] { return MarkerWork{}; });
  if (code == cudaSuccess) (*node)->event = event;
  return code;
}

// The address is fixed when the node is made; the memory lives from this node on, until a free node or the program
// frees it.
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                     cudaMemAllocNodeParams* p) {
  return entry("cudaGraphAddMemAllocNode", [&](Lock&) {
    require(node && p && p->bytesize, cudaErrorInvalidValue, "an argument is null or the size is 0");
    const auto* object = machine::AddressSpace::instance().allocate(machine::ObjectKind::global, p->bytesize, 512, {},
                                                                    host_access_operation());
    require(object, cudaErrorMemoryAllocation, "the device has not that much memory");
    notify([object](machine::Observer& checks) { checks.allocated(*object); });
    machine::give_to_graph(*object);
    p->dptr = reinterpret_cast<void*>(object->base);
    *node = &add_node(graph_of(g), cudaGraphNodeTypeMemAlloc, AllocateWork{object->base}, after, n);
    (*node)->allocation = *p;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* p) {
  return entry("cudaGraphMemAllocNodeGetParams", [&](Lock&) {
    require(p && node_of(node).type == cudaGraphNodeTypeMemAlloc, cudaErrorInvalidValue, "the node allocates nothing");
    *p = node_of(node).allocation;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t g, const cudaGraphNode_t* after, size_t n,
                                    void* pointer) {
  cudaError_t code = add("cudaGraphAddMemFreeNode", node, g, after, n, cudaGraphNodeTypeMemFree, [&]() -> Work {
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    return machine::of_graph(address) ? Work{ReleaseWork{address}} : Work{MarkerWork{}};
  });
  if (code == cudaSuccess) (*node)->freed = reinterpret_cast<std::uint64_t>(pointer);
  return code;
}
cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* result) {
  return entry("cudaGraphMemFreeNodeGetParams", [&](Lock&) {
    require(result && node_of(node).type == cudaGraphNodeTypeMemFree, cudaErrorInvalidValue, "the node frees nothing");
    std::memcpy(result, &node_of(node).freed, sizeof(void*));
    return cudaSuccess;
  });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* p) {
  return entry("cudaGraphKernelNodeGetParams", [&](Lock&) { return describe_kernel(node, p); });
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return change("cudaGraphKernelNodeSetParams", in_graph(node), [&] { return kernel_node(p); });
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* p) {
  return change("cudaGraphExecKernelNodeSetParams", in_exec(exec, node), [&] { return kernel_node(p); });
}
cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID which,
                                            const cudaLaunchAttributeValue* value) {
  return entry("cudaGraphKernelNodeSetAttribute", [&](Lock&) {
    require(value && std::holds_alternative<KernelWork>(node_of(node).work), cudaErrorInvalidValue,
            "the node is no kernel");
    set_kernel_attribute(std::get<KernelWork>(node->work), which, *value);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID which,
                                            cudaLaunchAttributeValue* value) {
  return entry("cudaGraphKernelNodeGetAttribute", [&](Lock&) {
    require(value, cudaErrorInvalidValue, "the result's address is null");
    const auto& work = work_of<KernelWork>(node);
    *value = {};
    if (which == cudaLaunchAttributeCooperative) value->cooperative = work.cooperative;
    if (which == cudaLaunchAttributeProgrammaticStreamSerialization)
      value->programmaticStreamSerializationAllowed = work.programmatic;
    if (which == cudaLaunchAttributeClusterDimension)
      value->clusterDim = {work.cluster.x, work.cluster.y, work.cluster.z};
    return cudaSuccess;
  });
}
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from) {
  return entry("cudaGraphKernelNodeCopyAttributes", [&](Lock&) {
    KernelWork work = work_of<KernelWork>(to);
    const auto& source = work_of<KernelWork>(from);
    work.cooperative = source.cooperative;
    work.programmatic = source.programmatic;
    work.cluster = source.cluster;
    node_of(to).work = std::move(work);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* p) {
  return entry("cudaGraphMemcpyNodeGetParams", [&](Lock&) {
    work_of<CopyWork>(node);
    *p = node_of(node).copy_params;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return change_copy("cudaGraphMemcpyNodeSetParams", in_graph(node), [&] { return *p; });
}
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t n,
                                           cudaMemcpyKind kind) {
  return change_copy("cudaGraphMemcpyNodeSetParams1D", in_graph(node), [&] { return linear(to, from, n, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return change_copy("cudaGraphExecMemcpyNodeSetParams", in_exec(exec, node), [&] { return *p; });
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* to, const void* from,
                                               size_t n, cudaMemcpyKind kind) {
  return change_copy("cudaGraphExecMemcpyNodeSetParams1D", in_exec(exec, node),
                     [&] { return linear(to, from, n, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol,
                                                     const void* from, size_t n, size_t offset, cudaMemcpyKind kind) {
  return change_copy("cudaGraphExecMemcpyNodeSetParamsToSymbol", in_exec(exec, node),
                     [&] { return linear(in_symbol(symbol, offset, n), from, n, kind); });
}
cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void* to,
                                                       const void* symbol, size_t n, size_t offset,
                                                       cudaMemcpyKind kind) {
  return change_copy("cudaGraphExecMemcpyNodeSetParamsFromSymbol", in_exec(exec, node),
                     [&] { return linear(to, in_symbol(symbol, offset, n), n, kind); });
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* p) {
  return entry("cudaGraphMemsetNodeGetParams", [&](Lock&) {
    const auto& work = work_of<SetWork>(node);
    *p = {reinterpret_cast<void*>(work.destination.address),
          work.destination.pitch,
          work.value,
          work.element,
          work.extent.width / work.element,
          work.extent.height};
    return cudaSuccess;
  });
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return change("cudaGraphMemsetNodeSetParams", in_graph(node), [&] { return memset_node(p); });
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams* p) {
  return change("cudaGraphExecMemsetNodeSetParams", in_exec(exec, node), [&] { return memset_node(p); });
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* p) {
  return entry("cudaGraphHostNodeGetParams", [&](Lock&) {
    *p = work_of<HostWork>(node).params;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return change("cudaGraphHostNodeSetParams", in_graph(node), [&] { return host_node(p); });
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return change("cudaGraphExecHostNodeSetParams", in_exec(exec, node), [&] { return host_node(p); });
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* p) {
  return change("cudaGraphNodeSetParams", in_graph(node), [&] { return work_from(*p); });
}
cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* p) {
  return change("cudaGraphExecNodeSetParams", in_exec(exec, node), [&] { return work_from(*p); });
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled) {
  return entry("cudaGraphNodeSetEnabled", [&](Lock&) {
    switchable(in_exec(exec, node)()).enabled = enabled != 0;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled) {
  return entry("cudaGraphNodeGetEnabled", [&](Lock&) {
    require(enabled, cudaErrorInvalidValue, "the result's address is null");
    *enabled = switchable(in_exec(exec, node)()).enabled;
    return cudaSuccess;
  });
}
}
