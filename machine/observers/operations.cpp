#include "observers/operations.hpp"

#include <algorithm>

#include "memory/address_space.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

namespace {

constexpr std::size_t kKeptOperations = 256;
constexpr std::size_t kKeptPages = 16'384;  // of 4 KB: a summary of 64 MB of touched memory
constexpr std::size_t kKnownOperations = 4096;

std::string name_of(const Operation& o) {
  if (o.kind == OperationKind::host) return "the host program";
  std::string text = o.kind == OperationKind::kernel ? "kernel " + demangled(o.name) : o.name;
  return text + " on stream " + std::to_string(o.stream);
}

report::Site site_in(const Operation& operation, const LaunchInfo& launch, const Trace* t) {
  if (t && launch.kernel) return site_of(launch, t->block, t->warp, 0, t->pc);
  report::Site s;
  s.host = operation.kind == OperationKind::host ? "host program" : operation.name;
  if (operation.kind == OperationKind::kernel) s.kernel = demangled(operation.name), s.host.clear();
  return s;
}

// Whether a kernel sets flags, or the like, in memory that the host reads.
bool talks(const Footprint& footprint) {
  const auto all = footprint.pages.all();
  return std::any_of(all.begin(), all.end(), [](const Page* page) {
    return page->of_host && std::any_of(page->traces.begin(), page->traces.begin() + page->trace_count,
                                        [](const Trace& t) { return writes(t.touch) && strong(t.touch); });
  });
}

// Bytes that two operations touch in conflict; atomics do not conflict with each other.
std::uint64_t meetings(const KeptMarks& a, const KeptMarks& b, unsigned w) {
  const auto plain = [w](const KeptMarks& m) { return m.word(Deed::read, w) | m.word(Deed::written, w); };
  const std::uint64_t atomics = a.word(Deed::atomic, w) & b.word(Deed::atomic, w);
  return a.meets(b, w) & ~(atomics & ~(plain(a) | plain(b)));
}

}  // namespace

std::optional<std::uint64_t> common_byte(const TouchedRange& one, const TouchedRange& other) {
  for (std::uint64_t i = 0; i < one.rows; ++i) {
    const std::uint64_t begin = one.address + i * one.pitch, end = begin + one.bytes;
    // The first row of the other that ends behind `begin`.
    std::uint64_t row = 0;
    if (const std::uint64_t first_end = other.address + other.bytes; begin >= first_end) {
      if (other.pitch == 0) continue;
      row = (begin - first_end) / other.pitch + 1;
    }
    if (row >= other.rows) continue;
    const std::uint64_t there = other.address + row * other.pitch;
    if (there < end) return std::max(begin, there);
  }
  return std::nullopt;
}

void Operations::begin(const Operation& operation) {
  Known known;
  known.operation = operation;
  known.programmatic = operation.id == early_;
  for (std::uint64_t id : operation.after) {
    const auto at = known_.find(id);
    if (at == known_.end()) {
      // Long ago: everything kept that is not newer counts as ordered.
      for (std::uint64_t kept : kept_)
        if (kept <= id) known.before.add(kept);
      continue;
    }
    known.before.add(at->second.before);
    // Only what is kept matters; what came before has touched all that it will.
    if (at->second.footprint) known.before.add(id);
  }
  known.before.forget_below(oldest_kept_);
  known_[operation.id] = std::move(known);
  if (const auto at = allocations_.find(operation.id); at != allocations_.end()) {
    touched(operation.id, at->second);
    allocations_.erase(at);
  }
}

void Operations::lifetime(std::uint64_t operation, const Object& object, bool begins) {
  const auto at = known_.find(operation);
  const TouchedRange range{
      .address = object.base, .bytes = object.size, .writes = true, .begins = begins, .ends = !begins};
  if (at == known_.end()) {
    if (begins) allocations_[operation] = range;
  } else if (!begins || at->second.operation.kind != OperationKind::host) {
    touched(operation, range);  // what the host allocates comes before all that uses it
  }
}

