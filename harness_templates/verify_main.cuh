// The harness's commands: run, plan, info, judge, same.
#pragma once

#include <iostream>

#include "verify_info_command.cuh"
#include "verify_judge_command.hpp"
#include "verify_run_command.cuh"

namespace verify {

// `plan`: requests on standard input, one a line (ID SM_COUNT NULLS VALUE...), answers as JSON lines. Makes no call
// that needs a device: buffers are addresses that are aligned and never touched, of unlimited size, or null pointers
// of no size for those whose numbers NULLS lists ("-" for none).
inline int plan_command() {
    Arguments arguments;
    std::string line;
    for (int number = 1; std::getline(std::cin, line); ++number) {
        const std::string place = "plan request " + std::to_string(number);
        const auto parts = words(line);
        if (parts.size() != verify_value_count + 3)
            throw BadInput(place + ": expected ID SM_COUNT NULLS and " + std::to_string(verify_value_count) +
                           " values");
        arguments.pointers.clear();
        for (std::size_t i = 0; i < verify_buffer_count; ++i)
            arguments.pointers.push_back(reinterpret_cast<void*>((i + 1) << 40));
        const auto unlimited = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        arguments.sizes.assign(verify_buffer_count, unlimited);
        for (const std::string& null : parts[2] == "-" ? std::vector<std::string>{} : split(parts[2], ',')) {
            const std::uint64_t buffer = unsigned_of(null, place);
            if (buffer >= verify_buffer_count) throw BadInput(place + ": there is no buffer " + null);
            arguments.pointers[buffer] = nullptr;
            arguments.sizes[buffer] = 0;
        }
        arguments.values.clear();
        for (std::size_t i = 3; i < parts.size(); ++i) arguments.values.push_back(value_of(parts[i], place));
        std::string fields, error;
        try {
            const int sm_count = static_cast<int>(signed_of(parts[1], place));
            error = cudaGetErrorName(verify_ask_plan(arguments, sm_count, fields));
        } catch (const BadInput& problem) {
            error = problem.what();
            fields.clear();
        }
        std::printf("{\"id\": %s, \"error\": %s%s}\n", json_text(parts[0]).c_str(), json_text(error).c_str(),
                    fields.c_str());
    }
    return 0;
}

inline int main_command(int count, char** words) {
    const std::vector<std::string> arguments(words + 1, words + count);
    try {
        const std::string command = arguments.empty() ? "" : arguments[0];
        if (command == "run") return run_command({arguments.begin() + 1, arguments.end()});
        if (command == "plan") return plan_command();
        if (command == "info") return info_command();
        if (command == "judge") return judge_command({arguments.begin() + 1, arguments.end()});
        if (command == "same") return same_command({arguments.begin() + 1, arguments.end()});
        std::fprintf(stderr, "usage: %s run --pack FILE --out DIR [--only ID]... [--no-regions] | plan | info |\n"
                     "       %s judge --expected FILE OUTPUT...\n       %s same [--row R ROWS] FIRST OTHER...\n",
                     words[0], words[0], words[0]);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s\n", one_line(problem.what()).c_str());
    }
    return exit_usage;
}

}  // namespace verify
