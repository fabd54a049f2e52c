// Device memory is out of the host's reach, as it is on a GPU: a program that dereferences a device pointer dies.
//
// The machine keeps device memory in the program's own address space, so without this such a program would seem to
// work. Protection keys (x86 PKU) make allocations unreachable for every thread but the one that runs stream work.
// Without them (an older processor) the guard does nothing.
#pragma once

#include <cstdint>

#include "memory/object.hpp"

namespace machine::runtime {

// Puts an allocation out of the host's reach, and back before its addresses are used for anything else.
void guard_from_host(const Object& object);
void unguard(const Object& object);

// The same for pages of memory that host and device share, [begin, end). False: nothing was done.
bool guard_pages(std::uint64_t begin, std::uint64_t end);
bool unguard_pages(std::uint64_t begin, std::uint64_t end);

// While it lives, this thread and the threads that it starts reach device memory.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  std::uint32_t before_ = 0;
};

// True when the address lies in guarded memory, for the handler of a fault.
bool is_guarded(std::uint64_t address);

}  // namespace machine::runtime
