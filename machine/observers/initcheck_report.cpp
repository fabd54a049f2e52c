// What initcheck says of an undefined value: where it was read first, what it decides; and what of that outlives the
// launch.
#include "exec/machine.hpp"
#include "memory/address_space.hpp"
#include "observers/initcheck.hpp"

namespace machine::checks {

namespace {

enum Rule : std::uint32_t { kUndefined = 200, kKept = 220 };

// " of size 16 bytes" of an instruction such as ld.global.v4.f32; nothing where its spelling does not say.
std::string size_words(const std::string& text) {
  const std::size_t begin = text.front() == '@' ? text.find(' ') + 1 : 0, end = text.find_first_of(" \t", begin);
  const std::string opcode = text.substr(begin, end == std::string::npos ? end : end - begin);
  const std::size_t type = opcode.rfind('.');
  if (type == std::string::npos || opcode.compare(0, 2, "ld") != 0 || opcode.size() < type + 3) return "";
  unsigned bits = 0;
  for (std::size_t k = type + 2; k < opcode.size() && opcode[k] >= '0' && opcode[k] <= '9'; ++k)
    bits = bits * 10 + static_cast<unsigned>(opcode[k] - '0');
  const unsigned parts = opcode.find(".v2.") != std::string::npos   ? 2
                         : opcode.find(".v4.") != std::string::npos ? 4
                         : opcode.find(".v8.") != std::string::npos ? 8
                                                                    : 1;
  if (opcode.find("matrix") != std::string::npos || bits < 8) return "";
  return " of size " + std::to_string(bits / 8 * parts) + (bits * parts == 8 ? " byte" : " bytes");
}

const char* use_words(UndefinedUse use) {
  switch (use) {
    case UndefinedUse::branch: return "a branch depends on ";
    case UndefinedUse::address: return "an address depends on ";
    case UndefinedUse::members: return "the lanes that a collective waits for depend on ";
    case UndefinedUse::control: return "what an instruction does depends on ";
    case UndefinedUse::stored: return "what is stored depends on ";
    case UndefinedUse::printed: return "what the kernel prints depends on ";
    case UndefinedUse::swap: return "whether a compare-and-swap stores depends on ";
  }
  return "the program depends on ";
}

}  // namespace

report::Finding Initcheck::describe(const Origin& origin, std::uint64_t block) const {
  report::Finding f;
  f.check = "initcheck";
  f.message = "nothing has written these bytes";
  switch (origin.kind) {
    case Origin::Kind::memory:
      if (origin.address >= kOnChipBase) {
        f.kind = "Uninitialized __shared__ memory read";
        f.address = describe_address(origin.address - kOnChipBase, variable_at(origin.address - kOnChipBase));
      } else {
        f.kind = "Uninitialized __global__ memory read";
        f.address = describe_address(origin.address, AddressSpace::instance().find(origin.address));
      }
      break;
    case Origin::Kind::local:
      f.kind = "Uninitialized __local__ memory read";
      if (const auto at = local_places_.find(origin.pc); at != local_places_.end()) f.address = at->second;
      break;
    case Origin::Kind::unwritten:
      f.kind = "Uninitialized register read";
      f.message = "nothing has written this register, a variable without a value";
      break;
    case Origin::Kind::absent:
      f.check = "synccheck";
      f.kind = "Shuffle reads a lane outside the mask";
      f.message =
          "the shuffle reads a lane that takes no part (widen the mask, or clamp the source lane to it); what it gives "
          "is undefined";
      break;
    case Origin::Kind::kept: return kept_.origins[origin.address].finding;
  }
  f.sites.push_back(site_of(launch_, block, origin.warp == kNoThread ? 0 : origin.warp, origin.lane, origin.pc));
  if (origin.kind == Origin::Kind::memory || origin.kind == Origin::Kind::local)
    f.kind += size_words(f.sites.back().location.text);
  if (origin.warp == kNoThread) f.sites.back().has_thread = false;
  return f;
}

void Initcheck::used(const WarpPoint& point, UndefinedUse use, Mask lanes, const Origin& origin) {
  const bool kept = origin.kind == Origin::Kind::kept;
  const std::uint32_t rule = kUndefined + static_cast<std::uint32_t>(origin.kind);
  if (!sink_.first({kept ? kKept : rule, kept ? static_cast<std::uint32_t>(origin.address) : origin.pc, 0, 0},
                   static_cast<unsigned>(std::popcount(lanes))))
    return;
  report::Finding f = describe(origin, point.block->index);
  f.message += std::string(", and ") + use_words(use) +
               (origin.kind == Origin::Kind::unwritten || origin.kind == Origin::Kind::absent ? "it" : "them");
  if (kept || point.pc != origin.pc)
    f.sites.push_back(
        site_of(launch_, point.block->index, point.warp, static_cast<unsigned>(std::countr_zero(lanes)), point.pc));
  sink_.add(std::move(f));
}

void Initcheck::hand_over(Kept& kept) const {
  for (const auto& [address, bits] : partial_)
    if (in_global_arena(address)) kept.partial[address] = bits;
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // origins that are the same for whoever reads the finding
  for (const auto& [granule, stored] : stored_) {
    if (!in_global_arena(granule << 6)) continue;
    const Origin& o = stored.origin;
    if (o.kind == Origin::Kind::kept) {
      kept.stored[granule] = static_cast<std::uint32_t>(o.address);
      continue;
    }
    const std::uint64_t key = std::uint64_t{o.pc} << 8 | static_cast<std::uint64_t>(o.kind) << 1 | (o.computed ? 1 : 0);
    const auto [at, fresh] = known.try_emplace(key, static_cast<std::uint32_t>(kept.origins.size()));
    kept.stored[granule] = at->second;
    if (!fresh) continue;
    StoreWidth widest{o.kind == Origin::Kind::local ? launch_.stores.local : launch_.stores.shared, kWidestAccess};
    if (o.kind == Origin::Kind::memory && o.address < kOnChipBase) {
      const Object* object = AddressSpace::instance().find(o.address);
      const auto wide = kept.widest.find(object ? object->id : 0);
      widest = {launch_.stores.global, kWidestAccess};
      if (wide != kept.widest.end()) widest = wide->second;
    }
    kept.origins.push_back({describe(o, stored.block), o.computed, widest});
  }
}

}  // namespace machine::checks
