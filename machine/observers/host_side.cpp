#include "observers/host_side.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

void HostSide::begin(const Operation& operation) {
  current_ = operation;
  unwritten_.clear();
  arrived_ = 0;
  sources_.clear();
}

void HostSide::end(const Operation&) {
  for (; arrived_ < unwritten_.size(); ++arrived_) copied_to_host(unwritten_[arrived_]);
}

void HostSide::invalid(AccessKind kind, std::uint64_t address, std::uint64_t bytes, const Object* object,
                       const char* why) {
  report::Finding f;
  f.check = "memcheck";
  const bool writes = kind == AccessKind::store;
  const std::string by = current_.name.empty() ? "the host" : current_.name;
  f.kind = std::string("Invalid ") + (writes ? "write of " : "read of ") + std::to_string(bytes) + " bytes by " + by;
  f.message = why;
  f.address = describe_address(address, object);
  report::Site site;
  site.host = by;
  f.sites.push_back(std::move(site));
  report_.add(std::move(f));
}

bool HostSide::access(std::uint64_t operation, AccessKind kind, std::uint64_t address, std::uint64_t bytes,
                      std::uint64_t pitch, std::uint64_t rows) {
  if (bytes == 0 || rows == 0) return true;
  const std::uint64_t span = (rows - 1) * pitch + bytes;
  const Object* object = AddressSpace::instance().find(address);
  const bool writes = kind == AccessKind::store;
  if (!object || !object->contains(address, span)) {
    if (options_.memcheck)
      invalid(kind, object ? object->base + object->size : address, bytes * rows,
              object ? object : AddressSpace::instance().nearest(address),
              object ? "the range starts inside its object and ends past it" : "the range starts in no object");
    return false;
  }
  if (object->state == ObjectState::freed) {
    if (options_.memcheck) invalid(kind, address, bytes * rows, object, why_not_alive(*object));
    return false;
  }
  report_.transferred(bytes * rows);
  const TouchedRange range{address, bytes, pitch, rows, writes};
  if (options_.racecheck) {
    operations_.touched(operation, range);
    if (current_.id == operation && current_.kind == OperationKind::copy) {
      if (writes) check_overlap(range);
      else sources_.push_back(range);
    }
  }
  if (!options_.initcheck || current_.id != operation) return true;
  if (!writes) {
    if (object->kind == ObjectKind::global) unwritten_.push_back(range);
  } else if (object->kind != ObjectKind::pinned && object->kind != ObjectKind::registered) {
    copied_to_device(range, arrived_ < unwritten_.size() ? &unwritten_[arrived_++] : nullptr);
  }
  return true;
}

// A copy reads and writes in any order. One of a range to itself changes nothing.
void HostSide::check_overlap(const TouchedRange& to) {
  for (const TouchedRange& from : sources_) {
    if (from.address == to.address && from.bytes == to.bytes && from.pitch == to.pitch) continue;
    const auto common = common_byte(from, to);
    if (!common) continue;
    report::Finding f;
    f.check = "racecheck";
    f.family = "race";
    f.kind = "Copy between overlapping ranges";
    f.message = current_.name +
                " reads and writes the same bytes, in no order: what arrives may be copied or overwritten already";
    f.remedy = "copy by way of memory that overlaps neither range, or in pieces that do not overlap";
    f.address = describe_address(*common, AddressSpace::instance().find(*common));
    f.sites.emplace_back().host = current_.name;
    report_.add(std::move(f));
    sources_.clear();
    return;
  }
}

