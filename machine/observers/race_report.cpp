#include "observers/race_report.hpp"

#include "memory/address_space.hpp"

namespace machine::checks {

namespace {

std::string_view verb(const Party& p) {
  if (p.async()) return p.touch == Touch::async_read ? "Async copy read" : "Async copy write";
  switch (p.touch) {
    case Touch::read: return "Read";
    case Touch::write: return "Write";
    case Touch::strong_read: return "Strong read";
    case Touch::strong_write: return "Strong write";
    case Touch::atomic: return "Atomic";
    case Touch::async_read: return "Async copy read";
  }
  return "Access";
}

// What would order the two, as advice.
std::string missing_edge(const BlockOrder& order, const Party& now, const Party& before, Stamp stamp, Relation relation) {
  if (relation == Relation::one_sided)
    return "put a __threadfence() after the reader's atomic; the writer's fence alone orders nothing for it";
  if (relation == Relation::narrow)
    return "use __threadfence() and a device-scope atomic: the fence or atomic between them has block scope and the "
           "other access is of another block";
  if (now.block != before.block)
    return "order the two blocks: a __threadfence() and an atomic after the first access, an atomic that sees it "
           "and a __threadfence() before the second, or two launches";
  if (before.async()) {
    const bool waited = before.touch != Touch::async_read && order.ordered(before.warp(), before.lane, before.actor,
                                                                           before.lane, stamp);
    if (!waited)
      return now.actor == before.warp() && now.lane == before.lane
                 ? "let the thread wait for its own cp.async (cp.async.wait_group) before it uses what was copied"
                 : "put a cp.async.wait_group by the copying thread, then a barrier, between the copy and this access";
    return now.warp() == before.warp() ? "put a __syncwarp() or __syncthreads() after the wait for the copy"
                                       : "put a __syncthreads() after the wait for the copy";
  }
  if (now.warp() == before.warp())
    return "put a __syncwarp() that names both lanes between them; lanes of a warp do not run in lockstep";
  return "put a __syncthreads(), or another barrier that both warps join, between them";
}

}  // namespace

void RaceReport::race(const BlockOrder& order, const Party& now, const Party& before, Stamp before_stamp,
                      Relation relation, Space space, std::uint64_t address, const Object* object, bool same_value) {
  enum : std::uint32_t { kRace = 300 };
  const bool warning = same_value || relation == Relation::one_sided;
  const std::uint32_t rule = kRace + static_cast<std::uint32_t>(now.touch) * 8 + static_cast<std::uint32_t>(before.touch) +
                             (warning ? 64 : 0) + (now.block != before.block ? 128 : 0) + (before.async() ? 256 : 0);
  if (!sink_.first({rule, now.pc, before.pc, object ? object->id : static_cast<std::uint32_t>(space)})) return;

  report::Finding f;
  f.check = "racecheck";
  f.level = warning ? report::Level::warning : report::Level::error;
  const std::string_view first = verb(before), second = verb(now);
  const bool both_write = (writes(before.touch) || before.touch == Touch::write) && writes(now.touch);
  const std::string hazard = both_write ? "WAW" : writes(now.touch) ? "WAR" : "RAW";
  f.kind = std::string("Race on ") + std::string(space_name(space)) + " memory, " + std::string(first) + " then " +
           std::string(second) + " (" + hazard + ")";
  f.message = std::string(second) + " is not ordered after the earlier " + std::string(first) +
              (now.block != before.block ? " of another block" : now.warp() == before.warp() ? " of another lane of its warp"
                                                                                          : " of another warp") +
              (same_value ? "; both write the same value" : "");
  f.remedy = missing_edge(order, now, before, before_stamp, relation);
  f.address = describe_address(address, object);
  f.sites.push_back(site_of(launch_, now.block, now.warp(), now.lane, now.pc));
  f.sites.push_back(site_of(launch_, before.block, before.warp(), before.lane, before.pc));
  sink_.add(std::move(f));
}

}  // namespace machine::checks
