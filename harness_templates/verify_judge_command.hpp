// `judge --expected FILE OUTPUT...`: holds the outputs of runs against the elements' allowed intervals. What the
// suite itself does in Python, for a folder that has to show its finding without it.
#pragma once

#include <map>

#include "verify_output_file.hpp"

namespace verify {

// The promised elements of one output. An element's key is its bits as an ordered integer; low > high where a
// NaN is expected.
struct Expected {
    std::string buffer;
    std::uint64_t element;   // bytes
    std::string encoding;    // "sign" (sign and magnitude), "integer" (two's complement) or "unsigned"
    std::uint64_t largest;   // magnitudes past this are NaN ("sign")
    std::vector<std::int64_t> low, high;
};

struct Key {
    std::int64_t value;
    bool nan;
};

inline Key key_of(const std::uint8_t* bytes, const Expected& expected) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes, expected.element);
    const unsigned width = static_cast<unsigned>(8 * expected.element);
    const std::uint64_t sign = 1ull << (width - 1);
    if (expected.encoding == "sign") {
        const std::uint64_t magnitude = bits & (sign - 1);
        const auto value = static_cast<std::int64_t>(magnitude);
        return {(bits & sign) != 0 ? -value : value, magnitude > expected.largest};
    }
    if (expected.encoding == "integer" && (bits & sign) != 0 && width < 64) bits |= ~0ull << width;
    return {static_cast<std::int64_t>(bits), expected.encoding == "unsigned" && bits > expected.largest};
}

inline std::string read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw BadInput(path + ": cannot be opened");
    return {std::istreambuf_iterator<char>(stream), {}};
}

// Lines before "payload", and the position behind it.
inline std::pair<std::vector<std::vector<std::string>>, std::size_t> header_of(const std::string& content,
                                                                            const std::string& path) {
    const std::size_t end = content.find("\npayload\n");
    if (end == std::string::npos) throw BadInput(path + ": has no payload line");
    std::vector<std::vector<std::string>> lines;
    for (const std::string& line : split(content.substr(0, end), '\n')) lines.push_back(words(line));
    return {lines, end + std::strlen("\npayload\n")};
}

inline std::vector<Expected> load_expected(const std::string& path) {
    const std::string content = read_file(path);
    auto [lines, position] = header_of(content, path);
    std::vector<Expected> all;
    for (const auto& line : lines) {
        if (line.empty() || line[0] != "quantity") continue;
        const auto fields = pairs(line, 2, path);
        Expected one{line.at(1), unsigned_of(field(fields, "element", path), path), field(fields, "encoding", path),
                     unsigned_of(field(fields, "largest", path), path), {}, {}};
        const std::uint64_t count = unsigned_of(field(fields, "count", path), path);
        for (auto* bound : {&one.low, &one.high}) {
            const std::uint64_t bytes = count * sizeof(std::int64_t);
            if (bytes > content.size() - position) throw BadInput(path + ": the file is cut short");
            bound->resize(count);
            std::memcpy(bound->data(), content.data() + position, bytes);
            position += bytes;
        }
        all.push_back(one);
    }
    return all;
}

