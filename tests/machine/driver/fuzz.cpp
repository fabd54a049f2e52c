// Feeds damaged PTX to the reader: fuzz SECONDS SEED CURRENT FILE...
//
// Every input ends in a decoded module or in a PtxError of one line; anything else is a fault of the reader. The input
// being tried lies in CURRENT, so that it is still there when the process dies.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "exec/machine.hpp"

namespace {

// Bytes dropped, doubled, overwritten; words exchanged with words of this or another text; numbers made absurd.
std::string damaged(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  std::string text = corpus[random() % corpus.size()];
  const auto pick = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  static const char* kTokens[] = {"0xFFFFFFFFFFFFFFFF",
                                  "-1",
                                  "{",
                                  "}",
                                  "(",
                                  ")",
                                  ";",
                                  ".align 0",
                                  ".b8 x[99999999999]",
                                  "%r",
                                  "$L",
                                  "@",
                                  "\"",
                                  ".loc 1 2 3",
                                  ".v4",
                                  ".f16x2",
                                  "[",
                                  "]",
                                  "%r<4000000000>",
                                  "/*",
                                  ".param .align 4096 .b8 q[9]",
                                  "|",
                                  "0f",
                                  "_",
                                  ":",
                                  "call",
                                  "bra",
                                  ".branchtargets",
                                  ".func",
                                  ".entry",
                                  ".shared",
                                  "::",
                                  "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"};
  const unsigned rounds = 1 + static_cast<unsigned>(pick(6));
  for (unsigned k = 0; k < rounds && !text.empty(); ++k) {
    const std::size_t at = pick(text.size());
    switch (pick(7)) {
      case 0: text.erase(at, 1 + pick(40)); break;
      case 1: text.insert(at, text.substr(at, pick(60))); break;
      case 2: text[at] = static_cast<char>(random()); break;
      case 3: text.insert(at, kTokens[pick(std::size(kTokens))]); break;
      case 4: text.resize(at); break;
      case 5: {
        const std::string& other = corpus[pick(corpus.size())];
        text.insert(at, other.substr(pick(other.size()), pick(80)));
        break;
      }
      default: {
        const std::size_t end = text.find_first_of(" ,;.\n\t", at);
        text.replace(at, end == std::string::npos ? 1 : end - at, kTokens[pick(std::size(kTokens))]);
      }
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::vector<std::string> corpus;
  for (int k = 4; k < argc; ++k) {
    std::ifstream file(argv[k], std::ios::binary);
    corpus.emplace_back((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (corpus.back().size() > 60'000) corpus.pop_back();
  }
  if (corpus.empty()) return 2;
  std::mt19937_64 random(std::strtoull(argv[2], nullptr, 10));
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  std::size_t tried = 0, refused = 0;
  for (; std::chrono::steady_clock::now() < until; ++tried) {
    const std::string text = damaged(corpus, random);
    std::ofstream(argv[3], std::ios::binary | std::ios::trunc) << text;
    try {
      const auto module = machine::load_ptx(text, {});
      for (const auto& name : module->kernels()) module->kernel(name)->prepare();
    } catch (const machine::PtxError& error) {
      ++refused;
      if (std::string(error.what()).find('\n') != std::string::npos) {
        std::printf("a message of several lines: %s\n", error.what());
        return 1;
      }
    }
  }
  std::printf("%zu inputs, %zu refused\n", tried, refused);
  return 0;
}
