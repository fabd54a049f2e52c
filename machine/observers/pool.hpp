// Storage that checks use again, from block to block and from launch to launch: fresh memory costs more than most launches.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace machine::checks {

// What is given back is as good as new to whoever takes it: the giver sees to that.
template <class T>
class Pool {
 public:
  static Pool& instance() {
    static Pool& pool = *new Pool;  // outlives every observer
    return pool;
  }

  // Adds `count` of them to `into`, under one lock.
  void take(std::vector<T*>& into, std::size_t count) {
    const std::lock_guard hold(lock_);
    while (free_.size() < count) {
      owned_.push_back(std::make_unique_for_overwrite<T[]>(kSlab));
      for (std::size_t i = kSlab; i-- > 0;) free_.push_back(&owned_.back()[i]);
    }
    into.insert(into.end(), free_.end() - static_cast<std::ptrdiff_t>(count), free_.end());
    free_.resize(free_.size() - count);
  }
  T* take() {
    std::vector<T*> one;
    take(one, 1);
    return one.front();
  }
  void give(const std::vector<T*>& spent) {
    if (spent.empty()) return;
    const std::lock_guard hold(lock_);
    free_.insert(free_.end(), spent.rbegin(), spent.rend());
  }

 private:
  static constexpr std::size_t kSlab = std::max<std::size_t>(1, (64 << 10) / sizeof(T));
  std::mutex lock_;
  std::vector<std::unique_ptr<T[]>> owned_;
  std::vector<T*> free_;
};

}  // namespace machine::checks
