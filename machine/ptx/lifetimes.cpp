#include "ptx/lifetimes.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include "memory/round_up.hpp"

namespace machine {
namespace {

// Beyond this many bits (registers that cross blocks, times blocks) the flow is not followed: such registers stay.
constexpr std::uint64_t kMostBits = std::uint64_t{1} << 28;
constexpr std::uint32_t kNone = ~0u;

}  // namespace

std::uint32_t Lifetimes::add(std::uint32_t bytes) {
  bytes_.push_back(round_up(bytes, 64));
  return static_cast<std::uint32_t>(bytes_.size() - 1);
}

void Lifetimes::block(std::uint32_t statement) { blocks_.push_back(statement); }

void Lifetimes::Span::extend(std::uint32_t statement) {
  first = std::min(first, statement);
  last = std::max(last, statement);
}

std::uint32_t Lifetimes::block_of(std::uint32_t statement) const {
  const auto next = std::upper_bound(blocks_.begin(), blocks_.end(), statement);
  return next == blocks_.begin() ? 0 : static_cast<std::uint32_t>(next - blocks_.begin() - 1);
}

std::vector<Lifetimes::Span> Lifetimes::spans(FrameLayout& found) const {
  std::vector<Mention> ordered = mentions_;
  std::stable_sort(ordered.begin(), ordered.end(), [](const Mention& a, const Mention& b) {
    return a.statement != b.statement ? a.statement < b.statement : a.write < b.write;
  });
  std::vector<Span> result(bytes_.size());
  // A register whose mentions lie in one block, the first of them a write, is alive between them and nowhere else.
  std::vector<std::uint32_t> home(bytes_.size(), kNone), across;
  std::vector<bool> crosses(bytes_.size(), false);
  for (const Mention& m : ordered) {
    const auto block = block_of(m.statement);
    if (home[m.number] == kNone) home[m.number] = block, crosses[m.number] = !m.whole;
    else if (home[m.number] != block) crosses[m.number] = true;
    result[m.number].extend(m.statement);
  }
  for (std::uint32_t n = 0; n < bytes_.size(); ++n)
    if (crosses[n]) across.push_back(n);
  const std::uint32_t end = ordered.empty() ? 0 : ordered.back().statement;
  if (std::uint64_t{across.size()} * blocks_.size() <= kMostBits) follow(ordered, across, result, found);
  else
    for (const auto n : across) result[n] = {0, end};
  return result;
}

// Backward data flow over the blocks, for the registers in `across`.
void Lifetimes::follow(const std::vector<Mention>& ordered, const std::vector<std::uint32_t>& across,
                       std::vector<Span>& spans, FrameLayout& found) const {
  using Set = std::vector<std::uint64_t>;
  const std::size_t words = (across.size() + 63) / 64, blocks = blocks_.size();
  std::vector<std::uint32_t> index(bytes_.size(), kNone);
  for (std::uint32_t k = 0; k < across.size(); ++k) index[across[k]] = k;
  std::vector<Set> needs(blocks, Set(words)), ends(blocks, Set(words)), out(blocks, Set(words));
  for (const Mention& m : ordered) {
    const auto k = index[m.number];
    if (k == kNone) continue;
    const auto block = block_of(m.statement);
    const std::uint64_t bit = std::uint64_t{1} << k % 64;
    if (!m.write && (ends[block][k / 64] & bit) == 0) needs[block][k / 64] |= bit;
    if (m.whole) ends[block][k / 64] |= bit;
  }
  std::vector<std::vector<std::uint32_t>> before(blocks);
  for (const auto& [from, to] : edges_) before[to].push_back(from);
  // needs[b] grows to what is alive where b begins.
  std::vector<std::uint32_t> waiting(blocks);
  std::vector<bool> waits(blocks, true);
  for (std::uint32_t b = 0; b < blocks; ++b) waiting[b] = b;
  while (!waiting.empty()) {
    const auto b = waiting.back();
    waiting.pop_back();
    waits[b] = false;
    for (std::size_t w = 0; w < words; ++w) needs[b][w] |= out[b][w] & ~ends[b][w];
    for (const auto from : before[b]) {
      bool grown = false;
      for (std::size_t w = 0; w < words; ++w) {
        grown |= (needs[b][w] & ~out[from][w]) != 0;
        out[from][w] |= needs[b][w];
      }
      if (grown && !waits[from]) waits[from] = true, waiting.push_back(from);
    }
  }
  const std::uint32_t last = ordered.empty() ? 0 : ordered.back().statement;
  for (std::uint32_t b = 0; b < blocks; ++b)
    for (std::uint32_t k = 0; k < across.size(); ++k) {
      const std::uint64_t bit = std::uint64_t{1} << k % 64;
      if ((needs[b][k / 64] & bit) != 0) spans[across[k]].extend(b == 0 ? 0 : blocks_[b]);
      if ((out[b][k / 64] & bit) != 0) spans[across[k]].extend(b + 1 < blocks ? blocks_[b + 1] : last);
    }
  // What is alive where the function begins may be read before it is written.
  std::vector<std::uint32_t> suspects;
  for (std::uint32_t k = 0; k < across.size() && blocks != 0; ++k)
    if ((needs[0][k / 64] >> k % 64 & 1) != 0) suspects.push_back(across[k]);
  if (!suspects.empty()) find_unwritten(ordered, suspects, found);
}

// Forward: which of the suspects may still be unwritten where a statement reads them.
void Lifetimes::find_unwritten(const std::vector<Mention>& ordered, const std::vector<std::uint32_t>& suspects,
                               FrameLayout& found) const {
  using Set = std::vector<std::uint64_t>;
  const std::size_t words = (suspects.size() + 63) / 64, blocks = blocks_.size();
  std::vector<std::uint32_t> index(bytes_.size(), kNone);
  for (std::uint32_t k = 0; k < suspects.size(); ++k) index[suspects[k]] = k;
  std::vector<Set> open(blocks, Set(words)), ends(blocks, Set(words));
  for (const Mention& m : ordered)
    if (index[m.number] != kNone && m.whole)
      ends[block_of(m.statement)][index[m.number] / 64] |= std::uint64_t{1} << index[m.number] % 64;
  std::vector<std::vector<std::uint32_t>> behind(blocks);
  for (const auto& [from, to] : edges_) behind[from].push_back(to);
  std::fill(open[0].begin(), open[0].end(), ~std::uint64_t{0});
  std::vector<std::uint32_t> waiting = {0};
  while (!waiting.empty()) {
    const auto b = waiting.back();
    waiting.pop_back();
    for (const auto to : behind[b]) {
      bool grown = false;
      for (std::size_t w = 0; w < words; ++w) {
        const std::uint64_t more = open[b][w] & ~ends[b][w] & ~open[to][w];
        grown |= more != 0;
        open[to][w] |= more;
      }
      if (grown) waiting.push_back(to);
    }
  }
  std::vector<bool> read(suspects.size(), false);
  std::vector<std::uint64_t> now(words);
  std::uint32_t block = kNone;
  for (const Mention& m : ordered) {
    const auto k = index[m.number];
    if (k == kNone) continue;
    if (const auto b = block_of(m.statement); b != block) block = b, now = open[b];
    const std::uint64_t bit = std::uint64_t{1} << k % 64;
    if (m.whole) now[k / 64] &= ~bit;
    if (m.write || (now[k / 64] & bit) == 0) continue;
    read[k] = true;
    auto& list = found.unwritten_reads[m.statement];
    if (std::find(list.begin(), list.end(), m.number) == list.end()) list.push_back(m.number);
  }
  for (const Mention& m : ordered) {
    if (!m.write || index[m.number] == kNone || !read[index[m.number]]) continue;
    auto& list = found.late_writes[m.statement];
    if (std::find(list.begin(), list.end(), m.number) == list.end()) list.push_back(m.number);
  }
}

FrameLayout Lifetimes::layout() const {
  FrameLayout result;
  const std::vector<Span> alive = spans(result);
  for (const Span& s : alive) result.alive.emplace_back(s.first, s.last);
  std::vector<std::uint32_t> order;
  for (std::uint32_t n = 0; n < bytes_.size(); ++n)
    if (bytes_[n] != 0) order.push_back(n);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return alive[a].first < alive[b].first; });
  result.offsets.resize(bytes_.size());
  using Ending = std::pair<std::uint32_t, std::uint32_t>;  // last statement, register
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> living;
  std::map<std::uint32_t, std::vector<std::uint32_t>> spare;  // places by size
  for (const auto n : order) {
    // What ends at the statement where another begins still keeps its place: a handler may write before it has read
    // all.
    while (!living.empty() && living.top().first < alive[n].first) {
      const auto over = living.top().second;
      spare[bytes_[over]].push_back(result.offsets[over]);
      living.pop();
    }
    auto& places = spare[bytes_[n]];
    if (places.empty()) {
      result.offsets[n] = result.bytes;
      result.bytes += bytes_[n];
    } else {
      result.offsets[n] = places.back();
      places.pop_back();
    }
    living.emplace(alive[n].last, n);
  }
  return result;
}

}  // namespace machine