void Operations::touched(std::uint64_t operation, TouchedRange range) {
  const auto at = known_.find(operation);
  if (at == known_.end()) return;
  Known& known = at->second;
  range.host = known.operation.kind == OperationKind::host || known.operation.kind == OperationKind::host_function;
  if (!known.footprint) {
    known.footprint = std::make_unique<Footprint>();
    keep(operation);
  }
  // Neighbouring host accesses make one range.
  auto& ranges = known.footprint->ranges;
  if (!ranges.empty() && range.rows == 1 && ranges.back().rows == 1 && ranges.back().writes == range.writes &&
      ranges.back().begins == range.begins && ranges.back().ends == range.ends &&
      ranges.back().address + ranges.back().bytes == range.address) {
    ranges.back().bytes += range.bytes;
  } else {
    ranges.push_back(range);
  }
  // A stretch of the host's program has no end to wait for: what it touches is compared at once.
  if (known.operation.kind == OperationKind::host) {
    Known probe;
    probe.operation = known.operation;
    probe.before = known.before;
    probe.footprint = std::make_unique<Footprint>();
    probe.footprint->ranges.push_back(range);
    for (std::uint64_t id : kept_)
      if (!ordered(id, operation, known)) compare(probe, known_.at(id));
  }
}

void Operations::launched(std::uint64_t operation, Footprint footprint) {
  const auto at = known_.find(operation);
  if (at == known_.end()) return;
  Known& known = at->second;
  known.pages = footprint.pages.size() + footprint.early.size() + footprint.read_only.size();
  kept_pages_ += known.pages;
  if (!known.footprint) keep(operation);
  known.settles = footprint.settles;
  known.footprint = std::make_unique<Footprint>(std::move(footprint));
}

void Operations::end(const Operation& operation) {
  const auto at = known_.find(operation.id);
  if (at == known_.end()) return;
  const Known& known = at->second;
  if (known.footprint && operation.kind != OperationKind::host)
    for (std::uint64_t id : kept_)
      if (!ordered(id, operation.id, known)) compare(known, known_.at(id));
  forget_old();
}

void Operations::keep(std::uint64_t operation) {
  oldest_kept_ = kept_.empty() ? operation : std::min(oldest_kept_, operation);
  kept_.push_back(operation);
}

void Operations::forget_old() {
  while (!kept_.empty() && (kept_.size() > kKeptOperations || (kept_pages_ > kKeptPages && kept_.size() > 1))) {
    Known& old = known_.at(kept_.front());
    kept_pages_ -= old.pages;
    old.pages = 0;
    old.footprint.reset();
    kept_.pop_front();
    if (!kept_.empty()) oldest_kept_ = *std::min_element(kept_.begin(), kept_.end());
  }
  while (known_.size() > kKnownOperations && !known_.begin()->second.footprint) known_.erase(known_.begin());
}

void Operations::meet(const PageMap& one, const PageMap& other, Meeting& m) {
  if (m.found) return;
  const bool swapped = one.size() > other.size();
  const PageMap& few = swapped ? other : one;
  const PageMap& many = swapped ? one : other;
  for (const Page* a : few.sorted()) {
    const Page* b = many.find(a->number);
    if (!b) continue;
    for (unsigned w = 0; w < kPageWords; ++w) {
      const std::uint64_t hit = meetings(a->marks, b->marks, w);
      if (hit == 0) continue;
      const unsigned bit = static_cast<unsigned>(std::countr_zero(hit)), byte = w * 64 + bit;
      const Page* here = swapped ? b : a;
      const Page* there = swapped ? a : b;
      m.found = true;
      m.address = (a->number << kPageShift) + byte;
      m.here_writes = (here->marks.changed(w) >> bit & 1) != 0;
      m.there_writes = (there->marks.changed(w) >> bit & 1) != 0;
      m.here = here->trace_of(byte, m.here_writes);
      m.there = there->trace_of(byte, m.there_writes);
      return;
    }
  }
}

