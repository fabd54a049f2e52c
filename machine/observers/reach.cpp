#include "observers/reach.hpp"

namespace machine::checks {

void Reach::add(const Grain& grain) {
  if (grain.upto <= upto[grain.actor] || grain.lanes == 0) return;
  if (grain.lanes == kFullMask) {
    upto[grain.actor] = grain.upto;
    std::erase_if(grains, [&](const Grain& g) { return g.actor == grain.actor && g.upto <= grain.upto; });
    return;
  }
  for (Grain& g : grains) {
    if (g.actor != grain.actor) continue;
    if (g.upto >= grain.upto && (g.lanes & grain.lanes) == grain.lanes) return;
    if (g.upto == grain.upto) return void(g.lanes |= grain.lanes);
    if (g.upto < grain.upto && (grain.lanes & g.lanes) == g.lanes) return void(g = grain);
  }
  grains.push_back(grain);
}

void Reach::add(const Completion& completion) {
  for (Completion& known : completions)
    if (known.source == completion.source) return void(known.upto = std::max(known.upto, completion.upto));
  completions.push_back(completion);
}

void Reach::join(const Reach& other) {
  if (&other == this) return;
  for (const Completion& c : other.completions) add(c);
  if (other.proxied && other.proxied != proxied) {
    if (!proxied) {
      proxied = other.proxied;
    } else if (!proxied->includes(*other.proxied)) {
      auto both = std::make_shared<Reach>(*proxied);
      both->join(*other.proxied);
      proxied = std::move(both);
    }
  }
  for (unsigned i = 0; i < kActors; ++i) upto[i] = std::max(upto[i], other.upto[i]);
  std::erase_if(grains, [&](const Grain& g) { return g.upto <= upto[g.actor]; });
  for (const Grain& g : other.grains) add(g);
}

bool Reach::includes(const Reach& other) const {
  for (unsigned i = 0; i < kActors; ++i)
    if (upto[i] < other.upto[i]) return false;
  for (const Completion& c : other.completions)
    if (c.upto != 0 && !complete({c.source, c.upto - 1})) return false;
  if (other.proxied && other.proxied != proxied && !(proxied && proxied->includes(*other.proxied))) return false;
  for (const Grain& o : other.grains) {
    if (o.upto <= upto[o.actor]) continue;
    const bool found = std::any_of(grains.begin(), grains.end(), [&](const Grain& g) {
      return g.actor == o.actor && (g.lanes & o.lanes) == o.lanes && g.upto >= o.upto;
    });
    if (!found) return false;
  }
  return true;
}

namespace {

// Heap order of the treap: a fixed mixing of the key, so that equal sets have equal shapes.
std::uint32_t priority(std::uint32_t key) {
  key ^= key >> 16;
  key *= 0x7feb352dU;
  key ^= key >> 15;
  key *= 0x846ca68bU;
  return key ^ key >> 16;
}

BlocksPtr node(std::uint32_t block, std::shared_ptr<const Reach> reach, BlocksPtr left, BlocksPtr right) {
  return std::make_shared<const Blocks>(Blocks{block, std::move(reach), std::move(left), std::move(right)});
}

struct Split {
  BlocksPtr below, at, above;
};
Split split(const BlocksPtr& tree, std::uint32_t key) {
  if (!tree) return {};
  if (tree->block == key) return {tree->left, tree, tree->right};
  if (tree->block < key) {
    Split s = split(tree->right, key);
    s.below = s.below == tree->right ? tree : node(tree->block, tree->reach, tree->left, s.below);
    return s;
  }
  Split s = split(tree->left, key);
  s.above = s.above == tree->left ? tree : node(tree->block, tree->reach, s.above, tree->right);
  return s;
}

BlocksPtr concatenate(const BlocksPtr& a, const BlocksPtr& b) {
  if (!a) return b;
  if (!b) return a;
  if (priority(a->block) > priority(b->block)) return node(a->block, a->reach, a->left, concatenate(a->right, b));
  return node(b->block, b->reach, concatenate(a, b->left), b->right);
}

}  // namespace

BlocksPtr single(std::uint32_t block, Reach reach) {
  return node(block, std::make_shared<const Reach>(std::move(reach)), nullptr, nullptr);
}

BlocksPtr unite(const BlocksPtr& a, const BlocksPtr& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (priority(a->block) < priority(b->block)) return unite(b, a);
  const Split s = split(b, a->block);
  BlocksPtr left = unite(a->left, s.below), right = unite(a->right, s.above);
  std::shared_ptr<const Reach> reach = a->reach;
  if (s.at && s.at->reach != reach && !reach->includes(*s.at->reach)) {
    if (s.at->reach->includes(*reach)) {
      reach = s.at->reach;
    } else {
      Reach joined = *reach;
      joined.join(*s.at->reach);
      reach = std::make_shared<const Reach>(std::move(joined));
    }
  }
  if (left == a->left && right == a->right && reach == a->reach) return a;
  return node(a->block, std::move(reach), std::move(left), std::move(right));
}

const Reach* find(const BlocksPtr& tree, std::uint32_t block) {
  const Blocks* at = tree.get();
  while (at && at->block != block) at = at->block < block ? at->right.get() : at->left.get();
  return at ? at->reach.get() : nullptr;
}

BlocksPtr without(const BlocksPtr& tree, std::uint32_t block) {
  if (!find(tree, block)) return tree;
  const Split s = split(tree, block);
  return concatenate(s.below, s.above);
}

void Knowledge::learn(const BlocksPtr& published, std::uint32_t block) {
  if (!published) return;
  if (const Reach* mine = find(published, block)) {
    own.join(*mine);
    others = unite(others, without(published, block));
  } else {
    others = unite(others, published);
  }
}

}  // namespace machine::checks
