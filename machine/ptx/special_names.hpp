// The names of special registers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "exec/warp.hpp"

namespace machine {

// One that differs from warp to warp, or from launch to launch.
std::optional<Special> special_named(std::string_view name);

struct FixedRegister {
  std::uint64_t value;
  unsigned bytes;
};
// One that always holds the same.
std::optional<FixedRegister> fixed_register(std::string_view name);

}  // namespace machine
