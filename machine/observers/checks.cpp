// The checks of the process: what outlives a launch, the host's side, and the bringing together of chunks.
#include "observers/checks.hpp"

#include <algorithm>
#include <unordered_map>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/bits.hpp"
#include "observers/chunk.hpp"
#include "observers/host_side.hpp"
#include "observers/operations.hpp"

namespace machine::checks {

namespace {

class CheckSet final : public Checks {
 public:
  CheckSet(const CheckOptions& options, report::Report& report)
      : options_(options),
        report_(report),
        operations_(report),
        host_(options_, report, written_, kept_, operations_) {}

  void operation_begin(const Operation& o) override {
    if (options_.racecheck) operations_.begin(o);
    host_.begin(o);
  }
  void operation_end(const Operation& o) override {
    host_.end(o);
    if (options_.racecheck) operations_.end(o);
  }
  void allocated(const Object& object) override {
    // An address may have been used before; registered memory lies outside the arena.
    if (object.kind == ObjectKind::global) {
      written_.clear(object.base, object.size);
      kept_.forget(object.base, object.size);
    }
    if (options_.racecheck) operations_.lifetime(object.allocated, object, true);
  }
  void released(const Object& object) override {
    if (options_.racecheck) operations_.lifetime(object.freed, object, false);
    regions_.remove_all(object.base, object.size);
  }
  bool host_access(std::uint64_t operation, AccessKind kind, std::uint64_t address, std::uint64_t bytes,
                   std::uint64_t pitch, std::uint64_t rows) override {
    return host_.access(operation, kind, address, bytes, pitch, rows);
  }

  void launch_begin(const LaunchInfo& launch) override {
    launch_ = launch;
    tried_.clear();
    regions_.settle();
    traffic_.reset();
    waits_ = options_.racecheck && waits_for_dependency(*launch.kernel);
  }
  std::unique_ptr<Observer> fork(std::uint64_t) override {
    return std::make_unique<Chunk>(options_, launch_, regions_, written_, kept_, waits_);
  }
  bool join(std::span<const std::unique_ptr<Observer>> chunks) override;
  bool clean(std::span<const std::unique_ptr<Observer>> chunks) const override;
  void tried(std::span<const std::unique_ptr<Observer>> chunks, std::uint64_t seed) override;
  void launch_end(const LaunchInfo&) override {
    if (traffic_) report_.traffic(traffic_->result(launch_));
    traffic_.reset();
  }

  void heap_registered(std::uint64_t base, std::uint64_t bytes) override { regions_.add_heap(base, bytes); }
  void heap_unregistered(std::uint64_t base) override { regions_.remove_heap(base); }
  void region_registered(std::uint64_t base, std::uint64_t bytes) override { regions_.add(base, bytes); }
  void region_unregistered(std::uint64_t base) override { regions_.remove(base); }
  void begins_early(std::uint64_t operation) override {
    if (options_.racecheck) operations_.begins_early(operation);
  }
  void named(std::uint64_t base, const std::string& name) override { AddressSpace::instance().rename(base, name); }

 private:
  bool waits_for_dependency(const Kernel& kernel);
  void remember_written(const PageMap& pages);

