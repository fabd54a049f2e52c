// When the registers of a function are alive, and which of them can share a place in its frame.
//
// nvcc writes a new register for nearly every value. Each with a place of its own, the frames of a block's warps fill
// the second-level cache; with places shared, a frame is as large as what is alive at a time and stays in the first.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace machine {

// Where each register lies, by its number: byte offset into the frame's register area. Predicates have a number, and
// lie elsewhere.
struct FrameLayout {
  std::vector<std::uint32_t> offsets;
  std::uint32_t bytes = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> alive;  // by number: first and last statement
  // Registers that a statement may read before anything has written them; and where these are written.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> unwritten_reads, late_writes;
};

// What a first decoding of the function learns. Registers are numbered from 0, statements ascend.
class Lifetimes {
 public:
  std::uint32_t add(std::uint32_t bytes);  // a register, or a predicate of 0 bytes; its number
  void read(std::uint32_t number, std::uint32_t statement) { mentions_.push_back({number, statement, false, false}); }
  // `whole`: by every lane that gets here, so that what it held before is over.
  void write(std::uint32_t number, std::uint32_t statement, bool whole) {
    mentions_.push_back({number, statement, true, whole});
  }
  void block(std::uint32_t statement);  // a basic block begins; they are numbered from 0
  void edge(std::uint32_t from, std::uint32_t to) { edges_.emplace_back(from, to); }

  // Places such that registers alive at one statement never overlap. A register that may be read before it is written
  // is alive from the beginning, so it reads as zero in a cleared frame.
  FrameLayout layout() const;

 private:
  struct Mention {
    std::uint32_t number, statement;
    bool write, whole;
  };
  struct Span {  // of statements, both ends included
    std::uint32_t first = ~0u, last = 0;
    void extend(std::uint32_t statement);
  };
  std::vector<Span> spans(FrameLayout& found) const;
  std::uint32_t block_of(std::uint32_t statement) const;
  void follow(const std::vector<Mention>& ordered, const std::vector<std::uint32_t>& across, std::vector<Span>& spans,
              FrameLayout& found) const;
  void find_unwritten(const std::vector<Mention>& ordered, const std::vector<std::uint32_t>& suspects,
                      FrameLayout& found) const;

  std::vector<std::uint32_t> bytes_;
  std::vector<Mention> mentions_;
  std::vector<std::uint32_t> blocks_;  // first statement of each
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
};

}  // namespace machine
