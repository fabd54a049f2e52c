// Asks the decoder about modules of one kernel each: FILE holds their texts, separated by zero bytes. Prints a line for
// each, empty where the kernel decodes, otherwise why it does not.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "exec/machine.hpp"
#include "ptx/scanner.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::string text;
  while (std::getline(file, text, '\0')) {
    std::string reason;
    try {
      machine::load_ptx(text, machine::Options{})->kernel("k")->prepare();
    } catch (const std::exception& error) {
      reason = error.what();
    }
    std::puts(reason.c_str());
  }
  return 0;
}
