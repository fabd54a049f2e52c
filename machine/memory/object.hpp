// A memory object: one thing of known bounds that a program may touch, and nothing beyond it.
#pragma once

#include <cstdint>
#include <string>

namespace machine {

enum class ObjectKind : std::uint8_t {
  global,           // cudaMalloc and its relatives
  heap,             // malloc and new of kernels
  managed,          // cudaMallocManaged: host and device use the same address
  pinned,           // cudaMallocHost / cudaHostAlloc: host memory that a kernel may use by the same address
  registered,       // cudaHostRegister: ordinary host memory, lies outside the device arena
  device_symbol,    // __device__ variable of a module
  constant_symbol,  // __constant__ variable of a module
  param,            // the parameter block of one launch
  shared,           // one static __shared__ variable (exists once a resident block)
  dynamic_shared,   // the extern __shared__ array of a launch
  local,            // a local array (one a thread)
};

// Memory that holds nothing until the program writes it, and whose bytes are known to be written or not.
constexpr bool begins_unwritten(ObjectKind kind) { return kind == ObjectKind::global || kind == ObjectKind::heap; }

enum class ObjectState : std::uint8_t { live, freed };

// `base` is an address that host and device share, except for shared and local objects, where it is the
// offset inside the block's shared space or the thread's local space.
struct Object {
  std::uint32_t id = 0;  // unique in one AddressSpace, never used again; 0 for shared and local objects
  ObjectKind kind = ObjectKind::global;
  ObjectState state = ObjectState::live;
  std::uint64_t base = 0;
  std::uint64_t size = 0;  // exactly what was asked for; the padding after it belongs to nobody
  std::uint32_t align = 1;
  std::string name;             // symbol or variable name; "" for an allocation, which the caller may name later
  std::uint64_t allocated = 0;  // operation (see observer.hpp) that made it; stream-ordered allocations have their own
  std::uint64_t freed = 0;      // operation that freed it; 0 while live

  bool contains(std::uint64_t address, std::uint64_t bytes = 1) const {
    return address >= base && bytes <= size && address - base <= size - bytes;
  }
};

}  // namespace machine
