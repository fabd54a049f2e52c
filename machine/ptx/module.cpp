// A PTX module: its kernels, which are decoded when they are first launched, and its symbols.
#include "exec/module.hpp"

#include <algorithm>

#include "exec/kernel.hpp"
#include "ptx/module_index.hpp"

namespace machine {
const std::vector<std::size_t>& ModuleText::address_taken() const {
  std::call_once(once_, [this] {
    address_taken_ = in_tables;
    const std::string_view all = text;
    for (std::size_t at = all.find("mov."); at != std::string_view::npos; at = all.find("mov.", at + 4)) {
      // mov.u64 %rd1, name;
      const std::size_t comma = all.find_first_of(",;", at), begin = all.find_first_not_of(" \t\r\n", comma + 1);
      if (comma == std::string_view::npos || begin == std::string_view::npos || all[comma] == ';') continue;
      const auto found = by_name.find(all.substr(begin, all.find_first_of(" \t\r\n;+", begin) - begin));
      if (found != by_name.end() && functions[found->second].has_body && !functions[found->second].is_kernel)
        address_taken_.push_back(found->second);
    }
    std::sort(address_taken_.begin(), address_taken_.end());
    address_taken_.erase(std::unique(address_taken_.begin(), address_taken_.end()), address_taken_.end());
  });
  return address_taken_;
}

class ModuleImpl final : public Module {
 public:
  ModuleImpl(std::string_view text, const Options& options) {
    module_.text = text;
    index_module(module_);
    for (const auto& g : module_.globals) symbols_[std::string(g.name)] = {std::string(g.name), g.object, g.constant};
    for (const auto& f : module_.functions)
      if (f.is_kernel && f.has_body) kernels_[std::string(f.name)] = std::make_unique<KernelImpl>(module_, f, options);
  }
  ~ModuleImpl() override {
    for (const auto& g : module_.globals) AddressSpace::instance().release(g.object->base);
  }
  const Kernel* kernel(std::string_view name) const override {
    auto found = kernels_.find(std::string(name));
    return found == kernels_.end() ? nullptr : found->second.get();
  }
  std::vector<std::string> kernels() const override {
    std::vector<std::string> names;
    for (const auto& f : module_.functions)
      if (f.is_kernel && f.has_body) names.emplace_back(f.name);
    return names;
  }
  const Symbol* symbol(std::string_view name) const override {
    auto found = symbols_.find(std::string(name));
    return found == symbols_.end() ? nullptr : &found->second;
  }
  std::string_view target() const override { return module_.target; }

 private:
  ModuleText module_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::unordered_map<std::string, std::unique_ptr<KernelImpl>> kernels_;
};

std::unique_ptr<Module> load_ptx(std::string_view text, const Options& options) {
  return std::make_unique<ModuleImpl>(text, options);
}

}  // namespace machine
