// What the files of order.hpp share.
#pragma once

#include "observers/each_lane.hpp"
#include "observers/order.hpp"

namespace machine::checks {

// Knowledge is shared until it changes: the joined one is a copy.
template <class T>
void join_shared(std::shared_ptr<const T>& into, const std::shared_ptr<const T>& from) {
  if (!from || into == from) return;
  if (!into) return void(into = from);
  auto joined = std::make_shared<T>(*into);
  joined->join(*from);
  into = std::move(joined);
}

// What a fence made ready, seen from outside the lanes that made it: their own accesses become part of it.
inline Knowledge settled(const Fenced& fenced, unsigned w, Mask lanes) {
  Knowledge known = fenced.known;
  if (fenced.self != 0) known.own.add(Grain{w, lanes, fenced.self});
  if (fenced.copied != 0) known.own.add(Grain{async_actor(w), lanes, fenced.copied});
  return known;
}

// A grain of all living lanes stands for the warp: what exited lanes did before is done.
inline Mask whole_if(Mask lanes, Mask alive) { return (alive & ~lanes) == 0 ? kFullMask : lanes; }

}  // namespace machine::checks
