// memcheck, initcheck and traffic, told event by event.
#include <sstream>

#include "stage.hpp"

using namespace stage;

namespace {

const std::vector<std::string> kText = {"ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];",
                                        "st.shared.v4.u32 [%r9], {%r1, %r2, %r3, %r4};",
                                        "ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r9];",
                                        "st.global.v4.u32 [%rd2], {%r5, %r6, %r7, %r8};",
                                        "ld.global.u32 %r20, [%rd1];",
                                        "add.s32 %r21, %r20, 1;",
                                        "st.global.u32 [%rd2], %r21;",
                                        "cp.async.cg.shared.global [%r9], [%rd1], 16;"};

EVENT_TEST(one_byte_past_the_end_is_seen) {
  Stage s({"memcheck"}, kText, 1, 32);
  const std::uint64_t in = s.allocate(127);
  s.begin();
  EXPECT(s.touch(0, 0, 4, kLoad, Space::global, in, 4, 4) == 0x7fffffff);
  s.end();
  EXPECT(s.count("memcheck") == 1);
}

EVENT_TEST(the_gap_between_variables_is_nobodys) {
  Stage s({"memcheck"}, kText, 1, 32, 128);
  s.begin();
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.count("memcheck") == 0);
  EXPECT(s.touch(0, 0, 2, kLoad, Space::shared, 4, 4, 4) == 0x7fffffff);
  s.end();
  EXPECT(s.count("memcheck") == 1);
}

EVENT_TEST(freed_memory_is_seen) {
  Stage s({"memcheck"}, kText, 1, 32);
  const std::uint64_t in = s.allocate(4096);
  AddressSpace::instance().release(in);
  s.begin();
  EXPECT(s.touch(0, 0, 4, kLoad, Space::global, in, 4, 4) == 0);
  s.end();
  EXPECT(s.count("memcheck") == 1);
}

EVENT_TEST(a_dead_row_between_live_rows_is_seen) {
  Stage s({"memcheck"}, kText, 1, 32);
  const std::uint64_t cache = s.allocate(1024);
  s.all->heap_registered(cache, 1024);
  s.all->region_registered(cache, 128);
  s.all->region_registered(cache + 256, 128);
  s.begin();
  s.touch(0, 0, 4, kLoad, Space::global, cache, 4, 4);
  s.touch(0, 0, 4, kLoad, Space::global, cache + 256, 4, 4);
  EXPECT(s.count("memcheck") == 0);
  EXPECT(s.touch(0, 0, 4, kLoad, Space::global, cache + 252, 4, 4) == kFullMask);  // told, and goes on
  s.end();
  EXPECT(s.count("memcheck") == 1);
}

EVENT_TEST(a_run_that_leaves_its_live_row_is_seen) {
  Stage s({"memcheck"}, kText, 1, 32);
  const std::uint64_t cache = s.allocate(1024);
  s.all->heap_registered(cache, 1024);
  s.all->region_registered(cache + 128, 128);
  s.all->region_registered(cache + 256, 128);
  s.begin();
  s.touch(0, 0, 4, kLoad, Space::global, cache + 192, 4, 4);  // rows that touch are one
  EXPECT(s.count("memcheck") == 0);
  s.touch(0, 0, 4, kLoad, Space::global, cache + 260, 4, 4);
  s.end();
  EXPECT(s.count("memcheck") == 1);
}

EVENT_TEST(copies_by_the_host_stay_inside) {
  Stage s({"memcheck"}, kText, 1, 32);
  const std::uint64_t p = s.allocate(1000);
  EXPECT(s.all->host_access(1, AccessKind::store, p, 1000));
  EXPECT(!s.all->host_access(1, AccessKind::store, p, 1001));
  EXPECT(s.all->host_access(1, AccessKind::load, p, 10, 110, 10));
  EXPECT(!s.all->host_access(1, AccessKind::load, p, 11, 110, 10));
  EXPECT(s.count("memcheck") == 2);
}

