// Addresses of functions: what `mov` of a function's name gives, what tables of functions hold, and what a call by
// address goes to. They lie outside of all memory, so that a load or store there is an error like any other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/address_space.hpp"

namespace machine {

inline constexpr std::uint64_t kCodeWindow = kLocalWindow + (std::uint64_t{1} << 33);

// The functions of one module, which have addresses as long as it is loaded. Their names must live as long.
class CodeAddresses {
 public:
  CodeAddresses() = default;
  CodeAddresses(const CodeAddresses&) = delete;
  CodeAddresses& operator=(const CodeAddresses&) = delete;
  ~CodeAddresses();
  void settle(std::vector<std::string_view> names);
  std::uint64_t of(std::size_t function) const { return base_ + function * kStep; }
  std::optional<std::size_t> function_at(std::uint64_t address) const;

 private:
  friend std::string describe_code(std::uint64_t address);
  static constexpr std::uint64_t kStep = 128;
  std::uint64_t base_ = 0;
  std::vector<std::string_view> names_;
};

// What an address is that a call cannot go to: of any function loaded, of memory, or nothing.
std::string describe_code(std::uint64_t address);

}  // namespace machine