void Operations::meet(const TouchedRange& range, const PageMap& pages, Meeting& m) {
  if (m.found) return;
  for (std::uint64_t row = 0; row < range.rows && !m.found; ++row) {
    const std::uint64_t low = range.address + row * range.pitch, high = low + range.bytes;
    const auto look = [&](const Page& page) {
      const std::uint64_t start = page.number << kPageShift;
      for (std::uint64_t at = std::max(low, start); at < std::min(high, start + kPageBytes); ++at) {
        const unsigned byte = static_cast<unsigned>(at - start), w = byte / 64;
        const std::uint64_t bit = std::uint64_t{1} << (byte % 64);
        const bool written = (page.marks.changed(w) & bit) != 0;
        if (!written && !(range.writes && (page.marks.word(Deed::read, w) & bit) != 0)) continue;
        const Trace* there = page.trace_of(byte, written);
        // Volatile and atomic accesses are how a kernel and the host talk while it runs.
        if (range.host && !range.ends && there && strong(there->touch)) continue;
        // What was released before the flag is the host's to read.
        if (range.host && !range.ends && written && page.published && ((*page.published)[w] & bit) != 0) continue;
        m.found = true, m.address = at, m.here_writes = range.writes, m.there_writes = written;
        m.here_range = &range;
        m.there = there;
        return;
      }
    };
    if ((high - low) / kPageBytes < pages.size()) {
      for (std::uint64_t n = low >> kPageShift; n <= (high - 1) >> kPageShift && !m.found; ++n)
        if (const Page* page = pages.find(n)) look(*page);
    } else {
      for (const Page* page : pages.sorted())
        if (!m.found && page->number >= low >> kPageShift && page->number <= (high - 1) >> kPageShift) look(*page);
    }
  }
}

void Operations::meet(const TouchedRange& one, const TouchedRange& other, Meeting& m) {
  if (m.found || (!one.writes && !other.writes)) return;
  const auto address = common_byte(one, other);
  if (!address) return;
  m.found = true, m.address = *address, m.here_writes = one.writes, m.there_writes = other.writes;
  m.here_range = &one, m.there_range = &other;
}

// Whether the later one was launched programmatically behind the earlier one, or behind one that was. It comes after
// the earlier one from griddepcontrol.wait on.
bool Operations::overlap(const Known& earlier, const Known& later) {
  return later.programmatic && earlier.operation.kind == OperationKind::kernel &&
         earlier.operation.stream == later.operation.stream;
}

// Of programmatic launches in a row, one that waits before it lets the next go lets it go when all before itself has
// ended.
bool Operations::settled_between(const Known& earlier, const Known& later) const {
  const auto end = known_.lower_bound(later.operation.id);
  for (auto at = known_.upper_bound(earlier.operation.id); at != end; ++at)
    if (at->second.settles && at->second.operation.stream == later.operation.stream) return true;
  return false;
}

void Operations::compare(const Known& one, const Known& other) {
  const Footprint& a = *one.footprint;
  const Footprint& b = *other.footprint;
  const bool later = one.operation.id > other.operation.id;
  const bool overlapping = later ? overlap(other, one) : overlap(one, other);
  if (overlapping && (later ? settled_between(other, one) : settled_between(one, other))) return;
  const auto& pages_a = overlapping && a.waits && later ? a.early : a.pages;
  const auto& pages_b = overlapping && b.waits && !later ? b.early : b.pages;
  Meeting m;
  meet(pages_a, pages_b, m);
  for (const TouchedRange& x : a.ranges) {
    meet(x, pages_b, m);
    for (const TouchedRange& y : b.ranges) meet(x, y, m);
  }
  if (!m.found) {
    Meeting turned;
    for (const TouchedRange& y : b.ranges) meet(y, pages_a, turned);
    if (turned.found) {
      m = turned;
      std::swap(m.here, m.there);
      std::swap(m.here_writes, m.there_writes);
      std::swap(m.here_range, m.there_range);
    }
  }
  if (m.found) return report_race(one, other, m);
  if (!overlapping) return;
  // What a programmatic launch may read after its wait, it may not read through the read-only path: it runs already.
  const Known &reader = later ? one : other, &writer = later ? other : one;
  meet(reader.footprint->read_only, writer.footprint->pages, m);
  if (m.found && m.there_writes) report_read_only(reader, writer, m);
}

