#pragma once

#include <type_traits>

namespace machine {

// The multiple of `to` that is next from `value` upwards.
template <class T>
constexpr T round_up(T value, std::type_identity_t<T> to) {
  return (value + to - 1) / to * to;
}

}  // namespace machine
