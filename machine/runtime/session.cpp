#include "runtime/session.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "memory/address_space.hpp"
#include "observers/checks.hpp"
#include "observers/sink.hpp"
#include "report/report.hpp"
#include "runtime/api.hpp"
#include "runtime/exit.hpp"
#include "runtime/limits.hpp"
#include "runtime/options.hpp"
#include "runtime/schedule.hpp"

namespace machine::runtime {
namespace {

struct Session {
  explicit Session(report::Setting setting) : report(std::move(setting)) {}

  report::Report report;
  std::mutex report_mutex;      // the report is also written by failing calls of any thread
  checks::CheckOptions chosen;  // the checks keep a reference
  std::unique_ptr<checks::Checks> checks;
  machine::Options machine;
  std::deque<std::function<void(Observer&)>> tellings;
  std::atomic<std::uint64_t> next_operation{1};
  std::uint64_t host = 0;                // the newest stretch of the host's program
  std::set<std::uint64_t> host_follows;  // what the next stretch is ordered after, besides the one before it
  bool host_moved = true;                // something was submitted since that stretch began
  std::atomic<bool> finished{false};
};

report::Setting setting() {
  report::Setting setting;
  setting.tools = options().tools;
  setting.architecture = "sm_" + std::to_string(options().architecture);
  setting.seed = options().seed;
  setting.program = options().program;
  setting.strict = options().strict;
  setting.kernel_name = options().kernel_name;
  return setting;
}

// The report is written beside its place and renamed, so that whoever reads it never sees half of it; what lies there
// without a report says that the process used the runtime and ended without a chance to report.
std::string partial_json() { return options().json + ".partial"; }

Session* make_session() {
  auto* session = new Session(setting());  // outlives every static destructor of the program
  if (!options().json.empty()) {
    // One that lies there is of a program that this process was before, and that never reported.
    std::rename(partial_json().c_str(), (options().json + ".replaced.partial").c_str());
    std::ofstream(partial_json()).flush();
  }
  auto& machine = session->machine;
  machine.arch = options().architecture == 80 ? Arch::sm_80 : Arch::sm_90;
  machine.seed = options().seed;
  const bool sanitizes = std::any_of(options().tools.begin(), options().tools.end(),
                                     [](const std::string& tool) { return checks::check_named(tool)->sanitizer; });
  machine.schedules = sanitizes ? options().schedules : 0;
  machine.cores = options().threads ? options().threads : std::max(1u, std::thread::hardware_concurrency());
  machine.multiprocessors = static_cast<unsigned>(limits().multiprocessors);
  machine.timeout_s = options().launch_timeout;
  AddressSpace::instance().set_limit(limits().global_memory);
  try {
    session->chosen = checks::parse_options(options().tools, options().checks);
    if (session->chosen.any()) session->checks = checks::make_checks(session->chosen, session->report);
  } catch (const std::invalid_argument& error) {
    refuse(std::string("VERIFY_MACHINE: ") + error.what());
  }
  return session;
}

std::atomic<Session*> current{nullptr};

Session& session() {
  start();
  return *current;
}

// A stretch of the host's program begins: after the one before it and after what it waited for.
void begin_host_stretch() {
  Session& s = session();
  Operation operation;
  operation.id = next_operation_id();
  operation.kind = OperationKind::host;
  operation.name = "host program";
  if (s.host) operation.after.push_back(s.host);
  operation.after.insert(operation.after.end(), s.host_follows.begin(), s.host_follows.end());
  s.host_follows.clear();
  s.host_moved = false;
  s.host = operation.id;
  notify([operation](Observer& checks) {
    checks.operation_begin(operation);
    checks.operation_end(operation);
  });
}

void write_report(Session& s) {
  std::ostringstream text;
  s.report.write_text(text, options().print_limit);
  bool logged = false;
  if (!options().log_file.empty()) {
    std::ofstream log(options().log_file, std::ios::app);
    logged = static_cast<bool>(log << text.str() << std::flush);
    if (!logged) s.report.log_lost(std::strerror(errno));
  }
  if (!logged) std::cerr << text.str() << std::flush;
  if (options().json.empty()) return;
  {
    std::ofstream json(partial_json());
    s.report.write_json(json);
  }
  std::rename(partial_json().c_str(), options().json.c_str());
}

}  // namespace

void start() {
  static std::once_flag once;
  std::call_once(once, [] {
    watch_process_end();
    current = make_session();
  });
}

const machine::Options& machine_options() { return session().machine; }
Observer* observer() { return session().checks.get(); }
std::uint64_t next_operation_id() { return session().next_operation++; }

void notify(std::function<void(Observer&)> notification) {
  if (!session().checks) return;
  session().tellings.push_back(std::move(notification));
  if (!schedule().running()) notify_all();
}

void notify_all() {
  Session& s = session();
  while (!s.tellings.empty()) {
    auto notification = std::move(s.tellings.front());
    s.tellings.pop_front();
    notification(*s.checks);
  }
}

std::uint64_t host_operation() {
  if (session().host == 0 || !session().host_follows.empty()) begin_host_stretch();
  return session().host;
}

std::uint64_t host_access_operation() {
  if (session().host_moved || !session().host_follows.empty()) begin_host_stretch();
  return session().host;
}

void host_joins(const std::vector<std::uint64_t>& ids) { session().host_follows.insert(ids.begin(), ids.end()); }
void host_went_on() { session().host_moved = true; }

void report_api_error(const char* call, cudaError_t code, const std::string& why) {
  if (!options().report_api_errors || options().tools.empty()) return;
  std::lock_guard guard(session().report_mutex);
  session().report.api_error(call, error_name(code), error_text(code), why, code == context_error());
}

void report_host_dereference(std::uint64_t address) {
  const Object* object = AddressSpace::instance().find(address);
  report::Finding finding;
  finding.check = "memcheck";
  finding.kind = "Host access to device memory";
  finding.message = "The program's own code dereferenced a device pointer, which ends it with a segmentation fault.";
  finding.remedy = "Copy the data with cudaMemcpy, or allocate it with cudaMallocManaged or cudaMallocHost.";
  std::ostringstream place;
  place << "allocation of " << object->size << " bytes + " << address - object->base << " (0x" << std::hex << address
        << ")";
  finding.address = place.str();
  finding.sites.emplace_back().host = "host program";
  session().report.add(std::move(finding));
}

void conclude_launch(const std::string& kernel, const LaunchResult& result) {
  std::lock_guard guard(session().report_mutex);
  LaunchResult readable = result;
  readable.message = checks::one_line(result.message);
  session().report.launched(checks::demangled(kernel), readable);
}

void mark_loaded() {
  if (options().json.empty()) return;
  std::error_code unknown;
  std::ofstream(options().json + ".loaded", std::ios::app)
      << std::filesystem::read_symlink("/proc/self/exe", unknown).string() << '\n';
}

void cut_short_report(int signal_number) {
  Session* s = current;
  if (s && !s->finished) {
    const char* name = sigabbrev_np(signal_number);
    s->report.cut_short(name ? std::string("SIG") + name : "signal " + std::to_string(signal_number));
  }
  finish_report();
}

bool finish_report(const std::string& refusal) {
  Session* s = current;
  if (!s) return false;
  if (s->finished.exchange(true)) return true;
  if (!refusal.empty()) s->report.refuse(refusal);
  write_report(*s);
  return true;
}

}  // namespace machine::runtime