  CheckOptions options_;
  report::Report& report_;
  ArenaBits written_;
  Kept kept_;
  Regions regions_;
  Operations operations_;
  HostSide host_;
  LaunchInfo launch_;
  std::unique_ptr<TrafficCount> traffic_;
  std::vector<report::Finding> tried_;  // what further schedules of the launch have shown
  std::unordered_map<const Kernel*, bool> waiting_kernels_;
  bool waits_ = false;
};

Chunk& chunk_of(const std::unique_ptr<Observer>& observer) { return static_cast<Chunk&>(*observer); }

bool CheckSet::waits_for_dependency(const Kernel& kernel) {
  const auto [at, fresh] = waiting_kernels_.try_emplace(&kernel, false);
  for (std::uint32_t pc = 0; fresh; ++pc) {
    const Location location = kernel.location(pc);
    if (location.text.empty() && location.ptx_line == 0) break;
    if (location.text.find("griddepcontrol.wait") == std::string::npos) continue;
    at->second = true;
    break;
  }
  return at->second;
}

bool CheckSet::clean(std::span<const std::unique_ptr<Observer>> chunks) const {
  // Chunks that met will be repeated as one, which describes what is wrong.
  return std::none_of(chunks.begin(), chunks.end(), [&](const auto& each) {
    Chunk& chunk = chunk_of(each);
    return chunk.sink().has_error() || (chunks.size() > 1 && !chunk.racecheck().apart());
  });
}

void CheckSet::tried(std::span<const std::unique_ptr<Observer>> chunks, std::uint64_t seed) {
  for (const auto& each : chunks)
    chunk_of(each).sink().drain([&](report::Finding f) {
      f.message += "; seen under another schedule of the launch (--seed " + std::to_string(seed) + ")";
      tried_.push_back(std::move(f));
    });
}

bool CheckSet::join(std::span<const std::unique_ptr<Observer>> chunks) {
  Footprint footprint;
  footprint.launch = launch_;
  footprint.waits = footprint.settles = waits_;
  bool apart = true;
  for (const auto& each : chunks) {
    Chunk& chunk = chunk_of(each);
    apart = chunk.racecheck().apart() && apart;
    if (apart) apart = footprint.pages.absorb(chunk.pages());
    if (chunk.racecheck().hurries()) footprint.settles = false;
    footprint.constants.absorb(chunk.racecheck().constant_pages());
    if (apart && waits_) {
      footprint.early.absorb(chunk.racecheck().early_pages());
      footprint.read_only.absorb(chunk.racecheck().read_only_pages());
    }
  }
  if (!apart && chunks.size() > 1) return false;
  for (const auto& each : chunks) {
    Chunk& chunk = chunk_of(each);
    chunk.sink().drain([&](report::Finding f) { report_.add(std::move(f)); });
    for (report::Finding& f : tried_)
      if (!report_.knows(f)) report_.add(std::move(f));
    tried_.clear();
    report_.checked(chunk.bytes_checked());
    if (options_.traffic) {
      if (!traffic_) traffic_ = std::make_unique<TrafficCount>(regions_, options_.row_bytes);
      traffic_->add(chunk.traffic().count());
    }
  }
  if (options_.initcheck) {
    remember_written(footprint.pages);
    for (const auto& each : chunks) chunk_of(each).initcheck().hand_over(kept_);
  }
  if (options_.racecheck) {
    if (auto finding = written_constant(footprint)) report_.add(std::move(*finding));
    footprint.pages.absorb(footprint.constants);
    operations_.launched(launch_.operation, std::move(footprint));
  }
  return true;
}

// How wide the stores of a launch are, by the pages that they write.
class PageWidths {
 public:
  explicit PageWidths(const LaunchInfo& launch) : launch_(launch) {}

  StoreWidth of(const Page& page) {
    StoreWidth widest;
    for (unsigned i = 0; i < page.trace_count; ++i)
      if (writes(page.traces[i].touch)) widest.widen(by(page.traces[i].pc));
    // A full summary may lack some.
    if (page.trace_count == page.traces.size()) widest.widen(unknown());
    return widest;
  }

 private:
  StoreWidth unknown() const { return {launch_.stores.global, kWidestAccess}; }
  const StoreWidth& by(std::uint32_t pc) {
    const auto [at, fresh] = known_.try_emplace(pc);
    if (fresh) at->second = store_width(launch_.kernel->location(pc).text).value_or(unknown());
    return at->second;
  }

  const LaunchInfo& launch_;
  std::unordered_map<std::uint32_t, StoreWidth> known_;
};

void CheckSet::remember_written(const PageMap& pages) {
  PageWidths widths(launch_);
  const Object* object = nullptr;
  for (const Page* page : pages.all()) {
    const std::uint64_t address = page->number << kPageShift;
    if (!ArenaBits::covers(address) || (!page->marks.changed() && !page->undefined)) continue;
    if (const Object* here = AddressSpace::instance().find(address); here != object && here != nullptr) {
      object = here;
      if (launch_.stores.strides != 0) kept_.strides[object->id] |= launch_.stores.strides;
    }
    if (object != nullptr) kept_.widest[object->id].widen(widths.of(*page));
    std::uint64_t* words = written_.words() + (address - kArenaBase) / 64;
    for (unsigned w = 0; w < kPageWords; ++w) {
      const std::uint64_t undefined = page->undefined ? (*page->undefined)[w] : 0;
      const std::uint64_t now = page->marks.changed(w) & ~undefined;
      if ((now | undefined) != 0) words[w] = (words[w] & ~undefined) | now;
    }
  }
}

}  // namespace

std::unique_ptr<Checks> make_checks(const CheckOptions& options, report::Report& report) {
  return std::make_unique<CheckSet>(options, report);
}

}  // namespace machine::checks
