// A PTX text, indexed: where every function begins, and the module's own symbols.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exec/code_address.hpp"
#include "exec/machine.hpp"
#include "exec/signature.hpp"
#include "exec/types.hpp"

namespace machine {

struct FunctionText {
  std::string_view name;
  bool is_kernel = false;
  bool has_body = false;
  std::size_t header = 0;                    // offset of the parameter list
  std::size_t body_begin = 0, body_end = 0;  // offsets in the text, inside the braces
  std::uint32_t line = 0, body_line = 0;
  Signature signature;
  KernelAttributes attributes;
};

struct ModuleText {
  std::string text;
  std::string target;
  std::vector<FunctionText> functions;
  std::unordered_map<std::string_view, std::size_t> by_name;
  std::map<std::uint32_t, std::string> files;
  struct Global {
    std::string_view name;
    const Object* object = nullptr;
    bool constant = false;
  };
  std::vector<Global> globals;
  std::unordered_map<std::string_view, std::size_t> global_by_name;
  struct SharedVariable {
    std::string_view name;
    std::uint64_t size = 0;
    std::uint32_t align = 1;
    bool dynamic = false;
  };
  std::vector<SharedVariable> shared;  // at module scope: extern arrays, and statics that functions share
  CodeAddresses code;                  // by the index of the function
  std::vector<std::size_t> in_tables;  // functions whose addresses initial values hold

  // The functions that a call by address may go to: those whose addresses the text mentions. Ascending.
  const std::vector<std::size_t>& address_taken() const;

 private:
  mutable std::once_flag once_;
  mutable std::vector<std::size_t> address_taken_;
};

}  // namespace machine
