// Undefined bits of registers: where they are kept, and the run of a warp that holds some.
#include "exec/undefined.hpp"

#include <algorithm>

#include "exec/fragments.hpp"
#include "exec/inserted.hpp"

namespace machine {

UndefinedSlot& FrameUndefined::make(Slot s) {
  std::uint16_t& at = index[s >> 2];
  if (at == 0) {
    if (spare.empty()) spare.push_back(std::unique_ptr<UndefinedSlot>(new UndefinedSlot));
    slots.push_back(std::move(spare.back()));
    spare.pop_back();
    slots.back()->offset = s & ~Slot{3};
    slots.back()->lanes = 0;
    at = static_cast<std::uint16_t>(slots.size());
  }
  return *slots[at - 1];
}

void FrameUndefined::drop_defined() {
  for (std::size_t k = 0; k < slots.size();) {
    if (slots[k]->lanes != 0) {
      ++k;
      continue;
    }
    index[slots[k]->offset >> 2] = 0;
    spare.push_back(std::move(slots[k]));
    if (k + 1 != slots.size()) {
      slots[k] = std::move(slots.back());
      index[slots[k]->offset >> 2] = static_cast<std::uint16_t>(k + 1);
    }
    slots.pop_back();
  }
}

void FrameUndefined::clear() {
  for (auto& s : slots) s->lanes = 0;
  drop_defined();
}

void set_undefined(Frame& frame, Slot s, unsigned lane, std::uint64_t bits, const Origin& origin) {
  if ((s & 3) != static_cast<Slot>(Bank::registers)) return;
  if (bits == 0) return set_defined(frame, s, Mask{1} << lane);
  if (!frame.undefined) {
    frame.undefined = std::make_shared<FrameUndefined>();
    frame.undefined->index.resize(frame.function->frame_bytes / 4);
  }
  UndefinedSlot& u = frame.undefined->make(s);
  u.lanes |= Mask{1} << lane;
  u.bits[lane] = bits;
  u.origins[lane] = origin;
}

void copy_undefined(const Frame& from, Slot source, Frame& to, Slot destination, Mask lanes) {
  const UndefinedSlot* u = from.undefined ? from.undefined->find(source) : nullptr;
  set_defined(to, destination, u != nullptr ? lanes & ~u->lanes : lanes);
  if (u != nullptr)
    for_lanes(u->lanes & lanes, [&](unsigned l) { set_undefined(to, destination, l, u->bits[l], u->origins[l]); });
}

void report_undefined(const Inst& i, Warp& w, UndefinedUse use, Mask lanes, const Origin& origin) {
  if (w.observer != nullptr) w.observer->undefined_used(w.point(i, lanes), use, lanes, origin);
}

const Inst* follow(Warp& w, const Inst* next) {
  if (w.follows) return next;
  w.follows = true;
  if (!w.undefined) w.undefined = std::make_shared<WarpUndefined>();
  w.undefined->carry = w.undefined->staged = 0;
  w.follow_from = next;
  return nullptr;
}

const Inst* mark_written(const Inst& i, Warp& w, Mask mask) {
  *w.at<Mask>(i.a) |= mask;
  return &i + 1;
}

const Inst* check_written(const Inst& i, Warp& w, Mask mask) {
  const Mask open = mask & w.active & ~w.predicate(i.a);
  if (open == 0 || w.worker->undefined == nullptr) [[likely]]
    return &i + 1;
  *w.at<Mask>(i.a) |= open;  // reported once; what depends on it is followed on
  const std::uint64_t all = i.extra == 0   ? 1
                            : i.extra == 8 ? ~std::uint64_t{0}
                                           : (std::uint64_t{1} << (8 * i.extra)) - 1;
  for_lanes(open, [&](unsigned l) {
    set_undefined(
        *w.frame, i.b, l, all,
        {0, i.pc, static_cast<std::uint8_t>(w.index), static_cast<std::uint8_t>(l), Origin::Kind::unwritten, false});
  });
  return follow(w, &i + 1);
}

namespace {

std::uint64_t value_of(const Warp& w, const FlowOperand& o, unsigned lane) {
  switch (o.bytes) {
    case 0: return w.predicate(o.slot) >> lane & 1;
    case 1: return w.at<const std::uint16_t>(o.slot)[lane] & 0xff;
    case 2: return w.at<const std::uint16_t>(o.slot)[lane];
    case 4: return w.at<const std::uint32_t>(o.slot)[lane];
    default: return w.at<const std::uint64_t>(o.slot)[lane];
  }
}
std::uint64_t every_bit(const FlowOperand& o) {
  return o.bytes == 0 ? 1 : o.bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * o.bytes)) - 1;
}

