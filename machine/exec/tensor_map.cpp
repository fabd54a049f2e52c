#include "exec/tensor_map.hpp"

#include <algorithm>
#include <cstring>

namespace machine {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s64 = std::int64_t;

constexpr u32 kMagic = 0x70616d74;

u32 checksum(const TensorMap& map) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&map);
  u32 sum = 2166136261u;  // FNV-1a
  for (std::size_t k = offsetof(TensorMap, address); k < sizeof map; ++k) sum = (sum ^ bytes[k]) * 16777619u;
  return sum;
}

// Appends what is read and what is filled of one innermost row.
class Rows {
 public:
  Rows(const TensorMap& map, const TensorPlace& place, bool store, std::vector<BulkPiece>& pieces)
      : map_(map),
        store_(store),
        pieces_(pieces),
        shared_(place.shared),
        bytes_(map.row_bytes()),
        pitch_(map.row_pitch()) {
    const s64 element = map.element_bytes(), count = bytes_ / element;
    const s64 first = std::clamp<s64>(-s64{place.coordinates[0]}, 0, count);
    const s64 end = std::clamp<s64>(s64{map.last[0]} + 1 - place.coordinates[0], first, count);
    before_ = static_cast<u32>(first * element), inside_ = static_cast<u32>((end - first) * element);
    start_ = (place.coordinates[0] + first) * element;
  }

  // `row`: the bytes from the tensor's start to the row, where it lies inside.
  void add(bool inside, u64 row) {
    const u64 to = shared_;
    shared_ += pitch_;
    if (!inside || inside_ == 0) return outside(to, bytes_);
    outside(to, before_);
    const u64 global = map_.address + row + static_cast<u64>(start_), shared = to + before_;
    pieces_.push_back(store_ ? BulkPiece{shared, global, inside_} : BulkPiece{global, shared, inside_});
    outside(shared + inside_, bytes_ - before_ - inside_);
  }

 private:
  void outside(u64 to, u32 bytes) {
    if (!store_ && bytes != 0) pieces_.push_back({0, to, bytes});
  }

  const TensorMap& map_;
  bool store_;
  std::vector<BulkPiece>& pieces_;
  u64 shared_;
  u32 bytes_, pitch_, before_ = 0, inside_ = 0;
  s64 start_ = 0;
};

u32 tile_pieces(const TensorMap& map, const TensorPlace& place, Rows& rows) {
  std::array<u32, 5> count{1, 1, 1, 1, 1}, at{};
  u32 total = 1;
  for (unsigned d = 1; d < map.rank; ++d) {
    count[d] = (map.box[d] + map.element_strides[d] - 1u) / map.element_strides[d];
    total *= count[d];
  }
  for (u32 row = 0; row < total; ++row) {
    bool inside = true;
    u64 offset = 0;
    for (unsigned d = 1; d < map.rank; ++d) {
      const s64 c = place.coordinates[d] + s64{at[d]} * map.element_strides[d];
      inside &= c >= 0 && c <= s64{map.last[d]};
      offset += static_cast<u64>(c) * map.strides[d - 1];
    }
    rows.add(inside, offset);
    for (unsigned d = 1; d < map.rank && ++at[d] == count[d]; ++d) at[d] = 0;
  }
  return total;
}

// Pixels one after the other through the bounding box, the offsets added to each.
u32 im2col_pieces(const TensorMap& map, const TensorPlace& place, Rows& rows) {
  const unsigned spatial = map.rank - 2u, images = map.rank - 1u;
  std::array<s64, 5> at{};
  for (unsigned d = 1; d < map.rank; ++d) at[d] = place.coordinates[d];
  for (u32 pixel = 0; pixel < map.pixels; ++pixel) {
    bool inside = at[images] >= 0 && at[images] <= s64{map.last[images]};
    u64 offset = static_cast<u64>(at[images]) * map.strides[images - 1];
    for (unsigned d = 1; d <= spatial; ++d) {
      const s64 c = at[d] + place.offsets[d - 1];
      inside &= c >= 0 && c <= s64{map.last[d]};
      offset += static_cast<u64>(c) * map.strides[d - 1];
    }
    rows.add(inside, offset);
    unsigned d = 1;
    for (; d <= spatial; ++d) {
      at[d] += map.element_strides[d];
      if (at[d] <= s64{map.last[d]} + map.upper[d - 1]) break;
      at[d] = map.lower[d - 1];
    }
    if (d > spatial) ++at[images];
  }
  return map.pixels;
}

}  // namespace

void TensorMap::seal() {
  magic = kMagic;
  check = checksum(*this);
}

