// How loads and stores move values between registers and memory, by element, register and shape of the addresses.
#include <cstring>

#include "isa/memory_decode.hpp"

namespace machine {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class E, class R, unsigned Stride>
void load_run(R* d, u64 from) {
  const E* p = reinterpret_cast<const E*>(from);
  if constexpr (sizeof(E) == sizeof(R) && Stride == 1) {
    std::memcpy(d, p, sizeof(R) * kWarp);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) d[l] = static_cast<R>(p[l * Stride]);
  }
}

template <class E, class R>
void load(const MemoryOp& op, Warp& w, const u64* address, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    R* d = w.at<R>(op.registers[c]);
    const u64 offset = c * sizeof(E);
    if (shape == Shape::contiguous) {
      switch (op.components) {
        case 1: load_run<E, R, 1>(d, address[0] + offset); break;
        case 2: load_run<E, R, 2>(d, address[0] + offset); break;
        case 4: load_run<E, R, 4>(d, address[0] + offset); break;
        default: load_run<E, R, 8>(d, address[0] + offset); break;
      }
    } else if (shape == Shape::uniform) {
      const R v = static_cast<R>(*reinterpret_cast<const E*>(address[std::countr_zero(mask)] + offset));
      each_lane(d, mask, [=](unsigned) { return v; });
    } else if (mask == kFullMask) {
      for (unsigned l = 0; l < kWarp; ++l) d[l] = static_cast<R>(*reinterpret_cast<const E*>(address[l] + offset));
    } else {
      for_lanes(mask, [&](unsigned l) { d[l] = static_cast<R>(*reinterpret_cast<const E*>(address[l] + offset)); });
    }
  }
}

template <class E, class R, unsigned Stride>
void store_run(const R* s, u64 to) {
  E* p = reinterpret_cast<E*>(to);
  if constexpr (sizeof(E) == sizeof(R) && Stride == 1) {
    std::memcpy(p, s, sizeof(R) * kWarp);
  } else {
#pragma GCC ivdep
    for (unsigned l = 0; l < kWarp; ++l) p[l * Stride] = static_cast<E>(s[l]);
  }
}

template <class E, class R>
void store(const MemoryOp& op, Warp& w, const u64* address, Mask mask, Shape shape) {
  // Lanes that write the same place: the highest lane wins, for every component alike.
  for (unsigned c = 0; c < op.components; ++c) {
    const R* s = w.at<const R>(op.registers[c]);
    const u64 offset = c * sizeof(E);
    if (shape == Shape::contiguous) {
      switch (op.components) {
        case 1: store_run<E, R, 1>(s, address[0] + offset); break;
        case 2: store_run<E, R, 2>(s, address[0] + offset); break;
        case 4: store_run<E, R, 4>(s, address[0] + offset); break;
        default: store_run<E, R, 8>(s, address[0] + offset); break;
      }
    } else {
      for_lanes(mask, [&](unsigned l) { *reinterpret_cast<E*>(address[l] + offset) = static_cast<E>(s[l]); });
    }
  }
}

// Local memory is interleaved by word: an element of 8 bytes lies in two words.
template <class E, class R>
void load_local(const MemoryOp& op, Warp& w, const u64* offset, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    R* d = w.at<R>(op.registers[c]);
    const u64 shift = c * sizeof(E);
    if constexpr (sizeof(E) == 4 && sizeof(R) == 4) {
      if (shape == Shape::uniform && mask == kFullMask) {
        std::memcpy(d, local_word(w, offset[0] + shift, 0), 128);
        continue;
      }
    }
    for_lanes(mask, [&](unsigned l) {
      if constexpr (sizeof(E) == 8) {
        u32 low, high;
        std::memcpy(&low, local_word(w, offset[l] + shift, l), 4);
        std::memcpy(&high, local_word(w, offset[l] + shift + 4, l), 4);
        d[l] = static_cast<R>(u64{high} << 32 | low);
      } else {
        E v;
        std::memcpy(&v, local_word(w, offset[l] + shift, l), sizeof v);
        d[l] = static_cast<R>(v);
      }
    });
  }
}
template <class E, class R>
void store_local(const MemoryOp& op, Warp& w, const u64* offset, Mask mask, Shape shape) {
  for (unsigned c = 0; c < op.components; ++c) {
    const R* s = w.at<const R>(op.registers[c]);
    const u64 shift = c * sizeof(E);
    if constexpr (sizeof(E) == 4 && sizeof(R) == 4) {
      if (shape == Shape::uniform && mask == kFullMask) {
        std::memcpy(local_word(w, offset[0] + shift, 0), s, 128);
        continue;
      }
    }
    for_lanes(mask, [&](unsigned l) {
      if constexpr (sizeof(E) == 8) {
        const u32 low = static_cast<u32>(s[l]), high = static_cast<u32>(static_cast<u64>(s[l]) >> 32);
        std::memcpy(local_word(w, offset[l] + shift, l), &low, 4);
        std::memcpy(local_word(w, offset[l] + shift + 4, l), &high, 4);
      } else {
        const E v = static_cast<E>(s[l]);
        std::memcpy(local_word(w, offset[l] + shift, l), &v, sizeof v);
      }
    });
  }
}

template <class E>
void choose_load(MemoryOp& op) {
  if (op.register_width == 2) {
    if constexpr (sizeof(E) <= 2) op.transfer = load<E, u16>, op.transfer_local = load_local<E, u16>;
  } else if (op.register_width == 4) {
    if constexpr (sizeof(E) <= 4) op.transfer = load<E, u32>, op.transfer_local = load_local<E, u32>;
  } else {
    op.transfer = load<E, u64>, op.transfer_local = load_local<E, u64>;
  }
}
template <class E>
void choose_store(MemoryOp& op) {
  if (op.register_width == 2) {
    if constexpr (sizeof(E) <= 2) op.transfer = store<E, u16>, op.transfer_local = store_local<E, u16>;
  } else if (op.register_width == 4) {
    if constexpr (sizeof(E) <= 4) op.transfer = store<E, u32>, op.transfer_local = store_local<E, u32>;
  } else {
    op.transfer = store<E, u64>, op.transfer_local = store_local<E, u64>;
  }
}

}  // namespace

void prepare_element(Decoder& d, MemoryOp& op, Type t) {
  const bool store = op.kind == AccessKind::store;
  const bool sign = op.sign = is_signed(t);
  switch (op.element) {
    case 1: store ? choose_store<u8>(op) : sign ? choose_load<std::int8_t>(op) : choose_load<u8>(op); break;
    case 2: store ? choose_store<u16>(op) : sign ? choose_load<std::int16_t>(op) : choose_load<u16>(op); break;
    case 4: store ? choose_store<u32>(op) : sign ? choose_load<std::int32_t>(op) : choose_load<u32>(op); break;
    case 8: store ? choose_store<u64>(op) : choose_load<u64>(op); break;
    default: d.refuse_type(t);
  }
  if (op.transfer == nullptr) d.fail("the register is narrower than the access");
}

}  // namespace machine
