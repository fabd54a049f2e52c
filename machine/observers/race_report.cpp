// The words of a race: which rule it breaks, who the two are, and what would order them.
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
    case Touch::async_write: return "Async copy write";
  }
  return "Access";
}

// How far apart the two threads are, as a finding counts it.
std::uint8_t apart(const Party& a, const Party& b) {
  return a.block != b.block ? 3 : a.warp() != b.warp() ? 2 : a.lane != b.lane ? 1 : 0;
}

std::string_view of_whom(std::uint8_t apart) {
  constexpr std::string_view words[] = {" of the same thread", " of another lane of its warp", " of another warp",
                                        " of another block"};
  return words[apart];
}

// What would order the two, as advice.
std::string missing_edge(const BlockOrder& order, const Party& now, const Party& before, Stamp stamp, Relation relation,
                         Conflict conflict) {
  if (conflict == Conflict::one_sided)
    return "put a __threadfence() after the reader's atomic; the writer's fence alone orders nothing for it";
  if (conflict == Conflict::not_released)
    return "put a __threadfence() between this access and the atomic that gives the lock back";
  if (conflict == Conflict::volatile_data)
    return "use an atomic for the update, or let all threads take the same lock with a __threadfence() after taking it "
           "and before "
           "giving it back; volatile orders nothing between threads";
  if (conflict == Conflict::mixed_width)
    return "use one width for all atomics on these bytes; one is no atom to the other";
  if (conflict == Conflict::met)
    return "put a __syncwarp() between them; shuffles, votes, matches and reductions of a warp order no memory";
  if (relation == Relation::narrow)
    return "use __threadfence() and a device-scope atomic: the fence or atomic between them has block scope and the "
           "other access is of another block";
  if (now.pc == before.pc && now.writes() && !before.async())
    return "let one thread write it, or use an atomic; if the writes belong to different rounds of a loop, put a "
           "barrier that both "
           "threads reach between the rounds";
  if (now.block != before.block)
    return "order the two blocks: a __threadfence() and an atomic after the first access, an atomic that sees it "
           "and a __threadfence() before the second, or two launches";
  const bool one_warp = now.warp() == before.warp();
  if (before.touch == Touch::async_write)
    return "let the thread that issued the bulk copy wait for its bulk group (cp.async.bulk.wait_group, not .read), "
           "and put a barrier behind "
           "that where others use the data";
  if (before.async()) {
    const bool waited = before.touch != Touch::async_read &&
                        order.ordered(before.warp(), before.lane, before.actor, before.lane, stamp);
    if (!waited)
      return one_warp && now.lane == before.lane
                 ? "let the thread wait for its own cp.async (cp.async.wait_group) before it uses what was copied"
                 : "put a cp.async.wait_group by the copying thread, then a barrier, between the copy and this access";
    return one_warp ? "put a __syncwarp() or __syncthreads() after the wait for the copy"
                    : "put a barrier that both warps reach after the wait for the copy: __syncthreads() where the "
                      "whole block "
                      "comes by, a named barrier or mbarrier where roles part; not __syncwarp()";
  }
  if (one_warp) return "put a __syncwarp() that both lanes reach between them; lanes of a warp do not run in lockstep";
  return "put a barrier that both warps reach between them: __syncthreads() where the whole block comes by, a named "
         "barrier or "
         "mbarrier where roles part; not __syncwarp(), which orders one warp only";
}

std::string_view title(Conflict conflict) {
  switch (conflict) {
    case Conflict::race:
    case Conflict::same_value:
    case Conflict::not_released:
    case Conflict::mixed_width: return "Race on ";
    case Conflict::volatile_data: return "Race of volatile stores on ";
    case Conflict::one_sided: return "Missing acquire fence on ";
    case Conflict::met: return "Ordered by a warp collective only on ";
    case Conflict::block_order: return "Ordered inside a block only on ";
  }
  return "";
}

