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

std::vector<std::string> place_keys(const Finding& f) {
  std::vector<std::string> places;
  // An undefined value is one fault, whatever it comes to decide.
  const std::size_t kept = f.check == "initcheck" ? std::min<std::size_t>(f.sites.size(), 1) : f.sites.size();
  for (std::size_t k = 0; k < kept; ++k) places.push_back(place_key(f.sites[k], f.address));
  if (!f.family.empty()) std::sort(places.begin(), places.end());
  return places;
}

bool graver(const Finding& a, const Finding& b) {
  return a.level != b.level ? a.level == Level::error : a.apart > b.apart;
}

// The kind without what it happened on.
std::string_view name_of(const Finding& f) { return std::string_view(f.kind).substr(0, f.kind.find(" on ")); }

// Both places of a race, for a reader who has seen the finding that it is reported with.
std::string in_short(const Finding& f, const Finding& with) {
  const auto& told = with.sites.front().location.lines;
  std::string text;
  std::string file = told.empty() ? "" : told.front().file;
  for (const Site& site : f.sites) {
    if (!text.empty()) text += " and ";
    if (site.location.lines.empty()) {
      text += "PTX line " + std::to_string(site.location.ptx_line);
      continue;
    }
    const SourceLine& line = site.location.lines.front();
    if (line.file != file) text += line.file + ":";
    text += std::to_string(line.line);
    file = line.file;
  }
  return text;
}

}  // namespace

std::string site_key(const Finding& f) {
  const bool race = !f.family.empty();
  std::string key = f.check + '|' + (race ? f.family : f.kind + '|' + (f.level == Level::warning ? "w" : "e"));
  for (const std::string& place : place_keys(f)) key += '|' + place;
  return key;
}

std::string told(const Finding& f) {
  constexpr std::size_t kShown = 8;
  std::string text = f.message;
  for (std::size_t i = 0; i < std::min(f.also.size(), kShown); ++i)
    text += (i == 0 ? "; also between lines " : ", ") + f.also[i];
  if (f.also.size() > kShown) text += " and " + std::to_string(f.also.size() - kShown) + " more pairs";
  return text;
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
  const std::string key = site_key(finding);
  const auto known = by_site_.find(key);
  if (known != by_site_.end()) {
    Finding& kept = findings_[known->second];
    kept.count += finding.count;
    const bool same_pair = site_key(kept) == key;
    if (same_pair && !finding.family.empty() && graver(finding, kept)) {
      take_place(kept, std::move(finding));
      return;
    }
    if (same_pair || finding.level == kept.level || finding.level == Level::warning) return;
    kept.count -= finding.count;  // an error in what was reported with a warning
  }
  if (!finding.family.empty() && !finding.subject.empty() && told_with_another(finding, key)) return;
  by_site_[key] = findings_.size();
  (finding.level == Level::error ? errors_ : warnings_) += 1;
  findings_.push_back(std::move(finding));
}

bool Report::knows(const Finding& finding) const {
  const auto known = by_site_.find(site_key(finding));
  return known != by_site_.end() && (finding.level == Level::warning || findings_[known->second].level == Level::error);
}

// The finding says the same as `kept` and more.
void Report::take_place(Finding& kept, Finding finding) {
  if (finding.level != kept.level) --warnings_, ++errors_;
  finding.count = kept.count;
  finding.also = std::move(kept.also);
  kept = std::move(finding);
}

// Merges `more`, a finding that was reported on its own so far or is new, into `kept`.
void Report::merge_into(Finding& kept, Finding more) {
  const std::uint64_t count = kept.count + more.count;
  kept.also.insert(kept.also.end(), more.also.begin(), more.also.end());
  more.also.clear();
  if (more.apart > kept.apart) {
    kept.also.push_back(in_short(kept, more));
    take_place(kept, std::move(more));
  } else {
    kept.also.push_back(in_short(more, kept));
  }
  kept.count = count;
}

// A race on a variable that shares a line with a race that is known of it: one fault has many pairs of lines. A pair
// may show that two known ones are one as well.
bool Report::told_with_another(Finding& finding, const std::string& key) {
  const std::vector<std::string> places = place_keys(finding);
  std::vector<Group>& groups = groups_[finding.family + '|' + finding.subject];
  Group* home = nullptr;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group& group = groups[i];
    const Finding& kept = findings_[group.finding];
    const bool touches =
        std::any_of(places.begin(), places.end(), [&](const std::string& p) { return group.places.count(p) != 0; });
    if (!touches || kept.level != finding.level || name_of(kept) != name_of(finding)) continue;
    if (!home) {
      home = &group;
      group.places.insert(places.begin(), places.end());
      by_site_[key] = group.finding;
      merge_into(findings_[group.finding], finding);
      continue;
    }
    home->places.insert(group.places.begin(), group.places.end());
    const std::size_t from = group.finding, to = home->finding;
    merge_into(findings_[to], std::move(findings_[from]));
    findings_.erase(findings_.begin() + static_cast<std::ptrdiff_t>(from));
    (finding.level == Level::error ? errors_ : warnings_) -= 1;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i--));
    for (auto& [site, at] : by_site_) at = at == from ? to : at > from ? at - 1 : at;
    for (auto& [subject, all] : groups_)
      for (Group& each : all) each.finding -= each.finding > from ? 1 : 0;
  }
  if (home) return true;
  groups.push_back({findings_.size(), {places.begin(), places.end()}});
  return false;
}

void Report::api_error(const std::string& call, const std::string& error, const std::string& text,
                       const std::string& why, bool of_launch) {
  if (of_launch && launch_failed_ && errors_ != 0) return;
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
  work_.schedules += result.schedules;
  work_.counters.add(result.counters);
  if (kernel.find(setting_.kernel_name) != std::string::npos) ++named_launches_;
  else if (std::find(other_kernels_.begin(), other_kernels_.end(), kernel) == other_kernels_.end())
    other_kernels_.push_back(kernel);
  const bool explained = errors_ != errors_at_launch_;
  errors_at_launch_ = errors_;
  launch_failed_ |= result.status != LaunchStatus::ok;
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

}  // namespace machine::report
