#include "ptx/local_arrays.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

namespace machine {
namespace {

// The arrays that an address may come from, a bit each.
using Roots = std::uint64_t;
constexpr Roots kUnknown = Roots{1} << 63;  // some array, nobody knows which
constexpr Roots kFrame = Roots{1} << 62;    // the address of the whole frame
constexpr std::size_t kMostParts = 62;

bool one_part(Roots r) { return std::has_single_bit(r) && r < kFrame; }
bool is_frame(const Object& array) { return array.name.starts_with("__local_depot"); }

struct Analysis {
  LocalLayout& layout;
  std::map<std::uint64_t, unsigned> part_at;  // by offset of its first byte
  std::unordered_map<std::string_view, Roots> of;
  bool changed = false;

  Roots roots(const Operand& o) const {
    if (o.kind == Operand::list) {
      Roots all = 0;
      for (const auto& part : o.parts) all |= roots(part);
      return all;
    }
    if (o.kind != Operand::name) return 0;
    for (const Object& array : layout.arrays)
      if (array.name == o.text)
        return is_frame(array) ? (o.offset == 0 ? kFrame : kUnknown) : Roots{1} << part_at.at(array.base);
    const auto found = of.find(o.text);
    return found == of.end() ? 0 : found->second;
  }

  void define(const Operand& o, Roots r) {
    if (o.kind == Operand::list) {
      for (const auto& part : o.parts) define(part, r);
    } else if (o.kind == Operand::name && r != 0) {
      Roots& known = of[o.text];
      changed |= (known | r) != known;
      known |= r;
    }
  }

  // What the result of a statement is made of.
  Roots result(const LocalStatement& s) const {
    const auto& o = s.operands;
    const auto at = [&](std::size_t k) { return k < o.size() ? roots(o[k]) : 0; };
    Roots all = 0;
    for (std::size_t k = 1; k < o.size(); ++k) all |= at(k);
    if (all == 0 || s.base == "ld" || s.base == "ldu" || s.base == "atom")
      return 0;  // what lies in memory may be anything
    if (s.base == "mov") return all;
    // A place in the frame, as a generic address, cannot be taken apart any further.
    if (s.base == "cvta") return (all & kFrame) != 0 ? kUnknown : all;
    if (s.base == "selp") return all;
    if (s.base == "add" && o.size() == 3) {
      if (at(1) == kFrame && o[2].kind == Operand::number) {
        const auto found = part_at.find(frame_base() + o[2].number_value.bits);
        return found == part_at.end() ? kUnknown : Roots{1} << found->second;
      }
      if (all == at(1) && at(2) == 0) return all & kFrame ? kUnknown : all;
      if (all == at(2) && at(1) == 0) return all & kFrame ? kUnknown : all;
    }
    // The difference of two addresses is a number that can lead from one array to another.
    if (s.base == "sub" && o.size() == 3 && at(2) == 0 && (all & kFrame) == 0) return all;
    if (s.base == "mad" && o.size() == 4 && at(1) == 0 && at(2) == 0 && (all & kFrame) == 0) return all;
    return kUnknown;
  }

  std::uint64_t frame_base() const {
    for (const Object& array : layout.arrays)
      if (is_frame(array)) return array.base;
    return 0;
  }
};

// Sums of the frame's address in local space and a number.
std::vector<std::uint64_t> offsets_in_frame(const Object& frame, const std::vector<LocalStatement>& statements) {
  std::vector<std::string_view> pointers;
  for (const auto& s : statements)
    if (s.base == "mov" && s.operands.size() == 2 && s.operands[1].kind == Operand::name &&
        s.operands[1].text == frame.name && s.operands[1].offset == 0)
      pointers.push_back(s.operands[0].text);
  std::vector<std::uint64_t> offsets;
  for (const auto& s : statements) {
    if (s.base != "add" || s.operands.size() != 3 || s.operands[2].kind != Operand::number) continue;
    if (std::find(pointers.begin(), pointers.end(), s.operands[1].text) == pointers.end()) continue;
    if (s.operands[2].number_value.bits < frame.size) offsets.push_back(s.operands[2].number_value.bits);
  }
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  return offsets;
}

std::vector<Object> parts_of(const Object& array, const std::vector<LocalStatement>& statements) {
  if (!is_frame(array)) return {array};
  const auto offsets = offsets_in_frame(array, statements);
  std::vector<Object> parts;
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    Object part = array;
    const std::uint64_t end = k + 1 < offsets.size() ? offsets[k + 1] : array.size;
    part.base = array.base + offsets[k];
    part.size = end - offsets[k];
    part.name = "the array at " + array.name + "[" + std::to_string(offsets[k]) + ".." + std::to_string(end - 1) + "]";
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

void distinguish_local_arrays(LocalLayout& layout, const std::vector<LocalStatement>& statements) {
  for (const Object& array : layout.arrays)
    for (auto& part : parts_of(array, statements)) layout.parts.push_back(std::move(part));
  // One array has no neighbour.
  if (layout.parts.size() < 2 || layout.parts.size() > kMostParts) return layout.parts.clear();
  Analysis known{layout, {}, {}};
  for (unsigned k = 0; k < layout.parts.size(); ++k) known.part_at[layout.parts[k].base] = k;
  do {
    known.changed = false;
    for (const auto& s : statements)
      if (!s.operands.empty()) known.define(s.operands[0], known.result(s));
  } while (known.changed);
  for (const auto& s : statements)
    for (const auto& o : s.operands) {
      if (o.kind != Operand::address || o.text.empty()) continue;
      const Roots r = known.roots(Operand{.kind = Operand::name, .text = o.text, .number_value = {}, .parts = {}});
      if (one_part(r)) layout.uses.push_back({s.pc, static_cast<std::uint32_t>(std::countr_zero(r))});
    }
}

}  // namespace machine
