// Errors: sticky, peek, get, names and texts.
#include <atomic>

#include "runtime/api.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> sticky_error{cudaSuccess};

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};

constexpr ErrorRow rows[] = {
#define CUDA_ERROR(code, name, text) {code, name, text},
#include "runtime/errors.inc"
#undef CUDA_ERROR
};

const ErrorRow* find(cudaError_t code) {
  for (const auto& row : rows)
    if (row.code == static_cast<int>(code)) return &row;
  return nullptr;
}

}  // namespace

cudaError_t context_error() { return sticky_error; }
void clear_context_error() { sticky_error = cudaSuccess; }

void set_context_error(cudaError_t code) {
  cudaError_t none = cudaSuccess;
  sticky_error.compare_exchange_strong(none, code);
}

const char* error_name(cudaError_t code) {
  const ErrorRow* row = find(code);
  return row ? row->name : "unrecognized error code";
}

const char* error_text(cudaError_t code) {
  const ErrorRow* row = find(code);
  return row ? row->text : "unrecognized error code";
}

cudaError_t conclude(const char* name, cudaError_t code, const std::string& why) {
  if (code == cudaSuccess || code == cudaErrorNotReady) return code;
  last_error = code;
  report_api_error(name, code, why);
  return code;
}

}  // namespace machine::runtime

using namespace machine::runtime;

extern "C" {

cudaError_t cudaGetLastError() {
  start();
  if (cudaError_t sticky = context_error()) {
    last_error = cudaSuccess;
    return sticky;
  }
  return std::exchange(last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  start();
  if (cudaError_t sticky = context_error()) return sticky;
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }
const char* cudaGetErrorString(cudaError_t error) { return error_text(error); }
}