// Prints what is wrong with one output file; how many elements and changed places that is.
inline std::uint64_t judge_file(const std::string& path, const std::vector<Expected>& expected) {
    const std::string content = read_file(path);
    auto [lines, position] = header_of(content, path);
    std::uint64_t wrong = 0, intrusions = 0, differences = 0;  // only the first of each kind is printed
    for (const auto& line : lines) {
        if (line.size() == 2 && (line[0] == "intrusions" || line[0] == "differences")) wrong += unsigned_of(line[1], path);
        if (line.size() == 4 && line[0] == "intrusion" && intrusions++ == 0)
            std::printf("%s: %s bytes of %s changed at byte %s, which had to stay\n", path.c_str(), line[3].c_str(),
                        line[1].c_str(), line[2].c_str());
        if (line.size() == 5 && line[0] == "difference" && differences++ == 0)
            std::printf("%s: repeat %s gave %s other bytes of %s at byte %s\n", path.c_str(), line[1].c_str(),
                        line[4].c_str(), line[2].c_str(), line[3].c_str());
        if (line.size() != 4 || line[0] != "data") continue;
        const std::uint64_t bytes = unsigned_of(line[3], path);
        if (bytes > content.size() - position) throw BadInput(path + ": the file is cut short");
        const auto* data = reinterpret_cast<const std::uint8_t*>(content.data() + position);
        position += bytes;
        for (const Expected& one : expected) {
            if (line[2] != "promised" || one.buffer != line[1]) continue;
            if (bytes != one.low.size() * one.element) throw BadInput(path + ": is the output of another case");
            std::uint64_t bad = 0, first = 0;
            for (std::uint64_t i = 0; i < one.low.size(); ++i) {
                const Key key = key_of(data + i * one.element, one);
                const bool want_nan = one.low[i] > one.high[i];
                const bool right = key.nan ? want_nan : !want_nan && key.value >= one.low[i] && key.value <= one.high[i];
                if (!right && bad++ == 0) first = i;
            }
            if (bad != 0)
                std::printf("%s: %llu of %zu elements of %s are outside their bounds, the first is promised element %llu\n",
                            path.c_str(), static_cast<unsigned long long>(bad), one.low.size(), one.buffer.c_str(),
                            static_cast<unsigned long long>(first));
            wrong += bad;
        }
    }
    if (wrong == 0) std::printf("%s: every element is within its bound\n", path.c_str());
    return wrong;
}

// The promised bytes of each output, by buffer.
inline std::map<std::string, std::string> promised_of(const std::string& path) {
    const std::string content = read_file(path);
    auto [lines, position] = header_of(content, path);
    std::map<std::string, std::string> found;
    for (const auto& line : lines) {
        if (line.size() != 4 || line[0] != "data") continue;
        const std::uint64_t bytes = unsigned_of(line[3], path);
        if (bytes > content.size() - position) throw BadInput(path + ": the file is cut short");
        if (line[2] == "promised") found[line[1]] = content.substr(position, bytes);
        position += bytes;
    }
    return found;
}

// `same [--row R ROWS] FIRST OTHER...`: bit equality of outputs. With --row, the others are row R alone of ROWS.
inline int same_command(std::vector<std::string> arguments) {
    std::uint64_t row = 0, rows = 1;
    if (arguments.size() > 3 && arguments[0] == "--row") {
        row = unsigned_of(arguments[1], "same: --row");
        rows = unsigned_of(arguments[2], "same: --row");
        arguments.erase(arguments.begin(), arguments.begin() + 3);
    }
    if (arguments.size() < 2 || row >= rows) throw BadInput("same: [--row R ROWS] FIRST OTHER... is needed");
    const auto first = promised_of(arguments[0]);
    bool differ = false;
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        for (const auto& [buffer, bytes] : promised_of(arguments[i])) {
            const auto whole = first.find(buffer);
            // An output that has no rows is the batch's own.
            if (whole == first.end() || whole->second.size() != rows * bytes.size()) continue;
            const std::string before = whole->second.substr(row * bytes.size(), bytes.size());
            std::uint64_t count = 0, at = 0;
            for (std::size_t n = 0; n < bytes.size(); ++n)
                if (bytes[n] != before[n] && count++ == 0) at = n;
            if (count == 0) continue;
            differ = true;
            std::printf("%s: %llu of %zu bytes of %s differ from %s, the first is promised byte %llu\n",
                        arguments[i].c_str(), static_cast<unsigned long long>(count), bytes.size(), buffer.c_str(),
                        arguments[0].c_str(), static_cast<unsigned long long>(at));
        }
    }
    if (!differ) std::printf("all outputs have the same bits\n");
    return differ ? 1 : 0;
}

inline int judge_command(const std::vector<std::string>& arguments) {
    if (arguments.size() < 3 || arguments[0] != "--expected") throw BadInput("judge: --expected FILE OUTPUT... is needed");
    const std::vector<Expected> expected = load_expected(arguments[1]);
    std::uint64_t wrong = 0;
    for (std::size_t i = 2; i < arguments.size(); ++i) wrong += judge_file(arguments[i], expected);
    return wrong == 0 ? 0 : 1;
}

}  // namespace verify
