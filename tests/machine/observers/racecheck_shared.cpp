// racecheck on shared memory, told event by event.
#include "stage.hpp"

using namespace stage;

namespace {

const std::vector<std::string> kText = {"st.shared.f32 [%r1], %f1;", "ld.shared.f32 %f2, [%r2];",
                                        "st.shared.f32 [%r3], %f3;", "cp.async.cg.shared.global [%r4], [%rd1], 16;"};

EVENT_TEST(missing_barrier_between_warps_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
  EXPECT(s.report.findings()[0].sites[0].location.lines[0].line == 2);
  EXPECT(s.report.findings()[0].sites[1].location.lines[0].line == 1);
}

EVENT_TEST(barrier_orders_warps) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  for (int i = 0; i < 3; ++i) {
    s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
    s.barrier(0);
    s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
    s.touch(0, 0, 1, kLoad, Space::shared, 124, -4, 4);
    s.barrier(0);
  }
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(missing_barrier_before_overwriting_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  s.barrier(0);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  s.touch(0, 0, 2, kStore, Space::shared, 0, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(lockstep_inside_a_warp_is_seen) {
  Stage s({"racecheck"}, kText, 1, 32, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  s.touch(0, 0, 1, kLoad, Space::shared, 124, -4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(own_element_needs_no_sync) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  for (unsigned w = 0; w < 2; ++w)
    for (int i = 0; i < 3; ++i) {
      s.touch(0, w, 0, kStore, Space::shared, 128 * w, 4, 4);
      s.touch(0, w, 1, kLoad, Space::shared, 128 * w, 4, 4);
    }
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(syncwarp_orders_lanes) {
  Stage s({"racecheck"}, kText, 1, 32, 512);
  s.begin();
  for (int i = 0; i < 3; ++i) {
    s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
    s.syncwarp(0, 0);
    s.touch(0, 0, 1, kLoad, Space::shared, 124, -4, 4);
    s.syncwarp(0, 0);
  }
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(partial_syncwarp_orders_its_lanes_only) {
  Stage s({"racecheck"}, kText, 1, 32, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4, 0x0000ffff);
  s.syncwarp(0, 0, 0x0000ffff);
  s.touch(0, 0, 1, kLoad, Space::shared, 60, -4, 4, 0x0000ffff);
  s.syncwarp(0, 0, 0x0000ffff);
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4, 0x0000ffff);
  s.end();
  EXPECT(s.report.findings().empty());
  Stage t({"racecheck"}, kText, 1, 32, 512);
  t.begin();
  t.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  t.syncwarp(0, 0, 0x0000ffff);
  t.touch(0, 0, 1, kLoad, Space::shared, 124, -4, 4, 0x0000ffff);  // lane l reads what lane 31 - l wrote
  t.end();
  EXPECT(t.count("racecheck") == 1);
}

EVENT_TEST(neighbouring_bytes_do_not_collide) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 2, 1);
  s.touch(0, 1, 0, kStore, Space::shared, 1, 2, 1);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 2, 1);
  s.barrier(0);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 4, 4, 0xffff);
  s.end();
  EXPECT(s.report.findings().empty());
  Stage t({"racecheck"}, kText, 1, 64, 512);
  t.begin();
  t.touch(0, 0, 0, kStore, Space::shared, 0, 2, 1);
  t.touch(0, 1, 1, kLoad, Space::shared, 0, 2, 2);
  t.end();
  EXPECT(t.count("racecheck") == 1);
}

EVENT_TEST(same_value_is_a_warning) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  std::array<std::uint64_t, 32> ones{};
  ones.fill(1);
  s.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4, kFullMask, Order::weak, Scope::none, ones.data());
  s.end();
  EXPECT(s.count("racecheck") == 0);
  EXPECT(s.count("racecheck", report::Level::warning) == 1);
  Stage t({"racecheck"}, kText, 1, 64, 512);
  t.begin();
  t.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4);
  t.end();
  EXPECT(t.count("racecheck") == 1);
}

