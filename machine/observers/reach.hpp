// What a thread knows to have happened: the heart of happens-before.
//
// Every warp of a block has a clock. An access is stamped with the clock of its warp; an operation by which others may
// learn of it moves the clock on. A thread knows an access when the access's stamp lies below what the thread knows of
// that warp. After a block barrier all clocks and all knowledge are equal again, so that in the usual case one
// comparison decides for a whole warp.
//
// The async copies of a warp are an actor of their own with a clock of their own: 32 + warp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "events/access.hpp"

namespace machine::checks {

using Stamp = std::uint32_t;

inline constexpr unsigned kActors = 64;
inline constexpr unsigned async_actor(unsigned warp) { return 32 + warp; }

// Some lanes of one actor, known up to a stamp, where the whole actor is not.
struct Grain {
  std::uint32_t actor = 0;
  Mask lanes = 0;
  Stamp upto = 0;
};

// Bulk copies that are complete: of those that complete on one mbarrier or with the groups of one thread, all with a
// stamp below `upto`. The stamps are phases, or numbers of groups.
struct Completion {
  std::uint32_t source = 0;
  Stamp upto = 0;
};

// Knowledge of one block.
struct Reach {
  alignas(64) std::array<Stamp, kActors> upto{};  // accesses of every lane with a stamp below this
  std::vector<Grain> grains;
  std::vector<Completion> completions;
  // The part of this that a fence.proxy.async has come after: what bulk copies issued now may count on. Null: nothing.
  std::shared_ptr<const Reach> proxied;

  bool covers(unsigned actor, unsigned lane, Stamp stamp) const {
    if (stamp < upto[actor]) return true;
    for (const Grain& g : grains)
      if (g.actor == actor && (g.lanes >> lane & 1) != 0 && stamp < g.upto) return true;
    return false;
  }
  bool complete(const Completion& c) const {
    for (const Completion& known : completions)
      if (known.source == c.source) return c.upto < known.upto;
    return false;
  }
  void add(const Grain& grain);
  void add(const Completion& completion);
  void join(const Reach& other);
  bool includes(const Reach& other) const;
};

// Knowledge of many blocks: an immutable treap keyed by block, so that handing it on costs a pointer and joining two
// that share most of their parts costs little.
struct Blocks;
using BlocksPtr = std::shared_ptr<const Blocks>;
struct Blocks {
  std::uint32_t block = 0;
  std::shared_ptr<const Reach> reach;
  BlocksPtr left, right;
};
BlocksPtr single(std::uint32_t block, Reach reach);
BlocksPtr unite(const BlocksPtr& a, const BlocksPtr& b);
const Reach* find(const BlocksPtr& tree, std::uint32_t block);
// The tree without one block.
BlocksPtr without(const BlocksPtr& tree, std::uint32_t block);

// Knowledge of the own block, and of others.
struct Knowledge {
  Reach own;
  BlocksPtr others;

  void join(const Knowledge& other) {
    own.join(other.own);
    others = unite(others, other.others);
  }
  // Takes in what was published: entries of `block` are of the own block.
  void learn(const BlocksPtr& published, std::uint32_t block);
  BlocksPtr published(std::uint32_t block) const { return unite(others, single(block, own)); }
};

}  // namespace machine::checks
