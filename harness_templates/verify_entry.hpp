// What the generated file (harness.cu.j2) gives the fixed part of the harness, which is compiled apart from it.
#pragma once

#include <cuda_runtime.h>

#include "verify_values.hpp"

// Calls the contract's entry, all of it in order, up to its first error.
cudaError_t verify_call_entry(const verify::Arguments& arguments, cudaStream_t stream);

// Answers one plan request: the launcher's status, and the plan's fields as the rest of a JSON object.
cudaError_t verify_ask_plan(const verify::Arguments& arguments, int sm_count, std::string& fields);

extern const bool verify_entry_takes_stream;
extern const std::size_t verify_value_count;
extern const std::size_t verify_buffer_count;
