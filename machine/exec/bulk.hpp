// Bulk copies in flight: issued by one thread, done by the copy engine as late as what waits for them allows.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "exec/bulk_reduce.hpp"
#include "exec/inst.hpp"
#include "exec/warp.hpp"

namespace machine {

// How elements change on their way from global to shared memory.
enum class BulkConversion : std::uint8_t { none, flush_f32, round_tf32 };

struct PendingBulk {
  BulkCopy copy;  // its pieces are those below
  std::vector<BulkPiece> pieces;
  Warp* warp = nullptr;
  const Inst* inst = nullptr;
  Reducer reduce = nullptr;  // of a copy that reduces
  BulkConversion conversion = BulkConversion::none;
  std::uint64_t fill = 0;  // what is written where nothing is read, an element of fill_bytes
  std::uint32_t fill_bytes = 8;
  std::uint32_t bytes = 0;      // that the mbarrier is given
  bool committed = false;       // belongs to a bulk group that is closed
  bool source_read = false;     // a store that waits for its writes only
  std::vector<std::byte> read;  // what a store has read, in order of its chunks; what st.async brought
};

struct BulkQueue {
  std::vector<std::unique_ptr<PendingBulk>> pending;        // oldest first
  std::unordered_map<std::uint32_t, std::uint32_t> groups;  // closed ones, by thread of the block
  std::unordered_map<std::uint64_t, std::uint32_t>
      maps;  // tensor maps that copies have used since they were fenced: checksums
  std::uint64_t issued = 0;

  std::uint32_t closed(std::uint32_t thread) const {
    const auto at = groups.find(thread);
    return at == groups.end() ? 0 : at->second;
  }
};

inline BulkQueue& bulk_queue(Block& block) {
  if (!block.bulk) block.bulk = std::make_shared<BulkQueue>();
  return *block.bulk;
}

// Checks and queues a copy of lane `lane`; alignment has been seen to.
void issue_bulk(const Inst& i, Warp& w, unsigned lane, std::unique_ptr<PendingBulk> bulk);
// A copy that is refused moves nothing; its mbarrier counts its bytes, so that the program goes on.
void drop_bulk(Warp& w, const PendingBulk& bulk);
// Lands the oldest copy that completes on the mbarrier. False: there is none.
bool land_bulk_of(Warp& waiter, std::uint64_t mbarrier);
// Lanes exit: what they wrote in groups lands now.
void finish_bulk(Warp& w, const Inst& i, Mask lanes);

const Inst* bulk_commit(const Inst& i, Warp& w, Mask mask);
// imm: the groups that may be left; extra: it is enough that the others have read their sources.
const Inst* bulk_wait(const Inst& i, Warp& w, Mask mask);

// What the hardware refuses: reported, or without checks the end of the launch.
void bulk_invalid(const Inst& i, Warp& w, unsigned lane, std::string_view why);
// Reports an address that is not a multiple of `align`. True: it is.
bool bulk_aligned(const Inst& i, Warp& w, unsigned lane, Space space, std::uint64_t address, std::uint32_t align);
// The storage address that a 32-bit address of the own block's shared memory, or a generic one, names.
std::uint64_t shared_storage(const Warp& w, std::uint64_t address, bool generic);
// The mbarrier at a storage address is initialised and lies in shared memory; reports it else.
bool usable_mbarrier(const Inst& i, Warp& w, unsigned lane, std::uint64_t address);

}  // namespace machine
