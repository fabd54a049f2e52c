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

std::string source(const SourceLine& line) { return line.file + ":" + std::to_string(line.line); }

void write_site(std::ostream& out, const Site& site, const char* lead) {
  if (!site.in_kernel()) {
    out << kBar << "    " << lead << (site.host.empty() ? "the host" : site.host) << "\n";
    return;
  }
  out << kBar << "    " << lead << site.kernel;
  if (!site.location.lines.empty()) out << " in " << source(site.location.lines.front());
  else if (site.location.ptx_line != 0) out << " in PTX line " << site.location.ptx_line << " (build with -lineinfo for the source line)";
  out << "\n";
  for (std::size_t i = 1; i < site.location.lines.size(); ++i)
    out << kBar << "        inlined at " << source(site.location.lines[i]) << "\n";
  if (site.has_thread)
    out << kBar << "        by thread " << place(site.thread) << " in block " << place(site.block) << "\n";
  if (!site.location.text.empty()) out << kBar << "        " << site.location.text << "\n";
}

void write_finding(std::ostream& out, const Finding& f) {
  out << kBar << (f.level == Level::warning ? "Warning: " : "") << f.kind << "\n";
  for (std::size_t i = 0; i < f.sites.size(); ++i) write_site(out, f.sites[i], i == 0 ? "at " : "and ");
  if (!f.address.empty()) out << kBar << "    address: " << f.address << "\n";
  out << kBar << "    " << f.message << "\n";
  if (!f.remedy.empty()) out << kBar << "    " << (f.sites.size() > 1 ? "missing: " : "remedy: ") << f.remedy << "\n";
  if (f.count > 1) out << kBar << "    seen " << f.count << " times at this place\n";
  out << kBar << "\n";
}

void write_traffic(std::ostream& out, const LaunchTraffic& t) {
  out << kBar << "Traffic of " << t.kernel << "\n";
  for (const BufferTraffic& b : t.buffers) {
    out << kBar << "    " << b.name << ": read " << b.total.bytes_read << " bytes in " << b.total.sectors_read
        << " sectors, wrote " << b.total.bytes_written << " bytes in " << b.total.sectors_written << " sectors";
    if (!b.rows.empty()) out << ", " << b.rows.size() << " rows";
    out << "\n";
  }
  if (t.shared_accesses != 0)
    out << kBar << "    shared memory: " << t.shared_accesses << " accesses in " << t.shared_wavefronts << " wavefronts\n";
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
      out << kBar << plural(findings_.size() - printed, "more finding") << " not printed (--print-limit 0 prints all)\n";
      break;
    }
    write_finding(out, f);
    ++printed;
  }
  for (const LaunchTraffic& t : traffic_) write_traffic(out, t);
  for (const std::string& line : notes_) out << kBar << "Note: " << line << "\n";
  if (refused()) out << kBar << "Nothing verified: " << refusal_ << "\n";
  out << kBar << "Work: " << plural(work_.launches, "kernel") << ", " << plural(work_.counters.blocks, "block") << ", "
      << plural(work_.counters.thread_instructions, "thread instruction") << ", " << plural(work_.bytes_checked, "byte")
      << " checked, " << plural(work_.host_transfers, "host transfer") << "\n";
  if (!refused() && work_.launches == 0) out << kBar << "No kernel ran\n";
  out << kBar << "ERROR SUMMARY: " << plural(errors_, "error");
  if (warnings_ != 0) out << ", " << plural(warnings_, "warning");
  out << "\n";
}

}  // namespace machine::report