// What is copied from device memory brings its unwritten bytes along; what comes from the host is written.
void HostSide::copied_to_device(const TouchedRange& to, const TouchedRange* brought) {
  const bool same_size = brought && brought->bytes * brought->rows == to.bytes * to.rows;
  for (std::uint64_t row = 0; row < to.rows; ++row) written_.set(to.address + row * to.pitch, to.bytes);
  if (same_size) {
    const TouchedRange& from = *brought;
    const Object *from_object = AddressSpace::instance().find(from.address),
                 *to_object = AddressSpace::instance().find(to.address);
    bool all = true;
    for (std::uint64_t row = 0; row < from.rows && all; ++row)
      all = written_.all(from.address + row * from.pitch, from.bytes);
    for (std::uint64_t i = 0; i < to.bytes * to.rows && !all; ++i) {
      const std::uint64_t source = from.address + i / from.bytes * from.pitch + i % from.bytes,
                          there = to.address + i / to.bytes * to.pitch + i % to.bytes;
      if (written_.test(source)) continue;
      written_.clear(there, 1);
      if (const auto at = kept_.partial.find(source); at != kept_.partial.end()) kept_.partial[there] = at->second;
      else kept_.partial.erase(there);
      if (const auto at = kept_.stored.find(Kept::granule(source)); at != kept_.stored.end())
        kept_.stored[Kept::granule(there)] = at->second;
      if (from_object != nullptr && to_object != nullptr)
        kept_.widest[to_object->id].widen(kept_.widest[from_object->id]);
    }
  }
}

// Of what kernels stored there, or where undefined values that were copied there come from.
StoreWidth HostSide::widest_at(std::uint64_t address) const {
  const Object* object = AddressSpace::instance().find(address);
  const auto known = kept_.widest.find(object ? object->id : 0);
  const KeptOrigin* origin = kept_.origin_at(address);
  StoreWidth widest = origin ? origin->widest : StoreWidth{};
  if (known == kept_.widest.end()) return widest;
  widest.widen(known->second);
  return widest;
}

bool HostSide::is_computed(std::uint64_t address) const {
  const KeptOrigin* origin = kept_.origin_at(address);
  return origin && origin->computed;
}

void HostSide::unwritten(const TouchedRange& from, std::uint64_t first, std::uint64_t missing) {
  const std::uint64_t all = from.bytes * from.rows;
  report::Finding f;
  f.check = "initcheck";
  f.kind = "Uninitialized memory copied to the host by " + current_.name;
  f.message = missing == all ? "nothing has written any of the " + std::to_string(all) + " bytes that are copied"
                             : "nothing has written " + std::to_string(missing) + " of the " + std::to_string(all) +
                                   " bytes that are copied";
  f.remedy =
      "check that the kernel that should write them ran, ran first, and covers them all; or copy only what was written";
  f.address = describe_address(first, AddressSpace::instance().find(first));
  report::Site site;
  site.host = current_.name;
  f.sites.push_back(std::move(site));
  report_.add(std::move(f));
}

void HostSide::undefined(const KeptOrigin& origin, std::uint64_t missing) {
  report::Finding f = origin.finding;
  if (f.check == "synccheck" && !options_.synccheck) return;
  f.message += ", and " + std::to_string(missing) + " bytes that the host copies depend on " +
               (f.address.empty() ? "it" : "them");
  report::Site site;
  site.host = current_.name;
  f.sites.push_back(std::move(site));
  report_.add(std::move(f));
}

namespace {

// Bytes that are undefined one behind the other, in what is copied.
struct Hole {
  std::uint64_t address, offset, bytes;
};

// Holes that a struct has between two members, or at its end, are shorter than the alignment of what follows.
bool aligns(const Hole& hole, unsigned width) {
  const std::uint64_t end = hole.address + hole.bytes;
  return hole.bytes < std::min<std::uint64_t>(width, end & -end);
}

// The distance at which the same holes come again from the beginning to the end, as the padding of an array of structs
// does; 0: they do not.
std::uint64_t period_of(const std::vector<Hole>& holes, std::uint64_t all) {
  for (std::size_t step = 1; step <= 4 && step < holes.size(); ++step) {
    const std::uint64_t period = holes[step].offset - holes[0].offset;
    bool same = holes[0].offset < period && all % period == 0 && holes.size() == all / period * step;
    for (std::size_t k = 0; same && k + step < holes.size(); ++k)
      same = holes[k + step].offset - holes[k].offset == period && holes[k + step].bytes == holes[k].bytes;
    if (same) return period;
  }
  return 0;
}

// Whether a hole that comes again at that distance can be padding: no whole elements, or what a wider store behind it
// must be aligned for, or the smaller half of a struct that is aligned beyond its members, at its end.
bool pads(const Hole& hole, std::uint64_t period, const StoreWidth& stored) {
  if (stored.element == 0 || hole.address % stored.element != 0 || hole.bytes % stored.element != 0) return true;
  const bool at_end = (hole.offset + hole.bytes) % period == 0;
  return aligns(hole, stored.access) || (at_end && hole.bytes < (period & -period) && 2 * hole.bytes < period);
}

}  // namespace

