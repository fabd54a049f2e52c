// The modes of a run: in which way the entry is called. verify/wire/run.py says what each one is for.
#pragma once

#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include "verify_call.cuh"
#include "verify_load.cuh"
#include "verify_shared_dirt.cuh"

namespace verify {

struct Setting {
    cudaStream_t stream;  // the entry's stream: null when the entry takes none
    bool regions = false;  // restrict the buffers to their live runs while the entry runs

    // For modes in which the host writes to the buffers between calls.
    Setting open() const { return {stream, false}; }
};

class Stream {
  public:
    Stream() { VERIFY_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    ~Stream() { cudaStreamDestroy(stream_); }
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

inline void dirty(Call& call, const Setting& setting, Output& output) {
    // A device that checks shared memory byte by byte has no use for it.
    const char* keep = std::getenv("VERIFY_KEEP_SHARED");
    if (keep != nullptr && *keep == '1') return;
    if (call.line().shared != "-" && call.line().mode != "live-only")
        output.shared_dirty = dirty_shared(call.line().shared, setting.stream);
}

inline void prepare(Call& call, const Setting& setting, Output& output) {
    call.upload();
    dirty(call, setting, output);
    VERIFY_CHECK(cudaDeviceSynchronize());
    // A new region counts as unwritten, so the run in which reads of unwritten bytes are looked for has none.
    if (setting.regions && call.line().mode != "live-only") call.restrict_to_live();
}

inline void finish(Call& call, const Setting& setting, Output& output) {
    prove_executed(setting.stream);
    call.lift_restriction();
    call.collect(output);
}

inline void run_once(Call& call, const Setting& setting, Output& output) {
    prepare(call, setting, output);
    call.run(setting.stream);
    finish(call, setting, output);
}

// On the same workspace and outputs. The first call has another case's data where there is one, so that nothing of it
// may be kept for the second; otherwise only what is input and output at once has its input back.
inline void run_twice(Call& call, const CaseFile* before, const Setting& setting, Output& output) {
    const bool rewritten = before != nullptr || call.in_place();
    prepare(call, rewritten ? setting.open() : setting, output);
    if (before != nullptr) {
        call.upload_from(*before);
        VERIFY_CHECK(cudaDeviceSynchronize());
    }
    call.run(setting.stream);
    if (rewritten) {
        VERIFY_CHECK(cudaDeviceSynchronize());
        call.upload_inputs();
        VERIFY_CHECK(cudaDeviceSynchronize());
    }
    call.run(setting.stream);
    finish(call, setting, output);
}

// Both readings, named by the call (the other stream's begin with `second-`), for whoever allows outputs to drift.
inline void keep(const std::vector<OutputData>& first, const std::vector<OutputData>& other,
                 const std::string& whose, std::uint64_t repeat, Output& output) {
    const std::string base = whose + "first";
    const bool known = std::any_of(output.data.begin(), output.data.end(),
                                   [&](const OutputData& data) { return data.part == base; });
    for (const OutputData& data : known ? std::vector<OutputData>{} : first)
        output.data.push_back({data.buffer, base, data.bytes});
    for (const OutputData& data : other)
        output.data.push_back({data.buffer, whose + "differs-" + std::to_string(repeat), data.bytes});
}

// Where two readings of the same outputs differ.
inline void compare(const std::vector<OutputData>& first, const std::vector<OutputData>& other, const Call& call,
                    std::uint64_t repeat, Output& output, const std::string& whose = "") {
    const std::size_t before_it = output.differences.size();
    std::size_t at = 0;
    for (const auto& buffer : call.buffers()) {
        if (buffer->file().role != Role::out && buffer->file().role != Role::inout) continue;
        const Image before{buffer->file().promised, first[at].bytes}, after{buffer->file().promised, other[at].bytes};
        for (const Change& change : changes(buffer->file().name, before, after, {}))
            output.differences.push_back({repeat, change});
        ++at;
    }
    if (call.line().keep_differing && output.differences.size() != before_it) keep(first, other, whose, repeat, output);
}

// The same inputs again and again, with a varying load beside; outputs and workspace start afresh each time.
inline void run_repeats(Call& call, const Setting& setting, Output& output) {
    Load load;
    prepare(call, setting.open(), output);
    std::vector<OutputData> first;
    for (std::uint64_t repeat = 0; repeat < call.line().repeats; ++repeat) {
        if (repeat != 0) call.upload_outputs();
        VERIFY_CHECK(cudaDeviceSynchronize());
        load.start(static_cast<unsigned>(repeat));
        call.run(setting.stream);
        VERIFY_CHECK(cudaStreamSynchronize(setting.stream));
        load.finish();
        if (repeat == 0)
            first = call.results();
        else
            compare(first, call.results(), call, repeat, output);
    }
    finish(call, setting, output);
}

inline std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    VERIFY_CHECK(cudaDeviceSynchronize());
    VERIFY_CHECK(cudaMemGetInfo(&free, &total));
    return free;
}

// One call after the other on the same workspace and outputs: what a kernel keeps from call to call shows, and in
// which call, and the device memory that calls take and do not give back. Nothing runs beside, so that many calls
// cost little.
inline void run_many_calls(Call& call, const Setting& setting, Output& output) {
    prepare(call, setting.open(), output);
    std::vector<OutputData> first;
    std::size_t free = 0;  // after the first call, which may set up once what is kept
    for (std::uint64_t number = 0; number < call.line().repeats; ++number) {
        if (number != 0) call.upload_in_place();
        VERIFY_CHECK(cudaDeviceSynchronize());
        call.run(setting.stream);
        VERIFY_CHECK(cudaStreamSynchronize(setting.stream));
        if (number == 0) {
            first = call.results();
            free = free_memory();
        } else {
            compare(first, call.results(), call, number, output);
        }
        if (!output.differences.empty() && !call.line().keep_differing) break;
    }
    const std::size_t left = free_memory();
    output.held = free > left ? free - left : 0;
    finish(call, setting, output);
}

// Captured on one case's data, replayed on another's: what the entry read at capture must not matter.
inline void run_graph(Call& call, const CaseFile* captured, const Setting& setting, Output& output) {
    if (!verify_entry_takes_stream) throw BadInput("the entry takes no stream, so it cannot be captured");
    if (captured != nullptr)
        call.upload_from(*captured);
    else
        call.upload();
    VERIFY_CHECK(cudaDeviceSynchronize());

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    VERIFY_CHECK(cudaStreamBeginCapture(setting.stream, cudaStreamCaptureModeThreadLocal));
    try {
        call.run(setting.stream);
    } catch (...) {
        cudaStreamEndCapture(setting.stream, &graph);
        throw;
    }
    VERIFY_CHECK(cudaStreamEndCapture(setting.stream, &graph));
    VERIFY_CHECK(cudaGraphInstantiate(&executable, graph, 0));
    // A first replay on the captured data, so that the second one meets a used workspace.
    VERIFY_CHECK(cudaGraphLaunch(executable, setting.stream));
    VERIFY_CHECK(cudaStreamSynchronize(setting.stream));

    prepare(call, setting, output);
    VERIFY_CHECK(cudaGraphLaunch(executable, setting.stream));
    finish(call, setting, output);
    VERIFY_CHECK(cudaGraphExecDestroy(executable));
    VERIFY_CHECK(cudaGraphDestroy(graph));
}

// The inputs are stored by a kernel that sleeps first, on the entry's own stream.
inline void run_late_producer(Call& call, const Setting& setting, Output& output) {
    std::vector<std::unique_ptr<PackedCopy>> staged;
    call.upload();
    for (const auto& buffer : call.buffers()) {
        if (buffer->file().role != Role::in && buffer->file().role != Role::inout) continue;
        const Image& image = buffer->image();
        staged.push_back(std::make_unique<PackedCopy>(buffer->data(), image.segments));
        staged.back()->stage(image.bytes.data());
        // Until the producer stores, the live bytes hold the fill as well.
        const BufferFile& file = buffer->file();
        std::vector<std::uint8_t> poison(image.bytes.size());
        std::uint64_t position = 0;
        for (const ByteRun& segment : image.segments) {
            fill_bytes(poison.data() + position, segment.offset, segment.length, file.fills.at(call.line().dead),
                       file.element);
            position += segment.length;
        }
        write_segments(buffer->data(), image.segments, poison.data());
    }
    dirty(call, setting, output);
    VERIFY_CHECK(cudaDeviceSynchronize());

    sleep_kernel<<<1, 1, 0, setting.stream>>>(late_steps, late_nanoseconds);
    VERIFY_CHECK(cudaGetLastError());
    for (const auto& copy : staged) copy->store(setting.stream);
    call.run(setting.stream);
    finish(call, setting, output);
}

// The call with two sets of buffers at once, `together` in each round; hidden state that the two share shows.
template <class Together>
void run_pairwise(Call& call, const CaseFile* other_file, const Setting& setting, Output& output, Together together) {
    if (!verify_entry_takes_stream) throw BadInput("the entry takes no stream, so it cannot run on two");
    const CaseFile& second_file = other_file != nullptr ? *other_file : call.file();
    Call second(second_file, call.line());
    Stream second_stream;
    prepare(call, setting.open(), output);
    second.upload();
    VERIFY_CHECK(cudaDeviceSynchronize());

    std::vector<OutputData> first_results, second_results;
    const std::uint64_t rounds = std::max<std::uint64_t>(call.line().repeats, 1);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        together(round, second, static_cast<cudaStream_t>(second_stream));
        VERIFY_CHECK(cudaDeviceSynchronize());
        if (round == 0) {
            first_results = call.results();
            second_results = second.results();
            if (other_file == nullptr) compare(first_results, second_results, call, 0, output);
        } else {
            compare(first_results, call.results(), call, round, output);
            compare(second_results, second.results(), second, round, output, "second-");
        }
        if (round + 1 < rounds) {
            call.upload_outputs();
            second.upload_outputs();
        }
    }
    prove_executed(second_stream);
    finish(call, setting, output);
    second.collect(output, true);
}

// On two streams at once, from one thread.
inline void run_two_streams(Call& call, const CaseFile* other_file, const Setting& setting, Output& output) {
    cudaEvent_t slept = nullptr;
    VERIFY_CHECK(cudaEventCreateWithFlags(&slept, cudaEventDisableTiming));
    run_pairwise(call, other_file, setting, output, [&](std::uint64_t round, Call& second, cudaStream_t stream) {
        // Both streams wait for the end of one short sleep (two would end apart), so that the calls start together.
        sleep_kernel<<<1, 1, 0, setting.stream>>>(gather_steps, gather_nanoseconds);
        VERIFY_CHECK(cudaGetLastError());
        VERIFY_CHECK(cudaEventRecord(slept, setting.stream));
        VERIFY_CHECK(cudaStreamWaitEvent(stream, slept, 0));
        if (round % 2 == 0) {
            call.run(setting.stream);
            second.run(stream);
        } else {
            second.run(stream);
            call.run(setting.stream);
        }
    });
    VERIFY_CHECK(cudaEventDestroy(slept));
}

// From two host threads, each with a stream: one calls the entry while the other is in it and about to launch, so
// what the launcher keeps in a static variable is overwritten at the worst time. One that holds a lock meanwhile
// lets the other wait, and is left to go on.
inline void run_two_threads(Call& call, const CaseFile* other_file, const Setting& setting, Output& output) {
    constexpr std::chrono::milliseconds patience{200};
    run_pairwise(call, other_file, setting, output, [&](std::uint64_t round, Call& second, cudaStream_t stream) {
        std::promise<void> reached, finished;
        std::exception_ptr failure;
        std::thread other([&] {
            reached.get_future().wait();
            try {
                second.run(stream);
            } catch (...) {
                failure = std::current_exception();
            }
            finished.set_value();
        });
        bool begun = false;
        const auto begin = [&] {
            if (!begun) reached.set_value();
            begun = true;
        };
        std::uint64_t launch = 0;
        before_launch = [&] {
            if (launch++ != round % 2) return;
            begin();
            finished.get_future().wait_for(patience);
        };
        std::exception_ptr own_failure;
        try {
            call.run(setting.stream);
        } catch (...) {
            own_failure = std::current_exception();
        }
        before_launch = nullptr;
        begin();
        other.join();
        if (own_failure) std::rethrow_exception(own_failure);
        if (failure) std::rethrow_exception(failure);
    });
}

// Bad input: whatever the entry answers is the result; every byte of every buffer is watched.
inline void run_refused(Call& call, const Setting& setting, Output& output) {
    prepare(call, setting, output);
    output.returned = cudaGetErrorName(call.enter(setting.stream));
    cudaGetLastError();  // a refusal may leave the runtime's last error set
    prove_executed(setting.stream);
    call.lift_restriction();
    call.collect(output);
}

// With the interposer preloaded: every runtime call of the entry fails once, in turn, and its answer is told.
// The first pass meets whatever the entry sets up once; the second meets it set up.
template <class Report>
void sweep_faults(Call& call, const Setting& setting, const FaultWindow& window, Report report) {
    for (int pass = 1; pass <= 2; ++pass) {
        for (long n = 1;; ++n) {
            call.upload();
            VERIFY_CHECK(cudaDeviceSynchronize());
            window.open(n);
            const cudaError_t status = call.enter(setting.stream);
            const long calls = window.close();
            cudaGetLastError();
            VERIFY_CHECK(cudaDeviceSynchronize());
            report(pass, n, calls, n > calls ? "-" : window.failed(), cudaGetErrorName(status));
            if (n > calls) break;
        }
    }
}

inline void run_mode(const RunLine& line, Call& call, const CaseFile* captured, const Setting& setting,
                     Output& output) {
    if (line.mode == "once" || line.mode == "live-only") return run_once(call, setting, output);
    if (line.mode == "second-call") return run_twice(call, captured, setting, output);
    if (line.mode == "repeat") return run_repeats(call, setting, output);
    if (line.mode == "graph") return run_graph(call, captured, setting, output);
    if (line.mode == "late-producer") return run_late_producer(call, setting, output);
    if (line.mode == "two-streams") return run_two_streams(call, captured, setting, output);
    if (line.mode == "two-threads") return run_two_threads(call, captured, setting, output);
    if (line.mode == "many-calls") return run_many_calls(call, setting, output);
    if (line.mode == "refuse") return run_refused(call, setting, output);
    throw BadInput("unknown mode '" + line.mode + "'");
}

}  // namespace verify
