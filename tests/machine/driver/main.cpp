// Loads a PTX file, launches one kernel, prints buffers.
//
//   driver FILE.ptx --prepare                 decodes every kernel, prints its name, or the error
//   driver FILE.ptx KERNEL gridX[,Y,Z] blockX[,Y,Z] [option...] [argument...]
//
// Arguments, in the order of the kernel's parameters:
//   i32=N u32=N i64=N u64=N f32=X f64=X      a scalar
//   raw=HEX                                   bytes
//   buf=BYTES[:FILE]                          a buffer, zeroed or filled from a file
// Options: shared=N (dynamic), seed=N, cores=N, resident=N, cooperative, sm=80|90, limit=N, timeout=S, repeat=N, quiet,
//   counters, out=PREFIX (buffer k is written to PREFIX.k), dump=K:TYPE (prints buffer k; TYPE f32 u32 s32 u64 u16 u8)
//   tools=LIST (memcheck,initcheck,racecheck,synccheck,traffic or all: the number of findings is printed)
// The last line is "status: ..." and the exit code is 0 when it is ok, 1 otherwise, 2 for bad usage.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "exec/machine.hpp"
#include "observers/checks.hpp"
#include "report/report.hpp"

using namespace machine;

namespace {

Dim3 parse_dim(const std::string& text) {
  Dim3 d;
  std::uint32_t* parts[] = {&d.x, &d.y, &d.z};
  std::stringstream stream(text);
  std::string part;
  for (int k = 0; k < 3 && std::getline(stream, part, ','); ++k)
    *parts[k] = static_cast<std::uint32_t>(std::stoul(part));
  return d;
}

void print(const std::byte* data, std::size_t bytes, const std::string& type) {
  auto each = [&](auto sample, auto format) {
    using T = decltype(sample);
    for (std::size_t k = 0; k + sizeof(T) <= bytes; k += sizeof(T)) {
      T v;
      std::memcpy(&v, data + k, sizeof v);
      std::printf("%s", k == 0 ? "" : " ");
      format(v);
    }
    std::printf("\n");
  };
  if (type == "f32") each(float{}, [](float v) { std::printf("%.9g", v); });
  else if (type == "f64") each(double{}, [](double v) { std::printf("%.17g", v); });
  else if (type == "s32") each(std::int32_t{}, [](std::int32_t v) { std::printf("%d", v); });
  else if (type == "u64")
    each(std::uint64_t{}, [](std::uint64_t v) { std::printf("%llu", static_cast<unsigned long long>(v)); });
  else if (type == "u16") each(std::uint16_t{}, [](std::uint16_t v) { std::printf("%u", v); });
  else if (type == "u8") each(std::uint8_t{}, [](std::uint8_t v) { std::printf("%u", v); });
  else each(std::uint32_t{}, [](std::uint32_t v) { std::printf("%u", v); });
}

const char* status_name(LaunchStatus s) {
  static constexpr const char* kNames[] = {
      "ok",      "illegal_address", "misaligned_address", "trap",        "assertion",  "deadlock",
      "stalled", "stack_overflow",  "invalid_call",       "invalid_ptx", "unsupported"};
  return kNames[static_cast<int>(s)];
}

}  // namespace

