// The layout of the fat binary that nvcc 13.0 to 13.5 puts into a program, and nothing else knows it.
//
// A wrapper points at a container; the container holds entries; an entry is PTX text or machine code for one
// architecture. Only PTX is of use here. The layout is not documented by NVIDIA and moves between releases, so
// everything that depends on it is in this file and fatbinary.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace machine::runtime {

enum class Compression { none, zstd, lz4 };

// The payload of one entry, still inside the program's memory.
struct Stored {
  Compression compression = Compression::none;
  std::string_view bytes;               // as they lie in the container
  std::uint64_t uncompressed_size = 0;  // 0 when stored uncompressed
};

struct PtxEntry {
  unsigned architecture = 0;  // 90 for compute_90
  bool specific = false;      // compute_90a: runs on sm_90 only
  Stored text;
};

struct CodeEntry {
  unsigned architecture = 0;
  Stored elf;
};

struct FatBinary {
  std::vector<PtxEntry> ptx;
  std::vector<CodeEntry> machine_code;
  bool relocatable = false;  // built with -rdc=true: the code waits for a device link
};

// Reads the container behind a wrapper, as handed to __cudaRegisterFatBinary.
// Throws BrokenFatBinary with one line when magic numbers, sizes or offsets do not fit the mapped segment.
FatBinary read_fat_binary(const void* wrapper);

// The same for a bare container of `size` mapped bytes (cudaLibraryLoadData).
FatBinary read_container(const void* container, std::uint64_t size);

// The best entry for a device: the newest architecture that does not exceed it, an architecture-specific one only
// on exactly that architecture. nullptr when there is none.
const PtxEntry* best_ptx(const FatBinary& binary, unsigned architecture);

// The payload as it was before compression. What is compressed is looked for in `unpacked_directory` (written there
// beforehand by the Python side, one file an entry), then unpacked with libzstd if the machine has it.
// Throws BrokenFatBinary, naming --no-compress when neither is possible.
std::string unpacked(const Stored& stored, const std::string& unpacked_directory);

// FNV-1a over the stored bytes: the file name of an unpacked entry is this number in 16 hexadecimal digits.
std::uint64_t entry_key(std::string_view stored);

struct BrokenFatBinary {
  std::string what;
};

}  // namespace machine::runtime
