// Races of bulk copies, in the words of the async proxy.
#include "observers/race_report.hpp"

namespace machine::checks {

namespace {

std::string words(const Party& p) {
  if (p.async()) return p.touch == Touch::async_read ? "Bulk copy read" : "Bulk copy write";
  switch (p.touch) {
    case Touch::write: return "Write";
    case Touch::strong_read: return "Strong read";
    case Touch::strong_write: return "Strong write";
    case Touch::atomic: return "Atomic";
    default: return "Read";
  }
}

const char* remedy_of(BulkOrder missing, const Party& now) {
  switch (missing) {
    case BulkOrder::mbarrier:
      return now.async()
                 ? "let the thread that issues the second copy wait on the mbarrier of the first, for its phase"
                 : "wait on the mbarrier that the copy completes on, for the phase that its bytes are expected in";
    case BulkOrder::group:
      return "let the thread that issued the copy close its bulk group and wait for it "
             "(cp.async.bulk.wait_group.read), then put a barrier "
             "before this access";
    case BulkOrder::generic:
      return now.touch == Touch::async_write
                 ? "let every thread arrive on an mbarrier, or reach a barrier, after its last access, and the thread "
                   "that issues the copy wait for it"
                 : "put a barrier between the write and the issue of the copy, with a fence.proxy.async before it";
    case BulkOrder::proxy:
      return "put a fence.proxy.async (cuda::ptx::fence_proxy_async) behind the write, by the threads that wrote, "
             "before the barrier that leads to "
             "the copy; a barrier alone does not reach the async proxy";
  }
  return "";
}

}  // namespace

void RaceReport::bulk(const Party& now, const Party& before, BulkOrder missing, std::uint64_t offset,
                      const Object* object) {
  enum : std::uint32_t { kBulk = 16384 };
  const std::uint32_t rule = kBulk + static_cast<std::uint32_t>(now.touch) * 8 +
                             static_cast<std::uint32_t>(before.touch) + static_cast<std::uint32_t>(missing) * 64;
  const std::uint8_t far = now.warp() != before.warp() ? 2 : now.lane != before.lane ? 1 : 0;
  if (!sink_.first_or_further({rule, now.pc, before.pc, object ? object->id : 0}, far, event_, now.lane)) return;
  const std::string hazard = before.writes() && now.writes() ? "WAW" : now.writes() ? "WAR" : "RAW";
  report::Finding f;
  f.check = "racecheck";
  f.family = "race";
  f.level = report::Level::error;
  f.apart = far;
  f.kind = std::string(missing == BulkOrder::proxy ? "Missing proxy fence" : "Race") + " on __shared__ memory, " +
           words(before) + " then " + words(now) + " (" + hazard + ")";
  f.message = missing == BulkOrder::proxy ? "no fence.proxy.async lies between the " + words(before) + " and the " +
                                                words(now) + ", which sees memory through the async proxy"
              : before.async() ? words(now) + " is not ordered after the completion of the earlier " + words(before)
                               : words(now) + " is not ordered after the earlier " + words(before);
  f.remedy = remedy_of(missing, now);
  f.address = describe_address(offset, object);
  if (object) f.subject = describe_object(*object);
  f.sites.push_back(site_of(launch_, now.block, now.warp(), now.lane, now.pc));
  f.sites.push_back(site_of(launch_, before.block, before.warp(), before.lane, before.pc));
  sink_.add(std::move(f));
}

}  // namespace machine::checks
