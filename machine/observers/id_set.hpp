// A set of operations by id: ids ascend, and only a window of recent ones is of interest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace machine::checks {

class IdSet {
 public:
  void add(std::uint64_t id) {
    reach(id / 64, id / 64 + 1);
    words_[id / 64 - first_] |= std::uint64_t{1} << (id % 64);
  }
  void add(const IdSet& other) {
    if (other.words_.empty()) return;
    reach(other.first_, other.first_ + other.words_.size());
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[other.first_ - first_ + i] |= other.words_[i];
  }
  bool has(std::uint64_t id) const {
    const std::uint64_t word = id / 64 - first_;
    return word < words_.size() && (words_[word] >> (id % 64) & 1) != 0;
  }
  // Ids well below `id` need not be known any more.
  void forget_below(std::uint64_t id) {
    const std::uint64_t word = id / 64;
    if (word <= first_) return;
    const std::size_t drop = static_cast<std::size_t>(std::min<std::uint64_t>(word - first_, words_.size()));
    words_.erase(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(drop));
    first_ += drop;
  }

 private:
  // Makes room for words [from, to).
  void reach(std::uint64_t from, std::uint64_t to) {
    if (words_.empty()) first_ = from;
    if (from < first_) {
      words_.insert(words_.begin(), static_cast<std::size_t>(first_ - from), 0);
      first_ = from;
    }
    if (to > first_ + words_.size()) words_.resize(static_cast<std::size_t>(to - first_), 0);
  }

  std::uint64_t first_ = 0;  // words_[0] holds the ids from first_ * 64 on
  std::vector<std::uint64_t> words_;
};

}  // namespace machine::checks
