#include "exec/fault.hpp"

namespace machine {

void report_fault(const Inst& i, Warp& w, Mask lanes, Fault fault, std::string_view detail) {
  if (w.observer == nullptr) return;
  FaultEvent e;
  e.fault = fault;
  e.lanes = lanes;
  e.detail = detail;
  w.observer->fault(w.point(i, lanes), e);
}

const Inst* end_with_fault(const Inst& i, Warp& w, Mask lanes, Fault fault, LaunchStatus status,
                           const std::string& detail) {
  report_fault(i, w, lanes, fault, detail);
  abort_launch(w, i, status, detail, lanes);
  return nullptr;
}

}  // namespace machine
