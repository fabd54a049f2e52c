// Reader of a case file: data only, written by verify/wire/pack.py, whose docstring defines the format.
#pragma once

#include <cstring>

#include "verify_text.hpp"

namespace verify {

struct ByteRun {
    std::uint64_t offset;
    std::uint64_t length;
};

enum class Role { in, out, inout, workspace };

struct BufferFile {
    std::string name;
    Role role = Role::in;
    std::uint64_t element = 1;  // bytes of one element
    std::uint64_t bytes = 0;    // size of the allocation
    std::uint64_t align = 1;
    bool strict = true;
    bool read_back = false;  // all of its bytes are wanted afterwards
    std::vector<ByteRun> live;
    std::vector<ByteRun> promised;
    std::vector<std::uint8_t> data;                           // the live runs' bytes, concatenated
    std::map<std::string, std::vector<std::uint8_t>> fills;  // element patterns by the fill's name
};

struct CaseFile {
    std::string id;
    bool sparse = false;
    std::vector<Value> values;
    std::vector<BufferFile> buffers;
};

namespace case_file_detail {

inline Role role_of(const std::string& text, const std::string& place) {
    if (text == "in") return Role::in;
    if (text == "out") return Role::out;
    if (text == "inout") return Role::inout;
    if (text == "workspace") return Role::workspace;
    throw BadInput(place + ": unknown role '" + text + "'");
}

struct Payload {
    const std::vector<char>& file;
    std::size_t position;
    const std::string& path;

    template <class T>
    std::vector<T> take(std::uint64_t count) {
        const std::uint64_t left = file.size() - position;
        if (count > left / sizeof(T)) throw BadInput(path + ": the file is cut short");
        std::vector<T> items(count);
        if (count != 0) std::memcpy(items.data(), file.data() + position, count * sizeof(T));
        position += count * sizeof(T);
        return items;
    }

    std::vector<ByteRun> runs(std::uint64_t count, std::uint64_t bytes) {
        auto found = take<ByteRun>(count);
        std::uint64_t end = 0;
        for (const ByteRun& run : found) {
            if (run.offset < end || run.length == 0 || run.length > bytes || run.offset > bytes - run.length)
                throw BadInput(path + ": byte runs are not ascending inside their buffer");
            end = run.offset + run.length;
        }
        return found;
    }
};

}  // namespace case_file_detail

// All of a file at once: cases are megabytes, which byte by byte would cost more than what runs on them.
inline std::vector<char> content_of(const std::string& path) {
    std::ifstream stream(path, std::ios::binary | std::ios::ate);
    if (!stream) throw BadInput(path + ": cannot be opened");
    const auto size = static_cast<std::streamoff>(stream.tellg());
    if (size < 0) throw BadInput(path + ": cannot be read");
    std::vector<char> content(static_cast<std::size_t>(size));
    stream.seekg(0);
    if (!stream.read(content.data(), size)) throw BadInput(path + ": cannot be read");
    return content;
}

inline CaseFile load_case(const std::string& path) {
    const std::vector<char> content = content_of(path);

    CaseFile file;
    std::vector<std::map<std::string, std::string>> counts;
    std::size_t position = 0;
    for (bool header = true; header;) {
        const char* start = content.data() + position;
        const void* newline = std::memchr(start, '\n', content.size() - position);
        if (newline == nullptr) throw BadInput(path + ": has no payload line; it is cut short");
        const std::string line(start, static_cast<const char*>(newline));
        position += line.size() + 1;
        const auto parts = words(line);
        const std::string& key = parts.empty() ? line : parts[0];
        if (parts.size() < (key == "fill" ? 3 : 2)) throw BadInput(path + ": the line '" + line + "' is cut short");
        if (key == "verify-case") {
            if (parts.size() != 2 || parts[1] != "1") throw BadInput(path + ": is of another version");
        } else if (key == "id") {
            file.id = line.substr(3);
        } else if (key == "sparse") {
            file.sparse = parts[1] == "1";
        } else if (key == "value") {
            file.values.push_back(value_of(parts[1], path));
        } else if (key == "buffer") {
            BufferFile buffer;
            buffer.name = parts[1];
            const std::string place = path + ": buffer " + buffer.name;
            counts.push_back(pairs(parts, 2, place));
            const auto& fields = counts.back();
            buffer.role = case_file_detail::role_of(field(fields, "role", place), place);
            buffer.element = unsigned_of(field(fields, "element", place), place);
            buffer.bytes = unsigned_of(field(fields, "bytes", place), place);
            buffer.align = unsigned_of(field(fields, "align", place), place);
            buffer.strict = field(fields, "overread", place) == "strict";
            buffer.read_back = field(fields, "read", place) == "1";
            file.buffers.push_back(buffer);
        } else if (key == "fill") {
            if (file.buffers.empty()) throw BadInput(path + ": a fill before its buffer");
            BufferFile& buffer = file.buffers.back();
            auto& table = buffer.fills[parts[1]] = bytes_of_hex(parts[2], path + ": fill " + parts[1]);
            if (table.empty() || buffer.element == 0 || table.size() % buffer.element != 0)
                throw BadInput(path + ": fill " + parts[1] + " is no whole number of elements");
        } else if (key == "payload") {
            position = unsigned_of(parts[1], path);
            if (position > content.size()) throw BadInput(path + ": the file is cut short");
            header = false;
        } else {
            throw BadInput(path + ": unknown line '" + key + "'");
        }
    }

    case_file_detail::Payload payload{content, position, path};
    for (std::size_t i = 0; i < file.buffers.size(); ++i) {
        BufferFile& buffer = file.buffers[i];
        const std::string place = path + ": buffer " + buffer.name;
        buffer.live = payload.runs(unsigned_of(field(counts[i], "live", place), place), buffer.bytes);
        buffer.promised = payload.runs(unsigned_of(field(counts[i], "promised", place), place), buffer.bytes);
        buffer.data = payload.take<std::uint8_t>(unsigned_of(field(counts[i], "data", place), place));
        std::uint64_t live = 0;
        for (const ByteRun& run : buffer.live) live += run.length;
        if (live != buffer.data.size())
            throw BadInput(place + ": has " + std::to_string(buffer.data.size()) + " bytes of data for " +
                           std::to_string(live) + " live bytes");
    }
    return file;
}

}  // namespace verify
