// Undefined bits in the registers of a warp, and how a warp that holds any runs.
//
// A warp begins to follow when a load gives bytes that nobody has written, or when it reads a register that nobody has
// written. From then on every instruction is followed (flow.hpp) until no register that is still needed holds an
// undefined bit. Other warps pay nothing. An undefined value that decides something is reported to the checks, where it
// decides.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "exec/collective.hpp"
#include "exec/flow.hpp"
#include "exec/memory_access.hpp"
#include "exec/warp.hpp"

namespace machine {

// The undefined bits of one register or predicate.
struct UndefinedSlot {
  std::uint32_t offset = 0;  // in the frame
  Mask lanes = 0;            // with an undefined bit; the arrays count for them only
  std::array<std::uint64_t, kWarp> bits;
  std::array<Origin, kWarp> origins;
};

struct FrameUndefined {
  std::vector<std::uint16_t> index;  // by offset / 4: one more than the place in `slots`; 0: all defined
  std::vector<std::unique_ptr<UndefinedSlot>> slots, spare;

  UndefinedSlot* find(Slot s) const {
    if ((s & 3) != static_cast<Slot>(Bank::registers)) return nullptr;
    const std::uint16_t at = index[s >> 2];
    return at == 0 ? nullptr : slots[at - 1].get();
  }
  UndefinedSlot& make(Slot s);
  void drop_defined();  // slots without undefined lanes
  void clear();
};

// What is undefined and in no frame.
struct WarpUndefined {
  Mask carry = 0;
  std::array<Origin, kWarp> carry_origins;
  // What lanes have brought to a collective whose lanes arrive at different instructions.
  Mask staged = 0;
  std::array<std::uint64_t, kWarp> staged_bits;
  std::array<Origin, kWarp> staged_origins;
};

// Undefined bits of a slot in the running frame; null: none.
inline UndefinedSlot* undefined_of(const Warp& w, Slot s) {
  return w.frame->undefined ? w.frame->undefined->find(s) : nullptr;
}
inline Mask undefined_lanes(const Warp& w, Slot s) {
  const UndefinedSlot* u = undefined_of(w, s);
  return u != nullptr ? u->lanes : 0;
}
void set_undefined(Frame& frame, Slot s, unsigned lane, std::uint64_t bits, const Origin& origin);  // bits 0: defined
inline void set_defined(Frame& frame, Slot s, Mask lanes) {
  if (UndefinedSlot* u = frame.undefined ? frame.undefined->find(s) : nullptr; u != nullptr) u->lanes &= ~lanes;
}
// Copies the undefined bits of `lanes` from one slot to another, between frames too.
void copy_undefined(const Frame& from, Slot source, Frame& to, Slot destination, Mask lanes);

// Undefined values decide something here.
void report_undefined(const Inst& i, Warp& w, UndefinedUse use, Mask lanes, const Origin& origin);
// The same where they are those of a slot.
inline void require_defined(const Inst& i, Warp& w, Slot s, Mask lanes, UndefinedUse use) {
  const UndefinedSlot* u = undefined_of(w, s);
  if (u == nullptr || (u->lanes & lanes) == 0) return;
  const Mask at = u->lanes & lanes;
  report_undefined(i, w, use, at, u->origins[static_cast<unsigned>(std::countr_zero(at))]);
}

// The warp holds undefined bits from here on; what a handler returns that found them.
const Inst* follow(Warp& w, const Inst* next);
// Runs `pc` and what follows it until the warp holds none any more (returns where to go on) or stops (nullptr).
const Inst* run_following(Warp& w, const Inst* pc);

// ---- what handlers of memory and collectives do in a warp that follows -------------------------------------------

// Before a load, store or atomic: its addresses decide, what it stores goes with it, what it loads is defined until
// reported.
void before_memory(const Inst& i, Warp& w, const MemoryOp& op, Mask mask);
// After a load of which the checks reported undefined bytes.
void loaded_undefined(Warp& w, const MemoryOp& op);
// `operands` become what memory holds; one of each and of the results for every component.
void before_atomic(const Inst& i, Warp& w, const MemoryOp& op, const Slot* operands, const Slot* results, Mask mask);
// What a compare-and-swap compares with, noted before it runs: its results may go to the same registers.
struct Comparand {
  std::array<std::array<std::uint64_t, kWarp>, 2> value;  // by component
  Mask lanes = 0;                                         // with an undefined bit; the bits and origins count for them
  std::array<std::array<std::uint64_t, kWarp>, 2> bits{};
  std::array<Origin, kWarp> origins;
};
void note_comparand(Comparand& comparand, const Warp& w, const MemoryOp& op, Mask mask);
// Behind it: whether it stored hung on undefined bits. A first guess that was loaded from the same place is none: the
// swap finds out what it is worth.
void swap_undefined(const Inst& i, Warp& w, const MemoryOp& op, const Comparand& comparand, const Slot* results,
                    Mask mask);
void atomic_undefined(Warp& w, const MemoryOp& op, const Slot* results);
// A parameter of a called function, moved between its area and registers.
void area_undefined(Warp& w, const MemoryOp& op, Slot area, std::int64_t offset, Mask mask);

// shfl: lane l gets what `from[l]` brought. `fixed`: `from` does not come from registers.
void shuffled_undefined(const Inst& i, Warp& w, const Meeting& m, const std::uint32_t* from, bool fixed);
// Lanes that read one outside the collective.
const Inst* shuffled_absent(const Inst& i, Warp& w, Mask lanes);
// vote: `predicate` is what the lanes brought. match, redux: everyone's value goes into everyone's result.
enum class Vote : std::uint8_t { all, any, uni, ballot };
void voted_undefined(const Inst& i, Warp& w, const Meeting& m, Vote vote, Mask predicate);
void joined_undefined(const Inst& i, Warp& w, const Meeting& m, bool bitwise);
// What lanes that wait elsewhere will be asked for.
void stage_undefined(const Inst& i, Warp& w, Mask lanes);

// ldmatrix and stmatrix of `count` tiles, as before_memory and loaded_undefined; movmatrix.
void before_tiles(const Inst& i, Warp& w, const Slot* registers, unsigned count, bool transposed, bool store,
                  Mask lanes);
void tiles_undefined(Warp& w, const Slot* registers, unsigned count, bool transposed, Mask lanes);
void transposed_undefined(const Inst& i, Warp& w, const Meeting& m);

}  // namespace machine
