// Which array of the source an access to local memory means.
//
// nvcc lays all local arrays of a function into one variable, the frame, and takes the address of each by adding its
// offset to the address of the frame in local space (`add.u64 %rd1, %SPL, 64`). Whatever is computed from there stays
// in that array, or the program is wrong. Where an address comes from one such sum alone, by additions of numbers,
// moves and conversions of the address space, the array is known; where it went through memory, a call, a choice
// between arrays or other arithmetic, any array may be meant. Addresses made from the generic frame pointer
// (`%SP`, all of them in a debug build) can lie inside an array, and say nothing.
#pragma once

#include <vector>

#include "memory/layout.hpp"
#include "ptx/decoder.hpp"

namespace machine {

// Fills `parts` and `uses` of a layout whose `arrays` are known.
void distinguish_local_arrays(LocalLayout& layout, const std::vector<LocalStatement>& statements);

}  // namespace machine
