// How a process on the CPU device ends, other than by its own will.
#pragma once

#include <string>

namespace machine::runtime {

inline constexpr int kNothingVerified = 3;

// Nothing can be verified: prints one line, closes the report as refused, ends the process with exit code 3.
// What the program wrote so far is flushed.
[[noreturn]] void refuse(const std::string& line);

// Closes the report when the process ends by exit, by return from main, or by a fatal signal.
void watch_process_end();

}  // namespace machine::runtime
