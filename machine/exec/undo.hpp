// Pages of global memory as they were before a launch of several chunks wrote them, so that it can be repeated.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace machine {

inline constexpr unsigned kUndoPageShift = 12;

class UndoLog {
 public:
  // Called before bytes of global memory change; copies each page once. Any thread. `last` is the caller's own, 0 at
  // first: an address in the page that it saved last, which most stores go to again.
  void save(std::uint64_t address, std::uint64_t bytes, std::uint64_t& last) {
    if (((address ^ last) | ((address + bytes - 1) ^ last)) >> kUndoPageShift == 0) [[likely]] return;
    save_pages(address, bytes);
    last = address + bytes - 1;
  }
  void restore();  // everything as it was; the log is empty then
  void clear();

 private:
  using Copy = std::unique_ptr<std::byte[]>;
  void save_pages(std::uint64_t address, std::uint64_t bytes);
  void save_page(std::uint64_t page);
  static std::vector<Copy>& spare();  // copies of earlier launches, whose memory is used again
  std::mutex lock_;
  std::vector<std::pair<std::uint64_t, Copy>> pages_;
};

}  // namespace machine
