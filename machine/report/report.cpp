#include "report/report.hpp"

#include <algorithm>

namespace machine::report {

namespace {

std::string place_key(const Site& site, const std::string& address) {
  if (site.kernel.empty()) return site.host + '@' + address;
  if (site.location.lines.empty()) return site.kernel + ':' + std::to_string(site.location.ptx_line);
  const SourceLine& line = site.location.lines.front();
  return site.kernel + '@' + line.file + ':' + std::to_string(line.line);
}

}  // namespace

std::string site_key(const Finding& f) {
  const bool race = f.check == "racecheck";
  std::string key = f.check + '|' + (race ? "" : f.kind) + '|' + (f.level == Level::warning ? "w" : "e");
  std::vector<std::string> places;
  for (const Site& site : f.sites) places.push_back(place_key(site, f.address));
  if (race) std::sort(places.begin(), places.end());
  for (const std::string& place : places) key += '|' + place;
  return key;
}

void Traffic::add(const Traffic& o) {
  bytes_read += o.bytes_read, bytes_written += o.bytes_written;
  sectors_read += o.sectors_read, sectors_written += o.sectors_written;
}

namespace {
// A finding without a place in a kernel is the host's, and stays.
bool in_other_kernel(const Finding& finding, const std::string& name) {
  bool other = false;
  for (const Site& site : finding.sites) {
    if (site.in_kernel() && site.kernel.find(name) != std::string::npos) return false;
    other |= site.in_kernel();
  }
  return other;
}
}  // namespace

void Report::add(Finding finding) {
  if (!setting_.kernel_name.empty() && in_other_kernel(finding, setting_.kernel_name)) return;
  const auto [at, fresh] = by_site_.try_emplace(site_key(finding), findings_.size());
  if (!fresh) {
    findings_[at->second].count += finding.count;
    return;
  }
  (finding.level == Level::error ? errors_ : warnings_) += 1;
  findings_.push_back(std::move(finding));
}

void Report::api_error(const std::string& call, const std::string& error, const std::string& text, const std::string& why) {
  Finding f;
  f.check = "api";
  f.kind = call + " returned " + error;
  f.message = why.empty() ? text : why;
  Site site;
  site.host = call;
  f.sites.push_back(std::move(site));
  add(std::move(f));
}

void Report::launched(const std::string& kernel, const LaunchResult& result) {
  work_.launches += 1;
  work_.repeated += result.repeated ? 1 : 0;
  work_.counters.add(result.counters);
  if (kernel.find(setting_.kernel_name) != std::string::npos) ++named_launches_;
  else if (std::find(other_kernels_.begin(), other_kernels_.end(), kernel) == other_kernels_.end()) other_kernels_.push_back(kernel);
  const bool explained = errors_ != errors_at_launch_;
  errors_at_launch_ = errors_;
  if (result.status == LaunchStatus::ok || explained) return;
  Finding f;
  f.check = "launch";
  f.kind = "Kernel ended early";
  f.message = result.message;
  Site site;
  site.kernel = kernel;
  f.sites.push_back(std::move(site));
  add(std::move(f));
  errors_at_launch_ = errors_;
}

void Report::traffic(LaunchTraffic launch) { traffic_.push_back(std::move(launch)); }

void Report::note(std::string line) {
  if (std::find(notes_.begin(), notes_.end(), line) == notes_.end()) notes_.push_back(std::move(line));
}

std::string Report::no_verdict() const {
  if (refused()) return refusal_;
  if (!cut_short_by_.empty()) return "cut short by " + cut_short_by_;
  if (setting_.tools.empty()) return "no tool was asked for";
  if (work_.launches == 0) return "no kernel ran";
  if (named_launches_ > 0) return "";
  std::string names;
  for (const std::string& kernel : other_kernels_) (names += names.empty() ? "" : ", ") += kernel;
  return "no kernel that ran has '" + setting_.kernel_name + "' in its name (" + names + ")";
}

int Report::exit_code() const {
  if (errors_ > 0 || (setting_.strict && warnings_ > 0)) return 1;
  const bool only_ran = setting_.tools.empty() && !refused() && cut_short_by_.empty();
  return only_ran || no_verdict().empty() ? 0 : 3;
}

}  // namespace machine::report
