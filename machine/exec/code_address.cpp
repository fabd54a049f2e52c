#include "exec/code_address.hpp"

#include <cstdio>
#include <map>
#include <mutex>

namespace machine {
namespace {

struct Loaded {
  std::mutex lock;
  std::uint64_t next = kCodeWindow;
  std::map<std::uint64_t, const CodeAddresses*> modules;  // by the address of their first function
  static Loaded& instance() {
    static auto* const only = new Loaded;  // outlives static destruction, as the address space does
    return *only;
  }
};

}  // namespace

void CodeAddresses::settle(std::vector<std::string_view> names) {
  names_ = std::move(names);
  Loaded& loaded = Loaded::instance();
  const std::lock_guard guard(loaded.lock);
  base_ = loaded.next;
  loaded.next += (names_.size() + 1) * kStep;
  loaded.modules[base_] = this;
}

CodeAddresses::~CodeAddresses() {
  Loaded& loaded = Loaded::instance();
  const std::lock_guard guard(loaded.lock);
  if (base_ != 0) loaded.modules.erase(base_);
}

std::optional<std::size_t> CodeAddresses::function_at(std::uint64_t address) const {
  const std::uint64_t offset = address - base_;
  if (address < base_ || offset % kStep != 0 || offset / kStep >= names_.size()) return {};
  return offset / kStep;
}

std::string describe_code(std::uint64_t address) {
  if (address == 0) return "the address is null";
  char hex[32];
  std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(address));
  {
    Loaded& loaded = Loaded::instance();
    const std::lock_guard guard(loaded.lock);
    auto at = loaded.modules.upper_bound(address);
    if (at != loaded.modules.begin()) {
      const CodeAddresses& module = *std::prev(at)->second;
      if (const auto function = module.function_at(address))
        return "the address is that of function '" + std::string(module.names_[*function]) + "'";
    }
  }
  if (address - kCodeWindow < (std::uint64_t{1} << 40))
    return std::string("the address ") + hex + " lies in no function that is loaded";
  return std::string("the address ") + hex +
         (AddressSpace::instance().find(address) != nullptr ? " is one of data" : " is that of no function");
}

}  // namespace machine
