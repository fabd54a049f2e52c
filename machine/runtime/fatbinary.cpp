#include "runtime/fatbinary.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace machine::runtime {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::uint16_t kKindPtx = 1;
constexpr std::uint16_t kKindMachineCode = 2;
constexpr std::uint64_t kFlagZstd = 0x8000;
constexpr std::uint64_t kFlagLz4 = 0x2000;

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const void* data;
  const void* prelinked;
};

struct Container {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_size;
  std::uint64_t size;
};

struct Entry {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_size;
  std::uint64_t size;
  std::uint32_t compressed_size;
  std::uint32_t options_offset;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t architecture;
  std::uint32_t name_offset;
  std::uint32_t name_length;
  std::uint64_t flags;
  std::uint64_t reserved;
  std::uint64_t uncompressed_size;
};
static_assert(sizeof(Entry) == 64);

// Bytes mapped from `address` to the end of the loaded segment that holds it; 0 when no object maps it.
std::uint64_t mapped_bytes(const void* address) {
  struct Query {
    std::uintptr_t address;
    std::uint64_t bytes;
  } query{reinterpret_cast<std::uintptr_t>(address), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& asked = *static_cast<Query*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
          if (asked.address >= begin && asked.address < begin + header.p_memsz) {
            asked.bytes = begin + header.p_memsz - asked.address;
            return 1;
          }
        }
        return 0;
      },
      &query);
  return query.bytes;
}

// `.target sm_90a` in the text says what the entry's number does not: whether it is architecture-specific.
bool target_is_specific(std::string_view text) {
  auto at = text.substr(0, 4096).find(".target");
  if (at == std::string_view::npos) return false;
  auto line = text.substr(at, text.find('\n', at) - at);
  auto sm = line.find("sm_");
  if (sm == std::string_view::npos) return false;
  auto last = line.find_first_not_of("0123456789", sm + 3);
  return last != std::string_view::npos && line[last] == 'a';
}

std::string hexadecimal(std::uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

std::string unpack_zstd(const Stored& stored) {
  using Decompress = std::size_t (*)(void*, std::size_t, const void*, std::size_t);
  using IsError = unsigned (*)(std::size_t);
  static void* library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  auto decompress = library ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress")) : nullptr;
  auto is_error = library ? reinterpret_cast<IsError>(dlsym(library, "ZSTD_isError")) : nullptr;
  if (!decompress || !is_error)
    throw BrokenFatBinary{
        "its PTX is compressed with zstd and no zstd is at hand: build with --no-compress, or install the "
        "Python package zstandard"};
  std::string text(stored.uncompressed_size, '\0');
  std::size_t got = decompress(text.data(), text.size(), stored.bytes.data(), stored.bytes.size());
  if (is_error(got)) throw BrokenFatBinary{"its zstd-compressed PTX does not unpack: the program file is damaged"};
  text.resize(got);
  return text;
}

Stored stored_payload(const Entry& entry, const char* payload) {
  Stored stored;
  stored.compression = entry.flags & kFlagZstd  ? Compression::zstd
                       : entry.flags & kFlagLz4 ? Compression::lz4
                                                : Compression::none;
  std::uint64_t bytes = stored.compression == Compression::none ? entry.size : entry.compressed_size;
  if (bytes > entry.size || entry.uncompressed_size > (std::uint64_t{1} << 32))
    throw BrokenFatBinary{"fat binary: an entry's compressed size does not fit its container"};
  stored.bytes = std::string_view(payload, bytes);
  stored.uncompressed_size = entry.uncompressed_size;
  return stored;
}

}  // namespace

std::uint64_t entry_key(std::string_view stored) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (unsigned char byte : stored) hash = (hash ^ byte) * 0x100000001b3ull;
  return hash;
}

FatBinary read_container(const void* data, std::uint64_t mapped) {
  FatBinary binary;
  auto base = static_cast<const char*>(data);
  if (mapped < sizeof(Container)) throw BrokenFatBinary{"fat binary: the container lies outside the program"};
  Container container;
  std::memcpy(&container, base, sizeof container);
  if (container.magic != kContainerMagic) throw BrokenFatBinary{"fat binary: wrong magic number in the container"};
  if (container.header_size < sizeof container || container.header_size > mapped ||
      container.size > mapped - container.header_size)
    throw BrokenFatBinary{"fat binary: truncated (the container is longer than the program)"};

  std::uint64_t at = container.header_size;
  const std::uint64_t end = container.header_size + container.size;
  while (at + sizeof(Entry) <= end) {
    Entry entry;
    std::memcpy(&entry, base + at, sizeof entry);
    if (entry.header_size < sizeof entry || entry.header_size > end - at || entry.size > end - at - entry.header_size)
      throw BrokenFatBinary{"fat binary: truncated (an entry is longer than its container)"};
    const char* payload = base + at + entry.header_size;
    if (entry.kind == kKindMachineCode) {
      binary.machine_code.push_back({entry.architecture, stored_payload(entry, payload)});
    } else if (entry.kind == kKindPtx) {
      PtxEntry ptx{entry.architecture, false, stored_payload(entry, payload)};
      ptx.specific = ptx.text.compression == Compression::none && target_is_specific(ptx.text.bytes);
      binary.ptx.push_back(std::move(ptx));
    }
    at += entry.header_size + entry.size;
  }
  return binary;
}

FatBinary read_fat_binary(const void* pointer) {
  if (mapped_bytes(pointer) < sizeof(Wrapper)) throw BrokenFatBinary{"fat binary: the wrapper is not mapped"};
  Wrapper wrapper;
  std::memcpy(&wrapper, pointer, sizeof wrapper);
  if (wrapper.magic != kWrapperMagic) throw BrokenFatBinary{"fat binary: wrong magic number in the wrapper"};
  if (wrapper.version != 1 && wrapper.version != 2)
    throw BrokenFatBinary{"fat binary: wrapper version " + std::to_string(wrapper.version) +
                          " is unknown (nvcc 13.0 to 13.5 write 1 and 2)"};
  FatBinary binary = read_container(wrapper.data, mapped_bytes(wrapper.data));
  binary.relocatable = wrapper.version == 2;
  return binary;
}

const PtxEntry* best_ptx(const FatBinary& binary, unsigned architecture) {
  const PtxEntry* best = nullptr;
  for (const auto& entry : binary.ptx) {
    if (entry.architecture > architecture) continue;
    if (entry.specific && entry.architecture != architecture) continue;
    if (!best || entry.architecture > best->architecture ||
        (entry.architecture == best->architecture && entry.specific))
      best = &entry;
  }
  return best;
}

std::string unpacked(const Stored& stored, const std::string& unpacked_directory) {
  if (stored.compression == Compression::none) return std::string(stored.bytes);
  if (!unpacked_directory.empty()) {
    std::ifstream file(unpacked_directory + "/" + hexadecimal(entry_key(stored.bytes)), std::ios::binary);
    if (file) {
      std::ostringstream text;
      text << file.rdbuf();
      return std::move(text).str();
    }
  }
  if (stored.compression == Compression::lz4)
    throw BrokenFatBinary{
        "its PTX is compressed with --compress-mode=speed, which is not read: build with --no-compress"};
  return unpack_zstd(stored);
}

}  // namespace machine::runtime
