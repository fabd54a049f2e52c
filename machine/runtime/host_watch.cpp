#include "runtime/host_watch.hpp"

#include <cstring>
#include <map>
#include <vector>

#include "runtime/options.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

struct Watched {
  std::uint64_t base;
  std::vector<std::byte> seen;

  const std::byte* now() const { return reinterpret_cast<const std::byte*>(base); }
  bool changed() const { return std::memcmp(now(), seen.data(), seen.size()) != 0; }
};

std::map<std::uint64_t, Watched>& watched() {
  static auto* const only = new std::map<std::uint64_t, Watched>;
  return *only;
}

std::uint64_t& watched_bytes() {
  static std::uint64_t bytes = 0;
  return bytes;
}

// Calls f(address, bytes) for what changed since the last look, and looks.
template <class F>
void each_change(Watched& memory, F&& f) {
  const std::byte* now = memory.now();
  const std::size_t size = memory.seen.size();
  for (std::size_t at = 0; at < size;) {
    if (now[at] == memory.seen[at]) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < size && now[end] != memory.seen[end]) ++end;
    f(memory.base + at, std::uint64_t{end - at});
    at = end;
  }
  std::memcpy(memory.seen.data(), now, size);
}

}  // namespace

void watch_host_memory(const Object& object) {
  if (!options().has_tool("racecheck") || object.size > kWatchedBytes - watched_bytes()) return;
  Watched memory{object.base, std::vector<std::byte>(object.size)};
  std::memcpy(memory.seen.data(), memory.now(), object.size);
  watched_bytes() += object.size;
  watched()[object.base] = std::move(memory);
}

void forget_host_memory(std::uint64_t base) {
  auto found = watched().find(base);
  if (found == watched().end()) return;
  watched_bytes() -= found->second.seen.size();
  watched().erase(found);
}

void look_at_host_memory() {
  for (auto& [base, memory] : watched())
    if (memory.changed()) {
      const std::uint64_t operation = host_access_operation();
      each_change(memory, [&](std::uint64_t address, std::uint64_t bytes) {
        notify([=](Observer& checks) { checks.host_access(operation, AccessKind::store, address, bytes); });
      });
    }
}

void look_at_host_memory(std::uint64_t operation, Observer& checks) {
  for (auto& [base, memory] : watched())
    if (memory.changed())
      each_change(memory, [&](std::uint64_t address, std::uint64_t bytes) {
        checks.host_access(operation, AccessKind::store, address, bytes);
      });
}

void accept_host_memory() {
  for (auto& [base, memory] : watched())
    if (memory.changed()) std::memcpy(memory.seen.data(), memory.now(), memory.seen.size());
}

}  // namespace machine::runtime
