// Writer of a run's results; read back by verify/wire/pack.py, whose docstring defines the format.
#pragma once

#include <cstdio>

#include "verify_image.hpp"

namespace verify {

struct OutputData {
    std::string buffer;
    std::string part;  // "promised", "prior" (before the call), "second" (the other stream's), or "all"
    std::vector<std::uint8_t> bytes;
};

struct Difference {
    std::uint64_t repeat;
    Change change;
};

struct Output {
    std::string run;
    std::string mode;
    std::string returned = "cudaSuccess";
    std::uint64_t kernels = 0;
    std::uint64_t held = 0;  // bytes of device memory that later calls took and did not give back
    std::uint64_t shared_dirty = 0;  // multiprocessors whose shared memory was dirtied
    std::vector<OutputData> data;
    std::vector<Change> intrusions;
    std::vector<Difference> differences;
};

constexpr std::size_t most_listed = 256;  // changes listed one by one; the header says how many there were

// Written beside its place and renamed, so that a file that exists is whole.
inline void write_output(const Output& output, const std::string& path) {
    std::ostringstream header;
    header << "verify-output 1\nrun " << output.run << "\nmode " << output.mode << "\nreturned " << output.returned
           << "\nkernels " << output.kernels << "\nheld " << output.held << "\nshared " << output.shared_dirty << "\nintrusions "
           << output.intrusions.size() << "\ndifferences " << output.differences.size() << "\n";
    for (std::size_t i = 0; i < std::min(most_listed, output.intrusions.size()); ++i) {
        const Change& change = output.intrusions[i];
        header << "intrusion " << change.buffer << " " << change.offset << " " << change.count << "\n";
    }
    for (std::size_t i = 0; i < std::min(most_listed, output.differences.size()); ++i) {
        const Difference& difference = output.differences[i];
        header << "difference " << difference.repeat << " " << difference.change.buffer << " "
               << difference.change.offset << " " << difference.change.count << "\n";
    }
    for (const OutputData& data : output.data)
        header << "data " << data.buffer << " " << data.part << " " << data.bytes.size() << "\n";
    header << "payload\n";

    const std::string partial = path + ".partial";
    std::ofstream stream(partial, std::ios::binary);
    const std::string text = header.str();
    stream.write(text.data(), static_cast<std::streamsize>(text.size()));
    for (const OutputData& data : output.data)
        stream.write(reinterpret_cast<const char*>(data.bytes.data()), static_cast<std::streamsize>(data.bytes.size()));
    stream.close();
    if (!stream || std::rename(partial.c_str(), path.c_str()) != 0)
        throw BadInput(path + ": cannot be written; is the disk full?");
}

}  // namespace verify