std::string what_is_wrong(const Party& now, const Party& before, Conflict conflict) {
  const std::string first(verb(before)), second(verb(now)), whose(of_whom(apart(now, before)));
  switch (conflict) {
    case Conflict::race: return second + " is not ordered after the earlier " + first + whose;
    case Conflict::same_value:
      return second + " is not ordered after the earlier " + first + whose + "; both write the same value";
    case Conflict::not_released:
      return "a lock orders the " + second + " and the " + first + whose + ", but after the " + first +
             " no fence comes before it is given back: whoever takes it next is not ordered behind that";
    case Conflict::volatile_data:
      return second + " is not ordered after the earlier " + first + whose +
             ", and their values differ: one of them can be lost";
    case Conflict::one_sided:
      return second + " comes after the earlier " + first + whose +
             " by an atomic that saw its release, but no fence follows that atomic";
    case Conflict::mixed_width:
      return second + " and the earlier " + first + whose +
             " are of different widths on the same bytes: neither is atomic to the other";
    case Conflict::block_order:
      return second + " comes after the earlier " + first + whose +
             " by a fence or an atomic of block scope, which orders nothing between blocks";
    case Conflict::met:
      return second + " comes after the earlier " + first + whose +
             " by a shuffle, vote, match or reduction, which orders no memory";
  }
  return "";
}

}  // namespace

void RaceReport::race(const BlockOrder& order, const Party& now, const Party& before, Stamp before_stamp,
                      Relation relation, Conflict conflict, Space space, std::uint64_t address, const Object* object) {
  enum : std::uint32_t { kRace = 1024 };
  const std::uint32_t rule = kRace + static_cast<std::uint32_t>(now.touch) * 8 +
                             static_cast<std::uint32_t>(before.touch) + static_cast<std::uint32_t>(conflict) * 64 +
                             (now.block != before.block ? 512 : 0) + (before.async() ? 2048 : 0);
  const std::uint32_t place = object ? object->id : static_cast<std::uint32_t>(space);
  if (!sink_.first_or_further({rule, now.pc, before.pc, place}, apart(now, before), event_, now.lane)) return;

  report::Finding f;
  f.check = "racecheck";
  f.family = "race";
  f.level = is_warning(conflict) ? report::Level::warning : report::Level::error;
  f.apart = apart(now, before);
  const std::string hazard = before.writes() && now.writes() ? "WAW" : now.writes() ? "WAR" : "RAW";
  f.kind = std::string(title(conflict)) + std::string(space_name(space)) + " memory, " + std::string(verb(before)) +
           " then " + std::string(verb(now)) + " (" + hazard + ")";
  f.message = what_is_wrong(now, before, conflict);
  f.remedy = missing_edge(order, now, before, before_stamp, relation, conflict);
  f.address = describe_address(address, object);
  if (object) f.subject = describe_object(*object);
  f.sites.push_back(site_of(launch_, now.block, now.warp(), now.lane, now.pc));
  f.sites.push_back(site_of(launch_, before.block, before.warp(), before.lane, before.pc));
  sink_.add(std::move(f));
}

void RaceReport::read_only(const Party& now, const Party* before, std::uint64_t address, const Object* object) {
  enum : std::uint32_t { kReadOnly = 8192 };
  const bool loads = !now.writes();
  const std::uint32_t place = object ? object->id : 0, other = before ? before->pc : ~0u;
  const std::uint8_t far = before ? apart(now, *before) : 2;
  if (!sink_.first_or_further({kReadOnly + (loads ? 1u : 0u), now.pc, other, place}, far, event_, now.lane)) return;
  report::Finding f;
  f.check = "racecheck";
  f.family = "read-only";
  f.level = loads ? report::Level::error : report::Level::warning;
  f.apart = far;
  f.kind = loads ? "Read-only load of data that the kernel has written"
                 : "Write to data that the kernel has loaded as read-only";
  f.message = loads ? "ld.global.nc reads through a cache that does not see what the kernel writes, and may give the "
                      "value from before"
                    : "what ld.global.nc loads must not change while the kernel runs, even after the load";
  f.remedy = "load it plainly: without __ldg(), and without const __restrict__ on a pointer to what the kernel writes";
  f.address = describe_address(address, object);
  if (object) f.subject = describe_object(*object);
  f.sites.push_back(site_of(launch_, now.block, now.warp(), now.lane, now.pc));
  if (before) f.sites.push_back(site_of(launch_, before->block, before->warp(), before->lane, before->pc));
  sink_.add(std::move(f));
}

}  // namespace machine::checks
