// How many blocks of a kernel fit on a multiprocessor of the chosen architecture.
#pragma once

#include <cstddef>

#include "runtime/registry.hpp"

namespace machine::runtime {

// Registers a thread, as ptxas allotted them, when the fat binary holds machine code for this architecture too; else
// the most that does not limit occupancy: a guess that a report never shows as a fact.
unsigned registers_of(const CUkern_st& kernel);

// 0 when a block does not fit at all.
int blocks_per_multiprocessor(CUkern_st& kernel, std::size_t threads, std::size_t dynamic_shared);

}  // namespace machine::runtime
