// The report as text, in the shape that users of compute-sanitizer know: a record's lines begin with nine equal signs.
#include <ostream>

#include "report/report.hpp"

namespace machine::report {

namespace {

constexpr const char* kBar = "========= ";

std::string place(const Dim3& d) {
  std::string text = "(";
  text += std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  return text;
}

// Text that the program chose (a name, an assertion, a file) cannot steer a terminal or break out of its record.
std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '\n') (result += "\n") += kBar;
    else if ((u < 0x20 && c != '\t') || u == 0x7f)
      ((result += "\\x") += "0123456789abcdef"[u >> 4]) += "0123456789abcdef"[u & 15];
    else result += c;
  }
  return result;
}

std::string source(const SourceLine& line) { return shown(line.file) + ":" + std::to_string(line.line); }

void write_site(std::ostream& out, const Site& site, const char* lead) {
  if (!site.in_kernel()) {
    out << kBar << "    " << lead << (site.host.empty() ? "the host" : shown(site.host)) << "\n";
    return;
  }
  out << kBar << "    " << lead << shown(site.kernel);
  if (!site.location.lines.empty()) out << " in " << source(site.location.lines.front());
  else if (site.location.ptx_line != 0)
    out << " in PTX line " << site.location.ptx_line << " (build with -lineinfo for the source line)";
  out << "\n";
  for (std::size_t i = 1; i < site.location.lines.size(); ++i)
    out << kBar << "        inlined at " << source(site.location.lines[i]) << "\n";
  if (site.has_thread)
    out << kBar << "        by thread " << place(site.thread) << " in block " << place(site.block) << "\n";
  if (!site.location.text.empty()) out << kBar << "        " << shown(site.location.text) << "\n";
}

void write_finding(std::ostream& out, const Finding& f) {
  out << kBar << (f.level == Level::warning ? "Warning: " : "") << shown(f.kind) << "\n";
  for (std::size_t i = 0; i < f.sites.size(); ++i) write_site(out, f.sites[i], i == 0 ? "at " : "and ");
  if (!f.address.empty()) out << kBar << "    address: " << shown(f.address) << "\n";
  out << kBar << "    " << shown(told(f)) << "\n";
  if (!f.remedy.empty())
    out << kBar << "    " << (f.family == "race" ? "missing: " : "remedy: ") << shown(f.remedy) << "\n";
  if (f.count > 1) out << kBar << "    seen " << f.count << " times at this place\n";
  out << kBar << "\n";
}

void write_traffic(std::ostream& out, const LaunchTraffic& t) {
  out << kBar << "Traffic of " << shown(t.kernel) << "\n";
  for (const BufferTraffic& b : t.buffers) {
    out << kBar << "    " << shown(b.name) << ": read " << b.total.bytes_read << " bytes in " << b.total.sectors_read
        << " sectors, wrote " << b.total.bytes_written << " bytes in " << b.total.sectors_written << " sectors";
    if (!b.rows.empty()) out << ", " << b.rows.size() << " rows";
    out << "\n";
  }
  if (t.shared_accesses != 0)
    out << kBar << "    shared memory: " << t.shared_accesses << " accesses in " << t.shared_wavefronts
        << " wavefronts\n";
}

std::string plural(std::uint64_t n, const char* word) { return std::to_string(n) + " " + word + (n == 1 ? "" : "s"); }

}  // namespace

void Report::write_text(std::ostream& out, std::uint64_t limit) const {
  out << kBar << "CPU device, " << setting_.architecture << ", seed " << setting_.seed << ", tools:";
  for (const std::string& tool : setting_.tools) out << " " << tool;
  out << "\n" << kBar << "PTX is checked, not the machine code that ptxas makes of it\n";
  std::uint64_t printed = 0;
  for (const Finding& f : findings_) {
    if (limit != 0 && printed == limit) {
      out << kBar << plural(findings_.size() - printed, "more finding")
          << " not printed (--print-limit 0 prints all)\n";
      break;
    }
    write_finding(out, f);
    ++printed;
  }
  for (const LaunchTraffic& t : traffic_) write_traffic(out, t);
  for (const std::string& line : notes_) out << kBar << "Note: " << shown(line) << "\n";
  if (!cut_short_by_.empty())
    out << kBar << "Cut short by " << cut_short_by_ << ": what would have come later was not checked\n";
  out << kBar << "Work: " << plural(work_.launches, "kernel") << ", " << plural(work_.counters.blocks, "block") << ", "
      << plural(work_.counters.thread_instructions, "thread instruction") << ", " << plural(work_.bytes_checked, "byte")
      << " checked, " << plural(work_.host_transfers, "host transfer");
  if (work_.schedules != 0)
    out << ", " << plural(work_.schedules, "further schedule") << " of launches that communicate";
  out << "\n";
}

}  // namespace machine::report
