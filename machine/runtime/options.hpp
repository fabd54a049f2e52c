// What the person (or the Python side) asked of this run, handed over in one environment variable.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace machine::runtime {

// VERIFY_MACHINE holds lines `key=value`, or `@path` of a file with such lines. Unknown keys and malformed values
// end the process with one line: a misspelt option must not silently check less.
struct Options {
  unsigned architecture = 90;      // arch=sm_90
  std::vector<std::string> tools;  // tools=memcheck,racecheck; all: the four sanitizer tools; none: empty
  std::uint64_t seed = 0;          // seed=N
  unsigned schedules = 8;  // schedules=N: most further ones tried of a launch that communicates, under a sanitizer tool
  bool strict = false;     // strict=1: warnings count as findings
  std::string json;        // json=PATH of the report; %p is the process id
  std::string log_file;    // log_file=PATH that the text report is added to; standard error when empty
  std::uint64_t print_limit = 100;            // print_limit=N findings as text, 0 for all
  int launch_timeout = 0;                     // launch_timeout=SECONDS for one kernel, 0 for none
  std::string kernel_name;                    // kernel_name=TEXT: report only kernels whose name contains it
  std::string unpacked;                       // unpacked=DIRECTORY of PTX that the Python side unpacked
  unsigned threads = 0;                       // threads=N worker threads, 0 for all cores
  std::uint64_t memory = 0;                   // memory=BYTES of the device, 0 for what the architecture has
  bool report_api_errors = true;              // api_errors=0: runtime calls that fail are no findings
  std::string timing;                         // timing=PATH: one line a launch, for measuring the machine itself
  std::string program;                        // program=NAME shown in the report
  std::map<std::string, std::string> checks;  // check.KEY=VALUE, handed to the observers unread

  bool has_tool(const std::string& name) const;
};

// Read once, on first use.
const Options& options();

}  // namespace machine::runtime