bool TensorMap::valid() const { return magic == kMagic && check == checksum(*this); }

u32 TensorMap::element_bytes() const {
  switch (element) {
    case TensorElement::u8: return 1;
    case TensorElement::u16:
    case TensorElement::f16:
    case TensorElement::bf16: return 2;
    case TensorElement::u64:
    case TensorElement::s64:
    case TensorElement::f64: return 8;
    default: return 4;
  }
}

Type TensorMap::type() const {
  static constexpr Type kElementTypes[] = {Type::u8,  Type::u16, Type::u32,  Type::s32, Type::u64, Type::s64, Type::f16,
                                           Type::f32, Type::f64, Type::bf16, Type::f32, Type::f32, Type::f32};
  return kElementTypes[static_cast<std::size_t>(element)];
}

u32 TensorMap::row_pitch() const {
  const u32 bytes = row_bytes();
  return swizzle == 0 ? bytes : std::max(bytes, 16u << swizzle);
}

u64 TensorMap::fill() const {
  if (!fill_nan) return 0;
  return element_bytes() == 2 ? 0x7fff : element_bytes() == 4 ? 0x7fffffff : 0x7fffffffffffffff;
}

u32 tensor_pieces(const TensorMap& map, const TensorPlace& place, bool store, std::vector<BulkPiece>& pieces) {
  Rows rows(map, place, store, pieces);
  const u32 total = map.im2col ? im2col_pieces(map, place, rows) : tile_pieces(map, place, rows);
  return total * map.row_bytes();
}

// What a block of sm_90 can have.
constexpr u64 kMostSharedBytes = 227 * 1024;

std::string tensor_map_fault(const TensorMap& map) {
  const auto number = [](u64 v) { return std::to_string(v); };
  if (map.element >= TensorElement::count_) return "a data type that needs sm_100 or later";
  if (map.rank < 1 || map.rank > kMostTensorRank) return "a rank of " + number(map.rank) + ", not of 1 to 5";
  if (map.rank < 3 && (map.interleave != 0 || map.im2col)) return "a rank below 3 with an interleave or in im2col mode";
  if (map.interleave > 2 || map.swizzle > 3) return "an interleave or swizzle that does not exist";
  const u64 align = map.interleave == 2 ? 32 : 16;
  if (map.address % align != 0) return "a global address that is no multiple of " + number(align);
  for (unsigned d = 0; d + 1 < map.rank; ++d)
    if (map.strides[d] % align != 0 || map.strides[d] >= u64{1} << 40)
      return "a stride of " + number(map.strides[d]) + " bytes, no multiple of " + number(align) + " below 2^40";
  u64 box_bytes = map.element_bytes();
  for (unsigned d = 0; d < map.rank; ++d) {
    if (map.element_strides[d] < 1 || map.element_strides[d] > 8) return "an element stride outside 1 to 8";
    if (!map.im2col && (map.box[d] < 1 || map.box[d] > 256)) return "a box dimension outside 1 to 256";
    box_bytes *= map.box[d];
  }
  // The hardware refuses 2 MB and accepts 8 KB; where between them it begins to was not measured.
  if (!map.im2col && box_bytes > kMostSharedBytes)
    return "a box of " + number(box_bytes) + " bytes, more than any shared memory";
  if (map.im2col && (map.channels < 1 || map.channels > 256 || map.pixels < 1 || map.pixels > 1024))
    return "channels a pixel outside 1 to 256, or pixels a column outside 1 to 1024";
  if (map.interleave == 0 && map.row_bytes() % 16 != 0)
    return "an innermost box of " + number(map.row_bytes()) + " bytes, no multiple of 16";
  if (map.interleave == 0 && map.swizzle != 0 && map.row_bytes() > 16u << map.swizzle)
    return "an innermost box of " + number(map.row_bytes()) + " bytes, more than the swizzle's " +
           number(16u << map.swizzle);
  const bool integer = map.element < TensorElement::f16;
  if (map.fill_nan && integer) return "a fill with NaN of an integer type";
  if (map.im2col) {
    static constexpr int kLeast[] = {-32768, -128, -16}, kMost[] = {32767, 127, 15};
    for (unsigned d = 0; d + 2 < map.rank; ++d)
      for (const int corner : {map.lower[d], map.upper[d]})
        if (corner < kLeast[map.rank - 3] || corner > kMost[map.rank - 3])
          return "a corner of the pixel box out of range";
    for (unsigned d = 0; d + 2 < map.rank; ++d)
      if (std::int64_t{map.last[d + 1]} + map.upper[d] < map.lower[d]) return "an empty box of pixels";
  }
  return {};
}

}  // namespace machine