EVENT_TEST(an_unwritten_word_that_decides_is_told) {
  Stage s({"initcheck"}, kText, 1, 32);
  const std::uint64_t in = s.allocate(256, false);
  s.begin();
  s.touch(0, 0, 6, kStore, Space::global, in, 4, 4, 0x7fffffff);
  s.touch(0, 0, 4, kLoad, Space::global, in, 4, 4);
  EXPECT(s.undefined.lanes == 0x80000000);
  EXPECT(s.report.findings().empty());
  s.branch(0, 0, 5);
  s.end();
  EXPECT(s.count("initcheck") == 1);
  EXPECT(s.report.findings().front().sites.size() == 2);
}

// Elements of 16 bytes of which 12 are written: padding.
void fill_padded(Stage& s, std::uint64_t in) {
  for (int w = 0; w < 3; ++w) s.touch(0, 0, 6, kStore, Space::global, in + 4 * w, 16, 4);
}

EVENT_TEST(undefined_bytes_go_along_with_copies) {
  Stage s({"initcheck"}, kText, 1, 32, 512);
  const std::uint64_t in = s.allocate(512, false), out = s.allocate(512, false);
  s.begin();
  fill_padded(s, in);
  s.carries = true;
  s.touch(0, 0, 0, kLoad, Space::global, in, 16, 16);
  s.touch(0, 0, 1, kStore, Space::shared, 0, 16, 16);
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 16, 16);
  s.touch(0, 0, 3, kStore, Space::global, out, 16, 16);
  s.end();
  EXPECT(s.report.findings().empty());
  s.begin(2);
  s.touch(0, 0, 4, kLoad, Space::global, out, 16, 4);
  EXPECT(s.undefined.lanes == 0);
  s.touch(0, 0, 4, kLoad, Space::global, out + 12, 16, 4);
  EXPECT(s.undefined.lanes == kFullMask);
  s.branch(0, 0, 5);
  s.end();
  EXPECT(s.count("initcheck") == 1);
  // The load of the first launch is named, where the bytes were read first.
  EXPECT(s.report.findings().front().sites.front().location.lines.front().line == 1);
}

EVENT_TEST(bits_of_a_byte_are_told_apart) {
  Stage s({"initcheck"}, kText, 1, 32, 512);
  s.begin();
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 4, 4);
  for (auto& bits : s.undefined.bits) bits = {0xf0, 0, 0xff, 0x01};  // what a bit field insert leaves
  s.carries = true;
  s.touch(0, 0, 1, kStore, Space::shared, 0, 4, 4);
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.undefined.lanes == kFullMask);
  for (unsigned b = 0; b < 4; ++b) EXPECT(s.undefined.bits[7][b] == (std::array{0xf0, 0, 0xff, 0x01})[b]);
  s.carries = false;
  s.touch(0, 0, 1, kStore, Space::shared, 0, 4, 4);
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.undefined.lanes == 0);
  s.end();
}

EVENT_TEST(undefined_bytes_go_along_with_cp_async) {
  Stage s({"initcheck"}, kText, 1, 32, 512);
  const std::uint64_t in = s.allocate(512, false);
  s.begin();
  fill_padded(s, in);
  s.end();
  s.begin(2);
  s.copy(0, 0, 7, in, 0);
  s.land(0, 0);
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 16, 4);
  EXPECT(s.undefined.lanes == 0);
  s.touch(0, 0, 2, kLoad, Space::shared, 12, 16, 4);
  EXPECT(s.undefined.lanes == kFullMask);
  s.branch(0, 0, 5);
  s.end();
  EXPECT(s.count("initcheck") == 1);
  EXPECT(s.report.findings().front().sites.front().location.lines.front().line == 8);  // the copy read it
}

