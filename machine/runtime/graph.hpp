// Graphs: nodes of work with their order, and instantiated graphs that a stream can launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/schedule.hpp"
#include "runtime/work.hpp"

namespace machine::runtime {

CUgraph_st& graph_of(cudaGraph_t graph);
CUgraphNode_st& node_of(cudaGraphNode_t node);
CUgraphExec_st& exec_of(cudaGraphExec_t exec);

CUgraph_st* create_graph();
void destroy_graph(CUgraph_st* graph);
CUgraph_st* clone_graph(const CUgraph_st& graph);  // nodes of the copy know their originals

// Adds a node after `dependencies`, which must be nodes of the same graph.
CUgraphNode_st& add_node(CUgraph_st& graph, cudaGraphNodeType type, Work work, const cudaGraphNode_t* dependencies,
                         std::size_t count);

// What the program passes for a node, turned into work. Throw ApiError.
Work kernel_node(const cudaKernelNodeParams* params);
Work memcpy_node(const cudaMemcpy3DParms* params);
Work memset_node(const cudaMemsetParams* params);
Work host_node(const cudaHostNodeParams* params);

// The work that a node of the same type may adopt; throws when the type differs.
void replace_work(CUgraphNode_st& node, Work work);

// Both copy between the same kinds of memory, or are no copies.
bool same_places(const Work& now, const Work& then);

}  // namespace machine::runtime

struct CUgraphNode_st {
  CUgraph_st* graph = nullptr;
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  machine::runtime::Work work;
  std::vector<CUgraphNode_st*> after;
  CUgraph_st* child = nullptr;
  CUevent_st* event = nullptr;
  cudaMemAllocNodeParams allocation{};
  std::uint64_t freed = 0;
  bool enabled = true;
  CUgraphNode_st* original = nullptr;    // in the graph that this one was cloned or instantiated from
  std::vector<void*> argument_pointers;  // what a query for kernel parameters returns
  cudaMemcpy3DParms copy_params{};
};

struct CUgraph_st {
  bool instantiated = false;  // the private copy of an instance
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::pair<cudaUserObject_t, unsigned>> user_objects;
};

struct CUgraphExec_st {
  CUgraph_st* graph = nullptr;  // a private copy
  unsigned long long flags = 0;
  machine::runtime::TaskPtr last;  // launches of one instance follow each other
};
