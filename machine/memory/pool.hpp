// Storage that is used again, from block to block and from launch to launch: fresh memory costs more than most
// launches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace machine {

// Threads of the process, counted as they first ask.
inline unsigned thread_number() {
  static std::atomic<unsigned> next{0};
  thread_local const unsigned mine = next++;
  return mine;
}

// What is released is as good as new to whoever acquires it next: who releases it sees to that. A thread gets what it
// released last, if there is any of it: that lies in its own caches.
template <class T>
class Pool {
 public:
  static Pool& instance() {
    static Pool& pool = *new Pool;  // outlives whoever uses it
    return pool;
  }

  // Adds `count` of them to `into`, under one lock.
  void acquire(std::vector<T*>& into, std::size_t count) {
    const std::lock_guard hold(lock_);
    for (std::size_t i = 0; i < shelves_.size() && count > 0; ++i) {
      std::vector<T*>& shelf = shelf_of(thread_number() + i);
      const std::size_t some = std::min(count, shelf.size());
      into.insert(into.end(), shelf.end() - static_cast<std::ptrdiff_t>(some), shelf.end());
      shelf.resize(shelf.size() - some);
      count -= some;
    }
    while (count > 0) {
      owned_.push_back(std::make_unique_for_overwrite<T[]>(kSlab));
      std::size_t i = kSlab;
      for (; i > 0 && count > 0; --count) into.push_back(&owned_.back()[--i]);
      while (i > 0) shelf_of(thread_number()).push_back(&owned_.back()[--i]);
    }
  }
  T* acquire() {
    std::vector<T*> one;
    acquire(one, 1);
    return one.front();
  }
  void release(const std::vector<T*>& spent) {
    if (spent.empty()) return;
    const std::lock_guard hold(lock_);
    std::vector<T*>& shelf = shelf_of(thread_number());
    shelf.insert(shelf.end(), spent.rbegin(), spent.rend());
  }

 private:
  static constexpr std::size_t kSlab = std::max<std::size_t>(1, (64 << 10) / sizeof(T));
  std::vector<T*>& shelf_of(std::size_t number) { return shelves_[number % shelves_.size()]; }

  std::mutex lock_;
  std::vector<std::unique_ptr<T[]>> owned_;
  std::array<std::vector<T*>, 16> shelves_;
};

}  // namespace machine
