// Graphs: creation, structure, queries.
#include "runtime/graph.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "runtime/api.hpp"
#include "runtime/capture.hpp"

namespace machine::runtime {
namespace {

std::set<CUgraph_st*>& live_graphs() {
  static auto* const only = new std::set<CUgraph_st*>;
  return *only;
}

std::set<CUgraphNode_st*>& live_nodes() {
  static auto* const only = new std::set<CUgraphNode_st*>;
  return *only;
}

CUgraph_st* copy_of(const CUgraph_st& graph) {
  CUgraph_st* copy = create_graph();
  std::map<const CUgraphNode_st*, CUgraphNode_st*> twin;
  for (const auto& node : graph.nodes) {
    auto& added = add_node(*copy, node->type, node->work, nullptr, 0);
    added.event = node->event;
    added.allocation = node->allocation;
    added.freed = node->freed;
    added.enabled = node->enabled;
    added.copy_params = node->copy_params;
    added.original = node.get();
    if (node->child) added.child = copy_of(*node->child);
    twin[node.get()] = &added;
  }
  for (const auto& node : graph.nodes)
    for (const auto* before : node->after) twin[node.get()]->after.push_back(twin.at(before));
  return copy;
}

}  // namespace

CUgraph_st* clone_graph(const CUgraph_st& graph) { return copy_of(graph); }

CUgraph_st& graph_of(cudaGraph_t graph) {
  if (!live_graphs().contains(graph)) fail(cudaErrorInvalidValue, "the graph does not exist (destroyed?)");
  return *graph;
}

CUgraphNode_st& node_of(cudaGraphNode_t node) {
  if (!live_nodes().contains(node)) fail(cudaErrorInvalidValue, "the graph node does not exist (destroyed?)");
  return *node;
}

CUgraph_st* create_graph() {
  auto* graph = new CUgraph_st;
  live_graphs().insert(graph);
  return graph;
}

void destroy_graph(CUgraph_st* graph) {
  for (const auto& node : graph->nodes) {
    if (node->child) destroy_graph(node->child);
    live_nodes().erase(node.get());
  }
  for (const auto& [object, count] : graph->user_objects) cudaUserObjectRelease(object, count);
  live_graphs().erase(graph);
  delete graph;
}

CUgraphNode_st& add_node(CUgraph_st& graph, cudaGraphNodeType type, Work work, const cudaGraphNode_t* dependencies,
                         std::size_t count) {
  require(count == 0 || dependencies, cudaErrorInvalidValue, "the dependencies are null");
  std::vector<CUgraphNode_st*> after;
  for (std::size_t i = 0; i < count; ++i) {
    require(node_of(dependencies[i]).graph == &graph, cudaErrorInvalidValue, "a dependency is a node of another graph");
    after.push_back(dependencies[i]);
  }
  auto node = std::make_unique<CUgraphNode_st>();
  node->graph = &graph;
  node->type = type;
  node->work = std::move(work);
  node->after = std::move(after);
  live_nodes().insert(node.get());
  graph.nodes.push_back(std::move(node));
  return *graph.nodes.back();
}

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

// The two-call idiom: a null array asks for the number.
template <class Items>
cudaError_t hand_out(const Items& items, cudaGraphNode_t* result, size_t* count) {
  require(count, cudaErrorInvalidValue, "the count's address is null");
  if (result)
    for (std::size_t i = 0; i < *count; ++i) result[i] = i < items.size() ? items[i] : nullptr;
  *count = result ? std::min(*count, items.size()) : items.size();
  return cudaSuccess;
}

std::vector<cudaGraphNode_t> dependents(const CUgraphNode_st& node) {
  std::vector<cudaGraphNode_t> found;
  for (const auto& other : node.graph->nodes)
    if (std::find(other->after.begin(), other->after.end(), &node) != other->after.end()) found.push_back(other.get());
  return found;
}

std::vector<cudaGraphNode_t> nodes_where(const CUgraph_st& graph, bool roots_only) {
  std::vector<cudaGraphNode_t> found;
  for (const auto& node : graph.nodes)
    if (!roots_only || node->after.empty()) found.push_back(node.get());
  return found;
}

const char* type_name(cudaGraphNodeType type) {
  switch (type) {
    case cudaGraphNodeTypeKernel: return "kernel";
    case cudaGraphNodeTypeMemcpy: return "memcpy";
    case cudaGraphNodeTypeMemset: return "memset";
    case cudaGraphNodeTypeHost: return "host";
    case cudaGraphNodeTypeGraph: return "graph";
    case cudaGraphNodeTypeWaitEvent: return "wait event";
    case cudaGraphNodeTypeEventRecord: return "record event";
    case cudaGraphNodeTypeMemAlloc: return "allocate";
    case cudaGraphNodeTypeMemFree: return "free";
    default: return "empty";
  }
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  return entry("cudaGraphCreate", [&](Lock&) {
    require(graph && flags == 0, cudaErrorInvalidValue, "the graph's address is null or the flags are not 0");
    *graph = create_graph();
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return entry("cudaGraphDestroy", [&](Lock&) {
    destroy_graph(&graph_of(graph));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return entry("cudaGraphClone", [&](Lock&) {
    require(clone, cudaErrorInvalidValue, "the clone's address is null");
    *clone = copy_of(graph_of(graph));
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
  return entry("cudaGraphNodeFindInClone", [&](Lock&) {
    for (const auto& node : graph_of(clone).nodes)
      if (node->original == original) return (void)(*found = node.get()), cudaSuccess;
    fail(cudaErrorInvalidValue, "the graph is no clone of the one that the node is in");
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return entry("cudaGraphGetNodes", [&](Lock&) { return hand_out(nodes_where(graph_of(graph), false), nodes, count); });
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return entry("cudaGraphGetRootNodes",
               [&](Lock&) { return hand_out(nodes_where(graph_of(graph), true), nodes, count); });
}
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return entry("cudaGraphNodeGetDependencies", [&](Lock&) {
    if (edges && count) std::fill_n(edges, *count, cudaGraphEdgeData{});
    return hand_out(node_of(node).after, nodes, count);
  });
}
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return entry("cudaGraphNodeGetDependentNodes", [&](Lock&) {
    if (edges && count) std::fill_n(edges, *count, cudaGraphEdgeData{});
    return hand_out(dependents(node_of(node)), nodes, count);
  });
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return entry("cudaGraphGetEdges", [&](Lock&) {
    std::vector<cudaGraphNode_t> begins, ends;
    for (const auto& node : graph_of(graph).nodes)
      for (auto* before : node->after) {
        begins.push_back(before);
        ends.push_back(node.get());
      }
    if (edges && count) std::fill_n(edges, *count, cudaGraphEdgeData{});
    size_t again = count ? *count : 0;
    if (to) hand_out(ends, to, &again);
    return hand_out(begins, from, count);
  });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return entry("cudaGraphNodeGetType", [&](Lock&) {
    require(type, cudaErrorInvalidValue, "the result's address is null");
    *type = node_of(node).type;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData*, size_t count) {
  return entry("cudaGraphAddDependencies", [&](Lock&) {
    graph_of(graph);
    for (std::size_t i = 0; i < count; ++i) {
      require(node_of(from[i]).graph == graph && node_of(to[i]).graph == graph, cudaErrorInvalidValue,
              "a node is of another graph");
      require(from[i] != to[i], cudaErrorInvalidValue, "a node cannot come after itself");
      require(std::find(to[i]->after.begin(), to[i]->after.end(), from[i]) == to[i]->after.end(), cudaErrorInvalidValue,
              "there is such a dependency already");
      to[i]->after.push_back(from[i]);
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
  return entry("cudaGraphRemoveDependencies", [&](Lock&) {
    graph_of(graph);
    for (std::size_t i = 0; i < count; ++i)
      require(std::erase(node_of(to[i]).after, &node_of(from[i])) > 0, cudaErrorInvalidValue,
              "there is no such dependency");
    return cudaSuccess;
  });
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
  return entry("cudaGraphDestroyNode", [&](Lock&) {
    CUgraphNode_st& node = node_of(handle);
    CUgraph_st& graph = *node.graph;
    if (node.child) destroy_graph(node.child);
    for (const auto& other : graph.nodes) std::erase(other->after, &node);
    live_nodes().erase(&node);
    std::erase_if(graph.nodes, [&](const auto& other) { return other.get() == handle; });
    return cudaSuccess;
  });
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned) {
  return entry("cudaGraphDebugDotPrint", [&](Lock&) {
    std::FILE* file = path ? std::fopen(path, "w") : nullptr;
    require(file, cudaErrorOperatingSystem, "the file cannot be written");
    std::map<const CUgraphNode_st*, std::size_t> number;
    std::fputs("digraph graph_1 {\n", file);
    for (const auto& node : graph_of(graph).nodes) {
      number.emplace(node.get(), number.size());
      const auto* kernel = std::get_if<KernelWork>(&node->work);
      std::fprintf(file, "  node_%zu [label=\"%s%s%s\"];\n", number[node.get()], type_name(node->type),
                   kernel ? " " : "", kernel ? kernel->kernel->name.c_str() : "");
    }
    for (const auto& node : graph_of(graph).nodes)
      for (const auto* before : node->after)
        std::fprintf(file, "  node_%zu -> node_%zu;\n", number[before], number[node.get()]);
    std::fputs("}\n", file);
    std::fclose(file);
    return cudaSuccess;
  });
}
}
