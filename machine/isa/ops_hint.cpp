// Hints about caches: prefetch, discard, applypriority, createpolicy. Nothing here has a cache, so they do nothing.
#include "exec/lanes.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

const Inst* nothing(const Inst& i, Warp&, Mask) { return &i + 1; }

// A hint: the address is looked at by nobody.
void prefetch(Decoder& d) {
  if (d.accept("tensormap")) {
    d.accept_one({"param", "param::entry", "const"});
    d.end(1);
    d.address(0);
    d.emit(nothing);
    return;
  }
  d.accept_one({"global", "local"});
  if (d.accept_one({"L2::evict_last", "L2::evict_normal", "L1", "L2"}) < 0) d.fail("needs a level");
  d.end(1);
  d.address(0);
  d.emit(nothing);
}

// Of a whole cache line of 128 bytes: discard and applypriority.
void line_hint(Decoder& d, std::string_view level) {
  d.accept("global");
  if (!d.accept(level)) d.fail("needs ." + std::string(level));
  d.end(2);
  d.address(0);
  if (d.immediate(1) != 128) d.fail("the size must be 128");
  d.emit(nothing);
}

void prefetchu(Decoder& d) {
  if (!d.accept("L1")) d.fail("needs .L1");
  d.end(1);
  d.address(0);
  d.emit(nothing);
}

// createpolicy gives an opaque cache policy, which nothing here looks at.
void createpolicy(Decoder& d) {
  const int what = d.accept_one({"fractional", "range", "cvt"});
  if (what < 0) d.fail("needs .fractional, .range or .cvt");
  if (what == 1) d.accept("global");
  if (what == 2 ? !d.accept("L2")
                : d.accept_one({"L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"}) < 0)
    d.fail("needs a priority");
  if (what != 2) d.accept_one({"L2::evict_first", "L2::evict_unchanged"});  // of the rest
  d.type({Type::b64});
  d.end(what == 1 ? 4 : what == 2 ? 2 : 1, what == 1 ? 4 : 2);
  if (what == 0 && d.count() == 2) d.source(1, Type::f32);
  if (what == 1) d.address(1), d.source(2, Type::b32), d.source(3, Type::b32);
  if (what == 2) d.source(1, Type::b64);
  const Slot r = d.destination(0, Type::b64);
  d.emit([](const Inst& i, Warp& w, Mask mask) -> const Inst* {
     each_lane(w.at<std::uint64_t>(i.d), mask, [](unsigned) { return std::uint64_t{0}; });
     return &i + 1;
   }).d = r;
}

}  // namespace

std::span<const Opcode> hint_opcodes() {
  static const Opcode table[] = {
      {"prefetch", prefetch, InstructionClass::other},
      {"prefetchu", prefetchu, InstructionClass::other},
      {"applypriority", [](Decoder& d) { line_hint(d, "L2::evict_normal"); }, InstructionClass::other},
      {"discard", [](Decoder& d) { line_hint(d, "L2"); }, InstructionClass::other},
      {"createpolicy", createpolicy, InstructionClass::other},
  };
  return table;
}

}  // namespace machine
