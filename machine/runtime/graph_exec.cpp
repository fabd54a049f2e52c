// Instantiated graphs: launching and updating them.
#include <map>
#include <set>

#include "runtime/api.hpp"
#include "runtime/graph.hpp"
#include "runtime/stream.hpp"

namespace machine::runtime {
namespace {

std::set<CUgraphExec_st*>& live_execs() {
  static auto* const only = new std::set<CUgraphExec_st*>;
  return *only;
}

// Nodes so that each comes after those it depends on; otherwise in the order in which they were added.
std::vector<CUgraphNode_st*> in_order(const CUgraph_st& graph) {
  std::vector<CUgraphNode_st*> order;
  std::set<const CUgraphNode_st*> placed;
  while (order.size() < graph.nodes.size()) {
    const std::size_t before = order.size();
    for (const auto& node : graph.nodes) {
      if (placed.contains(node.get())) continue;
      bool ready = true;
      for (const auto* other : node->after) ready &= placed.contains(other);
      if (!ready) continue;
      placed.insert(node.get());
      order.push_back(node.get());
    }
    require(order.size() > before, cudaErrorInvalidValue, "the graph has a cycle");
  }
  return order;
}

TaskPtr marker(std::vector<TaskPtr> after, std::uint64_t stream, Lock& lock) {
  TaskPtr task = task_of(MarkerWork{}, stream);
  task->after = std::move(after);
  schedule().submit(task, lock);
  return task;
}

// Submits every node behind `before`; the result comes after all of them.
TaskPtr submit_graph(const CUgraph_st& graph, const TaskPtr& before, std::uint64_t stream, Lock& lock) {
  std::map<const CUgraphNode_st*, TaskPtr> tasks;
  std::vector<TaskPtr> all{before};
  for (auto* node : in_order(graph)) {
    std::vector<TaskPtr> after;
    for (const auto* other : node->after) after.push_back(tasks.at(other));
    if (after.empty()) after.push_back(before);
    if (node->type == cudaGraphNodeTypeWaitEvent && node->event) after.push_back(node->event->task);
    TaskPtr task;
    if (node->child) {
      task = submit_graph(*node->child, marker(std::move(after), stream, lock), stream, lock);
    } else {
      task = task_of(node->enabled ? node->work : Work{MarkerWork{}}, stream);
      const auto* kernel = std::get_if<KernelWork>(&node->work);
      if (node->enabled && kernel && kernel->programmatic && node->after.size() == 1 &&
          node->after[0]->type == cudaGraphNodeTypeKernel)
        task->released_early = after[0];
      task->after = std::move(after);
      schedule().submit(task, lock);
    }
    if (node->type == cudaGraphNodeTypeEventRecord && node->event) {
      node->event->recorded = true;
      node->event->task = task;
    }
    tasks[node] = task;
    all.push_back(task);
  }
  return marker(std::move(all), stream, lock);
}

struct Mismatch {
  CUgraphNode_st* node = nullptr;
  CUgraphNode_st* from = nullptr;
  cudaGraphExecUpdateResult result = cudaGraphExecUpdateSuccess;
};

// Pairs the nodes of two graphs by their order; what an update may not change is a mismatch.
Mismatch compare(const CUgraph_st& instantiated, const CUgraph_st& updated) {
  auto old_order = in_order(instantiated);
  auto new_order = in_order(updated);
  if (old_order.size() != new_order.size()) return {nullptr, nullptr, cudaGraphExecUpdateErrorTopologyChanged};
  std::map<const CUgraphNode_st*, std::size_t> old_index, new_index;
  for (std::size_t i = 0; i < old_order.size(); ++i) {
    old_index[old_order[i]] = new_index[new_order[i]] = i;
    if (old_order[i]->type != new_order[i]->type)
      return {new_order[i], old_order[i], cudaGraphExecUpdateErrorNodeTypeChanged};
    if (!same_places(old_order[i]->work, new_order[i]->work))
      return {new_order[i], old_order[i], cudaGraphExecUpdateErrorParametersChanged};
    std::set<std::size_t> old_after, new_after;
    for (const auto* other : old_order[i]->after) old_after.insert(old_index.at(other));
    for (const auto* other : new_order[i]->after) new_after.insert(new_index.at(other));
    if (old_after != new_after) return {new_order[i], old_order[i], cudaGraphExecUpdateErrorTopologyChanged};
  }
  return {};
}

void take_over(const CUgraph_st& instantiated, const CUgraph_st& updated) {
  auto old_order = in_order(instantiated);
  auto new_order = in_order(updated);
  for (std::size_t i = 0; i < old_order.size(); ++i) {
    old_order[i]->work = new_order[i]->work;
    old_order[i]->event = new_order[i]->event;
    old_order[i]->copy_params = new_order[i]->copy_params;
    if (old_order[i]->child && new_order[i]->child) take_over(*old_order[i]->child, *new_order[i]->child);
  }
}

}  // namespace

CUgraphExec_st& exec_of(cudaGraphExec_t exec) {
  if (!live_execs().contains(exec)) fail(cudaErrorInvalidValue, "the instantiated graph does not exist (destroyed?)");
  return *exec;
}

}  // namespace machine::runtime

