// Pages of global memory as they were before a launch of several chunks wrote them, so that it can be repeated.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace machine {

class UndoLog {
 public:
  // Called before bytes of global memory change; copies each page once. Any thread.
  void save(std::uint64_t address, std::uint64_t bytes);
  void restore();  // everything as it was; the log is empty then
  void clear();

 private:
  void save_page(std::uint64_t page);
  std::mutex lock_;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<std::byte[]>>> pages_;
};

}  // namespace machine
