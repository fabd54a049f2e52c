#include "memory/graph_memory.hpp"

#include <mutex>
#include <set>

namespace machine {

namespace {

struct Owned {
  std::mutex lock;
  std::set<std::uint64_t> bases;
};
Owned& owned() {
  static auto* const only = new Owned;  // outlives every static destructor of the program
  return *only;
}

// Objects are the address space's own; it hands them out as const, and none is.
Object& own(const Object& object) { return const_cast<Object&>(object); }

}  // namespace

void give_to_graph(const Object& object) {
  std::lock_guard guard(owned().lock);
  owned().bases.insert(object.base);
  own(object).state = ObjectState::freed;
}

bool of_graph(std::uint64_t base) {
  std::lock_guard guard(owned().lock);
  return owned().bases.count(base) != 0;
}

void begin_life(const Object& object, std::uint64_t operation) {
  own(object).allocated = operation;
  own(object).state = ObjectState::live;
  own(object).freed = 0;
}

bool end_life(const Object& object, std::uint64_t operation) {
  if (object.state == ObjectState::freed) return false;
  own(object).state = ObjectState::freed;
  own(object).freed = operation;
  return true;
}

}  // namespace machine
