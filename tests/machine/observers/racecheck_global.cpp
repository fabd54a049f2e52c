// racecheck on global memory and between operations, told event by event.
#include "stage.hpp"

using namespace stage;

namespace {

const std::vector<std::string> kText = {"st.global.f32 [%rd1], %f1;", "ld.global.f32 %f2, [%rd2];",
                                        "atom.global.add.u32 %r1, [%rd3], 1;", "st.global.u32 [%rd3], 0;",
                                        "ld.volatile.global.u32 %r2, [%rd4];"};

void ticket(Stage& s, std::uint64_t counter, unsigned block, Scope writer, Scope reader, bool writer_fence,
            bool reader_fence) {
  if (writer_fence) s.fence(block, 0, 1, writer);
  s.touch(block, 0, 2, kAtomic, Space::global, counter, 0, 4, 1, Order::relaxed, Scope::gpu);
  if (reader_fence) s.fence(block, 0, 1, reader);
}

Stage play(Scope scope, bool writer_fence, bool reader_fence, bool block_barrier) {
  Stage s({"racecheck"}, kText, 4, 64, 0, true);
  const std::uint64_t partial = s.allocate(4096), counter = s.allocate(4);
  s.begin();
  for (unsigned b = 0; b < 4; ++b) {
    s.touch(b, 1, 0, kStore, Space::global, partial + 128 * b, 4, 4);
    if (block_barrier) s.barrier(b);
    ticket(s, counter, b, scope, scope, writer_fence, reader_fence);
    s.barrier(b);
  }
  for (unsigned b = 0; b < 4; ++b) s.touch(3, 0, 1, kLoad, Space::global, partial + 128 * b, 4, 4);
  s.touch(3, 0, 3, kStore, Space::global, counter, 0, 4, 1);
  s.end();
  return s;
}

EVENT_TEST(ticket_with_fences_is_silent) { EXPECT(play(Scope::gpu, true, true, true).report.findings().empty()); }
EVENT_TEST(ticket_without_fences_is_seen) { EXPECT(play(Scope::gpu, false, false, true).count("racecheck") == 1); }
EVENT_TEST(ticket_with_block_fence_is_seen) {
  const Stage s = play(Scope::cta, true, true, true);
  EXPECT(s.count("racecheck") == 1);
  EXPECT(s.report.findings()[0].remedy.find("block scope") != std::string::npos);
}
EVENT_TEST(ticket_with_writers_fence_only_is_a_warning) {
  const Stage s = play(Scope::gpu, true, false, true);
  EXPECT(s.count("racecheck") == 0);
  EXPECT(s.count("racecheck", report::Level::warning) == 1);
}
EVENT_TEST(missing_barrier_before_the_release_is_seen) {
  EXPECT(play(Scope::gpu, true, true, false).count("racecheck") == 1);
}

EVENT_TEST(value_that_an_atomic_changed_is_not_that_of_the_store) {
  // Memory holds what the second store writes, but the first one wrote something else. Only these two are unordered.
  Stage s({"racecheck"}, kText, 3, 32, 0, true);
  const std::uint64_t place = s.allocate(4);
  std::array<std::uint64_t, 32> two{};
  two.fill(2);
  *reinterpret_cast<std::uint32_t*>(place) = 1;
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, place, 0, 4, 1);
  s.fence(0, 0, 1);
  s.touch(0, 0, 2, kAtomic, Space::global, place, 0, 4, 1, Order::relaxed, Scope::gpu);
  *reinterpret_cast<std::uint32_t*>(place) = 2;
  s.touch(1, 0, 3, kStore, Space::global, place, 0, 4, 1, Order::weak, Scope::none, two.data());
  s.end();
  EXPECT(s.count("racecheck", report::Level::warning) == 0);
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(fence_by_every_writer_then_barrier_counts) {
  Stage s({"racecheck"}, kText, 2, 64, 0, true);
  const std::uint64_t data = s.allocate(4096), flag = s.allocate(4);
  s.begin();
  for (unsigned w = 0; w < 2; ++w) s.touch(0, w, 0, kStore, Space::global, data + 128 * w, 4, 4);
  for (unsigned w = 0; w < 2; ++w) s.fence(0, w, kFullMask);
  s.barrier(0);
  s.touch(0, 0, 2, kAtomic, Space::global, flag, 0, 4, 1, Order::relaxed, Scope::gpu);
  s.touch(1, 0, 2, kAtomic, Space::global, flag, 0, 4, 1, Order::relaxed, Scope::gpu);
  s.fence(1, 0, 1);
  s.barrier(1);
  for (unsigned w = 0; w < 2; ++w) s.touch(1, 1, 1, kLoad, Space::global, data + 128 * w, 4, 4);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(acquire_and_release_order) {
  Stage s({"racecheck"}, kText, 2, 32, 0, true);
  const std::uint64_t data = s.allocate(4096), flag = s.allocate(4);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, data, 4, 4, 1);
  s.touch(0, 0, 3, kStore, Space::global, flag, 0, 4, 1, Order::release, Scope::gpu);
  s.touch(1, 0, 4, kLoad, Space::global, flag, 0, 4, 1, Order::acquire, Scope::gpu);
  s.touch(1, 0, 1, kLoad, Space::global, data, 4, 4, 1);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(volatile_flag_without_fence_orders_nothing) {
  Stage s({"racecheck"}, kText, 2, 32, 0, true);
  const std::uint64_t data = s.allocate(4096), flag = s.allocate(4);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, data, 4, 4, 1);
  s.touch(0, 0, 3, kStore, Space::global, flag, 0, 4, 1, Order::volatile_);
  s.touch(1, 0, 4, kLoad, Space::global, flag, 0, 4, 1, Order::volatile_);
  s.touch(1, 0, 1, kLoad, Space::global, data, 4, 4, 1);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(plain_reset_against_atomics_is_seen) {
  Stage s({"racecheck"}, kText, 2, 32, 0, true);
  const std::uint64_t counter = s.allocate(4);
  s.begin();
  s.touch(1, 0, 2, kAtomic, Space::global, counter, 0, 4, kFullMask, Order::relaxed, Scope::gpu);
  s.touch(0, 0, 3, kStore, Space::global, counter, 0, 4, 1);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(atomics_of_many_threads_do_not_race) {
  Stage s({"racecheck"}, kText, 4, 64, 0, true);
  const std::uint64_t bins = s.allocate(1024);
  s.begin();
  for (unsigned round = 0; round < 20; ++round)
    for (unsigned b = 0; b < 4; ++b)
      for (unsigned w = 0; w < 2; ++w)
        s.touch(b, w, 2, kAtomic, Space::global, bins + 4 * (round % 3), 8, 4, kFullMask, Order::relaxed, Scope::gpu);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(block_scope_atomics_across_blocks_are_seen) {
  Stage s({"racecheck"}, kText, 2, 32, 0, true);
  const std::uint64_t counter = s.allocate(4);
  s.begin();
  for (unsigned b = 0; b < 2; ++b)
    s.touch(b, 0, 2, kAtomic, Space::global, counter, 0, 4, 1, Order::relaxed, Scope::cta);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(blocks_writing_the_same_bytes_are_seen) {
  Stage s({"racecheck"}, kText, 2, 32);
  const std::uint64_t out = s.allocate(4096);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, out, 4, 4);
  s.touch(1, 0, 0, kStore, Space::global, out + 124, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(different_bytes_of_a_word_do_not_race) {
  Stage s({"racecheck"}, kText, 4, 32);
  const std::uint64_t out = s.allocate(4096);
  s.begin();
  for (unsigned b = 0; b < 4; ++b) s.touch(b, 0, 0, kStore, Space::global, out + b, 4, 1);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(shared_input_is_silent_and_a_late_write_is_seen) {
  Stage s({"racecheck"}, kText, 40, 128);
  const std::uint64_t in = s.allocate(4096);
  s.begin();
  for (unsigned repeat = 0; repeat < 3; ++repeat)
    for (unsigned b = 0; b < 40; ++b)
      for (unsigned w = 0; w < 4; ++w) s.touch(b, w, 1, kLoad, Space::global, in + 128 * w, 4, 4);
  EXPECT(s.report.findings().empty());
  s.touch(39, 0, 0, kStore, Space::global, in, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(race_inside_a_block_is_seen_and_a_barrier_orders) {
  Stage s({"racecheck"}, kText, 1, 64);
  const std::uint64_t out = s.allocate(4096);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, out, 4, 4);
  s.barrier(0);
  s.touch(0, 1, 1, kLoad, Space::global, out, 4, 4);
  s.end();
  EXPECT(s.report.findings().empty());
  Stage t({"racecheck"}, kText, 1, 64);
  const std::uint64_t out2 = t.allocate(4096);
  t.begin();
  t.touch(0, 0, 0, kStore, Space::global, out2, 4, 4);
  t.touch(0, 1, 1, kLoad, Space::global, out2, 4, 4);
  t.end();
  EXPECT(t.count("racecheck") == 1);
}

EVENT_TEST(chunks_that_meet_are_repeated) {
  Stage s({"racecheck"}, kText, 2, 32, 0, false, 2);
  const std::uint64_t out = s.allocate(4096);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, out, 4, 4);
  s.touch(1, 0, 1, kLoad, Space::global, out + 124, 4, 4);
  EXPECT(!s.end());
  Stage t({"racecheck"}, kText, 2, 32, 0, false, 2);
  const std::uint64_t out2 = t.allocate(4096);
  t.begin();
  t.touch(0, 0, 0, kStore, Space::global, out2, 4, 4);
  t.touch(1, 0, 0, kStore, Space::global, out2 + 128, 4, 4);
  EXPECT(t.end());
  EXPECT(t.report.findings().empty());
}

EVENT_TEST(unordered_kernels_are_seen_and_an_event_orders) {
  for (const bool ordered : {false, true}) {
    Stage s({"racecheck"}, kText, 1, 32);
    const std::uint64_t data = s.allocate(4096);
    const auto start = s.after;
    s.begin(2'000'001);
    s.touch(0, 0, 0, kStore, Space::global, data, 4, 4);
    s.end();
    s.after = ordered ? std::vector<std::uint64_t>{2'000'001} : start;
    s.begin(2'000'002);
    s.touch(0, 0, 1, kLoad, Space::global, data, 4, 4);
    s.end();
    EXPECT(s.count("racecheck") == (ordered ? 0u : 1u));
  }
}

EVENT_TEST(host_write_against_a_pending_copy_is_seen) {
  Stage s({"racecheck"}, kText, 1, 32);
  const std::uint64_t pinned = s.allocate(4096);
  Operation host, copy;
  host.id = 2'000'001, host.kind = OperationKind::host;
  host.after = s.after;
  s.all->operation_begin(host), s.all->operation_end(host);
  copy.id = 2'000'002, copy.kind = OperationKind::copy, copy.name = "cudaMemcpyAsync", copy.after = {host.id};
  Operation later = host;
  later.id = 2'000'003, later.after = {host.id};
  s.all->operation_begin(later), s.all->operation_end(later);
  s.all->host_access(later.id, AccessKind::store, pinned, 64);
  s.all->operation_begin(copy);
  s.all->host_access(copy.id, AccessKind::load, pinned, 4096);
  s.all->operation_end(copy);
  EXPECT(s.count("racecheck") == 1);
}

// A launch whose blocks run one after another in several chunks: accesses are marked, and described only where they
// meet.
Stage apart(unsigned blocks = 2, std::uint32_t shared_bytes = 0) {
  Stage s({"racecheck", "initcheck"}, kText, blocks, 64, shared_bytes, false, 2);
  s.launch.resident_limit = 1;
  return s;
}

EVENT_TEST(one_byte_among_what_was_written_down_is_seen) {
  for (const unsigned others : {0u, 10u, 3000u}) {  // within what is written down, and beyond
    Stage s = apart();
    const std::uint64_t data = s.allocate(1 << 20);
    s.begin();
    s.touch(0, 1, 1, kLoad, Space::global, data + 4097, 0, 1, 1u << 7);
    for (unsigned i = 0; i < others; ++i) s.touch(0, 1, 1, kLoad, Space::global, data + 8192 + 256 * (i % 999), 60, 4);
    s.touch(0, 0, 0, kStore, Space::global, data + 4096, 4, 4);
    EXPECT(s.end());
    EXPECT(s.count("racecheck") == 1);
  }
}

EVENT_TEST(barrier_puts_what_was_written_down_into_the_past) {
  for (const unsigned others : {0u, 3000u}) {
    Stage s = apart();
    const std::uint64_t data = s.allocate(1 << 20);
    s.begin();
    for (unsigned i = 0; i <= others; ++i) s.touch(0, 1, 1, kLoad, Space::global, data + 256 * (i % 999), 60, 4);
    s.barrier(0);
    s.touch(0, 0, 0, kStore, Space::global, data, 4, 4);
    s.barrier(0);
    s.touch(0, 1, 1, kLoad, Space::global, data, 4, 4);
    for (unsigned w = 0; w < 2; ++w) {  // in place: everybody's own
      s.touch(0, w, 1, kLoad, Space::global, data + 4096 + 128 * w, 4, 4);
      s.touch(0, w, 0, kStore, Space::global, data + 4096 + 128 * w, 4, 4);
    }
    EXPECT(s.end());
    EXPECT(s.report.findings().empty());
  }
}

EVENT_TEST(copy_in_flight_outlives_a_barrier) {
  for (const bool waits : {false, true}) {
    Stage s = apart(2, 1024);
    const std::uint64_t data = s.allocate(1 << 20);
    s.begin();
    s.copy(0, 1, 1, data, 0);
    if (waits) s.land(0, 1);
    s.barrier(0);
    for (unsigned i = 0; i < 3000; ++i) s.touch(0, 1, 1, kLoad, Space::global, data + 4096 + 256 * (i % 999), 60, 4);
    s.touch(0, 0, 0, kStore, Space::global, data, 4, 4);
    EXPECT(s.end());
    EXPECT(s.count("racecheck") == (waits ? 0u : 1u));
  }
}

EVENT_TEST(lanes_that_store_to_one_word_are_seen) {
  Stage s = apart();
  const std::uint64_t data = s.allocate(4096);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, data, 0, 4);
  EXPECT(s.end());
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(blocks_of_one_chunk_that_meet_are_repeated) {
  for (const std::uint64_t at : {0u, 511u, 512u}) {  // the last: side by side, and no conflict
    Stage s = apart(4);
    const std::uint64_t data = s.allocate(4096);
    s.begin();
    s.touch(0, 0, 1, kLoad, Space::global, data, 16, 16);
    s.next_block(0, 1);
    s.touch(0, 1, 0, kStore, Space::global, data + at, 0, 1, 1);
    EXPECT(s.end() == (at == 512));
  }
}

EVENT_TEST(shared_input_of_chunks_is_silent) {
  Stage s = apart(4);
  const std::uint64_t data = s.allocate(8192), out = s.allocate(8192);
  s.begin();
  for (unsigned b = 0; b < 4; b += 2)
    for (unsigned w = 0; w < 2; ++w) {
      s.touch(b, w, 1, kLoad, Space::global, data, 128, 4);  // every 32nd word
      s.touch(b, w, 0, kStore, Space::global, out + 2 * b + 8 * w, 64,
              4);  // words of all chunks, woven into each other
    }
  EXPECT(s.end());
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(chunks_that_meet_in_one_woven_byte_are_repeated) {
  Stage s = apart(4);
  const std::uint64_t out = s.allocate(8192);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::global, out, 64, 4);
  s.touch(2, 0, 0, kStore, Space::global, out + 8, 64, 4, ~(1u << 20));
  s.touch(2, 0, 1, kLoad, Space::global, out + 64 * 20 + 3, 0, 1, 1);
  EXPECT(!s.end());
}

}  // namespace

int main() { return run_event_tests(); }
