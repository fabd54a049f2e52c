// Pages of global memory as they were before a launch of several chunks wrote them, so that it can be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace machine {

inline constexpr unsigned kUndoPageShift = 12;

// What one worker of a launch saved. Of all workers together each page is copied once, by the first that writes it.
// Aligned, as it is written while workers on other cores write theirs.
class alignas(128) UndoLog {
 public:
  ~UndoLog() { clear(); }

  // Called before bytes of global memory change.
  void save(std::uint64_t address, std::uint64_t bytes) {
    // Most stores go to the page that was saved last.
    if (((address ^ last_) | ((address + bytes - 1) ^ last_)) >> kUndoPageShift == 0) [[likely]]
      return;
    save_pages(address, bytes);
    last_ = address + bytes - 1;
  }
  void restore();  // everything as it was; the log is empty then
  // Everything as it was, and the log holds what there has been since: to be exchanged again, or restored. Until then
  // others may save the same pages.
  void exchange();
  // Whether something was written to memory that the host registered, which is not saved; or to other memory of the
  // host.
  bool wrote_outside() const { return outside_; }
  bool wrote_host_memory() const;

 private:
  using Copy = std::unique_ptr<std::byte[]>;
  void save_pages(std::uint64_t address, std::uint64_t bytes);
  void save_page(std::uint64_t page);
  void take_spare();
  void clear();

  std::uint64_t last_ = 0;
  bool outside_ = false;
  std::vector<std::pair<std::uint64_t, Copy>> pages_;
  std::vector<Copy> room_;  // for the pages to come
};

}  // namespace machine
