// The driver functions that make tensor maps.
#pragma once

#include <span>

namespace machine::runtime {

struct DriverFunction {
  const char* name;
  void* function;
};

std::span<const DriverFunction> tensor_map_functions();

}  // namespace machine::runtime
