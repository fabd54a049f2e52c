#include "runtime/transfer.hpp"

#include <cstring>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "runtime/api.hpp"
#include "runtime/options.hpp"

namespace machine::runtime {
namespace {

std::uint64_t span_of(const Plane& plane, const Extent& extent) {
  if (extent.width == 0 || extent.height == 0 || extent.depth == 0) return 0;
  return (extent.depth - 1) * plane.slice + (extent.height - 1) * plane.pitch + extent.width;
}

std::string describe(const Object& object) {
  return (object.name.empty() ? "an allocation" : object.name) + " of " + std::to_string(object.size) + " bytes";
}

void check_side(const Plane& plane, const Extent& extent, bool device_side, const char* role) {
  if (device_side) {
    device_object(plane.address, span_of(plane, extent), role);
  } else if (place_of(plane.address) == Place::device) {
    fail(cudaErrorInvalidValue, std::string("the ") + role + " is device memory, but the direction says host memory");
  }
}

std::shared_ptr<std::vector<std::byte>> staged(const Plane& source, const Extent& extent) {
  auto bytes = std::make_shared<std::vector<std::byte>>(extent.width * extent.height * extent.depth);
  std::byte* to = bytes->data();
  for (std::size_t z = 0; z < extent.depth; ++z)
    for (std::size_t y = 0; y < extent.height; ++y, to += extent.width)
      std::memcpy(to, reinterpret_cast<const std::byte*>(source.address + z * source.slice + y * source.pitch),
                  extent.width);
  return bytes;
}

}  // namespace

Place place_of(std::uint64_t address) {
  const Object* object = AddressSpace::instance().find(address);
  if (!object) return in_arena(address) ? Place::device : Place::pageable;
  switch (object->kind) {
    case ObjectKind::pinned:
    case ObjectKind::registered: return object->state == ObjectState::live ? Place::pinned : Place::pageable;
    case ObjectKind::managed: return Place::managed;
    default: return Place::device;
  }
}

const Object& device_object(std::uint64_t address, std::uint64_t bytes, const char* role) {
  if (address == 0) fail(cudaErrorInvalidValue, std::string("the ") + role + " is a null pointer");
  const Object* object = AddressSpace::instance().find(address);
  if (!object) fail(cudaErrorInvalidValue, std::string("the ") + role + " is no device memory");
  if (object->kind == ObjectKind::heap)
    fail(cudaErrorInvalidValue,
         std::string("the ") + role + " is memory of malloc() in a kernel, which only kernels can use");
  if (options().has_tool("memcheck")) return *object;
  if (object->state == ObjectState::freed && !of_graph(object->base))
    fail(cudaErrorInvalidValue, std::string("the ") + role + " has been freed");
  if (!object->contains(address, bytes))
    fail(cudaErrorInvalidValue, std::to_string(bytes) + " bytes at offset " + std::to_string(address - object->base) +
                                    " leave the " + role + ", " + describe(*object));
  return *object;
}

CopyWork checked_copy(const char* call, Plane destination, Plane source, Extent extent, cudaMemcpyKind kind) {
  require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault, cudaErrorInvalidMemcpyDirection,
          "the direction is no cudaMemcpyKind");
  if (span_of(source, extent)) {
    require(destination.address && source.address, cudaErrorInvalidValue, "a pointer is null");
    require(extent.height == 1 || (destination.pitch >= extent.width && source.pitch >= extent.width),
            cudaErrorInvalidPitchValue, "a pitch is smaller than the row");
    const bool by_address = kind == cudaMemcpyDefault;
    auto device_side = [](const Plane& plane) { return place_of(plane.address) != Place::pageable; };
    check_side(
        destination, extent,
        by_address ? device_side(destination) : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice,
        "destination");
    check_side(source, extent,
               by_address ? device_side(source) : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
               "source");
  }
  return CopyWork{call, destination, source, extent, nullptr};
}

cudaError_t submit_copy(CUstream_st& stream, CopyWork work, Host host, Lock& lock) {
  const bool nothing = span_of(work.source, work.extent) == 0;
  const Place to = nothing ? Place::device : place_of(work.destination.address);
  const Place from = nothing ? Place::device : place_of(work.source.address);
  if (!stream.capture && host == Host::goes_on && from == Place::pageable && to != Place::pageable)
    work.staged = staged(work.source, work.extent);
  TaskPtr task = enqueue(stream, std::move(work), lock);
  const bool within_device = to == Place::device && from == Place::device;
  if (task && (to == Place::pageable || (host == Host::waits && !within_device))) schedule().wait_for(task, lock);
  return cudaSuccess;
}

SetWork checked_set(const char* call, Plane destination, Extent extent, std::uint32_t value, unsigned element) {
  if (span_of(destination, extent)) {
    require(extent.height == 1 || destination.pitch >= extent.width, cudaErrorInvalidValue,
            "the pitch is smaller than the row");
    device_object(destination.address, span_of(destination, extent), "destination");
  }
  return SetWork{call, destination, extent, value, element};
}

cudaError_t submit_set(CUstream_st& stream, SetWork work, Lock& lock) {
  enqueue(stream, std::move(work), lock);
  return cudaSuccess;
}

}  // namespace machine::runtime
