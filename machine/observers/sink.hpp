// Where the checks of one chunk put what they find: once a site, counted, described on first sight only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/observer.hpp"
#include "report/finding.hpp"

namespace machine::checks {

// What makes two faults the same: the rule that was broken, the instructions, and the object.
struct SiteKey {
  std::uint32_t rule = 0, pc = 0, other_pc = 0, object = 0;
  bool operator==(const SiteKey&) const = default;
};

class Sink {
 public:
  // Counts; true when the site is new and the caller is to describe it with add().
  bool first(const SiteKey& key, std::uint64_t count = 1) {
    const auto [at, fresh] = index_.try_emplace(key, found_.size());
    if (fresh) found_.emplace_back();
    found_[at->second].count += count;
    pending_ = at->second;
    return fresh;
  }
  // The same for a race, which is described anew when its threads are further apart than any before. Counts each thread
  // of an access (`event`) once.
  bool first_or_further(const SiteKey& key, std::uint8_t apart, std::uint64_t event, unsigned lane) {
    const bool fresh = first(key, 0);
    Found& found = found_[pending_];
    if (found.event != event) found.event = event, found.lanes = 0;
    found.count += found.lanes >> lane & 1 ? 0 : 1;
    found.lanes |= Mask{1} << lane;
    return fresh || apart > found.finding.apart;
  }
  void add(report::Finding finding) { found_[pending_].finding = std::move(finding); }

  bool empty() const { return found_.empty(); }
  bool has_error() const {
    return std::any_of(found_.begin(), found_.end(),
                       [](const Found& f) { return f.finding.level == report::Level::error; });
  }
  template <class F>
  void drain(F&& f) {
    for (auto& entry : found_) {
      entry.finding.count = entry.count;
      f(std::move(entry.finding));
    }
    found_.clear();
    index_.clear();
  }

 private:
  struct Hash {
    std::size_t operator()(const SiteKey& k) const {
      return (((std::size_t{k.rule} * 0x9e3779b97f4a7c15ULL ^ k.pc) * 0x9e3779b97f4a7c15ULL ^ k.other_pc) *
              0x9e3779b97f4a7c15ULL) ^
             k.object;
    }
  };
  struct Found {
    report::Finding finding;
    std::uint64_t count = 0;
    std::uint64_t event = 0;
    Mask lanes = 0;
  };
  std::unordered_map<SiteKey, std::size_t, Hash> index_;
  std::vector<Found> found_;
  std::size_t pending_ = 0;
};

// The place where a lane of a warp is. `kernel` is the demangled name.
report::Site site_of(const LaunchInfo& launch, std::uint64_t block, unsigned warp, unsigned lane, std::uint32_t pc);

std::string demangled(const std::string& name);
// A text of several lines as one, the mangled names in it readable.
std::string one_line(std::string_view text);

// "buffer + 0x40 (0x100000000440)", or where the address lies between objects.
std::string describe_address(std::uint64_t address, const Object* object);
std::string describe_object(const Object& object);
std::string_view space_name(Space space);

}  // namespace machine::checks
