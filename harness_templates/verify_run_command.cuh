// `run --pack FILE --out DIR [--only ID]... [--no-regions]`: does the runs of a pack, one marker line a step.
#pragma once

#include "verify_modes.cuh"

namespace verify {

constexpr int exit_usage = 2;
constexpr int exit_context_lost = 4;  // the runs that were not begun need a new process

inline void mark(const std::string& text) {
    std::printf("@%s\n", text.c_str());
    std::fflush(stdout);
}

inline std::string one_line(std::string text) {
    for (char& c : text)
        if (c == '\n' || c == '\r') c = ' ';
    return text;
}

// Device bytes that a run allocates beyond its own buffers are small; this is kept free for them.
constexpr std::uint64_t reserve_bytes = 64ull << 20;

inline bool fits(const RunLine& line, const CaseFile& file, const CaseFile* captured) {
    std::uint64_t needed = Call::bytes_needed(file, line) + reserve_bytes;
    if (line.mode == "late-producer") needed += Call::bytes_needed(file, line);
    if (line.mode == "two-streams" || line.mode == "two-threads") needed += Call::bytes_needed(captured != nullptr ? *captured : file, line);
    std::size_t free = 0, total = 0;
    VERIFY_CHECK(cudaMemGetInfo(&free, &total));
    if (needed <= free) return true;
    mark("error " + line.id + " no memory: needs " + std::to_string(needed) + " bytes of device memory, " +
         std::to_string(free) + " are free");
    return false;
}

// Runs of one case usually follow each other, so the last case read is kept.
inline std::shared_ptr<const CaseFile> case_at(const std::string& path) {
    static std::string last_path;
    static std::shared_ptr<const CaseFile> last;
    if (path.empty()) return nullptr;
    if (path != last_path) {
        last_path.clear();  // should the file not load
        last = std::make_shared<const CaseFile>(load_case(path));
        last_path = path;
    }
    return last;
}

inline void do_run(const RunLine& line, const std::string& folder, bool regions) {
    const std::shared_ptr<const CaseFile> captured = case_at(line.captured_path);
    const std::shared_ptr<const CaseFile> held = case_at(line.case_path);
    const CaseFile& file = *held;
    if (!fits(line, file, captured.get())) return;

    Stream own_stream;
    Setting setting{verify_entry_takes_stream ? static_cast<cudaStream_t>(own_stream) : nullptr, regions};
    Output output;
    output.run = line.id;
    output.mode = line.mode;
    Call call(file, line);
    for (const auto& buffer : call.buffers())
        mark("buffer " + line.id + " " + buffer->file().name + " " +
             std::to_string(reinterpret_cast<std::uint64_t>(buffer->data())));

    const FaultWindow window;
    if (window.present() && line.mode == "once")
        sweep_faults(call, setting, window,
                     [&](int pass, long n, long calls, const std::string& failed, const std::string& returned) {
                         mark("fault " + line.id + " pass=" + std::to_string(pass) + " call=" + std::to_string(n) +
                              " calls=" + std::to_string(calls) + " failed=" + failed + " returned=" + returned);
                     });

    launches = {};
    run_mode(line, call, captured.get(), setting, output);
    output.kernels = launches.accepted;
    mark("launched " + line.id + " kernels=" + std::to_string(output.kernels));
    write_output(output, folder + "/" + line.id + ".out");
    if (line.mode == "refuse") mark("refused " + line.id + " " + output.returned);
    mark("done " + line.id);
}

inline int run_command(const std::vector<std::string>& arguments) {
    std::string pack, folder;
    std::set<std::string> only;
    bool regions = true;  // without a tool that listens they are no work
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& option = arguments[i];
        if (option == "--no-regions") {
            regions = false;
        } else if (i + 1 == arguments.size()) {
            throw BadInput("run: " + option + " needs a value, or is no option");
        } else if (option == "--pack") {
            pack = arguments[++i];
        } else if (option == "--out") {
            folder = arguments[++i];
        } else if (option == "--only") {
            only.insert(arguments[++i]);
        } else {
            throw BadInput("run: unknown option " + option);
        }
    }
    if (pack.empty() || folder.empty()) throw BadInput("run: --pack FILE and --out DIR are needed");

    const std::vector<RunLine> lines = load_manifest(pack);
    for (const std::string& id : only)
        if (std::none_of(lines.begin(), lines.end(), [&](const RunLine& line) { return line.id == id; }))
            throw BadInput(pack + ": has no run " + id);
    VERIFY_CHECK(cudaFree(nullptr));  // the runtime must be up before anything is told to a tool
    for (const RunLine& line : lines) {
        if (!only.empty() && only.count(line.id) == 0) continue;
        mark("begin " + line.id);
        try {
            do_run(line, folder, regions);
        } catch (const std::exception& problem) {
            launches.open = false;
            mark("error " + line.id + " " + one_line(problem.what()));
            cudaGetLastError();
            if (cudaDeviceSynchronize() != cudaSuccess) {
                std::fprintf(stderr, "the device's context is lost; start again for the remaining runs\n");
                return exit_context_lost;
            }
        }
    }
    return 0;
}

}  // namespace verify
