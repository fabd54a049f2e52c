// Kernels that write __constant__ memory, through the address of the symbol, and load it by ld.const.
#include "memory/address_space.hpp"
#include "observers/operations.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

std::optional<report::Finding> written_constant(const Footprint& footprint) {
  for (const Page* loaded : footprint.constants.sorted()) {
    const Page* written = footprint.pages.find(loaded->number);
    if (!written) continue;
    for (unsigned w = 0; w < kPageWords; ++w) {
      const std::uint64_t common = loaded->marks.word(Deed::read, w) & written->marks.changed(w);
      if (common == 0) continue;
      const unsigned byte = w * 64 + static_cast<unsigned>(std::countr_zero(common));
      const std::uint64_t address = (loaded->number << kPageShift) + byte;
      report::Finding f;
      f.check = "racecheck";
      f.family = "read-only";
      f.kind = "Write to __constant__ memory that the kernel loads";
      f.message =
          "ld.const reads through a cache that does not see what the kernel writes, and may give the value from "
          "before or after, whatever orders the two";
      f.remedy = "make it a __device__ variable, or write it in another kernel or copy, ordered before this one";
      f.address = describe_address(address, AddressSpace::instance().find(address));
      for (const Trace* t : {written->trace_of(byte, true), loaded->trace_of(byte, false)})
        if (t) f.sites.push_back(site_of(footprint.launch, t->block, t->warp, 0, t->pc));
      return f;
    }
  }
  return std::nullopt;
}

}  // namespace machine::checks