constexpr Collective kOrderNothing[] = {Collective::shuffle, Collective::vote, Collective::match, Collective::reduce};

EVENT_TEST(write_behind_a_read_and_a_collective_is_a_warning) {
  for (const Collective kind : kOrderNothing) {
    Stage s({"racecheck"}, kText, 1, 64, 512);
    s.begin();
    s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4);
    s.fork(0).collective(s.at(0, 0, 0), kind, kFullMask);
    s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4, 1);  // the writer's own, behind the collective
    s.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4, 1);
    s.end();
    EXPECT(s.count("racecheck") == 0);
    EXPECT(s.count("racecheck", report::Level::warning) == 1);
    EXPECT(s.report.findings()[0].kind.find("Ordered by a warp collective only") == 0);
  }
}
EVENT_TEST(write_behind_a_collective_of_half_the_warp_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4);
  s.fork(0).collective(s.at(0, 0, 0, 0xffff), Collective::shuffle, 0xffff);
  s.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4, 1);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}
EVENT_TEST(write_beside_a_read_behind_the_collective_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4);
  s.fork(0).collective(s.at(0, 0, 0), Collective::shuffle, kFullMask);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4, 2);
  s.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4, 1);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}
EVENT_TEST(read_behind_a_write_and_a_collective_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 0, 4, 1);
  s.fork(0).collective(s.at(0, 0, 0), Collective::shuffle, kFullMask);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 0, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(async_copy_is_ordered_by_wait_and_barrier) {
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  for (int i = 0; i < 3; ++i) {
    s.copy(0, 0, 3, in, 0);
    s.land(0, 0);
    s.barrier(0);
    for (unsigned w = 0; w < 2; ++w) s.touch(0, w, 1, kLoad, Space::shared, 496, -16, 16);
    s.barrier(0);
  }
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(missing_wait_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.barrier(0);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 16, 16);
  s.end();
  EXPECT(s.count("racecheck") == 1);
  EXPECT(s.report.findings()[0].remedy.find("wait_group") != std::string::npos);
}