// Whether the holes are the ends of all structs of an array whose alignment makes them more than twice as large as
// their members.
bool end_structs(const std::vector<Hole>& holes, std::uint64_t all, std::uint64_t array, unsigned strides) {
  if (holes.empty() || all % holes.size() != 0) return false;
  const std::uint64_t stride = all / holes.size();
  if (!std::has_single_bit(stride) || (strides & stride) == 0) return false;
  return std::all_of(holes.begin(), holes.end(), [&](const Hole& h) {
    return h.bytes == holes[0].bytes && h.bytes < stride && h.bytes >= stride / 2 &&
           (h.address + h.bytes - array) % stride == 0;
  });
}

// A hole is reported unless it can be the padding of a struct. That is shorter than the alignment which makes it: than
// an element that was stored there; or it recurs with every struct and is no element that the kernel left out; or it is
// the larger half of every struct.
void HostSide::copied_to_host(const TouchedRange& from) {
  std::vector<Hole> holes, wide;  // those that may be padding because they recur; those that are none
  const auto add = [&](const Hole& h) {
    if (h.bytes == 0) return;
    if (h.bytes >= kPadding || is_computed(h.address)) wide.push_back(h);
    else if (!aligns(h, widest_at(h.address).element)) holes.push_back(h);
  };
  Hole open{from.address, 0, 0};
  std::uint64_t next = from.address;  // where the bytes looked at end
  for (std::uint64_t row = 0; row < from.rows; ++row) {
    const std::uint64_t begin = from.address + row * from.pitch, end = begin + from.bytes, offset = row * from.bytes;
    if (begin != next) add(open), open = {begin, offset, 0};
    next = end;
    if (written_.all(begin, from.bytes)) {
      add(open), open = {end, offset + from.bytes, 0};
      continue;
    }
    for (std::uint64_t at = begin; at < end; ++at) {
      if (written_.test(at)) add(open), open = {at + 1, offset + (at - begin) + 1, 0};
      else ++open.bytes;
    }
  }
  add(open);
  const Object* object = AddressSpace::instance().find(from.address);
  const auto strides = kept_.strides.find(object ? object->id : 0);
  if (holes.empty() && strides != kept_.strides.end() &&
      std::none_of(wide.begin(), wide.end(), [&](const Hole& h) { return is_computed(h.address); }) &&
      end_structs(wide, from.bytes * from.rows, object->base, strides->second))
    return;
  const std::uint64_t period = wide.empty() ? period_of(holes, from.bytes * from.rows) : 0;
  for (const Hole& h : holes)
    if (period == 0 || !pads(h, period, widest_at(h.address))) wide.push_back(h);
  std::uint64_t missing = 0, first = ~std::uint64_t{0};  // of what nobody wrote
  std::map<const KeptOrigin*, std::uint64_t> stored;     // bytes of undefined values that kernels stored
  for (const Hole& h : wide)
    for (std::uint64_t at = h.address; at < h.address + h.bytes; ++at) {
      if (const KeptOrigin* origin = kept_.stored.empty() ? nullptr : kept_.origin_at(at)) ++stored[origin];
      else ++missing, first = std::min(first, at);
    }
  if (missing != 0) unwritten(from, first, missing);
  for (const auto& [origin, bytes] : stored) undefined(*origin, bytes);
}

}  // namespace machine::checks
