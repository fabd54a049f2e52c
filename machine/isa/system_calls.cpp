// Functions that the system defines for kernels: vprintf, __assertfail; and those of the heap (heap_calls.cpp).
#include <cstdio>

#include "exec/fault.hpp"
#include "exec/fragments.hpp"
#include "exec/lanes.hpp"
#include "exec/print.hpp"
#include "exec/undefined.hpp"
#include "isa/families.hpp"

namespace machine {
namespace {

std::uint64_t argument(const Warp& w, Slot area, unsigned lane, unsigned bytes) {
  std::uint32_t low = w.at<const std::uint32_t>(area)[lane], high = 0;
  if (bytes == 8) high = w.at<const std::uint32_t>(area)[32 + lane];
  return std::uint64_t{high} << 32 | low;
}

// What is printed leaves the program. Its arguments lie in local memory.
void require_printed_defined(const Inst& i, Warp& w, unsigned lane, std::uint64_t arguments,
                             std::span<const PrintedArgument> printed) {
  const std::uint64_t first = arguments - kLocalWindow;
  if (!w.worker->memory_undefined || first >= kWindowBytes) return;
  for (const PrintedArgument& argument : printed) {
    Access a;
    a.space = Space::local;
    a.shape = Shape::uniform;
    a.width = argument.bytes;
    a.lanes = a.breaks = Mask{1} << lane;
    w.address()[lane] = first + argument.offset;
    a.address = w.address();
    Undefined& u = *w.worker->undefined;
    a.undefined = &u;
    u.lanes = 0;
    w.observer->access(w.point(i, a.lanes), a);
    if (u.lanes != 0) report_undefined(i, w, UndefinedUse::printed, a.lanes, u.origins[lane]);
    u.lanes = 0;
  }
}

// A string is read like any other memory, up to its end.
void check_printed_string(const Inst& i, Warp& w, unsigned lane, const PrintedString& text) {
  const bool local = text.address - kLocalWindow < kWindowBytes, shared = text.address - kSharedWindow < kWindowBytes;
  const std::uint64_t shift = local ? 0 - kLocalWindow : shared ? w.block->info.shared - kSharedWindow : 0;
  Access a;
  a.space = local ? Space::local : shared ? Space::shared : Space::global;
  a.generic = true;
  a.shape = Shape::uniform;
  a.width = 1;
  a.lanes = a.breaks = Mask{1} << lane;
  a.address = w.address();
  for (std::uint64_t k = 0; k <= text.bytes; ++k) {
    w.address()[lane] = text.address + k + shift;
    a.undefined = w.worker->memory_undefined ? w.worker->undefined.get() : nullptr;
    if (a.undefined != nullptr) a.undefined->lanes = 0;
    if (admit_lanes(i, w, a) == 0) return;
    if (a.undefined == nullptr || a.undefined->lanes == 0) continue;
    report_undefined(i, w, UndefinedUse::printed, a.lanes, a.undefined->origins[lane]);
    a.undefined->lanes = 0;
    return;
  }
}

// slots: format, arguments, result
const Inst* vprintf(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  for_lanes(lanes, [&](unsigned l) {
    Printed printed;
    const std::uint64_t arguments = argument(w, i.slots[1], l, 8);
    const int n = print_formatted(w, argument(w, i.slots[0], l, 8), arguments, l, w.worker->printed, printed);
    if (w.observer != nullptr) {
      require_printed_defined(i, w, l, arguments, printed.arguments);
      for (const PrintedString& text : printed.strings) check_printed_string(i, w, l, text);
    }
    if (i.slots[2] != 0) w.at<std::uint32_t>(i.slots[2])[l] = static_cast<std::uint32_t>(n);
  });
  return &i + 1;
}

// slots: message, file, line, function
const Inst* assertfail(const Inst& i, Warp& w, Mask mask) {
  const Mask lanes = mask & w.active;
  if (lanes == 0) return &i + 1;
  const unsigned l = static_cast<unsigned>(std::countr_zero(lanes));
  const std::string text = read_string(w, argument(w, i.slots[1], l, 8), l) + ":" +
                           std::to_string(argument(w, i.slots[2], l, 4)) + ": " +
                           read_string(w, argument(w, i.slots[3], l, 8), l) + ": Assertion `" +
                           read_string(w, argument(w, i.slots[0], l, 8), l) + "` failed";
  report_fault(i, w, lanes, Fault::assertion, text);
  const auto& id = w.block->info.id;
  const Dim3& b = w.worker->request->block;
  for_lanes(lanes, [&](unsigned lane) {
    const std::uint32_t t = w.index * kWarp + lane;
    char where[160];
    std::snprintf(where, sizeof where, ": block: [%u,%u,%u], thread: [%u,%u,%u] ", id.x, id.y, id.z, t % b.x,
                  t / b.x % b.y, t / b.x / b.y);
    const auto cut = text.find(": Assertion");
    w.worker->printed += text.substr(0, cut) + where + text.substr(cut + 2) + ".\n";
  });
  abort_launch(w, i, LaunchStatus::assertion, text, lanes);
  return nullptr;
}

}  // namespace

bool decode_system_call(Decoder& d, std::string_view name, const std::vector<Operand>& arguments,
                        const std::vector<Operand>& results) {
  if (name == "vprintf") {
    if (arguments.size() != 2 || results.size() > 1) d.fail("vprintf takes two arguments");
    const Slot* s = d.keep_slots(
        {area_of(d, arguments[0], 8), area_of(d, arguments[1], 8), results.empty() ? 0 : area_of(d, results[0], 4)});
    d.emit(vprintf).slots = s;
    return true;
  }
  if (name == "__assertfail") {
    if (arguments.size() != 5) d.fail("__assertfail takes five arguments");
    const Slot* s = d.keep_slots({area_of(d, arguments[0], 8), area_of(d, arguments[1], 8), area_of(d, arguments[2], 4),
                                  area_of(d, arguments[3], 8)});
    d.emit(assertfail).slots = s;
    d.ends_block();
    return true;
  }
  return decode_heap_call(d, name, arguments, results);
}

}  // namespace machine
