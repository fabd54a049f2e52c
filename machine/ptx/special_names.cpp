#include "ptx/special_names.hpp"

namespace machine {
namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::tid_x},
    {"%tid.y", Special::tid_y},
    {"%tid.z", Special::tid_z},
    {"%ntid.x", Special::ntid_x},
    {"%ntid.y", Special::ntid_y},
    {"%ntid.z", Special::ntid_z},
    {"%ctaid.x", Special::ctaid_x},
    {"%ctaid.y", Special::ctaid_y},
    {"%ctaid.z", Special::ctaid_z},
    {"%nctaid.x", Special::nctaid_x},
    {"%nctaid.y", Special::nctaid_y},
    {"%nctaid.z", Special::nctaid_z},
    {"%laneid", Special::laneid},
    {"%warpid", Special::warpid},
    {"%nwarpid", Special::nwarpid},
    {"%smid", Special::smid},
    {"%nsmid", Special::nsmid},
    {"%gridid", Special::gridid},
    {"%lanemask_eq", Special::lanemask_eq},
    {"%lanemask_le", Special::lanemask_le},
    {"%lanemask_lt", Special::lanemask_lt},
    {"%lanemask_ge", Special::lanemask_ge},
    {"%lanemask_gt", Special::lanemask_gt},
    {"%dynamic_smem_size", Special::dynamic_smem_size},
    {"%total_smem_size", Special::total_smem_size},
    {"%aggr_smem_size", Special::aggr_smem_size},
    {"%envreg1", Special::envreg1},
    {"%envreg2", Special::envreg2},
    // A launch without clusters is one of clusters of one block.
    {"%clusterid.x", Special::ctaid_x},
    {"%clusterid.y", Special::ctaid_y},
    {"%clusterid.z", Special::ctaid_z},
    {"%nclusterid.x", Special::nctaid_x},
    {"%nclusterid.y", Special::nctaid_y},
    {"%nclusterid.z", Special::nctaid_z},
    {"%cluster_ctaid.x", Special::zero},
    {"%cluster_ctaid.y", Special::zero},
    {"%cluster_ctaid.z", Special::zero},
    {"%cluster_nctaid.x", Special::one},
    {"%cluster_nctaid.y", Special::one},
    {"%cluster_nctaid.z", Special::one},
    {"%cluster_ctarank", Special::zero},
    {"%cluster_nctarank", Special::one},
};

// The system's own shared memory, as the H200 reports it.
struct FixedName {
  std::string_view name;
  FixedRegister value;
};
constexpr FixedName kFixed[] = {
    {"%reserved_smem_offset_begin", {0, 4}},  {"%reserved_smem_offset_end", {0x120, 4}},
    {"%reserved_smem_offset_cap", {1024, 4}}, {"%reserved_smem_offset_0", {0, 4}},
    {"%reserved_smem_offset_1", {0, 4}},      {"%current_graph_exec", {0, 8}},
};

}  // namespace

std::optional<Special> special_named(std::string_view name) {
  for (const auto& s : kSpecials)
    if (s.name == name) return s.special;
  return std::nullopt;
}

std::optional<FixedRegister> fixed_register(std::string_view name) {
  for (const auto& s : kFixed)
    if (s.name == name) return s.value;
  // Performance monitors count nothing, environment registers hold what the driver put there: nothing.
  for (const std::string_view kind : {"%pm", "%envreg"})
    if (name.starts_with(kind)) return FixedRegister{0, name.ends_with("_64") ? 8u : 4u};
  return std::nullopt;
}

}  // namespace machine
