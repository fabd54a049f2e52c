// The host image of one buffer: which bytes of the allocation are written before a run, and their values.
#pragma once

#include <algorithm>

#include "verify_case_file.hpp"

namespace verify {

// Bytes around each run that a sparse buffer fills and watches; the rest of such an allocation is left alone.
constexpr std::uint64_t guard_bytes = 4096;

inline std::uint64_t mix(std::uint64_t x) {  // SplitMix64's finaliser
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Elements after which a fill of several patterns repeats: a prime, so that no stride of rows or slots meets itself.
constexpr std::uint64_t fill_period = 65521;

// Elements first, first + 1, ... of a fill: the pattern of each is chosen by a hash of its index in the period.
template <std::uint64_t element>
void fill_elements(std::uint8_t* out, std::uint64_t first, std::uint64_t count, const std::uint8_t* table,
                   std::uint64_t patterns) {
    std::uint64_t index = first % fill_period;
    for (std::uint64_t k = 0; k < count; ++k) {
        const std::uint64_t pattern = (mix(index) >> 32) * patterns >> 32;
        std::memcpy(out + k * element, table + pattern * element, element);
        if (++index == fill_period) index = 0;
    }
}

// Bytes [offset, offset + length) of an allocation filled with a table of element patterns. What a byte holds depends
// on its place alone, so a fill is the same wherever it is cut.
inline void fill_bytes(std::uint8_t* out, std::uint64_t offset, std::uint64_t length,
                       const std::vector<std::uint8_t>& table, std::uint64_t element) {
    const std::uint64_t patterns = table.size() / element, before = offset % element;
    const auto fill = element == 1   ? fill_elements<1>
                      : element == 2 ? fill_elements<2>
                      : element == 4 ? fill_elements<4>
                      : element == 8 ? fill_elements<8>
                                     : throw BadInput("an element of " + std::to_string(element) + " bytes");
    // One period of whole elements, which is copied as often as it takes; the cut edges are copied out of it.
    const std::uint64_t period = (patterns == 1 ? 256 : fill_period) * element;
    std::vector<std::uint8_t> whole(std::min(period, before + length + element - 1) / element * element);
    fill(whole.data(), offset / element, whole.size() / element, table.data(), patterns);
    std::uint64_t done = std::min(length, whole.size() - before);
    std::memcpy(out, whole.data() + before, done);
    if (done == length) return;
    const std::uint64_t rest = std::min(length - done, before);
    std::memcpy(out + done, whole.data(), rest);
    done += rest;
    for (std::uint64_t copied = done; done < length; done += copied, copied = done)
        std::memcpy(out + done, out, copied = std::min(copied, length - done));
}

// Runs widened by `guard`, clipped to the allocation and merged.
inline std::vector<ByteRun> guarded(const std::vector<ByteRun>& runs, std::uint64_t guard, std::uint64_t bytes) {
    std::vector<ByteRun> merged;
    for (const ByteRun& run : runs) {
        const std::uint64_t first = run.offset > guard ? run.offset - guard : 0;
        const std::uint64_t end = run.length + guard > bytes - run.offset ? bytes : run.offset + run.length + guard;
        if (!merged.empty() && first <= merged.back().offset + merged.back().length) {
            ByteRun& last = merged.back();
            last.length = std::max(last.length, end - last.offset);
        } else {
            merged.push_back({first, end - first});
        }
    }
    return merged;
}

// The parts of `runs` that lie in `segments`; both ascending.
inline std::vector<ByteRun> within(const std::vector<ByteRun>& segments, const std::vector<ByteRun>& runs) {
    std::vector<ByteRun> inside;
    std::size_t at = 0;
    for (const ByteRun& run : runs) {
        const std::uint64_t end = run.offset + run.length;
        while (at < segments.size() && segments[at].offset + segments[at].length <= run.offset) ++at;
        for (std::size_t i = at; i < segments.size() && segments[i].offset < end; ++i) {
            const std::uint64_t first = std::max(run.offset, segments[i].offset);
            inside.push_back({first, std::min(end, segments[i].offset + segments[i].length) - first});
        }
    }
    return inside;
}

struct Change {
    std::string buffer;
    std::int64_t offset;
    std::uint64_t count;
};

// Calls visit(image position, allocation offset, length) for each part of `runs` that lies in `segments`; both
// ascending. Throws BadInput when a run is not covered.
template <class Visit>
void each_in(const std::vector<ByteRun>& segments, const std::vector<ByteRun>& runs, Visit visit) {
    std::size_t at = 0;
    std::uint64_t base = 0;
    for (const ByteRun& run : runs) {
        while (at < segments.size() && segments[at].offset + segments[at].length <= run.offset)
            base += segments[at++].length;
        if (at == segments.size() || segments[at].offset > run.offset ||
            run.offset + run.length > segments[at].offset + segments[at].length)
            throw BadInput("a byte run lies outside the written part of its buffer");
        visit(base + (run.offset - segments[at].offset), run.offset, run.length);
    }
}

struct Image {
    std::vector<ByteRun> segments;    // the parts of the allocation that are written, ascending
    std::vector<std::uint8_t> bytes;  // their values, concatenated

    void scatter(const std::vector<ByteRun>& runs, const std::vector<std::uint8_t>& data) {
        std::uint64_t taken = 0;
        each_in(segments, runs, [&](std::uint64_t position, std::uint64_t, std::uint64_t length) {
            std::memcpy(bytes.data() + position, data.data() + taken, length);
            taken += length;
        });
    }

    std::vector<std::uint8_t> gather(const std::vector<ByteRun>& runs) const {
        std::vector<std::uint8_t> data;
        each_in(segments, runs, [&](std::uint64_t position, std::uint64_t, std::uint64_t length) {
            data.insert(data.end(), bytes.begin() + position, bytes.begin() + position + length);
        });
        return data;
    }
};

// Image of `buffer` in an allocation of `allocated` bytes (all of it, except for refused calls), every byte
// that has no data holding `fill`. A sparse case writes only its runs and the guards around them.
inline Image filled_image(const BufferFile& buffer, const std::string& fill, bool sparse, std::uint64_t allocated) {
    Image image;
    const bool partly = sparse && (!buffer.live.empty() || !buffer.promised.empty());
    if (partly) {
        std::vector<ByteRun> runs = buffer.live;
        runs.insert(runs.end(), buffer.promised.begin(), buffer.promised.end());
        std::sort(runs.begin(), runs.end(), [](ByteRun a, ByteRun b) { return a.offset < b.offset; });
        image.segments = guarded(runs, guard_bytes, allocated);
    } else if (allocated != 0) {
        image.segments = {{0, allocated}};
    }
    const auto table = buffer.fills.find(fill);
    if (table == buffer.fills.end()) throw BadInput("buffer " + buffer.name + " has no fill '" + fill + "'");
    std::uint64_t total = 0;
    for (const ByteRun& segment : image.segments) total += segment.length;
    image.bytes.resize(total);
    std::uint64_t position = 0;
    for (const ByteRun& segment : image.segments) {
        fill_bytes(image.bytes.data() + position, segment.offset, segment.length, table->second, buffer.element);
        position += segment.length;
    }
    return image;
}

// Image that writes nothing but the live data (for initcheck: a fill would count as a write).
inline Image live_image(const BufferFile& buffer) {
    Image image{buffer.live, std::vector<std::uint8_t>(buffer.data.size())};
    image.scatter(buffer.live, buffer.data);
    return image;
}

// The places where `after` differs from `before`, outside `exempt`; neighbouring bytes are one change. Where only live
// bytes are written, what a kernel adds to an input that it also writes lies in no segment.
inline std::vector<Change> changes(const std::string& name, const Image& before, const Image& after,
                                   const std::vector<ByteRun>& exempt) {
    Image expected = before;
    const std::vector<ByteRun> open = within(expected.segments, exempt);
    each_in(expected.segments, open, [&](std::uint64_t position, std::uint64_t, std::uint64_t length) {
        std::memcpy(expected.bytes.data() + position, after.bytes.data() + position, length);
    });
    std::vector<Change> found;
    if (expected.bytes == after.bytes) return found;
    std::uint64_t position = 0;
    for (const ByteRun& segment : expected.segments) {
        for (std::uint64_t i = 0; i < segment.length; ++i, ++position) {
            if (expected.bytes[position] == after.bytes[position]) continue;
            const auto offset = static_cast<std::int64_t>(segment.offset + i);
            if (!found.empty() && found.back().offset + static_cast<std::int64_t>(found.back().count) == offset)
                ++found.back().count;
            else
                found.push_back({name, offset, 1});
        }
    }
    return found;
}

}  // namespace verify
