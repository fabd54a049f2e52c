// What every runtime entry does before and after its own work: locking, sticky errors, the last error, fork.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/background.hpp"
#include "runtime/exit.hpp"
#include "runtime/schedule.hpp"

namespace machine::runtime {

// Thrown inside an entry: the code that the call returns, and one line of reason for the report.
struct ApiError {
  cudaError_t code;
  std::string why;
};

[[noreturn]] inline void fail(cudaError_t code, std::string why = {}) { throw ApiError{code, std::move(why)}; }

inline void require(bool holds, cudaError_t code, const char* why) {
  if (!holds) fail(code, why);
}

// The error that a kernel left behind; every later call that needs the context returns it until cudaDeviceReset.
cudaError_t context_error();
void set_context_error(cudaError_t code);
void clear_context_error();
bool works_without_context(std::string_view call);

// Records the result of an entry: last error of this thread, and a report line when it failed.
cudaError_t conclude(const char* name, cudaError_t code, const std::string& why);

// True in the child of a fork: CUDA is not usable there.
bool after_fork();

const char* error_name(cudaError_t code);
const char* error_text(cudaError_t code);

// Starts the machine on the first call of any entry.
void start();

// Runs one entry. `body` takes the held Lock and returns cudaError_t; it may throw ApiError.
template <class Body>
cudaError_t entry(const char* name, Body&& body) {
  if (after_fork()) return conclude(name, cudaErrorInitializationError, "the process was forked after CUDA was used");
  InsideCall inside;
  start();
  if (inside_host_function()) return conclude(name, cudaErrorNotPermitted, "a host function may not call the runtime");
  const bool needs_context = context_error() == cudaSuccess || !works_without_context(name);
  if (cudaError_t sticky = context_error(); sticky && needs_context) return conclude(name, sticky, {});
  try {
    Lock lock(state_mutex());
    cudaError_t code = body(lock);
    if (code == cudaSuccess && needs_context && context_error()) code = context_error();
    lock.unlock();
    return conclude(name, code, {});
  } catch (const ApiError& error) {
    return conclude(name, error.code, error.why);
  } catch (const std::exception& error) {
    refuse(std::string(name) + ": the CPU device failed: " + error.what());
  }
}

}  // namespace machine::runtime
