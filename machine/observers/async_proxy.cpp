#include "observers/async_proxy.hpp"

#include <bit>

namespace machine::checks {

namespace {

constexpr std::uint32_t kNobody = 0;

// Sources of completions of a thread's bulk groups: their reads, and the next one all of them.
std::uint32_t reads_of(std::uint32_t thread) { return 2 * thread; }

}  // namespace

void AsyncProxy::begin(const BlockInfo& block) {
  base_ = block.shared;
  first_ += static_cast<std::uint32_t>(copies_.size());
  copies_.clear();
  closed_.clear();
  if (const std::size_t cells = block.shared_extent / 4 + 1; cells_.size() < cells) cells_.resize(cells);
}

template <class F>
void AsyncProxy::each_cell(std::uint64_t address, std::uint64_t bytes, F&& f) {
  for (std::uint64_t c = (address - base_) / 4; c <= (address - base_ + bytes - 1) / 4; ++c)
    f(cells_[c], base_ + c * 4);
}

Party AsyncProxy::party(const BlockOrder& order, const Copy& copy, bool wrote) const {
  return {order.block(), async_actor(copy.warp), copy.lane, copy.pc, wrote ? Touch::async_write : Touch::async_read};
}

void AsyncProxy::judge(const BlockOrder& order, const SharedRaces& shared, RaceReport& report, const Party& now,
                       std::uint32_t number, bool wrote, std::uint64_t address) const {
  const Copy& copy = copy_of(number);
  report.bulk(now, party(order, copy, wrote), copy.waits_for_group ? BulkOrder::group : BulkOrder::mbarrier,
              address - base_, shared.object_at(address - base_));
}

Stamp AsyncProxy::issue(BlockOrder& order, SharedRaces& shared, RaceReport& report, const BulkCopy& c) {
  const std::uint32_t number = first_ + static_cast<std::uint32_t>(copies_.size());
  Copy& copy = copies_.emplace_back();
  copy.pc = c.pc;
  copy.warp = static_cast<std::uint8_t>(c.warp), copy.lane = static_cast<std::uint8_t>(c.lane);
  copy.reduces = c.reduces;
  copy.waits_for_group = c.mbarrier == 0;
  copy.done.source = c.mbarrier != 0 ? order.mbarrier_source(c.mbarrier) : reads_of(c.warp * kWarp + c.lane);
  if (c.mbarrier != 0) copy.known = order.knowledge(c.warp, c.lane);
  report.next_access();
  const auto side = [&](std::uint64_t address, std::uint64_t bytes, bool writes) {
    const Party now = party(order, copy, writes);
    shared.each_open(order, c.warp, address, bytes, writes, [&](const SharedRaces::Earlier& e) {
      const bool wrote = checks::writes(e.touch);
      for (Mask by = e.lanes; by != 0; by &= by - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(by));
        const Party before{order.block(), e.actor, lane, e.pc, e.touch};
        const Object* object = shared.object_at(e.address - base_);
        if (!order.ordered(c.warp, c.lane, e.actor, lane, e.stamp))
          return report.bulk(now, before, BulkOrder::generic, e.address - base_, object);
        if (wrote && !c.registers && !order.proxied(c.warp, c.lane, e.actor, lane, e.stamp))
          return report.bulk(now, before, BulkOrder::proxy, e.address - base_, object);
      }
    });
    std::uint32_t fine_writer = kNobody, fine_reader = kNobody;  // found complete
    each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) {
      if (cell.writer >= first_ && cell.writer != fine_writer && cell.writer != number) {
        if (!complete(order, c.warp, c.lane, copy_of(cell.writer)) && !(c.reduces && copy_of(cell.writer).reduces))
          judge(order, shared, report, now, cell.writer, true, at);
        fine_writer = cell.writer;
      }
      if (writes && cell.reader >= first_ && cell.reader != fine_reader && cell.reader != number) {
        if (!complete(order, c.warp, c.lane, copy_of(cell.reader)))
          judge(order, shared, report, now, cell.reader, false, at);
        fine_reader = cell.reader;
      }
      (writes ? cell.writer : cell.reader) = number;
    });
  };
  if (c.reads_shared()) c.each_source([&](std::uint64_t address, std::uint64_t bytes) { side(address, bytes, false); });
  if (c.writes_shared())
    c.each_destination([&](std::uint64_t address, std::uint64_t bytes) { side(address, bytes, true); });
  return order.next_copy(c.warp);
}

void AsyncProxy::land(BlockOrder& order, const BulkCopy& c, std::uint64_t phase) {
  if (c.id >= copies_.size()) return;
  Copy& copy = copies_[c.id];
  if (c.mbarrier == 0) {
    copy.done.upto = c.group;
    return;
  }
  copy.done = {order.mbarrier_source(c.mbarrier), static_cast<Stamp>(phase)};
  order.bulk_completed(c.mbarrier, phase, c.warp, c.lane, copy.known);
  copy.known = {};
}

void AsyncProxy::commit(BlockOrder& order, const WarpPoint& point) {
  for (Mask lanes = point.active; lanes != 0; lanes &= lanes - 1) {
    Closed& closed = closed_[point.warp * kWarp + static_cast<std::uint32_t>(std::countr_zero(lanes))];
    ++closed.groups;
    closed.upto.push_back(order.async_stamp(point.warp));
  }
}

void AsyncProxy::wait(BlockOrder& order, const WarpPoint& point, std::uint32_t groups_left, bool read) {
  for (Mask lanes = point.active; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const std::uint32_t thread = point.warp * kWarp + lane;
    const auto at = closed_.find(thread);
    if (at == closed_.end() || at->second.groups <= groups_left) continue;
    const std::uint32_t done = at->second.groups - groups_left;
    order.bulk_waited(point.warp, lane, point.alive, {reads_of(thread), done});
    if (!read) order.bulk_written(point.warp, lane, point.alive, at->second.upto[done - 1]);
  }
}

void AsyncProxy::access(const BlockOrder& order, const SharedRaces& shared, RaceReport& report, const WarpPoint& point,
                        const Access& a) {
  const Touch touch = touch_of(a);
  const bool writing = writes(touch);
  std::uint32_t fine = kNobody;  // complete for the whole warp
  const auto known_to_all = [&](std::uint32_t number) {
    const Copy& copy = copy_of(number);
    return copy.done.upto != kOpen && order.warp(point.warp).common.now.own.complete(copy.done);
  };
  report.next_access();
  const auto lane_access = [&](unsigned lane, std::uint64_t address, std::uint64_t bytes) {
    each_cell(address, bytes, [&](Cell& cell, std::uint64_t at) {
      for (const bool wrote : {true, false}) {
        const std::uint32_t number = wrote ? cell.writer : cell.reader;
        if (number < first_ || number == fine || (!wrote && !writing)) continue;
        if (known_to_all(number)) {
          fine = number;
          continue;
        }
        if (complete(order, point.warp, lane, copy_of(number))) continue;
        judge(order, shared, report, {order.block(), point.warp, lane, point.pc, touch}, number, wrote, at);
      }
    });
  };
  if (a.shape == Shape::uniform && !writing) return lane_access(a.first_lane(), a.address[a.first_lane()], a.width);
  for (Mask lanes = a.lanes; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    lane_access(lane, a.address[lane], a.width);
  }
}

}  // namespace machine::checks
