// A resident block: its warps, special registers, shared and local storage.
#include <algorithm>
#include <array>
#include <cstring>

#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "exec/mbarrier.hpp"
#include "exec/stillness.hpp"

namespace machine {
namespace {

// What memory holds before anyone wrote it: NaN in every floating-point format, an absurd index.
constexpr int kUnwritten = 0xff;

constexpr std::uint32_t kMostWarps = 32;  // of a block

template <class F>
void put(Warp& w, Special s, F value_of) {
  auto* d = reinterpret_cast<std::uint32_t*>(w.bank[2] + static_cast<std::uint32_t>(s) * 128);
  for (unsigned l = 0; l < kWarp; ++l) d[l] = static_cast<std::uint32_t>(value_of(l));
}
void put_all(Warp& w, Special s, std::uint64_t value) {
  put(w, s, [=](unsigned) { return value; });
}

// What is the same for every block of a launch that has this warp.
void fill_launch_specials(Warp& w, const Worker& k) {
  const Dim3 &b = k.request->block, &g = k.request->grid;
  const std::uint32_t first = w.index * kWarp;
  put(w, Special::tid_x, [&](unsigned l) { return (first + l) % b.x; });
  put(w, Special::tid_y, [&](unsigned l) { return (first + l) / b.x % b.y; });
  put(w, Special::tid_z, [&](unsigned l) { return (first + l) / b.x / b.y; });
  const std::pair<Special, std::uint64_t> uniform[] = {
      {Special::ntid_x, b.x},
      {Special::ntid_y, b.y},
      {Special::ntid_z, b.z},
      {Special::nctaid_x, g.x},
      {Special::nctaid_y, g.y},
      {Special::nctaid_z, g.z},
      {Special::warpid, w.index},
      {Special::nwarpid, 64},
      {Special::nsmid, k.options->multiprocessors},
      {Special::gridid, k.request->operation},
      {Special::dynamic_smem_size, k.request->dynamic_shared},
      {Special::total_smem_size, k.request->kernel->shared().declared + k.request->dynamic_shared},
      // With what the system keeps for itself.
      {Special::aggr_smem_size, k.request->kernel->shared().declared + k.request->dynamic_shared + 1024},
      {Special::envreg1, k.grid_workspace >> 32},
      {Special::envreg2, k.grid_workspace},
      {Special::zero, 0},
      {Special::one, 1}};
  for (const auto& [s, v] : uniform) put_all(w, s, v);
  put(w, Special::laneid, [](unsigned l) { return l; });
  put(w, Special::lanemask_eq, [](unsigned l) { return 1u << l; });
  put(w, Special::lanemask_lt, [](unsigned l) { return (1u << l) - 1; });
  put(w, Special::lanemask_le, [](unsigned l) { return (1u << l) | ((1u << l) - 1); });
  put(w, Special::lanemask_gt, [](unsigned l) { return ~((1u << l) | ((1u << l) - 1)); });
  put(w, Special::lanemask_ge, [](unsigned l) { return ~((1u << l) - 1); });
}

void fill_block_specials(Warp& w, const BlockInfo& block, const Worker& k) {
  put_all(w, Special::ctaid_x, block.id.x);
  put_all(w, Special::ctaid_y, block.id.y);
  put_all(w, Special::ctaid_z, block.id.z);
  put_all(w, Special::smid, block.index % k.options->multiprocessors);
}

}  // namespace

namespace {

// Room on chip for the block, at least as much as before. Shared memory begins unwritten.
void give_storage(Block& block, const Worker& k, std::uint32_t shared, std::uint64_t local) {
  auto& space = AddressSpace::instance();
  if (block.shared_bytes < shared || block.shared == nullptr) {
    if (block.shared != nullptr) space.on_chip_release(block.shared, block.shared_bytes);
    block.shared_bytes = std::max(shared, 64u);
    block.shared = space.on_chip(block.shared_bytes);
  }
  const SharedLayout& layout = k.request->kernel->shared();
  for (const auto& v : layout.variables) std::memset(block.shared + v.base, kUnwritten, v.size);
  if (k.request->dynamic_shared != 0)
    std::memset(block.shared + layout.dynamic_base, kUnwritten, k.request->dynamic_shared);
  if (block.local_bytes < local) {
    if (block.local != nullptr) space.on_chip_release(block.local, block.local_bytes);
    block.local_bytes = local;
    block.local = space.on_chip(block.local_bytes);
  }
}

// Warp `index` at the kernel's entry. `local`: bytes of its local memory.
void begin_warp(Block& block, Worker& k, std::uint32_t index, std::uint64_t local) {
  const Function& entry = k.program->functions.front();
  Warp& w = *block.warps[index];
  w.index = index;
  w.block = &block;
  w.worker = &k;
  w.observer = k.observer;
  const std::uint32_t rest = block.info.threads - index * kWarp;
  w.alive = rest >= kWarp ? kFullMask : (Mask{1} << rest) - 1;
  w.local_bytes = k.local_bytes;
  w.local = block.local == nullptr ? nullptr : block.local + index * local;
  const std::uint64_t own = std::uint64_t{entry.local.bytes} * kWarp;
  if (own != 0) std::memset(w.local, kUnwritten, own);
  if (w.specials_room.empty()) w.specials_room.resize(kSpecialBytes);
  w.bank[2] = w.specials_room.data();
  if (w.specials_of != k.serial) fill_launch_specials(w, k);
  w.specials_of = k.serial;
  fill_block_specials(w, block.info, k);
  start_warp(w, entry);
}

}  // namespace

void start_block(Block& block, Worker& k, std::uint64_t index, std::uint32_t slot) {
  const Dim3 &g = k.request->grid, &b = k.request->block;
  const SharedLayout& layout = k.request->kernel->shared();
  const std::uint32_t threads = static_cast<std::uint32_t>(b.count());
  const std::uint32_t extent =
      std::max(layout.extent, k.request->dynamic_shared != 0 ? layout.dynamic_base + k.request->dynamic_shared : 0);
  block.warp_count = (threads + kWarp - 1) / kWarp;
  const std::uint64_t local_warp = std::uint64_t{k.local_bytes + 3} / 4 * 4 * kWarp;
  give_storage(block, k, extent, local_warp * block.warp_count);
  block.info = BlockInfo{};
  block.info.launch = k.launch;
  block.info.index = index;
  block.info.id = {static_cast<std::uint32_t>(index % g.x), static_cast<std::uint32_t>(index / g.x % g.y),
                   static_cast<std::uint32_t>(index / g.x / g.y)};
  block.info.slot = slot;
  block.info.shared = reinterpret_cast<std::uint64_t>(block.shared);
  block.info.shared_extent = extent;
  block.info.threads = threads;
  block.alive_threads = threads;
  for (auto& barrier : block.barriers) barrier = BarrierState{};
  block.passed = false;
  block.mbarriers.clear();
  block.mbarriers_begin = ~std::uint64_t{0};
  block.mbarriers_end = 0;
  block.async_arrivals.clear();
  block.bulk.reset();
  block.next_copy = 0;
  block.done = false;
  while (block.warps.size() < block.warp_count) block.warps.push_back(std::make_unique<Warp>());
  for (std::uint32_t w = 0; w < block.warp_count; ++w) begin_warp(block, k, w, local_warp);
  if (k.observer != nullptr) k.observer->block_begin(block.info);
}

void finish_block(Block& block, Worker& k) {
  if (k.observer != nullptr) k.observer->block_end(block.info);
}

bool run_block(Block& block, Worker& k) {
  std::array<std::uint8_t, kMostWarps> order;
  const std::uint32_t n = block.warp_count;
  for (std::uint32_t s = 0; s < n; ++s) order[s] = static_cast<std::uint8_t>(s);
  if (k.turns.permuted()) k.turns.shuffle(order.data(), n);
  bool ran = false;
  for (std::uint32_t s = 0; s < n; ++s) {
    Warp& w = *block.warps[order[s]];
    if (!runnable(w)) continue;
    ran = true;
    run_warp(w, k.turns.turn());
    if (w.stop == Stop::yielded) w.polled = true;
    if (k.status != LaunchStatus::ok) return true;
    if (w.alive != 0 && !runnable(w)) settle_gathering(w);
    if (k.watch != 0) look_at(w);
  }
  block.done = block.alive_threads == 0;
  return ran;
}

std::string waiting(const Block& block, unsigned most) {
  std::string text;
  unsigned shown = 0;
  for (std::uint32_t k = 0; k < block.warp_count; ++k) {
    const Warp& w = *block.warps[k];
    for (const auto& f : w.others) {
      if (shown++ >= most) return text + "; ...";
      const Location at = w.worker->request->kernel->location(f.pc->pc);
      char mask[16];
      std::snprintf(mask, sizeof mask, "0x%08x", f.lanes);
      if (!text.empty()) text += "; ";
      text += "block (" + std::to_string(block.info.id.x) + "," + std::to_string(block.info.id.y) + "," +
              std::to_string(block.info.id.z) + ") warp " + std::to_string(w.index) + " lanes " + mask;
      switch (f.wait) {
        case Stop::barrier: {
          const auto& b = block.barriers[f.barrier];
          const std::uint32_t expected = b.expected != 0 ? b.expected : block.alive_threads;
          text += " waits at barrier " + std::to_string(f.barrier) + ", where " + std::to_string(b.count) + " of " +
                  std::to_string(expected) + " threads have arrived";
          break;
        }
        case Stop::collective: {
          std::snprintf(mask, sizeof mask, "0x%08x", f.need);
          text += std::string(" waits for lanes ") + mask + " of its warp";
          break;
        }
        default: text += " polls"; break;
      }
      if (!at.lines.empty()) text += " (" + at.lines.front().file + ":" + std::to_string(at.lines.front().line) + ")";
      else text += " (PTX line " + std::to_string(at.ptx_line) + ")";
    }
  }
  // Bytes that never come, or that nobody expected, hold up a phase without anybody to be seen.
  for (const MbarrierPhase& m : block.mbarriers) {
    if (MbarrierBits::at(m.address).bytes == 0) continue;
    char place[24];
    std::snprintf(place, sizeof place, "0x%llx", static_cast<unsigned long long>(m.address - block.info.shared));
    text += "; the mbarrier at shared " + std::string(place) + " expects " + std::to_string(m.expected) +
            " bytes in this phase, of which " + std::to_string(m.arrived) + " have arrived";
  }
  return text;
}

}  // namespace machine