EVENT_TEST(own_copy_without_wait_is_seen) {
  Stage s({"racecheck"}, kText, 1, 32, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 16, 16);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(own_copy_needs_only_the_wait) {
  Stage s({"racecheck"}, kText, 1, 32, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.land(0, 0);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 16, 16);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(wait_without_barrier_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.land(0, 0);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 16, 16);
  s.end();
  EXPECT(s.count("racecheck") == 1);
  EXPECT(s.report.findings()[0].remedy.find("both warps reach after the wait") != std::string::npos);
}

EVENT_TEST(only_the_waited_group_is_ordered) {
  Stage s({"racecheck"}, kText, 1, 64, 2048);
  const std::uint64_t in = s.allocate(2048);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.copy(0, 0, 3, in + 512, 512);
  s.fork(0).async_wait(s.at(0, 0, 0), 1);
  s.barrier(0);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 16, 16);
  EXPECT(s.report.findings().empty());
  s.touch(0, 1, 1, kLoad, Space::shared, 512, 16, 16);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(refill_before_barrier_is_seen) {
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.land(0, 0);
  s.barrier(0);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 16, 16);
  s.copy(0, 0, 3, in, 0);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(slot_reuse_forgets_the_block_before) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  s.fork(0).block_end(s.blocks[0]);
  s.blocks[0].index = 7;
  s.fork(0).block_begin(s.blocks[0]);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  s.touch(0, 1, 0, kStore, Space::shared, 128, 4, 4);
  s.fork(0).block_end(s.blocks[0]);
  s.blocks[0].index = 0;
  s.fork(0).block_begin(s.blocks[0]);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(named_barrier_orders_those_that_meet) {
  Stage s({"racecheck"}, kText, 1, 96, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  BarrierArrival arrival{1, BarrierUse::arrive, 64, true, true};
  s.fork(0).barrier_arrive(s.at(0, 0, 0), arrival);
  arrival.use = BarrierUse::sync;
  s.fork(0).barrier_arrive(s.at(0, 1, 0), arrival);
  const std::vector<Mask> arrived = {kFullMask, kFullMask, 0}, waited = {0, kFullMask, 0};
  s.fork(0).barrier_release(s.blocks[0], {1, arrived, waited});
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.report.findings().empty());
  s.touch(0, 2, 1, kLoad, Space::shared, 0, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(mbarrier_orders_arrivals_before_waiters) {
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  std::array<std::uint64_t, 32> address, phase{};
  address.fill(s.blocks[0].shared + 256);
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  MbarrierEvent e;
  e.lanes = kFullMask;
  e.address = address.data();
  e.phase = phase.data();
  e.op = MbarrierOp::arrive;
  s.fork(0).mbarrier(s.at(0, 0, 0), e);
  e.op = MbarrierOp::test;
  e.order = Order::acquire;
  s.fork(0).mbarrier(s.at(0, 1, 0), e);
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(larger_block_in_a_used_slot_has_no_readers_yet) {
  {
    Stage s({"racecheck"}, kText, 1, 128, 512);  // every warp reads and writes its own: the readers are in the planes
    s.begin();
    for (unsigned w = 0; w < 4; ++w) {
      s.touch(0, w, 1, kLoad, Space::shared, 128 * w, 4, 4);
      s.touch(0, w, 2, kStore, Space::shared, 128 * w, 4, 4);
    }
    s.end();
    EXPECT(s.report.findings().empty());
  }
  const std::vector<std::uint32_t> rubbish(1 << 16, 0xffffffff);  // what fresh memory of the size of a plane may hold
  {
    const auto copy = std::make_unique<std::vector<std::uint32_t>>(rubbish);
  }
  Stage s({"racecheck"}, kText, 1, 128, 48 << 10);
  s.begin();
  for (unsigned at = 0; at < 48 << 10; at += 128) {
    s.touch(0, 0, 1, kLoad, Space::shared, at, 4, 4);
    s.touch(0, 0, 2, kStore, Space::shared, at, 4, 4);
  }
  s.end();
  EXPECT(s.report.findings().empty());
}

EVENT_TEST(lanes_that_store_to_one_place_are_seen) {
  // Not in order of address, and two lanes meet: the swizzle of a copy with a mistake in it.
  for (unsigned width : {4u, 8u, 16u}) {
    Stage s({"racecheck"}, kText, 1, 32, 1024);
    s.begin();
    std::array<std::uint64_t, 32> address{};
    for (unsigned l = 0; l < 32; ++l) address[l] = s.blocks[0].shared + width * (l == 9 ? 30 ^ 1 : l ^ 1);
    Access a;
    a.kind = kStore;
    a.space = Space::shared;
    a.width = width;
    a.lanes = a.breaks = kFullMask;
    a.address = address.data();
    s.fork(0).access(s.at(0, 0, 0), a);
    s.end();
    EXPECT(s.count("racecheck") == 1);
  }
}

EVENT_TEST(swizzled_stores_are_apart) {
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  s.begin();
  std::array<std::uint64_t, 32> address{};
  for (unsigned l = 0; l < 32; ++l) address[l] = s.blocks[0].shared + 16 * (l ^ 5);
  Access a;
  a.kind = kStore;
  a.space = Space::shared;
  a.width = 16;
  a.lanes = a.breaks = kFullMask;
  a.address = address.data();
  s.fork(0).access(s.at(0, 0, 0), a);
  EXPECT(s.report.findings().empty());
  s.touch(0, 1, 1, kLoad, Space::shared, 508, 0, 4, 1);  // one word of what another warp stored
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(one_byte_of_many_reads_is_remembered) {
  // More reads than are written down between two barriers; only the first meets the store.
  Stage s({"racecheck"}, kText, 1, 64, 8192);
  s.begin();
  s.touch(0, 1, 1, kLoad, Space::shared, 4097, 0, 1, 1u << 7);
  for (int i = 0; i < 2000; ++i) s.touch(0, 1, 1, kLoad, Space::shared, 128 * (i % 16) + 16, 60, 4);
  s.touch(0, 0, 2, kStore, Space::shared, 4096, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(reads_before_a_barrier_are_past) {
  Stage s({"racecheck"}, kText, 1, 64, 8192);
  s.begin();
  for (int i = 0; i < 3000; ++i) {
    s.touch(0, 1, 1, kLoad, Space::shared, 60, -8, 4, 0xff);
    if (i % 700 == 0) s.barrier(0);
  }
  s.barrier(0);
  s.touch(0, 0, 2, kStore, Space::shared, 0, 4, 4);
  EXPECT(s.report.findings().empty());
  s.touch(0, 1, 1, kLoad, Space::shared, 0, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(line_of_two_copiers_waits_for_both) {
  // Two warps copy halves of a line; one of them waits.
  Stage s({"racecheck"}, kText, 1, 64, 512);
  s.begin();
  std::array<std::uint64_t, 32> source{}, destination{};
  const Object* from = AddressSpace::instance().allocate(ObjectKind::global, 4096);
  for (unsigned w = 0; w < 2; ++w) {
    for (unsigned l = 0; l < 32; ++l) {
      source[l] = from->base + 64 * w + 16 * (l % 4);
      destination[l] = s.blocks[0].shared + 64 * w + 16 * (l % 4);
    }
    s.fork(0).async_issue(s.at(0, w, 3, 0xf), copy_of(3, 0xf, source, destination));
    s.fork(0).async_commit(s.at(0, w, 3));
    if (w == 0) s.fork(0).async_wait(s.at(0, 0, 3), 0);
  }
  s.barrier(0);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 4, 4, 0xffff);
  EXPECT(s.report.findings().empty());
  s.touch(0, 0, 1, kLoad, Space::shared, 64, 4, 4, 0xffff);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(store_over_a_copy_of_long_ago_is_what_races) {
  // The copy is only written down until somebody looks at its bytes; it must not hide what was stored there since.
  Stage s({"racecheck"}, kText, 1, 64, 1024);
  const std::uint64_t in = s.allocate(1024);
  s.begin();
  s.copy(0, 0, 3, in, 0);
  s.land(0, 0);
  s.barrier(0);
  s.touch(0, 1, 2, kStore, Space::shared, 128, 4, 4);
  s.touch(0, 0, 1, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.report.findings().empty());
  s.touch(0, 0, 1, kLoad, Space::shared, 128, 4, 4);
  s.end();
  EXPECT(s.count("racecheck") == 1);
}

EVENT_TEST(copy_among_more_than_are_written_down_is_seen) {
  // Nobody waits for any of them. Swizzled, as wide records fill the log soonest.
  constexpr unsigned kCopies = 600;
  for (const unsigned read : {0u, 300u, kCopies - 1}) {
    Stage s({"racecheck"}, kText, 1, 64, kCopies * 512);
    const std::uint64_t in = s.allocate(512);
    s.begin();
    std::array<std::uint64_t, 32> source{}, destination{};
    for (unsigned c = 0; c < kCopies; ++c) {
      for (unsigned l = 0; l < 32; ++l)
        source[l] = in + 16 * l, destination[l] = s.blocks[0].shared + 512 * c + 16 * (l ^ 1);
      s.fork(0).async_issue(s.at(0, 0, 3), copy_of(3, kFullMask, source, destination));
      s.fork(0).async_commit(s.at(0, 0, 3));
    }
    s.barrier(0);
    s.touch(0, 1, 1, kLoad, Space::shared, read * 512 + 64, 4, 4);
    s.end();
    EXPECT(s.count("racecheck") == 1);
  }
}

}  // namespace

int main() { return run_event_tests(); }
