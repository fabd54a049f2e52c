// The report of one process: findings, failed calls, and the proof that work was done.
//
// Findings are kept once a site, in the order in which they were first met, with a count. The text goes to people,
// the JSON to programs; both say the same. A report with nothing run is never clean.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exec/machine.hpp"
#include "report/finding.hpp"

namespace machine::report {

// What was asked for; printed so that the run can be repeated.
struct Setting {
  std::vector<std::string> tools;
  std::string architecture;  // "sm_90"
  std::uint64_t seed = 0;
  std::string program;
  bool strict = false;      // warnings count
  std::string kernel_name;  // findings in kernels without this in their name are left out; all is still checked
};

// Proof of work. bytes_checked counts what the checks looked at, byte for byte.
struct Work {
  std::uint64_t launches = 0, repeated = 0;
  std::uint64_t schedules = 0;  // further ones, tried of launches that communicate
  Counters counters;
  std::uint64_t bytes_checked = 0;
  std::uint64_t host_transfers = 0, host_bytes = 0;
};

// Reads and writes of one buffer, or of one row of it.
struct Traffic {
  std::uint64_t bytes_read = 0, bytes_written = 0;
  std::uint64_t sectors_read = 0, sectors_written = 0;  // 32-byte sectors a warp access touched, summed
  void add(const Traffic&);
  bool operator==(const Traffic&) const = default;
};
struct BufferTraffic {
  std::string name;
  std::uint64_t base = 0, bytes = 0, row_bytes = 0;
  Traffic total;
  std::vector<Traffic> rows;  // registered regions in address order, or rows of row_bytes; empty when neither
  std::vector<std::uint64_t> row_base, row_size;
};
struct LaunchTraffic {
  std::string kernel;
  std::uint64_t operation = 0;
  std::vector<BufferTraffic> buffers;
  std::uint64_t shared_accesses = 0, shared_wavefronts = 0;  // wavefronts above accesses are bank conflicts
};

class Report {
 public:
  explicit Report(Setting setting) : setting_(std::move(setting)) {}

  void add(Finding finding);
  // Whether the same is reported already, and as an error if this is one.
  bool knows(const Finding& finding) const;
  // A runtime call that failed: an error finding of check "api".
  // `of_launch`: the error is that of a launch before it. Where that has its own finding, one is enough.
  void api_error(const std::string& call, const std::string& error, const std::string& text, const std::string& why,
                 bool of_launch = false);
  // A launch that ended, however it did. A status that no check explained becomes a finding.
  void launched(const std::string& kernel, const LaunchResult& result);
  void traffic(LaunchTraffic launch);
  void checked(std::uint64_t bytes) { work_.bytes_checked += bytes; }
  void transferred(std::uint64_t bytes) { ++work_.host_transfers, work_.host_bytes += bytes; }
  // Nothing can be verified, and why.
  void refuse(std::string line) { refusal_ = std::move(line); }
  // The text could not be added to the log file, and why.
  void log_lost(std::string why) { log_lost_ = std::move(why); }
  // The process did not come to an end of its own, and by what it was ended ("SIGTERM").
  void cut_short(std::string by) { cut_short_by_ = std::move(by); }
  // Something the reader must know, printed once ("the report stops here: the process was killed").
  void note(std::string line);

  std::uint64_t errors() const { return errors_; }
  std::uint64_t warnings() const { return warnings_; }
  bool refused() const { return !refusal_.empty(); }

  const std::vector<Finding>& findings() const { return findings_; }
  const Work& work() const { return work_; }

  // At most `limit` findings as text, 0 for all.
  void write_text(std::ostream& out, std::uint64_t limit = 100) const;
  void write_json(std::ostream& out) const;

 private:
  struct Group {  // races that are reported as one
    std::size_t finding = 0;
    std::set<std::string> places;
  };
  void take_place(Finding& kept, Finding finding);
  void merge_into(Finding& kept, Finding more);
  bool told_with_another(Finding& finding, const std::string& key);

  Setting setting_;
  Work work_;
  std::vector<Finding> findings_;
  std::unordered_map<std::string, std::size_t> by_site_;
  std::unordered_map<std::string, std::vector<Group>> groups_;
  std::vector<LaunchTraffic> traffic_;
  std::vector<std::string> notes_;
  std::string refusal_, cut_short_by_, log_lost_;
  std::vector<std::string> other_kernels_;  // launched, and not named by setting_.kernel_name
  std::uint64_t named_launches_ = 0;
  std::uint64_t errors_ = 0, warnings_ = 0, errors_at_launch_ = 0;
  bool launch_failed_ = false;
};

}  // namespace machine::report
