// What a node of a graph does, from the runtime's structures.
#include <cstring>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "runtime/api.hpp"
#include "runtime/graph.hpp"
#include "runtime/session.hpp"
#include "runtime/transfer.hpp"

namespace machine::runtime {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

Plane plane_of(const cudaPitchedPtr& pointer, const cudaPos& position) {
  const std::size_t slice = pointer.pitch * pointer.ysize;
  return {address_of(pointer.ptr) + position.z * slice + position.y * pointer.pitch + position.x, pointer.pitch, slice};
}

}  // namespace

Work kernel_node(const cudaKernelNodeParams* params) {
  require(params, cudaErrorInvalidValue, "the parameters are null");
  require(!params->extra, cudaErrorNotSupported,
          "kernel arguments as one buffer (extra) are not provided by the CPU device");
  return checked_launch(params->func, params->gridDim, params->blockDim, params->kernelParams, params->sharedMemBytes);
}

Work memcpy_node(const cudaMemcpy3DParms* p) {
  require(p, cudaErrorInvalidValue, "the parameters are null");
  require(!p->srcArray && !p->dstArray, cudaErrorNotSupported, "CUDA arrays are not provided by the CPU device");
  return checked_copy("memcpy node", plane_of(p->dstPtr, p->dstPos), plane_of(p->srcPtr, p->srcPos),
                      {p->extent.width, p->extent.height, p->extent.depth}, p->kind);
}

Work memset_node(const cudaMemsetParams* p) {
  require(p, cudaErrorInvalidValue, "the parameters are null");
  require(p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4, cudaErrorInvalidValue,
          "the element size is not 1, 2 or 4");
  return checked_set("memset node", {address_of(p->dst), p->pitch, p->pitch * p->height},
                     {p->width * p->elementSize, p->height, 1}, p->value, p->elementSize);
}

Work host_node(const cudaHostNodeParams* p) {
  require(p && p->fn, cudaErrorInvalidValue, "the host function is null");
  return HostWork{[params = *p] { params.fn(params.userData); }, *p};
}

bool same_places(const Work& now, const Work& then) {
  const auto *old_copy = std::get_if<CopyWork>(&now), *new_copy = std::get_if<CopyWork>(&then);
  if (old_copy == nullptr || new_copy == nullptr) return true;
  const auto on_device = [](const Plane& plane) { return place_of(plane.address) == Place::device; };
  return on_device(old_copy->source) == on_device(new_copy->source) &&
         on_device(old_copy->destination) == on_device(new_copy->destination);
}

void replace_work(CUgraphNode_st& node, Work work) {
  require(node.work.index() == work.index(), cudaErrorInvalidValue, "the parameters are for another type of node");
  if (const auto* copy = std::get_if<CopyWork>(&work); copy != nullptr && node.graph->instantiated) {
    require(copy->extent.width * copy->extent.height * copy->extent.depth != 0, cudaErrorInvalidValue,
            "an instantiated copy must have a size");
    require(same_places(node.work, work), cudaErrorInvalidValue,
            "an instantiated copy cannot go over to another kind of memory");
  }
  node.work = std::move(work);
}

}  // namespace machine::runtime
