// Memory that a graph allocates: its address is fixed when the graph is made, but it is the program's only between the
// allocation and the free in a run of the graph. A graph that does not free it leaves that to the program.
#pragma once

#include <cstdint>

#include "memory/object.hpp"

namespace machine {

// From now on the object is a graph's, and as good as freed until `begin_life`.
void give_to_graph(const Object& object);
bool of_graph(std::uint64_t base);

void begin_life(const Object& object, std::uint64_t operation);
// False: it was not alive.
bool end_life(const Object& object, std::uint64_t operation);

// Why memory that is as good as freed may not be touched.
inline const char* why_not_alive(const Object& object) {
  return of_graph(object.base) ? "the memory is a graph's, which has freed it again or has yet to run"
                               : "the memory has been freed";
}

}  // namespace machine