EVENT_TEST(the_chunk_that_a_wrong_swizzle_leaves_out_is_unwritten) {
  // Two lanes copy to one place: from the first to the last byte it looks like what all lanes together fill.
  Stage s({"initcheck"}, {"ld.shared.u32 %r1, [%r2];", "add.s32 %r3, %r1, 1;"}, 1, 32, 512);
  const std::uint64_t in = s.allocate(512);
  s.begin();
  std::array<std::uint64_t, 32> source{}, destination{};
  for (unsigned l = 0; l < 32; ++l)
    source[l] = in + 16 * l, destination[l] = s.blocks[0].shared + 16 * (l == 9 ? 9 : l ^ 1);
  s.fork(0).async_land(s.at(0, 0, 0), copy_of(0, kFullMask, source, destination), kFullMask, true);
  s.touch(0, 0, 0, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.undefined.lanes == 0);
  s.touch(0, 0, 0, kLoad, Space::shared, 128, 4, 4);
  EXPECT(s.undefined.lanes == 0xf);
  s.end();
}

EVENT_TEST(shared_memory_of_an_earlier_block_is_unwritten) {
  Stage s({"initcheck"}, {"ld.shared.u32 %r1, [%r2];", "add.s32 %r3, %r1, 1;"}, 1, 32, 512);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::shared, 0, 4, 4);
  s.touch(0, 0, 0, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.undefined.lanes == 0);
  s.fork(0).block_end(s.blocks[0]);
  s.fork(0).block_begin(s.blocks[0]);
  s.touch(0, 0, 0, kLoad, Space::shared, 0, 4, 4);
  EXPECT(s.undefined.lanes == kFullMask);
  s.end();
}

EVENT_TEST(local_bytes_belong_to_their_lane) {
  Stage s({"initcheck"}, {"ld.local.u32 %r1, [%r2];", "add.s32 %r3, %r1, 1;"}, 1, 32);
  s.begin();
  s.touch(0, 0, 0, kStore, Space::local, 0, 0, 4, 0x0000ffff);
  s.touch(0, 0, 0, kLoad, Space::local, 0, 0, 4, 0x0000ffff);
  EXPECT(s.undefined.lanes == 0);
  s.touch(0, 0, 0, kLoad, Space::local, 0, 0, 4);
  EXPECT(s.undefined.lanes == 0xffff0000);
  s.end();
}

EVENT_TEST(device_copies_carry_holes) {
  Stage s({"initcheck"}, kText, 1, 32);
  const std::uint64_t in = s.allocate(256, false), out = s.allocate(256, false);
  s.begin();
  s.touch(0, 0, 6, kStore, Space::global, in, 4, 4);
  s.end();
  Operation copy;
  copy.id = 3, copy.kind = OperationKind::copy, copy.name = "cudaMemcpy";
  s.all->operation_begin(copy);
  s.all->host_access(3, AccessKind::load, in, 256);
  s.all->host_access(3, AccessKind::store, out, 256);
  s.all->operation_end(copy);
  s.begin(4);
  s.touch(0, 0, 4, kLoad, Space::global, out, 4, 4);
  EXPECT(s.undefined.lanes == 0);
  s.touch(0, 0, 4, kLoad, Space::global, out + 128, 4, 4);
  EXPECT(s.undefined.lanes == kFullMask);
  s.end();
}

// Errors of a host that copies `bytes` of what kernels stored in elements of up to `widest` bytes, all but those in
// `hole`.
std::size_t errors_of_a_host_copy(unsigned widest, std::uint64_t hole, std::uint64_t length) {
  std::vector<std::string> text = kText;
  text[6] = "st.global.b" + std::to_string(8 * widest) + " [%rd2], %r21;";
  Stage s({"initcheck"}, text, 1, 32);
  const std::uint64_t out = s.allocate(128, false);
  s.begin();
  for (std::uint64_t at = 0; at < 128; ++at)
    if (at < hole || at >= hole + length) s.touch(0, 0, 6, kStore, Space::global, out + at, 0, 1, 1);
  s.end();
  Operation copy;
  copy.id = 5, copy.kind = OperationKind::copy, copy.name = "cudaMemcpy";
  s.all->operation_begin(copy);
  s.all->host_access(5, AccessKind::load, out, 128);
  s.all->operation_end(copy);
  return s.count("initcheck");
}

