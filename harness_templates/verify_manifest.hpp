// Reader of a pack manifest: one line a run. verify/wire/pack.py defines the format.
#pragma once

#include <set>

#include "verify_text.hpp"

namespace verify {

struct RunLine {
    std::string id;
    std::string case_path;
    std::string captured_path;  // empty: none
    std::string mode;
    std::string dead, workspace, output, shared;  // fill names; shared may be "-"
    std::uint64_t repeats = 1;
    bool keep_differing = false;    // readings of outputs that differ from the first one are kept
    std::uint64_t placement = 0;  // not 0: base pointers are moved, and a guard is before them
    std::set<std::string> null;
    std::map<std::string, std::uint64_t> misalign, shrink;
};

namespace manifest_detail {

inline std::map<std::string, std::uint64_t> amounts(const std::string& text, const std::string& place) {
    std::map<std::string, std::uint64_t> found;
    if (text == "-") return found;
    for (const std::string& item : split(text, ',')) {
        const auto colon = item.find(':');
        if (colon == std::string::npos) throw BadInput(place + ": expected NAME:BYTES, not '" + item + "'");
        found[item.substr(0, colon)] = unsigned_of(item.substr(colon + 1), place);
    }
    return found;
}

}  // namespace manifest_detail

// All runs of a manifest; case paths are relative to its folder.
inline std::vector<RunLine> load_manifest(const std::string& path) {
    std::ifstream stream(path);
    if (!stream) throw BadInput(path + ": cannot be opened");
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    std::string line;
    if (!std::getline(stream, line) || line != "verify-pack 1")
        throw BadInput(path + ": is no pack manifest of version 1");

    std::vector<RunLine> runs;
    for (int number = 2; std::getline(stream, line); ++number) {
        const std::string place = path + ":" + std::to_string(number);
        const auto parts = words(line);
        if (parts.empty()) continue;
        if (parts[0] != "run" || parts.size() < 2) throw BadInput(place + ": expected 'run ID ...'");
        const auto fields = pairs(parts, 2, place);
        RunLine run;
        run.id = parts[1];
        run.case_path = folder + field(fields, "case", place);
        const std::string& captured = field(fields, "captured", place);
        run.captured_path = captured == "-" ? "" : folder + captured;
        run.mode = field(fields, "mode", place);
        run.dead = field(fields, "dead", place);
        run.workspace = field(fields, "workspace", place);
        run.output = field(fields, "output", place);
        run.shared = field(fields, "shared", place);
        run.repeats = unsigned_of(field(fields, "repeats", place), place);
        run.keep_differing = field(fields, "differing", place) == "keep";
        run.placement = unsigned_of(field(fields, "placement", place), place);
        const std::string& null = field(fields, "null", place);
        if (null != "-")
            for (const std::string& name : split(null, ',')) run.null.insert(name);
        run.misalign = manifest_detail::amounts(field(fields, "misalign", place), place);
        run.shrink = manifest_detail::amounts(field(fields, "shrink", place), place);
        runs.push_back(run);
    }
    return runs;
}

}  // namespace verify
