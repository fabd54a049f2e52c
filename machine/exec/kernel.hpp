// A kernel of a module: its header at once, its program on first launch.
#pragma once

#include <mutex>

#include "exec/module.hpp"
#include "exec/program.hpp"

namespace machine {

class ModuleImpl;

class KernelImpl final : public Kernel {
 public:
  KernelImpl(const ModuleText& module, const FunctionText& text, const Options& options);
  const std::string& name() const override { return name_; }
  std::span<const Param> params() const override { return params_; }
  const KernelAttributes& attributes() const override { return attributes_; }
  const SharedLayout& shared() const override { return shared_; }
  Location location(std::uint32_t pc) const override;
  void prepare() const override { program(); }
  const Program& program() const;

 private:
  const ModuleText& module_;
  const FunctionText& text_;
  Options options_;
  std::string name_;
  std::vector<Param> params_;
  KernelAttributes attributes_;
  SharedLayout shared_;
  mutable std::mutex lock_;
  mutable std::unique_ptr<Program> program_;
};

// Adds a variable to a layout, with a gap before it that belongs to nobody.
void add_shared(SharedLayout& layout, std::string_view name, std::uint64_t size, std::uint32_t align);
// Decodes a kernel and everything that it calls; `following`, with the flow of undefined values. Throws PtxError.
std::unique_ptr<Program> decode_program(const ModuleText& module, const FunctionText& kernel,
                                        const SharedLayout& shared, std::span<const Param> params,
                                        const Options& options, bool following = false);

}  // namespace machine
