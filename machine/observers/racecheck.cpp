#include "observers/racecheck.hpp"

#include <bit>

#include "exec/machine.hpp"
#include "memory/pool.hpp"
#include "observers/copy_parts.hpp"

namespace machine::checks {

namespace {

constexpr std::size_t kKeptStates = 32;
constexpr Stamp kLastStamp = 1u << 31;

// Whether all that the access can touch is marked as read: the usual case of a table after its first loads.
bool is_known(const PageMap& pages, const Extent& extent) {
  const Page* page = pages.find(extent.low >> kPageShift);
  const std::uint64_t first = extent.low & (kPageBytes - 1);
  if (!page || first + extent.bytes() > kPageBytes) return false;
  bool all = true;
  for_each_word(first, extent.bytes(), [&](std::uint64_t w, std::uint64_t mask) {
    all = all && (mask & ~page->marks.word(Deed::read, static_cast<unsigned>(w))) == 0;
  });
  return all;
}

bool is_strong(const Access& a) {
  return a.order != Order::weak || a.kind == AccessKind::atomic || a.kind == AccessKind::reduction;
}

}  // namespace

Racecheck::Racecheck(const ChunkContext& context)
    : launch_(context.launch),
      checks_(context.options.racecheck),
      waits_(context.waits),
      pages_(context.pages),
      report_(context.launch, context.sink),
      global_races_(context.launch, report_, context.pages, checks_) {}

void Racecheck::chunk_end() {
  global_races_.finish();
  // A grid with many blocks at a time does not keep the shadows of all of them.
  for (std::size_t i = kKeptStates; i < states_.size(); ++i) *states_[i] = {};
  Pool<BlockState>::instance().release(states_);
  states_.clear();
}

void Racecheck::block_begin(const BlockInfo& block) {
  if (states_.size() <= block.slot) Pool<BlockState>::instance().acquire(states_, block.slot + 1 - states_.size());
  BlockState& state = *states_[block.slot];
  block.state = &state;
  state.waited = 0;
  state.held.clear();
  state.bulk = false;
  state.initialised.clear();
  state.newest_initialised = 0;
  // Stamps go on from block to block; long before they run out, the state begins anew.
  if (state.order.highest() >= kLastStamp) state = {};
  state.order.begin(static_cast<std::uint32_t>(block.index), launch_.warps_per_block, block.threads);
  if (checks_) state.shared.begin(block, launch_.kernel->shared(), launch_.dynamic_shared);
}

void Racecheck::block_end(const BlockInfo& block) {
  if (!checks_) return;
  if (block.shared_extent != 0) strong_.forget(block.shared, block.shared_extent);
  global_races_.block_end();
}

void Racecheck::global(const WarpPoint& point, const Access& a, const Extent&) {
  BlockState& state = state_of(point);
  global_races_.access(state.order, state.held, point, a);
  if (waits_) {
    if (state.is_early(point)) GlobalRaces::mark(a, point, state.order.block(), early_);
    if (a.cache == CacheOp::nc) GlobalRaces::mark(a, point, state.order.block(), read_only_);
  }
  if (checks_ && is_strong(a)) strong_.access(state.order, point, a);
}

// No write to constant memory may fall into the launch, so it is enough to know what was loaded at all, and where
// first.
void Racecheck::constant(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (!checks_) return;
  const auto note = [&](PageMap& pages) {
    if (!is_known(pages, extent)) GlobalRaces::mark(a, point, static_cast<std::uint32_t>(point.block->index), pages);
  };
  note(constants_);
  if (!waits_) return;
  note(read_only_);
  if (state_of(point).is_early(point)) note(early_);
}

void Racecheck::shared(const WarpPoint& point, const Access& a, const Extent& extent) {
  if (!checks_) return;
  BlockState& state = state_of(point);
  state.shared.access(state.order, report_, point, a, extent);
  if (state.bulk) [[unlikely]]
    state.proxy->access(state.order, state.shared, report_, point, a);
  if (is_strong(a)) strong_.access(state.order, point, a);
}

void Racecheck::barrier_arrive(const WarpPoint& point, const BarrierArrival& arrival) {
  if (checks_ && arrival.use == BarrierUse::arrive)
    state_of(point).order.arrive(point.warp, arrival.id, point.active, point.alive);
}

void Racecheck::barrier_release(const BlockInfo& block, const BarrierRelease& release) {
  if (checks_) static_cast<BlockState*>(block.state)->order.release(release);
}

void Racecheck::collective(const WarpPoint& point, Collective kind, Mask mask) {
  if (!checks_) return;
  BlockOrder& order = state_of(point).order;
  switch (kind) {
    case Collective::syncwarp: return order.syncwarp(point.warp, mask, point.alive);
    case Collective::shuffle:
    case Collective::vote:
    case Collective::match:
    case Collective::reduce:
    case Collective::elect: return order.meet(point.warp, mask, point.alive);
    case Collective::mma:
    case Collective::matrix_load:
    case Collective::matrix_store:
    case Collective::matrix_move: return;
  }
}

void Racecheck::fence(const WarpPoint& point, Scope scope) {
  if (!checks_) return;
  BlockState& state = state_of(point);
  global_races_.fence(state.held, state.order, point.warp, point.active, scope);
  state.order.fence(point.warp, point.active, point.alive, scope);
  global_races_.released(state.order, point.warp, point.active, scope);
}

void Racecheck::proxy_fence(const WarpPoint& point) {
  if (checks_) state_of(point).order.proxy_fence(point.warp, point.active, point.alive);
}

void Racecheck::threads_exit(const WarpPoint& point) { state_of(point).order.exit(point.warp, point.active); }

void Racecheck::dependency_wait(const WarpPoint& point) { state_of(point).waited |= 1u << point.warp; }

void Racecheck::dependency_launch(const WarpPoint& point) {
  if (state_of(point).is_early(point)) hurries_ = true;
}

// Freeing memory is to the others like writing all of it, each byte to another value.
void Racecheck::heap_freed(const WarpPoint& point, const Object& object) {
  constexpr std::uint64_t kMost = 64 << 10;  // of a large object, its beginning
  Access a;
  a.kind = AccessKind::store;
  a.shape = Shape::uniform;
  a.lanes = a.breaks = point.active;
  std::array<std::uint64_t, kWarp> address;
  std::array<std::byte, 8> other;
  a.address = address.data();
  a.data[0] = {other.data(), 0};
  BlockState& state = state_of(point);
  for (std::uint64_t at = 0; at < std::min(object.size, kMost); at += a.width) {
    a.width = static_cast<std::uint32_t>(std::bit_floor(std::min<std::uint64_t>(object.size - at, other.size())));
    address.fill(object.base + at);
    for (std::uint32_t b = 0; b < a.width; ++b) other[b] = ~reinterpret_cast<const std::byte*>(object.base + at)[b];
    global_races_.access(state.order, state.held, point, a);
  }
}

}  // namespace machine::checks
