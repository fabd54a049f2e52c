// Small text reading shared by the case file, the pack manifest and the plan requests: words, integers, hex.
// Everything that does not parse throws BadInput with one line that names the place.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "verify_values.hpp"

namespace verify {

inline std::vector<std::string> words(const std::string& line) {
    std::istringstream stream(line);
    std::vector<std::string> found;
    for (std::string word; stream >> word;) found.push_back(word);
    return found;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

inline std::uint64_t unsigned_of(const std::string& text, const std::string& place) {
    if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 20)
        throw BadInput(place + ": expected a count, not '" + text + "'");
    errno = 0;
    const std::uint64_t value = std::strtoull(text.c_str(), nullptr, 10);
    if (errno != 0) throw BadInput(place + ": " + text + " does not fit 64 bits");
    return value;
}

inline std::int64_t signed_of(const std::string& text, const std::string& place) {
    char* end = nullptr;
    errno = 0;
    const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || errno != 0)
        throw BadInput(place + ": expected an integer, not '" + text + "'");
    return value;
}

// "i:42", "f:0x1.8p+1": how case files and plan requests spell a scalar.
inline Value value_of(const std::string& text, const std::string& place) {
    if (text.rfind("f:", 0) == 0) {
        char* end = nullptr;
        const double real = std::strtod(text.c_str() + 2, &end);
        if (*end != '\0' || text.size() == 2) throw BadInput(place + ": '" + text + "' is not a number");
        return Value::of_real(real);
    }
    if (text.rfind("i:-", 0) == 0) return Value::of_integer(signed_of(text.substr(2), place));
    if (text.rfind("i:", 0) == 0) return Value::of_integer(unsigned_of(text.substr(2), place));
    throw BadInput(place + ": '" + text + "' is no value: i:INTEGER or f:REAL");
}

inline std::vector<std::uint8_t> bytes_of_hex(const std::string& text, const std::string& place) {
    if (text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
        throw BadInput(place + ": '" + text + "' is not a string of hexadecimal bytes");
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i < text.size(); i += 2)
        bytes.push_back(static_cast<std::uint8_t>(std::stoul(text.substr(i, 2), nullptr, 16)));
    return bytes;
}

// "key value key value ..." from word `first` on.
inline std::map<std::string, std::string> pairs(const std::vector<std::string>& line, std::size_t first,
                                                const std::string& place) {
    std::map<std::string, std::string> found;
    if ((line.size() - first) % 2 != 0) throw BadInput(place + ": a key without a value");
    for (std::size_t i = first; i < line.size(); i += 2) found[line[i]] = line[i + 1];
    return found;
}

inline const std::string& field(const std::map<std::string, std::string>& fields, const std::string& key,
                                const std::string& place) {
    const auto found = fields.find(key);
    if (found == fields.end()) throw BadInput(place + ": the field '" + key + "' is missing");
    return found->second;
}

}  // namespace verify