int prepare_all(const std::string& text) {
  int bad = 0;
  try {
    const auto module = load_ptx(text, Options{});
    for (const auto& name : module->kernels()) {
      try {
        module->kernel(name)->prepare();
        std::printf("ok %s\n", name.c_str());
      } catch (const PtxError& error) {
        std::printf("error %s\n", error.what());
        bad = 1;
      }
    }
  } catch (const PtxError& error) {
    std::printf("error %s\n", error.what());
    bad = 1;
  }
  return bad;
}

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[2], "--prepare") == 0) {
    std::ifstream input(argv[1], std::ios::binary);
    return prepare_all(std::string((std::istreambuf_iterator<char>(input)), {}));
  }
  if (argc < 5) {
    std::fprintf(stderr, "usage: driver FILE.ptx KERNEL GRID BLOCK [option|argument]...\n");
    return 2;
  }
  std::ifstream file(argv[1], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  Options options;
  LaunchRequest request;
  request.grid = parse_dim(argv[3]);
  request.block = parse_dim(argv[4]);
  std::vector<std::vector<std::byte>> values;
  std::vector<const Object*> buffers;
  std::vector<std::pair<std::size_t, std::string>> dumps;
  std::string out;
  int repeat = 1;
  bool counters = false;
  std::vector<std::string> tools;
  auto scalar = [&](auto v) {
    std::vector<std::byte> b(sizeof v);
    std::memcpy(b.data(), &v, sizeof v);
    values.push_back(b);
  };
  for (int k = 5; k < argc; ++k) {
    const std::string word = argv[k];
    const auto eq = word.find('=');
    const std::string key = word.substr(0, eq), value = eq == std::string::npos ? "" : word.substr(eq + 1);
    if (key == "shared") request.dynamic_shared = static_cast<std::uint32_t>(std::stoul(value));
    else if (key == "seed") options.seed = std::stoull(value);
    else if (key == "cores") options.cores = static_cast<unsigned>(std::stoul(value));
    else if (key == "resident") options.resident_blocks = static_cast<unsigned>(std::stoul(value));
    else if (key == "cooperative") request.cooperative = true;
    else if (key == "sm") options.arch = value == "80" ? Arch::sm_80 : Arch::sm_90;
    else if (key == "limit") options.instruction_limit = std::stoull(value);
    else if (key == "timeout") options.timeout_s = std::stod(value);
    else if (key == "repeat") repeat = std::stoi(value);
    else if (key == "counters") counters = true;
    else if (key == "tools") {
      std::stringstream stream(value);
      std::string tool;
      while (std::getline(stream, tool, ',')) tools.push_back(tool);
    } else if (key == "out") out = value;
    else if (key == "dump") {
      const auto colon = value.find(':');
      dumps.emplace_back(std::stoul(value), colon == std::string::npos ? "u32" : value.substr(colon + 1));
    } else if (key == "i32") scalar(static_cast<std::int32_t>(std::stoll(value, nullptr, 0)));
    else if (key == "u32") scalar(static_cast<std::uint32_t>(std::stoull(value, nullptr, 0)));
    else if (key == "i64") scalar(static_cast<std::int64_t>(std::stoll(value, nullptr, 0)));
    else if (key == "u64") scalar(static_cast<std::uint64_t>(std::stoull(value, nullptr, 0)));
    else if (key == "f32") scalar(std::stof(value));
    else if (key == "f64") scalar(std::stod(value));
    else if (key == "raw") {
      std::vector<std::byte> b;
      for (std::size_t c = 0; c + 1 < value.size(); c += 2)
        b.push_back(static_cast<std::byte>(std::stoul(value.substr(c, 2), nullptr, 16)));
      values.push_back(b);
    } else if (key == "buf") {
      const auto colon = value.find(':');
      const auto bytes = std::stoull(value.substr(0, colon));
      const Object* object =
          AddressSpace::instance().allocate(ObjectKind::global, bytes, 512, "buffer " + std::to_string(buffers.size()));
      if (object == nullptr) {
        std::fprintf(stderr, "no memory for a buffer of %llu bytes\n", static_cast<unsigned long long>(bytes));
        return 2;
      }
      if (colon != std::string::npos) {
        std::ifstream input(value.substr(colon + 1), std::ios::binary);
        input.read(reinterpret_cast<char*>(object->base), static_cast<std::streamsize>(bytes));
      }
      buffers.push_back(object);
      scalar(object->base);
    } else {
      std::fprintf(stderr, "unknown argument '%s'\n", word.c_str());
      return 2;
    }
  }
  try {
    const auto module = load_ptx(text, options);
    const Kernel* kernel = module->kernel(argv[2]);
    if (kernel == nullptr) {
      std::fprintf(stderr, "no kernel '%s'\n", argv[2]);
      return 2;
    }
    request.kernel = kernel;
    std::vector<std::byte> params(kernel->attributes().param_bytes);
    const auto list = kernel->params();
    if (list.size() != values.size()) {
      std::fprintf(stderr, "the kernel takes %zu arguments, %zu given\n", list.size(), values.size());
      return 2;
    }
    for (std::size_t k = 0; k < list.size(); ++k) {
      if (values[k].size() != list[k].size) {
        std::fprintf(stderr, "argument %zu has %u bytes, %zu given\n", k, list[k].size, values[k].size());
        return 2;
      }
      std::memcpy(params.data() + list[k].offset, values[k].data(), values[k].size());
    }
    request.params = params;
    LaunchResult result;
    const std::clock_t start = std::clock();  // processor time of all threads, whatever else the computer does
    report::Report report({tools, "sm_90", options.seed, argv[1], false, {}});
    std::unique_ptr<checks::Checks> checks;
    if (!tools.empty()) {
      checks = checks::make_checks(checks::parse_options(tools, {}), report);
      for (const Object* buffer : buffers) {
        checks->allocated(*buffer);
        checks->host_access(0, AccessKind::store, buffer->base, buffer->size);
      }
    }
    for (int k = 0; k < repeat; ++k) {
      Operation operation;
      operation.id = request.operation = static_cast<std::uint64_t>(k) + 1;
      operation.name = argv[2];
      if (k != 0) operation.after = {request.operation - 1};
      if (checks) checks->operation_begin(operation);
      result = launch(request, options, checks.get());
      if (checks) checks->operation_end(operation);
      report.launched(argv[2], result);
    }
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / repeat;
    std::fputs(result.printed.c_str(), stdout);
    for (const auto& [index, type] : dumps)
      print(reinterpret_cast<const std::byte*>(buffers.at(index)->base), buffers[index]->size, type);
    if (!out.empty())
      for (std::size_t k = 0; k < buffers.size(); ++k)
        std::ofstream(out + "." + std::to_string(k), std::ios::binary)
            .write(reinterpret_cast<const char*>(buffers[k]->base), static_cast<std::streamsize>(buffers[k]->size));
    if (counters) {
      const auto& c = result.counters;
      std::printf(
          "warp instructions %llu, thread instructions %llu, %.4f s, %.3f G thread instructions/s, %.1f M warp "
          "instructions/s\n",
          static_cast<unsigned long long>(c.warp_instructions), static_cast<unsigned long long>(c.thread_instructions),
          seconds, static_cast<double>(c.thread_instructions) / seconds * 1e-9,
          static_cast<double>(c.warp_instructions) / seconds * 1e-6);
      for (std::size_t k = 0; k < kClasses; ++k)
        if (c.by_class[k] != 0)
          std::printf("  %-14s %llu\n", std::string(class_name(static_cast<InstructionClass>(k))).c_str(),
                      static_cast<unsigned long long>(c.by_class[k]));
    }
    if (checks) {
      report.write_text(std::cout);
    }
    std::printf("status: %s%s%s\n", status_name(result.status), result.message.empty() ? "" : ": ",
                result.message.c_str());
    return result.status == LaunchStatus::ok ? 0 : 1;
  } catch (const PtxError& error) {
    std::printf("status: invalid_ptx: %s\n", error.what());
    return 1;
  }
}
