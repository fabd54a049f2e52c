#include "observers/memcheck.hpp"

#include <algorithm>

#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"

namespace machine::checks {

namespace {

std::string_view verb_of(AccessKind kind) {
  switch (kind) {
    case AccessKind::store:
    case AccessKind::async_write: return "write";
    case AccessKind::atomic:
    case AccessKind::reduction: return "atomic";
    default: return "read";
  }
}

Object moved(Object o, std::uint64_t by) {
  o.base += by;
  return o;
}

}  // namespace

Memcheck::Memcheck(const ChunkContext& context)
    : launch_(context.launch), sink_(context.sink), regions_(context.regions) {
  dynamic_.kind = ObjectKind::dynamic_shared;
  dynamic_.base = launch_.kernel->shared().dynamic_base;
  dynamic_.size = launch_.dynamic_shared;
}

const Object* Memcheck::variable_at(std::uint32_t pc, std::uint64_t offset) {
  const Object*& recent = recent_shared_[pc % recent_shared_.size()];
  if (recent && recent->contains(offset)) return recent;
  const auto& variables = launch_.kernel->shared().variables;
  auto at = std::upper_bound(variables.begin(), variables.end(), offset,
                             [](std::uint64_t o, const Object& v) { return o < v.base; });
  if (at != variables.begin() && std::prev(at)->contains(offset)) return recent = &*std::prev(at);
  return dynamic_.contains(offset) ? recent = &dynamic_ : nullptr;
}

void Memcheck::invalid(const WarpPoint& point, unsigned lane, Space space, std::string_view verb, std::uint32_t bytes,
                       std::uint64_t address, const Object* object, std::string_view why, std::uint32_t rule) {
  if (!sink_.first({rule + 16 * static_cast<std::uint32_t>(space), point.pc, 0, 0})) return;
  report::Finding f;
  f.check = "memcheck";
  f.kind = std::string(rule == kMisaligned ? "Misaligned " : "Invalid ") + std::string(space_name(space)) + " " +
           std::string(verb) + " of size " + std::to_string(bytes) + " bytes";
  f.message = why;
  f.address = describe_address(address, object);
  f.sites.push_back(site_of(launch_, point.block->index, point.warp, lane, point.pc));
  sink_.add(std::move(f));
}

Mask Memcheck::admit_global(const WarpPoint& point, const Access& a, const Extent& s) {
  const Object* object = AddressSpace::instance().find(s.low);
  Mask on = a.lanes;
  if (!(object && object->state == ObjectState::live && object->contains(s.low, s.bytes()))) {
    for (Mask rest = a.lanes; rest != 0; rest &= rest - 1) {
      const unsigned l = static_cast<unsigned>(std::countr_zero(rest));
      const std::uint64_t address = a.address[l];
      const Object* at = AddressSpace::instance().find(address);
      const bool inside = at && at->contains(address, a.width);
      if (inside && at->state == ObjectState::live) continue;
      on &= ~(Mask{1} << l);
      const Object* near = at ? at : AddressSpace::instance().nearest(address);
      const char* why = inside ? why_not_alive(*at)
                        : at   ? "the access starts inside its object and ends past it"
                               : "the address lies in no object";
      invalid(point, l, a.space, verb_of(a.kind), a.width, address, near, why, inside ? kFreed : kOutside);
    }
  }
  if (regions_.any() && a.space == Space::global && on != 0) {
    const Regions::Stretch* recent = recent_live(s.low);
    if (recent == nullptr || !recent->holds(s.low, s.high)) dead_lanes(point, a, on);
  }
  return on;
}

// Reports bytes in no registered region. The lanes may go on: the memory is there.
void Memcheck::dead_lanes(const WarpPoint& point, const Access& a, Mask lanes) {
  const auto live = [&](std::uint64_t address, std::uint64_t end) {
    const Regions::Stretch*& recent = recent_live(address);
    if (recent != nullptr && recent->holds(address, end)) return true;
    const Regions::Stretch* around = regions_.live_around(address, recent);
    if (around == nullptr || !around->holds(address, end)) return false;
    recent = around;
    return true;
  };
  const auto judge = [&](unsigned lane) {
    std::uint64_t first = a.address[lane];
    const std::uint64_t end = first + a.width;
    if (live(first, end)) return;
    while (first < end && regions_.live_around(first) != nullptr) ++first;
    invalid(point, lane, a.space, verb_of(a.kind), a.width, first, AddressSpace::instance().find(a.address[lane]),
            "the bytes lie in no registered live region of their heap", kDead);
  };
  a.for_each_run([&](std::uint64_t address, std::uint64_t bytes, Mask run) {
    if (live(address, address + bytes)) return;
    for (Mask rest = run & lanes; rest != 0; rest &= rest - 1) judge(static_cast<unsigned>(std::countr_zero(rest)));
  });
}

const Object* Memcheck::nearest_variable(std::uint64_t offset) const {
  const auto& variables = launch_.kernel->shared().variables;
  const Object* near = variables.empty() ? nullptr : &variables.front();
  for (const Object& v : variables)
    if (v.base <= offset) near = &v;
  return dynamic_.size != 0 && (!near || dynamic_.base <= offset) ? &dynamic_ : near;
}

namespace {

Object array_of(const GrownStack::Array& array, unsigned lane) {
  return Object{.id = 0,
                .kind = ObjectKind::local,
                .state = ObjectState::live,
                .base = array.base[lane],
                .size = array.size[lane],
                .align = 16,
                .name = "alloca()",
                .allocated = 0,
                .freed = 0};
}

}  // namespace

std::optional<Object> local_array_at(const LocalFrame* frame, unsigned lane, std::uint64_t offset) {
  for (; frame != nullptr; frame = frame->below) {
    for (const Object& array : frame->layout->arrays)
      if (offset >= frame->base && array.contains(offset - frame->base)) return moved(array, frame->base);
    if (frame->grown == nullptr) continue;
    for (const auto& array : frame->grown->arrays)
      if ((array.lanes >> lane & 1) != 0 && offset - array.base[lane] < array.size[lane]) return array_of(array, lane);
  }
  return {};
}

namespace {

// The last array that begins at or before `offset`, else the first of the frame.
std::optional<Object> nearest_local(const LocalFrame* frame, unsigned lane, std::uint64_t offset) {
  std::optional<Object> near;
  for (; frame != nullptr && !near; frame = frame->below) {
    for (const Object& array : frame->layout->arrays)
      if (!near || frame->base + array.base <= offset) near = moved(array, frame->base);
    if (frame->grown == nullptr) continue;
    for (const auto& array : frame->grown->arrays)
      if ((array.lanes >> lane & 1) != 0 && (!near || array.base[lane] <= offset)) near = array_of(array, lane);
  }
  return near;
}

// Whether lanes have memory of different places on their stacks.
bool has_grown(const LocalFrame* frame) {
  for (; frame != nullptr; frame = frame->below)
    if (frame->grown != nullptr) return true;
  return false;
}

// The one array that the instruction means, where that is known.
const Object* meant(const LocalFrame* frame, std::uint32_t pc) {
  if (frame == nullptr || frame->layout->uses.empty()) return nullptr;
  const auto& uses = frame->layout->uses;
  const auto at = std::lower_bound(uses.begin(), uses.end(), pc,
                                   [](const LocalLayout::Use& u, std::uint32_t p) { return u.pc < p; });
  return at != uses.end() && at->pc == pc ? &frame->layout->parts[at->part] : nullptr;
}

}  // namespace

void Memcheck::fault(const WarpPoint& point, const FaultEvent& event) {
  if (event.lanes == 0 || event.address == nullptr) return;
  const unsigned lane = static_cast<unsigned>(std::countr_zero(event.lanes));
  std::uint64_t address = event.address[lane];
  const Object* near = nullptr;
  std::optional<Object> array;
  if (event.space == Space::shared) {
    address -= point.block->shared;
    near = nearest_variable(address);
  } else if (event.space == Space::local) {
    array = nearest_local(point.frame, lane, address);
    if (array) near = &*array;
  } else {
    near = AddressSpace::instance().find(address);
    if (!near) near = AddressSpace::instance().nearest(address);
  }
  const std::string text = launch_.kernel->location(point.pc).text;
  const std::string_view verb = text.find("st.") != std::string::npos     ? "write"
                                : text.find("ld") != std::string::npos    ? "read"
                                : text.find("atom.") != std::string::npos ? "atomic"
                                                                          : "access";
  const bool aligned = event.fault != Fault::misaligned_address;
  std::string why = aligned ? "the address lies in no object" : "the address is not a multiple of the access size";
  if (!event.detail.empty()) why = event.detail;
  invalid(point, lane, event.space, verb, event.width, address, near, why, aligned ? kOutside : kMisaligned);
}

Mask Memcheck::admit_shared(const WarpPoint& point, const Access& a, const Extent& s) {
  const std::uint64_t base = point.block->shared;
  const Object* variable = variable_at(point.pc, s.low - base);
  Mask bad = 0;
  if (variable && variable->contains(s.low - base, s.bytes())) return a.lanes & ~bad;
  for (Mask rest = a.lanes; rest != 0; rest &= rest - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t offset = a.address[l] - base;
    const Object* at = variable_at(point.pc, offset);
    if (at && at->contains(offset, a.width)) continue;
    bad |= Mask{1} << l;
    const Object* near = at ? at : nearest_variable(offset);
    invalid(
        point, l, Space::shared, verb_of(a.kind), a.width, offset, near,
        at ? "the access starts inside its variable and ends past it" : "the address lies in no __shared__ variable",
        kOutside);
  }
  return a.lanes & ~bad;
}

Mask Memcheck::admit_local(const WarpPoint& point, const Access& a, const Extent& s) {
  const Object* own = meant(point.frame, point.pc);
  std::optional<Object> array =
      own != nullptr ? moved(*own, point.frame->base) : local_array_at(point.frame, a.first_lane(), s.low);
  if (array && array->contains(s.low, s.bytes()) && (own != nullptr || !has_grown(point.frame))) return a.lanes;
  Mask bad = 0;
  for (Mask rest = a.lanes; rest != 0; rest &= rest - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint64_t offset = a.address[l];
    if (own == nullptr) array = local_array_at(point.frame, l, offset);
    if (array && array->contains(offset, a.width)) continue;
    bad |= Mask{1} << l;
    const bool inside = array && array->contains(offset);
    if (!array) array = nearest_local(point.frame, l, offset);
    const char* why = inside                                   ? "the access starts inside its array and ends past it"
                      : local_array_at(point.frame, l, offset) ? "the address lies in another local array of the thread"
                                                               : "the address lies in no local array of the thread";
    invalid(point, l, Space::local, verb_of(a.kind), a.width, offset, array ? &*array : nullptr, why, kOutside);
  }
  return a.lanes & ~bad;
}

}  // namespace machine::checks
