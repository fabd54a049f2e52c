// A stage on which a test plays a kernel: it tells the checks what an executor would, one warp access at a time.
#pragma once

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "event_test.hpp"
#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/checks.hpp"
#include "report/report.hpp"

namespace stage {

using namespace machine;

// A kernel of one PTX statement a line; instruction i lies in line i + 1 of "play.cu".
class PlayKernel final : public Kernel {
 public:
  explicit PlayKernel(std::vector<std::string> text) : text_(std::move(text)) {}
  const std::string& name() const override { return name_; }
  std::span<const Param> params() const override { return {}; }
  const KernelAttributes& attributes() const override { return attributes_; }
  const SharedLayout& shared() const override { return layout; }
  Location location(std::uint32_t pc) const override {
    Location l;
    if (pc >= text_.size()) return l;
    l.lines.push_back({"", "play.cu", pc + 1});
    l.ptx_line = pc + 1;
    l.text = text_[pc];
    return l;
  }
  void prepare() const override {}

  SharedLayout layout;

 private:
  std::string name_ = "play";
  std::vector<std::string> text_;
  KernelAttributes attributes_;
};

// Shape and breaks of an access whose other parts are set, the slow and sure way.
inline void lay_out(Access& a) {
  Mask moved = 0;
  unsigned before = 32;
  a.breaks = 0;
  for (unsigned l = 0; l < 32; ++l) {
    if ((a.lanes >> l & 1) == 0) continue;
    if (before == 32 || a.address[l] != a.address[before] + a.width) a.breaks |= Mask{1} << l;
    if (a.address[l] != a.address[a.first_lane()]) moved |= Mask{1} << l;
    before = l;
  }
  a.shape = moved == 0 ? Shape::uniform : a.breaks == 1 && a.lanes == kFullMask ? Shape::contiguous : Shape::scattered;
}

// A cp.async of 16 bytes a lane. The arrays must outlive it.
inline AsyncCopy copy_of(std::uint32_t pc, Mask lanes, const std::array<std::uint64_t, 32>& from,
                         const std::array<std::uint64_t, 32>& to) {
  static const std::array<std::uint32_t, 32> bytes = [] {
    std::array<std::uint32_t, 32> all{};
    all.fill(16);
    return all;
  }();
  AsyncCopy c;
  c.pc = pc, c.lanes = c.whole = lanes, c.bytes = 16;
  c.source_bytes = bytes.data();
  c.source.kind = AccessKind::async_read, c.source.space = Space::global, c.source.address = from.data();
  c.destination.kind = AccessKind::async_write, c.destination.space = Space::shared, c.destination.address = to.data();
  for (Access* side : {&c.source, &c.destination}) {
    side->width = 16, side->lanes = lanes;
    lay_out(*side);
  }
  return c;
}

class Stage {
 public:
  Stage(std::vector<std::string> tools, std::vector<std::string> text, unsigned grid, unsigned threads,
        std::uint32_t shared_bytes = 0, bool communicates = false, unsigned chunks = 1)
      : report({}), kernel(std::move(text)) {
    checks::CheckOptions options = checks::parse_options(tools, {});
    all = checks::make_checks(options, report);
    if (shared_bytes != 0) {
      Object tile;
      tile.kind = ObjectKind::shared;
      tile.name = "tile";
      tile.size = shared_bytes;
      kernel.layout.variables.push_back(tile);
      kernel.layout.extent = kernel.layout.declared = shared_bytes;
      kernel.layout.dynamic_base = (shared_bytes + 1023) / 1024 * 1024;
    }
    launch.kernel = &kernel;
    launch.grid = {grid, 1, 1};
    launch.block = {threads, 1, 1};
    launch.warps_per_block = (threads + 31) / 32;
    launch.resident_limit = grid;
    launch.communicates = communicates;
    launch.chunks = chunks;
  }

  void begin(std::uint64_t operation = 1) {
    launch.operation = operation;
    Operation o;
    o.id = operation;
    o.stream = operation;
    o.name = "play";
    o.after = after;
    told = o;
    all->operation_begin(o);
    all->launch_begin(launch);
    forks.clear();
    blocks.clear();
    for (std::uint64_t c = 0; c < launch.chunks; ++c) forks.push_back(all->fork(c));
    const unsigned count = launch.grid.x;
    blocks.resize(count);
    for (unsigned b = 0; b < count; ++b) {
      BlockInfo& block = blocks[b];
      block.launch = &launch;
      block.index = b;
      block.id = {b, 0, 0};
      block.slot = b;
      block.threads = launch.block.x;
      block.shared_extent = kernel.layout.extent;
      if (block.shared_extent != 0)
        block.shared = reinterpret_cast<std::uint64_t>(AddressSpace::instance().on_chip(block.shared_extent));
      fork(b).block_begin(block);
    }
  }
  // The next block of a chunk whose blocks run one after another.
  void next_block(unsigned block, std::uint64_t index) {
    fork(block).block_end(blocks[block]);
    blocks[block].index = index;
    fork(block).block_begin(blocks[block]);
  }
  bool end() {
    for (auto& block : blocks) fork(block.index).block_end(block);
    for (auto& chunk : forks) chunk->chunk_end();
    const bool fine = all->join(forks);
    if (fine) all->launch_end(launch), all->operation_end(told);
    forks.clear();
    return fine;
  }

