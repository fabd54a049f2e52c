// The modifiers of an instruction on memory: state space, order, scope, cache operator, vector.
#include <algorithm>

#include "isa/memory_decode.hpp"

namespace machine {
namespace {

template <class T>
struct Named {
  std::string_view name;
  T value;
};

constexpr Named<Via> kSpaces[] = {
    {"global", Via::global},      {"shared", Via::shared},
    {"shared::cta", Via::shared}, {"shared::cluster", Via::shared},
    {"local", Via::local},        {"const", Via::constant},
    {"param", Via::param},        {"param::entry", Via::param},
    {"param::func", Via::param},
};
constexpr Named<Order> kOrders[] = {
    {"weak", Order::weak},       {"volatile", Order::volatile_}, {"relaxed", Order::relaxed},
    {"acquire", Order::acquire}, {"release", Order::release},    {"acq_rel", Order::acq_rel},
};
constexpr Named<Scope> kScopes[] = {
    {"cta", Scope::cta}, {"cluster", Scope::cluster}, {"gpu", Scope::gpu}, {"sys", Scope::sys}};
constexpr Named<CacheOp> kCacheOps[] = {
    {"ca", CacheOp::ca}, {"cg", CacheOp::cg}, {"cs", CacheOp::cs}, {"lu", CacheOp::lu},
    {"cv", CacheOp::cv}, {"wb", CacheOp::wb}, {"wt", CacheOp::wt}, {"nc", CacheOp::nc},
};
constexpr Named<unsigned> kVectors[] = {{"v2", 2}, {"v4", 4}, {"v8", 8}};
// Of caches that nothing here has.
constexpr std::string_view kHints[] = {
    "L1::evict_normal", "L1::evict_unchanged",
    "L1::evict_first",  "L1::evict_last",
    "L1::no_allocate",  "L2::evict_normal",
    "L2::evict_first",  "L2::evict_last",
    "L2::64B",          "L2::128B",
    "L2::256B",         "unified",
};

template <class T, std::size_t N>
const T* named(const Named<T> (&table)[N], std::string_view name) {
  for (const auto& entry : table)
    if (entry.name == name) return &entry.value;
  return nullptr;
}

}  // namespace

MemoryModifiers memory_modifiers(Decoder& d) {
  MemoryModifiers m;
  bool space = false, order = false;
  for (auto word = d.next(); !word.empty() && type_of(word) == Type::none; word = d.next()) {
    if (const Via* via = named(kSpaces, word)) {
      if (space) d.fail("two state spaces");
      m.via = *via, space = true;
    } else if (word == "mmio") {
      if (!order) m.order = Order::mmio, order = true;
    } else if (const Order* given = named(kOrders, word)) {
      // .mmio.relaxed is one order.
      if (m.order != Order::mmio || *given != Order::relaxed) {
        if (order) d.fail("two orders");
        m.order = *given, order = true;
      }
    } else if (const Scope* scope = named(kScopes, word)) {
      m.scope = *scope;
    } else if (const CacheOp* cache = named(kCacheOps, word)) {
      m.cache = *cache;
    } else if (const unsigned* vector = named(kVectors, word)) {
      m.vector = *vector;
    } else if (word == "L2::cache_hint") {
      m.cache_hint = true;
    } else if (std::find(std::begin(kHints), std::end(kHints), word) == std::end(kHints)) {
      return m;
    }
    d.accept(word);
  }
  if (m.cache == CacheOp::cv && m.order == Order::weak) m.order = Order::volatile_;
  if (m.order == Order::volatile_ && m.scope == Scope::none) m.scope = Scope::sys;
  if (m.order != Order::weak && m.scope == Scope::none) m.scope = Scope::gpu;
  return m;
}

void check_named_space(Decoder& d, const Decoder::Address& address, Via& via) {
  if (address.variable == nullptr) return;
  Via named = Via::generic;
  switch (address.variable->kind) {
    case Variable::shared:
    case Variable::dynamic_shared: named = Via::shared; break;
    case Variable::local: named = Via::local; break;
    case Variable::global: named = Via::global; break;
    default: d.fail("this variable cannot be addressed here");
  }
  if (via == Via::generic) via = named;
  const bool constant = via == Via::constant && named == Via::global;
  if (via != named && !constant) d.fail("the variable lies in another state space");
}

}  // namespace machine
