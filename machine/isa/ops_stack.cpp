// Memory that threads ask for on their stack: alloca, stacksave, stackrestore.
#include <algorithm>
#include <cstring>

#include "exec/call_stack.hpp"
#include "exec/lanes.hpp"
#include "exec/memory_access.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

constexpr std::uint32_t kStackAlign = 16;
constexpr int kUnwritten = 0xff;  // as block.cpp fills memory that nobody has written

GrownStack& grown_of(Frame& f) {
  if (!f.grown) {
    f.grown = std::make_unique<GrownStack>();
    f.grown->top.fill(f.base + stack_space(*f.function));
  }
  return *f.grown;
}

void put_address(Warp& w, const Inst& i, unsigned lane, std::uint32_t offset) {
  if (i.extra == 8) w.at<std::uint64_t>(i.d)[lane] = offset;
  else w.at<std::uint32_t>(i.d)[lane] = offset;
}

// a: bytes; b: alignment
const Inst* grow(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  if (w.follows) [[unlikely]]
    require_defined(i, w, i.a, lanes, UndefinedUse::address);
  GrownStack& stack = grown_of(*w.frame);
  GrownStack::Array array;
  array.lanes = lanes;
  const std::uint64_t align = std::max(i.b, kStackAlign);
  Mask over = 0;
  for_lanes(lanes, [&](unsigned l) {
    const std::uint64_t bytes = i.extra == 8 ? w.at<const std::uint64_t>(i.a)[l] : w.at<const std::uint32_t>(i.a)[l];
    const std::uint64_t base = (stack.top[l] + align - 1) / align * align;
    const std::uint64_t room = (std::min<std::uint64_t>(bytes, 1u << 30) + kStackAlign - 1) / kStackAlign * kStackAlign;
    // The next one begins a little further, so that an overrun meets nothing.
    if (base + room + kStackAlign > w.local_bytes || w.frame->charge + stack.taken[l] + room > w.worker->stack_limit) {
      over |= Mask{1} << l;
      return;
    }
    array.base[l] = static_cast<std::uint32_t>(base);
    array.size[l] = static_cast<std::uint32_t>(bytes);
    stack.top[l] = static_cast<std::uint32_t>(base + room + kStackAlign);
    stack.taken[l] += static_cast<std::uint32_t>(room);
    for (std::uint64_t at = base; at < base + room; at += 4) std::memset(local_word(w, at, l), kUnwritten, 4);
    put_address(w, i, l, array.base[l]);
  });
  if (over != 0) return overflow_stack(i, w, over);
  if (w.follows) [[unlikely]]
    set_defined(*w.frame, i.d, lanes);
  stack.arrays.push_back(array);
  if (w.observer != nullptr) w.observer->stack_grown(w.point(i, lanes), array);
  return &i + 1;
}

const Inst* save(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  const GrownStack& stack = grown_of(*w.frame);
  for_lanes(lanes, [&](unsigned l) { put_address(w, i, l, stack.top[l]); });
  if (w.follows) [[unlikely]]
    set_defined(*w.frame, i.d, lanes);
  return &i + 1;
}

// What lanes have asked for since the save is theirs no more.
const Inst* restore(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  if (w.follows) [[unlikely]]
    require_defined(i, w, i.a, lanes, UndefinedUse::address);
  GrownStack& stack = grown_of(*w.frame);
  const std::uint32_t bottom = w.frame->base + stack_space(*w.frame->function);
  for_lanes(lanes, [&](unsigned l) {
    const std::uint64_t to = i.extra == 8 ? w.at<const std::uint64_t>(i.a)[l] : w.at<const std::uint32_t>(i.a)[l];
    if (to < bottom || to > stack.top[l]) return;
    stack.top[l] = static_cast<std::uint32_t>(to);
    for (auto& array : stack.arrays) {
      if ((array.lanes >> l & 1) == 0 || array.base[l] < to) continue;
      array.lanes &= ~(Mask{1} << l);
      stack.taken[l] -= (array.size[l] + kStackAlign - 1) / kStackAlign * kStackAlign;
    }
  });
  std::erase_if(stack.arrays, [](const GrownStack::Array& a) { return a.lanes == 0; });
  return &i + 1;
}

void alloca_decode(Decoder& d) {
  const Type t = d.type({Type::u32, Type::u64});
  d.end(2, 3);
  const std::uint32_t align = d.count() == 3 ? d.immediate(2) : kStackAlign;
  if (align == 0 || (align & (align - 1)) != 0 || align > 4096) d.fail("bad alignment");
  const Slot bytes = d.source(1, t), to = d.destination(0, t);
  Inst& i = d.emit(grow);
  i.a = bytes, i.d = to, i.b = align, i.extra = bytes_of(t);
  d.function.grows_stack = true;
}

void save_decode(Decoder& d) {
  const Type t = d.type({Type::u32, Type::u64});
  d.end(1);
  const Slot to = d.destination(0, t);
  Inst& i = d.emit(save);
  i.d = to, i.extra = bytes_of(t);
}

void restore_decode(Decoder& d) {
  const Type t = d.type({Type::u32, Type::u64});
  d.end(1);
  const Slot from = d.source(0, t);
  Inst& i = d.emit(restore);
  i.a = from, i.extra = bytes_of(t);
}

}  // namespace

std::span<const Opcode> stack_opcodes() {
  static constexpr auto k = InstructionClass::other;
  static const Opcode table[] = {
      {"alloca", alloca_decode, k}, {"stacksave", save_decode, k}, {"stackrestore", restore_decode, k}};
  return table;
}

}  // namespace machine
