// Tensor maps: a tensor in global memory and the boxes of it that one instruction copies. The 128 bytes are opaque to
// programs, and their layout here is the machine's own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "events/bulk.hpp"
#include "exec/types.hpp"

namespace machine {

enum class TensorElement : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
  count_
};

inline constexpr unsigned kMostTensorRank = 5;
inline constexpr std::uint32_t kTensorMapBytes = 128;

struct alignas(64) TensorMap {
  std::uint32_t magic = 0, check = 0;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 4> strides{};  // bytes, of the dimensions above the innermost
  std::array<std::uint32_t, 5> last{};     // last coordinate of each dimension, innermost first
  std::array<std::uint16_t, 5> box{};      // tile mode
  std::array<std::uint8_t, 5> element_strides{};
  TensorElement element = TensorElement::u8;
  std::uint8_t rank = 1;
  std::uint8_t interleave = 0;  // 0 none, 1: 16 bytes, 2: 32 bytes
  std::uint8_t swizzle = 0;     // 0 none, 1: 32 bytes, 2: 64 bytes, 3: 128 bytes
  bool fill_nan = false;
  bool im2col = false;
  std::array<std::int16_t, 3> lower{}, upper{};  // im2col: corners of the pixels' bounding box
  std::uint16_t channels = 0, pixels = 0;        // im2col: of one copy
  std::array<std::uint8_t, 20> unused{};

  // Before it is stored: makes the 128 bytes recognisable.
  void seal();
  bool valid() const;
  std::uint32_t element_bytes() const;
  // The type that reductions work on.
  Type type() const;
  // The bytes of an innermost row of a box, and those that it spans in shared memory.
  std::uint32_t row_bytes() const { return (im2col ? channels : box[0]) * element_bytes(); }
  std::uint32_t row_pitch() const;
  // What fills the elements outside the tensor.
  std::uint64_t fill() const;
};
static_assert(sizeof(TensorMap) == kTensorMapBytes);

// Where a copy begins.
struct TensorPlace {
  std::array<std::int32_t, 5> coordinates{};
  std::array<std::uint16_t, 3> offsets{};  // im2col
  std::uint64_t shared = 0;                // storage address of the box
};

// The pieces of a copy from the tensor (or, with `store`, to it; elements outside are left out then). Returns the bytes
// of the whole box.
std::uint32_t tensor_pieces(const TensorMap& map, const TensorPlace& place, bool store, std::vector<BulkPiece>& pieces);

// Why the hardware would refuse the map, or an empty text.
std::string tensor_map_fault(const TensorMap& map);

}  // namespace machine