// The results of an instruction that computes; before it runs, for the rules look at its operands.
void compute(const Flow& flow, const Inst& i, Warp& w, Mask mask) {
  constexpr unsigned kMost = 16;
  const unsigned reads = std::min<unsigned>(static_cast<unsigned>(flow.reads.size()), kMost);
  const UndefinedSlot* from[kMost];
  Mask touched = 0;
  for (unsigned k = 0; k < reads; ++k) {
    from[k] = undefined_of(w, flow.reads[k].slot);
    if (from[k] != nullptr) touched |= from[k]->lanes;
  }
  WarpUndefined& own = *w.undefined;
  if (flow.takes_carry) touched |= own.carry;
  const Mask carried = flow.takes_carry ? own.carry : 0;
  const UndefinedSlot* guard = undefined_of(w, i.guard);
  const Mask unsure = guard != nullptr ? guard->lanes & w.lanes : 0;  // whether these lanes write at all
  touched &= mask & ~unsure;
  if (flow.gives_carry) own.carry &= ~(mask & ~touched);
  if ((touched | unsure) == 0) {
    for (const FlowOperand& o : flow.writes) set_defined(*w.frame, o.slot, mask);
    return;
  }
  // A result may be one of the operands: all are found before any is kept.
  struct Result {
    std::uint64_t bits;
    Origin origin;
  };
  const unsigned writes = static_cast<unsigned>(flow.writes.size());
  thread_local auto& results = *new std::vector<Result>;  // outlives the thread's destructors
  if (results.size() < std::size_t{writes} * kWarp) results.resize(std::size_t{writes} * kWarp);
  for_lanes(touched, [&](unsigned l) {
    const Mask bit = Mask{1} << l;
    std::uint64_t value[kMost], undefined[kMost];
    const Origin* origin = (carried & bit) != 0 ? &own.carry_origins[l] : nullptr;
    for (unsigned k = 0; k < reads; ++k) {
      const bool open = from[k] != nullptr && (from[k]->lanes & bit) != 0;
      value[k] = value_of(w, flow.reads[k], l);
      undefined[k] = open ? from[k]->bits[l] : 0;
      if (open && origin == nullptr) origin = &from[k]->origins[l];
    }
    Origin kept = *origin;
    kept.computed |= !flow.moves;
    bool any = (carried & bit) != 0;
    for (unsigned k = 0; k < reads; ++k) any |= undefined[k] != 0;
    for (unsigned k = 0; k < writes; ++k) {
      const std::uint64_t bits =
          (carried & bit) != 0 ? every_bit(flow.writes[k]) : flow.rule({i, flow, value, undefined, k});
      results[k * kWarp + l] = {bits, kept};
    }
    if (flow.gives_carry) {
      own.carry = any ? own.carry | bit : own.carry & ~bit;
      own.carry_origins[l] = kept;
    }
  });
  for_lanes(unsure, [&](unsigned l) {
    for (unsigned k = 0; k < writes; ++k) results[k * kWarp + l] = {every_bit(flow.writes[k]), guard->origins[l]};
  });
  for (unsigned k = 0; k < writes; ++k) {
    set_defined(*w.frame, flow.writes[k].slot, mask & ~touched);
    for_lanes(touched | unsure, [&](unsigned l) {
      set_undefined(*w.frame, flow.writes[k].slot, l, results[k * kWarp + l].bits, results[k * kWarp + l].origin);
    });
  }
}

// Where a block of code begins: registers that nobody needs any more are as good as defined.
void forget_dead(Warp& w, const Function& followed, std::uint32_t pc) {
  const Mask here = w.active | ~w.alive;
  if (!w.frame->undefined) return;
  const auto& places = followed.places;
  for (const auto& slot : w.frame->undefined->slots) {
    auto at = std::lower_bound(places.begin(), places.end(), slot->offset,
                               [](const PlaceLife& p, std::uint32_t o) { return p.offset < o; });
    if (at == places.end() || at->offset != slot->offset) {
      slot->lanes &= w.alive;
      continue;
    }
    bool alive = false;
    for (; at != places.end() && at->offset == slot->offset; ++at) alive |= at->first <= pc && pc <= at->last;
    slot->lanes &= alive ? w.alive : ~here;
  }
}

bool holds_undefined(Warp& w) {
  bool any = (w.undefined->carry & w.alive) != 0;
  for (const auto& f : w.frames)
    if (f->undefined) {
      if (f->fragments == 0) f->undefined->clear();
      else f->undefined->drop_defined();
      any = any || !f->undefined->slots.empty();
    }
  return any;
}

}  // namespace

const Inst* run_following(Warp& w, const Inst* pc) {
  const Program& followed = w.worker->program->followed();
  while (pc != nullptr) {
    const Function& running = *w.frame->function;
    const Function& known = followed.functions[running.number];
    const Flow& flow = known.flows[static_cast<std::size_t>(pc - running.code.data())];
    const Inst& i = *pc;
    if (i.fn == enter_block) {
      forget_dead(w, known, i.pc);
      if (!holds_undefined(w)) {
        w.follows = false;
        return pc;
      }
    }
    const Mask mask = w.lanes & (w.predicate(i.guard) ^ i.flip);
    if (flow.kind == FlowKind::computes) {
      compute(flow, i, w, mask);
    } else if (flow.kind != FlowKind::nothing) {
      const UndefinedUse use = flow.x != 0 ? UndefinedUse::branch : UndefinedUse::control;
      require_defined(i, w, i.guard, w.active, use);
      if (flow.kind == FlowKind::collective) require_defined(i, w, i.e, w.active & mask, UndefinedUse::members);
      if (flow.kind == FlowKind::decides) {
        for (const FlowOperand& o : flow.reads) require_defined(i, w, o.slot, w.active & mask, use);
        for (const FlowOperand& o : flow.writes) set_defined(*w.frame, o.slot, mask);
      }
    }
    pc = i.fn(i, w, mask);
  }
  return nullptr;
}

}  // namespace machine
