// The launcher's types, in a file of their own so that a build has an include to notice.
#pragma once

#include <cstddef>

constexpr int guarded_block = 64;

struct guarded_args {
    const float* x;
    float* y;
    void* workspace;
    size_t workspace_bytes;
    int n;
    float scale;
    bool swallow;
};

struct guarded_plan {
    int blocks, rounds;
    size_t workspace_bytes;
};
