#include "exec/print.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "exec/memory_access.hpp"

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

namespace {

struct Conversion {
  std::string flags;                  // from '%' to the precision, without a '*'
  bool width_given = false;           // by an argument
  bool wide = false, narrow = false;  // ll or l, h
  char letter = 0;
  std::size_t end = 0;  // behind it
};

// What the device's printf takes: flags, a width or '*', a precision in digits, the lengths h, l and ll. Anything else,
// such as '.*' or 'z', is printed as it stands.
bool parse(const std::string& format, std::size_t at, Conversion& c) {
  c.flags = "%";
  const auto digits = [&] {
    while (at < format.size() && format[at] >= '0' && format[at] <= '9') c.flags += format[at++];
  };
  for (++at; at < format.size() && std::strchr("-+ #0", format[at]) != nullptr; ++at) c.flags += format[at];
  if (at < format.size() && format[at] == '*') c.width_given = true, ++at;
  else digits();
  const std::size_t width_end = c.flags.size();
  if (at < format.size() && format[at] == '.') c.flags += format[at++], digits();
  if (c.width_given) c.flags.insert(width_end, "*");
  if (at < format.size() && format[at] == 'h') {
    c.narrow = true;
    if (++at < format.size() && format[at] == 'h') ++at;
  } else {
    for (int k = 0; k < 2 && at < format.size() && format[at] == 'l'; ++k, ++at) c.wide = true;
  }
  if (at >= format.size() || std::strchr("diuxXocfFeEgGaAps", format[at]) == nullptr || c.flags.size() > 40)
    return false;
  c.letter = format[at];
  c.end = at + 1;
  return true;
}

// As C prints it, whatever its length.
template <class T>
std::string printed(const Conversion& c, const char* length, int width, T value) {
  const std::string spec = c.flags + length + c.letter;
  const auto print = [&](char* to, std::size_t room) {
    return c.width_given ? std::snprintf(to, room, spec.c_str(), width, value)
                         : std::snprintf(to, room, spec.c_str(), value);
  };
  std::string text(static_cast<std::size_t>(std::max(print(nullptr, 0), 0)) + 1, '\0');
  print(text.data(), text.size());
  text.pop_back();
  return text;
}

}  // namespace

int print_formatted(const Warp& w, std::uint64_t format_at, std::uint64_t arguments, unsigned lane, std::string& out,
                    Printed& noted) {
  const std::string format = read_string(w, format_at, lane);
  int count = 0;
  std::uint64_t offset = 0;
  // Arguments are stored one after the other, each aligned to its size (4 or 8).
  auto next = [&](unsigned bytes, unsigned count_for = 0) {
    offset = (offset + bytes - 1) / bytes * bytes;
    std::uint64_t v = 0;
    read_bytes(w, arguments + offset, lane, &v, bytes);
    noted.arguments.push_back({offset, count_for != 0 ? count_for : bytes});
    offset += bytes;
    ++count;
    return v;
  };
  for (std::size_t k = 0; k < format.size();) {
    Conversion c;
    if (format[k] == '%' && k + 1 < format.size() && format[k + 1] == '%') {
      out += '%';
      k += 2;
      continue;
    }
    if (format[k] != '%' || !parse(format, k, c)) {
      out += format[k++];
      continue;
    }
    k = c.end;
    const int width = c.width_given ? static_cast<int>(next(4)) : 0;
    switch (c.letter) {
      case 'd':
      case 'i': {
        const std::uint64_t v = next(c.wide ? 8 : 4, c.narrow ? 2 : 0);
        const auto value = c.wide     ? static_cast<long long>(v)
                           : c.narrow ? static_cast<std::int16_t>(v)
                                      : static_cast<std::int32_t>(v);
        out += printed(c, "ll", width, value);
        break;
      }
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        const std::uint64_t v = next(c.wide ? 8 : 4, c.narrow ? 2 : 0);
        out += printed(c, "ll", width, static_cast<unsigned long long>(c.narrow ? v & 0xffff : v));
        break;
      }
      case 'c': out += printed(c, "", width, static_cast<int>(next(4, 1))); break;
      case 'p': out += printed(c, "", width, reinterpret_cast<void*>(next(8))); break;
      case 's': {
        const std::uint64_t at = next(8);
        const std::string text = at == 0 ? "(null)" : read_string(w, at, lane);
        if (at != 0) noted.strings.push_back({at, text.size()});
        out += printed(c, "", width, text.c_str());
        break;
      }
      default: out += printed(c, "", width, std::bit_cast<double>(next(8)));
    }
  }
  return count;
}

}  // namespace machine
