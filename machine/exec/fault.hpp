// Faults that execution itself meets.
#pragma once

#include <string>
#include <string_view>

#include "exec/warp.hpp"

namespace machine {

// Reports a fault of these lanes at `i` to the checks, where there are any.
void report_fault(const Inst& i, Warp& w, Mask lanes, Fault fault, std::string_view detail = {});

// The same, and ends the launch. Returns what a handler returns then.
const Inst* end_with_fault(const Inst& i, Warp& w, Mask lanes, Fault fault, LaunchStatus status,
                           const std::string& detail);

}  // namespace machine
