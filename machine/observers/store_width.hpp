// How wide the stores are that a kernel makes, by the spelling of its instructions: what padding is judged by.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace machine::checks {

// In bytes: one component of a vector, and all that one thread writes at once, to a multiple of its size.
struct StoreWidth {
  unsigned element = 0, access = 0;

  void widen(const StoreWidth& o) {
    element = std::max(element, o.element);
    access = std::max(access, o.access);
  }
};

inline constexpr unsigned kWidestAccess = 16;  // of an instruction whose spelling does not say it

// Of an instruction such as "@%p1 st.global.v4.f32 [...], ..."; nothing where it is no st, atom or red.
std::optional<StoreWidth> store_width(std::string_view text);

}  // namespace machine::checks
