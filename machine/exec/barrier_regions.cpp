#include "exec/barrier_regions.hpp"

#include <algorithm>

namespace machine {

// Immediate post-dominators, as in Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001), on the
// reversed graph with the end of the thread for its root.
std::vector<std::uint32_t> FlowGraph::meeting_points() const {
  const std::uint32_t root = end();
  std::vector<std::vector<std::uint32_t>> before(root + 1);
  for (std::uint32_t b = 0; b < root; ++b) {
    for (const auto n : blocks[b].next) before[n].push_back(b);
    if (blocks[b].ends) before[root].push_back(b);
  }
  // Blocks from which the end can be reached, each behind those that it leads to.
  std::vector<std::uint32_t> order, place(root + 1, kNever);
  std::vector<std::pair<std::uint32_t, std::size_t>> stack{{root, 0}};
  std::vector<bool> seen(root + 1, false);
  seen[root] = true;
  while (!stack.empty()) {
    auto& [b, k] = stack.back();
    if (k < before[b].size()) {
      const auto p = before[b][k++];
      if (!seen[p]) seen[p] = true, stack.push_back({p, 0});
    } else {
      place[b] = static_cast<std::uint32_t>(order.size());
      order.push_back(b);
      stack.pop_back();
    }
  }
  std::vector<std::uint32_t> meeting(root + 1, kNever);
  meeting[root] = root;
  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (place[a] < place[b]) a = meeting[a];
      while (place[b] < place[a]) b = meeting[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = order.rbegin() + 1; at != order.rend(); ++at) {
      std::uint32_t found = blocks[*at].ends ? root : kNever;
      for (const auto n : blocks[*at].next)
        if (meeting[n] != kNever) found = found == kNever ? n : common(found, n);
      if (meeting[*at] != found) meeting[*at] = found, changed = true;
    }
  }
  meeting.pop_back();
  return meeting;
}

std::vector<std::uint32_t> FlowGraph::barriers_between(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> found;
  std::vector<bool> seen(blocks.size(), false);
  std::vector<std::uint32_t> waiting;
  const auto visit = [&](std::uint32_t b) {
    if (b != to && !seen[b]) seen[b] = true, waiting.push_back(b);
  };
  visit(from);
  while (!waiting.empty()) {
    const Block& block = blocks[waiting.back()];
    waiting.pop_back();
    found.insert(found.end(), block.barriers.begin(), block.barriers.end());
    for (const auto n : block.next) visit(n);
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool FlowGraph::meet_in_life(std::uint32_t meeting) const {
  return meeting != kNever && meeting != end() && !blocks[meeting].only_ends;
}

BarrierRegion region_of(const FlowGraph& graph, std::uint32_t meeting, std::uint32_t taken, std::uint32_t next) {
  if (!graph.meet_in_life(meeting)) return {};
  auto if_taken = graph.barriers_between(taken, meeting), if_not = graph.barriers_between(next, meeting);
  // Where both sides have barriers, threads wait on either side, and what they miss shows when they meet.
  if (if_taken.empty() == if_not.empty()) return {};
  return if_taken.empty() ? BarrierRegion{std::move(if_not), true, {}} : BarrierRegion{std::move(if_taken), false, {}};
}

BarrierRegion region_of(const FlowGraph& graph, std::uint32_t meeting, const std::vector<std::uint32_t>& targets) {
  BarrierRegion region;
  if (!graph.meet_in_life(meeting)) return region;
  for (const auto target : targets) {
    const auto found = graph.barriers_between(target, meeting);
    region.barriers.insert(region.barriers.end(), found.begin(), found.end());
    region.past_at.push_back(found.empty());
  }
  std::sort(region.barriers.begin(), region.barriers.end());
  if (std::find(region.past_at.begin(), region.past_at.end(), true) == region.past_at.end()) return {};
  return region;
}

}  // namespace machine
