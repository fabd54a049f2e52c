#include "observers/host_side.hpp"

#include "memory/address_space.hpp"
#include "memory/graph_memory.hpp"
#include "observers/sink.hpp"

namespace machine::checks {

void HostSide::begin(const Operation& operation) {
  current_ = operation;
  source_.reset();
}

void HostSide::end(const Operation&) {
  if (source_) copied_to_host(*source_);
  source_.reset();
}

void HostSide::invalid(AccessKind kind, std::uint64_t address, std::uint64_t bytes, const Object* object, const char* why) {
  report::Finding f;
  f.check = "memcheck";
  const bool writes = kind == AccessKind::store;
  const std::string by = current_.name.empty() ? "the host" : current_.name;
  f.kind = std::string("Invalid ") + (writes ? "write of " : "read of ") + std::to_string(bytes) + " bytes by " + by;
  f.message = why;
  f.address = describe_address(address, object);
  report::Site site;
  site.host = by;
  f.sites.push_back(std::move(site));
  report_.add(std::move(f));
}

bool HostSide::access(std::uint64_t operation, AccessKind kind, std::uint64_t address, std::uint64_t bytes,
                      std::uint64_t pitch, std::uint64_t rows) {
  if (bytes == 0 || rows == 0) return true;
  const std::uint64_t span = (rows - 1) * pitch + bytes;
  const Object* object = AddressSpace::instance().find(address);
  const bool writes = kind == AccessKind::store;
  if (!object || !object->contains(address, span)) {
    if (options_.memcheck)
      invalid(kind, object ? object->base + object->size : address, bytes * rows, object ? object : AddressSpace::instance().nearest(address),
              object ? "the range starts inside its object and ends past it" : "the range starts in no object");
    return false;
  }
  if (object->state == ObjectState::freed) {
    if (options_.memcheck) invalid(kind, address, bytes * rows, object, why_not_alive(*object));
    return false;
  }
  report_.transferred(bytes * rows);
  const Range range{address, bytes, pitch, rows, writes};
  if (options_.racecheck) operations_.touched(operation, range);
  if (!options_.initcheck || current_.id != operation) return true;
  if (!writes) source_ = object->kind == ObjectKind::global ? std::optional(range) : std::nullopt;
  else if (ArenaBits::covers(address)) copied_to_device(range);
  else source_.reset();
  return true;
}

// What is copied from device memory brings its unwritten bytes along; what comes from the host is written.
void HostSide::copied_to_device(const Range& to) {
  const bool same_size = source_ && source_->bytes * source_->rows == to.bytes * to.rows;
  for (std::uint64_t row = 0; row < to.rows; ++row) written_.set(to.address + row * to.pitch, to.bytes);
  if (same_size) {
    const Range& from = *source_;
    bool all = true;
    for (std::uint64_t row = 0; row < from.rows && all; ++row) all = written_.all(from.address + row * from.pitch, from.bytes);
    for (std::uint64_t i = 0; i < to.bytes * to.rows && !all; ++i)
      if (!written_.test(from.address + i / from.bytes * from.pitch + i % from.bytes))
        written_.clear(to.address + i / to.bytes * to.pitch + i % to.bytes, 1);
  }
  source_.reset();
}

void HostSide::copied_to_host(const Range& from) {
  std::uint64_t missing = 0, hole = 0, first_hole = 0;
  for (std::uint64_t row = 0; row < from.rows; ++row) {
    const std::uint64_t begin = from.address + row * from.pitch;
    if (from.pitch != from.bytes) hole = 0;
    if (written_.all(begin, from.bytes)) {
      hole = 0;
      continue;
    }
    for (std::uint64_t at = begin; at < begin + from.bytes; ++at) {
      if (written_.test(at)) {
        hole = 0;
        continue;
      }
      ++missing;
      if (++hole == kPadding && first_hole == 0) first_hole = at + 1 - kPadding;
    }
  }
  const std::uint64_t all = from.bytes * from.rows;
  // Structs with padding are copied whole.
  if (missing != all && first_hole == 0) return;
  const std::uint64_t first = missing == all ? from.address : first_hole;
  report::Finding f;
  f.check = "initcheck";
  f.level = report::Level::warning;
  f.kind = "Uninitialized memory copied to the host by " + current_.name;
  f.message = missing == all ? "nothing has written any of the " + std::to_string(all) + " bytes that are copied"
                             : "nothing has written " + std::to_string(missing) + " of the " + std::to_string(all) + " bytes that are copied";
  f.remedy = "check that the kernel that should write them ran, ran first, and covers them all; or copy only what was written";
  f.address = describe_address(first, AddressSpace::instance().find(first));
  report::Site site;
  site.host = current_.name;
  f.sites.push_back(std::move(site));
  report_.add(std::move(f));
}

}  // namespace machine::checks
