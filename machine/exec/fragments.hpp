// Running warps, blocks and chunks of a grid.
#pragma once

#include "exec/program.hpp"
#include "exec/warp.hpp"

namespace machine {

// ---- fragments.cpp: fragments of one warp
void start_warp(Warp& w, const Function& entry);
// Runs until the budget is spent or no fragment can run.
void run_warp(Warp& w, std::int64_t budget);
bool runnable(const Warp& w);
// The running fragment returns from its function as a whole, and goes on in the caller.
const Inst* return_to_caller(Warp& w);
// Fragments that wait for lanes of their warp look again: lanes have exited or arrived.
void wake_collectives(Warp& w);

// ---- block.cpp: warps of one block
void start_block(Block& block, Worker& worker, std::uint64_t index, std::uint32_t slot);
void finish_block(Block& block, Worker& worker);
// One turn for every warp that can run. False: none could.
bool run_block(Block& block, Worker& worker);
// Who waits for what, one line a fragment, at most `most`.
std::string waiting(const Block& block, unsigned most);

// ---- isa/ops_barrier.cpp
// Lanes of the running fragment arrive at a barrier; returns where to go on.
void check_barriers(Block& block, Worker& worker);
// No fragment of this warp can run, and some wait at an aligned barrier for lanes that are elsewhere.
void settle_gathering(Warp& w);

// ---- passed_barriers.cpp
// Lanes take a path past the barriers in the region of `i`.
void pass_by(Warp& w, const Inst& i, Mask lanes);
// Reports threads that wait at barrier `id`, where others missed it: those have ended, or wait at a barrier elsewhere.
void report_passed(Block& block, std::uint32_t id);
// Every thread that is left has met a barrier of the block.
void settle_passed(Block& block);

// ---- isa/ops_async.cpp
// Land copies of the warp: all, or those of `lanes` before copy `id`. `i` is where the landing is reported.
void land_all(Warp& w, const Inst& i, bool waited);
void land_before(Warp& w, const Inst& i, std::uint64_t id, Mask lanes);

}  // namespace machine