void Operations::report_race(const Known& one, const Known& other, const Meeting& m) {
  const bool host = one.operation.kind == OperationKind::host || other.operation.kind == OperationKind::host;
  // The reading side is named first: it is where the wrong value would show.
  const bool turn = m.here_writes && !m.there_writes;
  const Known& first = turn ? other : one;
  const Known& second = turn ? one : other;
  report::Finding f;
  f.check = "racecheck";
  f.family = "race";
  f.kind = host ? "Race between the host and the device" : "Race between unordered operations";
  const TouchedRange *first_range = turn ? m.there_range : m.here_range,
                     *second_range = turn ? m.here_range : m.there_range;
  const auto does = [](bool w, const TouchedRange* r) {
    return r && r->ends ? " frees" : r && r->begins ? " allocates" : w ? " writes" : " reads";
  };
  const std::string what = name_of(first.operation) + does(turn ? m.there_writes : m.here_writes, first_range) +
                           " what " + name_of(second.operation) +
                           does(turn ? m.here_writes : m.there_writes, second_range);
  const auto either = [&](bool TouchedRange::* is) {
    return (first_range && first_range->*is) || (second_range && second_range->*is);
  };
  f.message = what + ", and neither is ordered after the other";
  const bool either_talks = talks(*one.footprint) || talks(*other.footprint);
  const Known& later = one.operation.id > other.operation.id ? one : other;
  const Known& earlier = one.operation.id > other.operation.id ? other : one;
  const bool programmatic = overlap(earlier, later);
  // Unordered on one stream, but for that, are only nodes of a graph.
  const bool graph = one.operation.stream == other.operation.stream;
  if (programmatic)
    f.message = what + "; " + name_of(later.operation) +
                " was launched programmatically, and begins while the other still runs";
  f.remedy =
      host && either(&TouchedRange::ends)
          ? "wait for the last use before cudaFree: it does not wait for memory of cudaMallocAsync or of a graph"
      : host && either_talks
          ? "wait for the device work first (cudaStreamSynchronize, cudaEventSynchronize, cudaDeviceSynchronize), or "
            "let "
            "the kernel call __threadfence_system() between the data and the flag that the host looks at"
      : host ? "wait for the device work first: cudaStreamSynchronize, cudaEventSynchronize or cudaDeviceSynchronize"
      : either(&TouchedRange::ends)
          ? "free it behind its last use: on the stream of that, or let the freeing stream wait for "
            "an event recorded after it "
            "(cudaEventRecord, cudaStreamWaitEvent)"
      : either(&TouchedRange::begins)
          ? "use it behind its allocation: on the stream of that, or let the using stream wait "
            "for an event recorded after it "
            "(cudaEventRecord, cudaStreamWaitEvent)"
      : programmatic
          ? "call cudaGridDependencySynchronize() in kernel " + demangled(later.operation.name) +
                " before this access; it waits until kernel " + demangled(earlier.operation.name) + " has ended"
      : graph
          ? "order the two nodes of the graph: add an edge between them (cudaGraphAddDependencies), or in a capture "
            "record an event after the first and let the second's stream wait for it (cudaEventRecord, "
            "cudaStreamWaitEvent)"
          : "record an event after the first and let the second's stream wait for it (cudaEventRecord, "
            "cudaStreamWaitEvent), or use one stream";
  f.address = describe_address(m.address, AddressSpace::instance().find(m.address));
  f.sites.push_back(site_in(first.operation, first.footprint->launch, turn ? m.there : m.here));
  f.sites.push_back(site_in(second.operation, second.footprint->launch, turn ? m.here : m.there));
  report_.add(std::move(f));
}

void Operations::report_read_only(const Known& reader, const Known& writer, const Meeting& m) {
  report::Finding f;
  f.check = "racecheck";
  f.family = "read-only";
  const Object* object = AddressSpace::instance().find(m.address);
  const bool constant = object && object->kind == ObjectKind::constant_symbol;
  f.kind = "Read-only load of data that the kernel before it writes";
  f.message = name_of(reader.operation) + " loads by " + (constant ? "ld.const" : "ld.global.nc") + " what " +
              name_of(writer.operation) + " writes, and begins while that still runs: the " +
              (constant ? "constant" : "read-only") + " cache may hold the value from before";
  f.remedy = constant ? "make it a __device__ variable, or launch the reader without the programmatic attribute"
                      : "load it plainly: without __ldg(), and without const __restrict__ on the pointer";
  f.address = describe_address(m.address, object);
  f.sites.push_back(site_in(reader.operation, reader.footprint->launch, m.here));
  f.sites.push_back(site_in(writer.operation, writer.footprint->launch, m.there));
  report_.add(std::move(f));
}

}  // namespace machine::checks