EVENT_TEST(the_host_copies_an_element_that_nobody_wrote) {
  EXPECT(errors_of_a_host_copy(4, 64, 4) == 1);
  EXPECT(errors_of_a_host_copy(4, 124, 4) == 1);
  EXPECT(errors_of_a_host_copy(8, 68, 4) == 0);  // behind an int before a double
  EXPECT(errors_of_a_host_copy(8, 64, 4) == 1);  // where no double can follow
  EXPECT(errors_of_a_host_copy(8, 64, 8) == 1);
  EXPECT(errors_of_a_host_copy(1, 64, 1) == 1);
  EXPECT(errors_of_a_host_copy(2, 65, 1) == 0);
  EXPECT(errors_of_a_host_copy(2, 64, 1) == 1);
  EXPECT(errors_of_a_host_copy(16, 0, 0) == 0);
}

// Fault: lanes of one atomic on one word each see what was there before all of them.
EVENT_TEST(an_exchange_initialises_for_the_next_lane) {
  Stage s({"initcheck"}, kText, 1, 32, 512);
  s.begin();
  s.touch(0, 0, 0, kAtomic, Space::shared, 0, 0, 4);
  EXPECT(s.undefined.lanes == 1);
  s.touch(0, 0, 2, kLoad, Space::shared, 0, 0, 4);
  EXPECT(s.undefined.lanes == 0);
  s.end();
}

EVENT_TEST(rows_and_sectors_are_counted) {
  Stage s({"traffic"}, kText, 1, 32);
  const std::uint64_t cache = s.allocate(1024);
  s.all->heap_registered(cache, 1024);
  s.all->region_registered(cache, 128);
  s.all->region_registered(cache + 128, 128);
  s.begin();
  s.touch(0, 0, 4, kLoad, Space::global, cache, 4, 4);
  s.touch(0, 0, 4, kLoad, Space::global, cache + 64, 0, 4);
  s.end();
  std::ostringstream json;
  s.report.write_json(json);
  EXPECT(json.str().find("\"bytes_read\":132,\"bytes_written\":0,\"sectors_read\":5") != std::string::npos);
  EXPECT(json.str().find("\"bytes\":128,\"rows\":1,\"bytes_read\":132") != std::string::npos);
  EXPECT(json.str().find("\"bytes\":128,\"rows\":1,\"bytes_read\":0") != std::string::npos);
}

// Fault: a row that differs, or lies apart, is taken for one of those before it.
EVENT_TEST(rows_alike_are_one_entry) {
  Stage s({"traffic"}, kText, 1, 32);
  const std::uint64_t cache = s.allocate(1024);
  s.all->heap_registered(cache, 1024);
  for (const std::uint64_t row : {0, 128, 256, 512, 640}) s.all->region_registered(cache + row, 128);
  s.begin();
  for (const std::uint64_t row : {0, 128, 256, 512}) s.touch(0, 0, 4, kLoad, Space::global, cache + row, 4, 4);
  s.end();
  std::ostringstream json;
  s.report.write_json(json);
  const std::string text = json.str();
  const auto entry = [&](std::uint64_t row, int rows, int read) {
    return text.find("\"base\":" + std::to_string(cache + row) + ",\"bytes\":128,\"rows\":" + std::to_string(rows) +
                     ",\"bytes_read\":" + std::to_string(read)) != std::string::npos;
  };
  EXPECT(entry(0, 3, 128));
  EXPECT(entry(512, 1, 128));
  EXPECT(entry(640, 1, 0));
}

}  // namespace

int main() { return run_event_tests(); }
