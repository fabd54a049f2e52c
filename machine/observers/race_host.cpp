// What a kernel writes to memory that the host reads while it runs: who sees a flag has no order with the data unless a
// fence or a release at system scope stands between.
#include "observers/race_global.hpp"

namespace machine::checks {

namespace {

constexpr std::size_t kExposedPages = 256;  // of more, a release is taken to publish all

}  // namespace

void GlobalRaces::expose(Page& page, std::uint64_t first, std::uint64_t count) {
  if (page.published) clear_bits(page.published->data(), first, count);
  if (page.exposed) return;
  page.exposed = true;
  exposed_.push_back(&page);
}

// The lanes release at system scope: their own writes, and those that they come after.
void GlobalRaces::publish(const BlockOrder& order, unsigned warp, Mask lanes) {
  const bool all = exposed_.size() > kExposedPages;
  const auto known = [&](const Entry& e, unsigned by_lane) {
    if (all) return true;
    const unsigned by = static_cast<unsigned>(std::countr_zero(e.warps));
    const bool own = e.block == order.block() && by == warp;
    if (own && (lanes >> by_lane & 1) != 0) return true;
    const unsigned lane = static_cast<unsigned>(std::countr_zero(lanes));
    return order.relation(warp, lane, e.block, async(e.touch) ? async_actor(by) : by, by_lane, e.stamp) ==
           Relation::ordered;
  };
  std::erase_if(exposed_, [&](Page* page) {
    if (!page->published) page->published = std::make_unique<PageBits>(PageBits{});
    Sheet& sheet = sheet_of(*page);
    bool left = false;
    for (std::uint32_t used = sheet.used; used != 0; used &= used - 1) {
      const unsigned at = static_cast<unsigned>(std::countr_zero(used));
      const auto look = [&](const Entry& e) {
        if (!writes(e.touch)) return;
        for (Bytes rest = e.bytes; rest != 0; rest &= rest - 1) {
          const unsigned byte = lowest(rest);
          if (test_bit(page->published->data(), at * kLineBytes + byte)) continue;
          if (known(e, e.lane(byte))) set_bits(page->published->data(), at * kLineBytes + byte, 1);
          else left = true;
        }
      };
      const Line& line = sheet.lines[at];
      if (line.first.bytes != 0) look(line.first);
      if (line.more)
        for (const Entry& e : *line.more) look(e);
    }
    page->exposed = left;
    return !left;
  });
}

}  // namespace machine::checks
