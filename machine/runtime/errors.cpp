// Errors: sticky, peek, get, names and texts.
#include <algorithm>
#include <atomic>
#include <string_view>

#include "runtime/api.hpp"
#include "runtime/session.hpp"

namespace machine::runtime {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<cudaError_t> sticky_error{cudaSuccess};
std::atomic<bool> sticky_told{false};  // some call has returned it

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};

// Calls that need no context, and answer as ever after a kernel has failed.
constexpr std::string_view untouched[] = {
    "cudaGetDevice",          "cudaGetDeviceCount",    "cudaSetDevice",           "cudaGetDeviceProperties",
    "cudaDeviceGetAttribute", "cudaDriverGetVersion",  "cudaRuntimeGetVersion",   "cudaPointerGetAttributes",
    "cudaGetDeviceFlags",     "cudaDeviceGetPCIBusId", "cudaDeviceCanAccessPeer", "cudaDeviceGetDefaultMemPool",
    "cudaGraphCreate",        "cudaGetSymbolAddress",
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
void clear_context_error() { sticky_error = cudaSuccess, sticky_told = false; }
bool works_without_context(std::string_view call) { return std::ranges::find(untouched, call) != std::end(untouched); }

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
  if (code == context_error()) sticky_told = true;
  report_api_error(name, code, why);
  return code;
}

}  // namespace machine::runtime

using namespace machine::runtime;

extern "C" {

cudaError_t cudaGetLastError() {
  start();
  const cudaError_t last = std::exchange(last_error, cudaSuccess);
  if (last == cudaSuccess && context_error() && !sticky_told.exchange(true)) return context_error();
  return last;
}

cudaError_t cudaPeekAtLastError() {
  start();
  if (last_error == cudaSuccess && !sticky_told) return context_error();
  return last_error;
}

const char* cudaGetErrorName(cudaError_t error) { return error_name(error); }
const char* cudaGetErrorString(cudaError_t error) { return error_text(error); }
}
