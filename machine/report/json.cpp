// The report as JSON: one object, the same facts as the text.
#include <ostream>
#include <string>
#include <string_view>

#include "report/report.hpp"

namespace machine::report {

namespace {

// Everything is appended to one string and written at once: a report on traffic has a number for every row of a cache.
void write_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (out += '\\') += c;
    else if (u >= 0x20) out += c;
    else ((out += "\\u00") += "0123456789abcdef"[u >> 4]) += "0123456789abcdef"[u & 15];
  }
  out += '"';
}

// Members of an object or array, with the commas between them.
class Members {
 public:
  explicit Members(std::string& out) : out_(out) {}
  std::string& next() {
    if (any_) out_ += ',';
    any_ = true;
    return out_;
  }
  void text(std::string_view name, std::string_view value) {
    key(name);
    write_string(out_, value);
  }
  void number(std::string_view name, std::uint64_t value) {
    key(name);
    out_ += std::to_string(value);
  }
  void key(std::string_view name) {
    next();
    write_string(out_, name);
    out_ += ':';
  }

 private:
  std::string& out_;
  bool any_ = false;
};

template <class Range, class F>
void write_array(std::string& out, const Range& range, F&& each) {
  out += '[';
  Members members(out);
  for (const auto& item : range) {
    members.next();
    each(item);
  }
  out += ']';
}

void write_dim(std::string& out, const Dim3& d) {
  out += '[' + std::to_string(d.x) + ',' + std::to_string(d.y) + ',' + std::to_string(d.z) + ']';
}

void write_site(std::string& out, const Site& site) {
  out += '{';
  Members m(out);
  m.text("kernel", site.kernel);
  if (!site.host.empty()) m.text("host", site.host);
  m.key("source");
  write_array(out, site.location.lines, [&](const SourceLine& line) {
    out += '{';
    Members l(out);
    l.text("file", line.file);
    l.number("line", line.line);
    l.text("function", line.function);
    out += '}';
  });
  m.number("ptx_line", site.location.ptx_line);
  m.text("ptx", site.location.text);
  if (site.has_thread) {
    m.key("block");
    write_dim(out, site.block);
    m.key("thread");
    write_dim(out, site.thread);
  }
  out += '}';
}

void write_finding(std::string& out, const Finding& f) {
  out += '{';
  Members m(out);
  m.text("check", f.check);
  m.text("level", f.level == Level::warning ? "warning" : "error");
  m.text("kind", f.kind);
  m.text("message", told(f));
  m.text("remedy", f.remedy);
  m.text("address", f.address);
  m.number("count", f.count);
  m.key("sites");
  write_array(out, f.sites, [&](const Site& s) { write_site(out, s); });
  out += '}';
}

void write_counts(Members& m, const Traffic& t) {
  m.number("bytes_read", t.bytes_read);
  m.number("bytes_written", t.bytes_written);
  m.number("sectors_read", t.sectors_read);
  m.number("sectors_written", t.sectors_written);
}

// Whether row i lies right behind the one before and has the same counts: such rows are one entry, since a cache has
// hundreds of thousands, nearly all alike.
bool goes_on(const BufferTraffic& b, std::size_t i) {
  return b.row_size[i] == b.row_size[i - 1] && b.row_base[i] == b.row_base[i - 1] + b.row_size[i - 1] &&
         b.rows[i] == b.rows[i - 1];
}

void write_traffic(std::string& out, const LaunchTraffic& t) {
  out += '{';
  Members m(out);
  m.text("kernel", t.kernel);
  m.number("operation", t.operation);
  m.number("shared_accesses", t.shared_accesses);
  m.number("shared_wavefronts", t.shared_wavefronts);
  m.key("buffers");
  write_array(out, t.buffers, [&](const BufferTraffic& b) {
    out += '{';
    Members n(out);
    n.text("name", b.name);
    n.number("base", b.base);
    n.number("bytes", b.bytes);
    write_counts(n, b.total);
    n.key("rows");
    out += '[';
    Members rows(out);
    for (std::size_t i = 0, next; i < b.rows.size(); i = next) {
      for (next = i + 1; next < b.rows.size() && goes_on(b, next); ++next) {
      }
      rows.next() += '{';
      Members r(out);
      r.number("base", b.row_base[i]);
      r.number("bytes", b.row_size[i]);
      r.number("rows", next - i);
      write_counts(r, b.rows[i]);
      out += '}';
    }
    out += "]}";
  });
  out += '}';
}

}  // namespace

void Report::write_json(std::ostream& stream) const {
  std::string out;
  out += '{';
  Members m(out);
  m.number("version", 1);
  m.key("tools");
  write_array(out, setting_.tools, [&](const std::string& t) { write_string(out, t); });
  m.text("architecture", setting_.architecture);
  m.number("seed", setting_.seed);
  m.text("program", setting_.program);
  m.key("strict");
  out += setting_.strict ? "true" : "false";
  m.text("refused", refusal_);
  m.text("cut_short", cut_short_by_);
  m.text("log_lost", log_lost_);
  m.number("errors", errors_);
  m.number("warnings", warnings_);
  m.key("findings");
  write_array(out, findings_, [&](const Finding& f) { write_finding(out, f); });
  m.key("other_kernels");
  write_array(out, other_kernels_, [&](const std::string& name) { write_string(out, name); });
  m.key("notes");
  write_array(out, notes_, [&](const std::string& n) { write_string(out, n); });
  m.key("work");
  out += '{';
  Members w(out);
  w.number("kernels", work_.launches);
  w.number("named_kernels", named_launches_);
  w.number("repeated", work_.repeated);
  w.number("schedules", work_.schedules);
  w.number("blocks", work_.counters.blocks);
  w.number("warps", work_.counters.warps);
  w.number("threads", work_.counters.threads);
  w.number("warp_instructions", work_.counters.warp_instructions);
  w.number("thread_instructions", work_.counters.thread_instructions);
  w.number("bytes_loaded", work_.counters.bytes_loaded);
  w.number("bytes_stored", work_.counters.bytes_stored);
  w.number("bytes_checked", work_.bytes_checked);
  w.number("host_transfers", work_.host_transfers);
  w.number("host_bytes", work_.host_bytes);
  w.key("by_class");
  out += '{';
  Members classes(out);
  for (std::size_t i = 0; i < kClasses; ++i)
    classes.number(class_name(static_cast<InstructionClass>(i)), work_.counters.by_class[i]);
  out += "}}";
  m.key("traffic");
  write_array(out, traffic_, [&](const LaunchTraffic& t) { write_traffic(out, t); });
  out += "}\n";
  stream << out;
}

}  // namespace machine::report
