// Runs a conformance plan on the CPU device: run_cpu FOLDER. Modules are FOLDER/m<k>.ptx.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "exec/machine.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  std::ifstream file(folder + "/inputs.bin", std::ios::binary);
  const std::vector<char> inputs((std::istreambuf_iterator<char>(file)), {});
  constexpr std::size_t kRoom = 1 << 20;
  auto& space = machine::AddressSpace::instance();
  const auto* in = space.allocate(machine::ObjectKind::global, inputs.size() + 16);
  const auto* out = space.allocate(machine::ObjectKind::global, kRoom);
  const auto* room = space.allocate(machine::ObjectKind::global, kRoom);
  std::memcpy(reinterpret_cast<void*>(in->base), inputs.data(), inputs.size());
  std::ifstream plan(folder + "/plan.txt");
  std::ofstream answers(folder + "/answers.bin", std::ios::binary);
  machine::Options options;
  std::map<int, std::unique_ptr<machine::Module>> modules;
  std::string line;
  int bad = 0;
  while (std::getline(plan, line)) {
    std::istringstream words(line);
    int module_index;
    std::string name;
    unsigned grid, block;
    std::size_t out_bytes;
    long long offsets[3];
    words >> module_index >> name >> grid >> block >> out_bytes >> offsets[0] >> offsets[1] >> offsets[2];
    auto& module = modules[module_index];
    if (!module) {
      std::ifstream text(folder + "/m" + std::to_string(module_index) + ".ptx");
      module = machine::load_ptx(std::string((std::istreambuf_iterator<char>(text)), {}), options);
    }
    std::uint64_t params[5] = {out->base, in->base, in->base, in->base, room->base};
    for (int k = 0; k < 3; ++k)
      if (offsets[k] >= 0) params[k + 1] = in->base + static_cast<std::uint64_t>(offsets[k]);
    machine::LaunchRequest request;
    request.kernel = module->kernel(name);
    request.grid = {grid, 1, 1};
    request.block = {block, 1, 1};
    request.params = std::as_bytes(std::span(params));
    std::memset(reinterpret_cast<void*>(out->base), 0, out_bytes);
    const auto result = machine::launch(request, options, nullptr);
    if (result.status != machine::LaunchStatus::ok) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), result.message.c_str());
      bad = 1;
    }
    answers.write(reinterpret_cast<const char*>(out->base), static_cast<std::streamsize>(out_bytes));
  }
  return bad;
}