  Observer& fork(std::uint64_t block) { return *forks[block * launch.chunks / launch.grid.x]; }
  WarpPoint at(unsigned block, unsigned warp, std::uint32_t pc, Mask active = kFullMask) const {
    const std::uint32_t rest = launch.block.x - warp * 32;
    return {&blocks[block], warp, pc, active, rest >= 32 ? kFullMask : (Mask{1} << rest) - 1};
  }

  // Lane l at base + l * stride, `width` bytes; value (if any) is what each lane stores. What a load finds undefined
  // lies in `undefined` afterwards; with `carries`, a store writes that again.
  Mask touch(unsigned block, unsigned warp, std::uint32_t pc, AccessKind kind, Space space, std::uint64_t base,
             std::int64_t stride, std::uint32_t width, Mask lanes = kFullMask, Order order = Order::weak,
             Scope scope = Scope::none, const std::uint64_t* value = nullptr) {
    std::array<std::uint64_t, 32> address{};
    for (unsigned l = 0; l < 32; ++l) address[l] = base + static_cast<std::uint64_t>(stride * l);
    if (space == Space::shared)
      for (auto& a : address) a += blocks[block].shared;
    Access a;
    a.kind = kind;
    a.space = space;
    a.order = order;
    a.scope = scope;
    a.width = width;
    a.components = width == 16 ? 4 : width == 8 ? 2 : 1;
    a.lanes = lanes;
    a.address = address.data();
    lay_out(a);
    if (kind != AccessKind::store || !carries) undefined.lanes = 0;
    a.undefined = &undefined;
    std::array<std::uint64_t, 32> data{};
    for (unsigned l = 0; l < 32; ++l) data[l] = value ? value[l] : l + 1;
    if (kind == AccessKind::store)
      for (unsigned c = 0; c < a.components; ++c) a.data[c] = {reinterpret_cast<const std::byte*>(data.data()), 8};
    return fork(block).access(at(block, warp, pc, lanes), a);
  }
  // What was loaded decides a branch.
  void branch(unsigned block, unsigned warp, std::uint32_t pc) {
    if (undefined.lanes == 0) return;
    const unsigned lane = static_cast<unsigned>(std::countr_zero(undefined.lanes));
    fork(block).undefined_used(at(block, warp, pc), UndefinedUse::branch, undefined.lanes, undefined.origins[lane]);
  }
  void barrier(unsigned block) {
    std::vector<Mask> lanes;
    for (unsigned w = 0; w < launch.warps_per_block; ++w) lanes.push_back(at(block, w, 0).alive);
    for (unsigned w = 0; w < lanes.size(); ++w) {
      BarrierArrival arrival;
      arrival.expected = launch.block.x;
      fork(block).barrier_arrive(at(block, w, 0, lanes[w]), arrival);
    }
    fork(block).barrier_release(blocks[block], {0, lanes, lanes});
  }
  void syncwarp(unsigned block, unsigned warp, Mask mask = kFullMask) {
    fork(block).collective(at(block, warp, 0, mask), Collective::syncwarp, mask);
  }
  void fence(unsigned block, unsigned warp, Mask lanes, Scope scope = Scope::gpu) {
    fork(block).fence(at(block, warp, 0, lanes), FenceKind::acq_rel, scope);
  }
  // One cp.async of 16 bytes a lane, contiguous on both sides.
  void copy(unsigned block, unsigned warp, std::uint32_t pc, std::uint64_t source, std::uint64_t offset) {
    static std::array<std::uint64_t, 32> from, to;
    for (unsigned l = 0; l < 32; ++l) from[l] = source + 16 * l, to[l] = blocks[block].shared + offset + 16 * l;
    copied = copy_of(pc, kFullMask, from, to);
    copied.id = next_copy++;
    fork(block).async_issue(at(block, warp, pc), copied);
    fork(block).async_commit(at(block, warp, pc));
  }
  void land(unsigned block, unsigned warp, std::uint32_t groups_left = 0) {
    fork(block).async_land(at(block, warp, 0), copied, kFullMask, true);
    fork(block).async_wait(at(block, warp, 0), groups_left);
  }

  std::size_t count(const std::string& check, report::Level level = report::Level::error) const {
    std::size_t n = 0;
    for (const auto& f : report.findings()) n += f.check == check && f.level == level ? 1 : 0;
    return n;
  }
  std::uint64_t allocate(std::uint64_t bytes, bool written = true) {
    const Object* object = AddressSpace::instance().allocate(ObjectKind::global, bytes);
    all->allocated(*object);
    if (written) {
      Operation set;
      set.id = 1'000'000;
      set.kind = OperationKind::set;
      set.name = "cudaMemset";
      all->operation_begin(set);
      all->host_access(set.id, AccessKind::store, object->base, bytes);
      all->operation_end(set);
      after = {set.id};
    }
    return object->base;
  }

  report::Report report;
  PlayKernel kernel;
  std::unique_ptr<checks::Checks> all;
  LaunchInfo launch;
  Operation told;
  std::vector<std::uint64_t> after;
  std::vector<std::unique_ptr<Observer>> forks;
  std::vector<BlockInfo> blocks;
  AsyncCopy copied;
  std::uint64_t next_copy = 0;
  Undefined undefined;
  bool carries = false;
};

inline constexpr AccessKind kLoad = AccessKind::load, kStore = AccessKind::store, kAtomic = AccessKind::atomic;

}  // namespace stage
