#include "print.hpp"

#include <cstdio>
#include <cstring>

#include "memory_access.hpp"

namespace machine {
namespace {

// Bytes at a generic address; false when they are nobody's.
bool read_bytes(const Warp& w, std::uint64_t address, unsigned lane, void* to, std::size_t bytes) {
  auto* out = static_cast<std::byte*>(to);
  for (std::size_t k = 0; k < bytes; ++k) {
    const std::uint64_t a = address + k;
    if (a - kLocalWindow < kWindowBytes) {
      if (a - kLocalWindow >= w.local_bytes) return false;
      out[k] = *local_word(w, a - kLocalWindow, lane);
    } else if (a - kSharedWindow < kWindowBytes) {
      if (a - kSharedWindow >= w.block->info.shared_extent) return false;
      out[k] = w.block->shared[a - kSharedWindow];
    } else {
      if (!(in_global_arena(a) && granule_live(a)) && !AddressSpace::instance().touchable(a, 1)) return false;
      out[k] = *reinterpret_cast<const std::byte*>(a);
    }
  }
  return true;
}

}  // namespace

std::string read_string(const Warp& w, std::uint64_t address, unsigned lane) {
  std::string text;
  char c = 0;
  while (text.size() < 4096 && read_bytes(w, address + text.size(), lane, &c, 1) && c != 0) text += c;
  return text;
}

int print_formatted(const Warp& w, std::uint64_t format_at, std::uint64_t arguments, unsigned lane, std::string& out) {
  const std::string format = read_string(w, format_at, lane);
  int count = 0;
  std::uint64_t offset = 0;
  // Arguments are stored one after the other, each aligned to its size (4 or 8).
  auto next = [&](unsigned bytes) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::uint64_t v = 0;
    read_bytes(w, arguments + offset, lane, &v, bytes);
    offset += bytes;
    ++count;
    return v;
  };
  for (std::size_t k = 0; k < format.size(); ++k) {
    if (format[k] != '%') {
      out += format[k];
      continue;
    }
    if (k + 1 < format.size() && format[k + 1] == '%') {
      out += '%';
      ++k;
      continue;
    }
    std::string spec = "%";
    std::size_t at = k + 1;
    while (at < format.size() && std::strchr("-+ #0123456789.", format[at]) != nullptr) spec += format[at++];
    if (at < format.size() && format[at] == '*') return out += format.substr(k), count;  // not part of device printf
    bool wide = false;
    while (at < format.size() && std::strchr("hlzjtL", format[at]) != nullptr) wide |= format[at] != 'h', ++at;
    if (at >= format.size() || spec.size() > 40) {
      out += format.substr(k);
      break;
    }
    char buffer[512];
    const char conversion = format[at];
    int written = 0;
    switch (conversion) {
      case 'd': case 'i': {
        const std::uint64_t v = next(wide ? 8 : 4);
        const long long value = wide ? static_cast<long long>(v) : static_cast<std::int32_t>(v);
        written = std::snprintf(buffer, sizeof buffer, (spec + "lld").c_str(), value);
        break;
      }
      case 'u': case 'x': case 'X': case 'o':
        written = std::snprintf(buffer, sizeof buffer, (spec + "ll" + conversion).c_str(), static_cast<unsigned long long>(next(wide ? 8 : 4)));
        break;
      case 'c':
        written = std::snprintf(buffer, sizeof buffer, (spec + "c").c_str(), static_cast<int>(next(4)));
        break;
      case 'f': case 'F': case 'e': case 'E': case 'g': case 'G': case 'a': case 'A': {
        const std::uint64_t raw = next(8);
        double v;
        std::memcpy(&v, &raw, 8);
        written = std::snprintf(buffer, sizeof buffer, (spec + conversion).c_str(), v);
        break;
      }
      case 'p':
        written = std::snprintf(buffer, sizeof buffer, (spec + "p").c_str(), reinterpret_cast<void*>(next(8)));
        break;
      case 's': {
        const std::string text = read_string(w, next(8), lane);
        written = std::snprintf(buffer, sizeof buffer, (spec + "s").c_str(), text.c_str());
        if (written >= static_cast<int>(sizeof buffer) && spec == "%") {
          out += text;
          written = 0;
        }
        break;
      }
      default:
        out += format.substr(k, at + 1 - k);
        k = at;
        continue;
    }
    out.append(buffer, static_cast<std::size_t>(std::min<int>(std::max(written, 0), sizeof buffer - 1)));
    k = at;
  }
  return count;
}

}  // namespace machine