using namespace machine::runtime;

namespace {

cudaError_t instantiate(const char* call, cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return entry(call, [&](Lock&) {
    require(exec, cudaErrorInvalidValue, "the instance's address is null");
    in_order(graph_of(graph));
    *exec = new CUgraphExec_st;
    (*exec)->graph = clone_graph(graph_of(graph));
    (*exec)->graph->instantiated = true;
    (*exec)->flags = flags;
    live_execs().insert(*exec);
    return cudaSuccess;
  });
}

cudaError_t launch_graph(cudaGraphExec_t handle, cudaStream_t stream_handle, Default meaning) {
  return entry("cudaGraphLaunch", [&](Lock& lock) {
    CUgraphExec_st& exec = exec_of(handle);
    CUstream_st& stream = stream_of(stream_handle, meaning);
    require_no_capture(stream, "cudaGraphLaunch");
    auto after = predecessors(stream);
    after.push_back(exec.last);
    stream.last = submit_graph(*exec.graph, marker(std::move(after), stream.number, lock), stream.number, lock);
    stream.last_is_kernel = false;
    exec.last = stream.last;
    return cudaSuccess;
  });
}

cudaError_t upload(cudaGraphExec_t exec, cudaStream_t stream, Default meaning) {
  return entry("cudaGraphUpload", [&](Lock&) {
    exec_of(exec);
    stream_of(stream, meaning);
    return cudaSuccess;
  });
}

}  // namespace

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate("cudaGraphInstantiate", exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return instantiate("cudaGraphInstantiateWithFlags", exec, graph, flags);
}
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph, cudaGraphInstantiateParams* p) {
  if (p) p->result_out = cudaGraphInstantiateSuccess;
  return instantiate("cudaGraphInstantiateWithParams", exec, graph, p ? p->flags : 0);
}
cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams* p) {
  return cudaGraphInstantiateWithParams(exec, graph, p);
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return entry("cudaGraphExecGetFlags", [&](Lock&) {
    require(flags, cudaErrorInvalidValue, "the result's address is null");
    *flags = exec_of(exec).flags;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return entry("cudaGraphExecDestroy", [&](Lock&) {
    destroy_graph(exec_of(exec).graph);
    live_execs().erase(exec);
    delete exec;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s) { return launch_graph(exec, s, Default::legacy); }
cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t s) {
  return launch_graph(exec, s, Default::per_thread);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t s) { return upload(exec, s, Default::legacy); }
cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t s) { return upload(exec, s, Default::per_thread); }

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return entry("cudaGraphExecUpdate", [&](Lock&) {
    CUgraph_st& instantiated = *exec_of(exec).graph;
    const Mismatch mismatch = compare(instantiated, graph_of(graph));
    if (info) {
      info->result = mismatch.result;
      info->errorNode = mismatch.node;
      info->errorFromNode = mismatch.from;
    }
    require(mismatch.result == cudaGraphExecUpdateSuccess, cudaErrorGraphExecUpdateFailure,
            "the graph differs from the instantiated one in more than parameters");
    take_over(instantiated, *graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return entry("cudaGraphExecChildGraphNodeSetParams", [&](Lock&) {
    for (const auto& twin : exec_of(exec).graph->nodes)
      if (twin->original == node && twin->child) {
        require(compare(*twin->child, graph_of(child)).result == cudaGraphExecUpdateSuccess,
                cudaErrorGraphExecUpdateFailure, "the child graph differs in more than parameters");
        take_over(*twin->child, *child);
        return cudaSuccess;
      }
    fail(cudaErrorInvalidValue, "the node is no child graph of the graph that was instantiated");
  });
}
}
