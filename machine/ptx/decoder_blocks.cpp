// Scopes, labels and basic blocks of the function being decoded; the program that comes of it.
//
// Branches to labels ahead are patched when their scope closes. At the end the blocks make a flow graph, of which come
// the lifetimes of registers (lifetimes.hpp) and the barriers that a branch passes by (barrier_regions.hpp).
#include "ptx/decoder.hpp"

#include <algorithm>
#include <cstring>

#include "exec/call_stack.hpp"
#include "exec/kernel.hpp"
#include "ptx/local_arrays.hpp"

namespace machine {

void Decoder::close_scope() {
  auto scope = std::move(scopes_.back());
  scopes_.pop_back();
  if (following_)
    for (const auto& [name, v] : scope.names)
      for (std::uint32_t word = 0; v.kind == Variable::param_area && word < area_list_[v.slot].bytes / 4; ++word)
        function.places.push_back({(area_list_[v.slot].slot & ~Slot{3}) + word * 128, 0, pc_});
  for (auto& p : scope.pending) {
    auto found = scope.labels.find(p.label);
    if (found == scope.labels.end()) {
      if (scopes_.empty()) {
        line_ = p.line;
        fail("label '" + std::string(p.label) + "' is not defined");
      }
      scopes_.back().pending.push_back(p);
    } else if (p.table != ~std::size_t{0}) {
      tables_[p.table][p.index] = found->second;
    } else {
      inst_targets_.push_back({p.inst, found->second});
    }
  }
}

void Decoder::place_label(std::string_view label) {
  close_block();
  begin_block_ = true;
  if (!scopes_.back().labels.emplace(label, static_cast<std::uint32_t>(function.code.size())).second)
    fail("label '" + std::string(label) + "' is defined twice");
}

void Decoder::begin_block() {
  begin_block_ = false;
  block_open_ = true;
  mode_ = -1;
  function.blocks.emplace_back();
  function.blocks.back().id = program.block_count++;
  Inst inst;
  inst.fn = enter_block;
  inst.pc = pc_;
  inst.guard = true_;
  inst.data = &function.blocks.back();
  inst.extra = function.blocks.back().id;
  block_inst_ = static_cast<std::uint32_t>(function.code.size());
  block_insts_.push_back(block_inst_);
  block_goes_on_.push_back(true);
  lifetimes_.block(pc_);
  function.code.push_back(inst);
}

void Decoder::close_block() { block_open_ = false; }

void Decoder::ends_block(bool goes_on) {
  begin_block_ = true;
  if (!goes_on && guard_ == true_) block_goes_on_.back() = false;
}

void Decoder::calls_function(Function& callee) {
  function.calls = true;
  function.callees.push_back(&callee);
  if (!program.waiting.contains(callee.name)) return;
  if (waiting_calls_.empty() || waiting_calls_.back() != last_inst()) waiting_calls_.push_back(last_inst());
}

std::uint32_t Decoder::block_of(std::uint32_t inst) const {
  return static_cast<std::uint32_t>(std::upper_bound(block_insts_.begin(), block_insts_.end(), inst) -
                                    block_insts_.begin() - 1);
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> Decoder::edges() const {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  for (std::uint32_t b = 0; b + 1 < block_insts_.size(); ++b)
    if (block_goes_on_[b]) found.push_back({b, b + 1});
  for (const auto& [inst, target] : inst_targets_) found.push_back({block_of(inst), block_of(target)});
  for (const auto& [inst, table] : inst_tables_)
    for (const auto target : tables_[table]) found.push_back({block_of(inst), block_of(target)});
  return found;
}

// Gives each branch of which one side leads past a barrier, and each barrier with a predicate, the region that it
// passes by.
void Decoder::note_passed_barriers() {
  if (barriers_.empty() && waiting_calls_.empty()) return;
  FlowGraph graph;
  graph.blocks.resize(block_insts_.size());
  for (const auto& [from, to] : edges()) graph.blocks[from].next.push_back(to);
  for (const auto* list : {&barriers_, &waiting_calls_})
    for (const auto inst : *list) graph.blocks[block_of(inst)].barriers.push_back(function.code[inst].pc);
  for (const auto inst : ends_) {
    const auto b = block_of(inst);
    graph.blocks[b].ends = true;
    graph.blocks[b].only_ends = function.blocks[b].length == 1 && !block_goes_on_[b];
  }
  const auto keep = [&](Inst& inst, BarrierRegion region) {
    function.barrier_regions.push_back(std::move(region));
    inst.imm = reinterpret_cast<std::int64_t>(&function.barrier_regions.back());
  };
  for (const auto inst : barriers_) {
    const auto b = block_of(inst);
    if (function.code[inst].guard != true_ && !graph.blocks[b + 1].only_ends)
      keep(function.code[inst], {{function.code[inst].pc}, false, {}});
  }
  const auto meeting = graph.meeting_points();
  for (const auto& [inst, target] : inst_targets_) {
    const auto b = block_of(inst);
    if (!block_goes_on_[b]) continue;
    BarrierRegion region = region_of(graph, meeting[b], block_of(target), b + 1);
    if (region.barriers.empty()) continue;
    function.code[inst].fn = branch_past_barriers;
    keep(function.code[inst], std::move(region));
  }
  for (const auto& [inst, table] : inst_tables_) {
    std::vector<std::uint32_t> targets;
    for (const auto target : tables_[table]) targets.push_back(block_of(target));
    BarrierRegion region = region_of(graph, meeting[block_of(inst)], targets);
    if (region.barriers.empty()) continue;
    function.code[inst].fn = branch_indexed_past_barriers;
    keep(function.code[inst], std::move(region));
  }
}

void Decoder::watch_unwritten() {
  // A register's place is known when the statement has been decoded.
  const auto place = [&](const auto& lists, Handler handler) {
    const auto found = lists.find(pc_);
    if (found == lists.end()) return;
    for (const std::uint32_t number : found->second) {
      const bool is_guard = number < numbered_.size() && numbered_[number].first == guard_;  // read by every lane
      Inst& inst = emit(handler);
      if (is_guard && handler == check_written) inst.guard = true_, inst.flip = 0;
      watched_.push_back({last_inst(), number});
    }
  };
  if (!layout_->unwritten_reads.empty()) place(layout_->unwritten_reads, check_written);
  if (!layout_->late_writes.empty()) place(layout_->late_writes, mark_written);
}

void Decoder::settle_watched() {
  for (const auto& [inst, number] : watched_) {
    const auto found = written_.find(number);
    const Slot mask = found != written_.end() ? found->second : written_[number] = scratch(0);
    function.code[inst].a = mask;
    function.code[inst].b = numbered_[number].first;
    function.code[inst].extra = numbered_[number].second;
  }
  watched_.clear();
}

void Decoder::note_flow(std::uint32_t first) {
  auto& flows = function.flows;
  const auto is_pack = [&](std::size_t index) {
    return index < operands_.size() && operands_[index].kind == Operand::list && !operands_[index].piped;
  };
  while (first < function.code.size() &&
         (function.code[first].fn == enter_block || function.code[first].fn == set_mode))
    ++first;
  if (first >= function.code.size()) return;
  flows.resize(function.code.size());
  Flow flow = flow_of(base_, modifiers_, is_pack(1), is_pack(0));
  if (flow_kind_) flow.kind = *flow_kind_;
  flow.reads = reads_, flow.writes = writes_;
  flows[first] = std::move(flow);
}

Inst& Decoder::emit(Handler handler) {
  if (begin_block_) begin_block();
  Inst inst;
  inst.fn = handler;
  inst.pc = pc_;
  inst.guard = guard_;
  inst.flip = flip_;
  function.code.push_back(inst);
  return function.code.back();
}

bool Decoder::untouched_memory() const {
  if (guard_ != true_ || function.blocks.size() != 1) return false;
  using enum InstructionClass;
  static constexpr InstructionClass kHarmless[] = {integer, logic,     float32, float64,    half,   conversion,
                                                   move,    predicate, special, load_param, control};
  std::uint32_t harmless = 0;
  for (const auto c : kHarmless) harmless += function.blocks.front().classes[static_cast<std::size_t>(c)];
  return harmless == function.blocks.front().length;
}

void Decoder::need_mode(Mode mode) {
  const int rounding = mode.rounding == 'n' ? 0 : mode.rounding == 'm' ? 1 : mode.rounding == 'p' ? 2 : 3;
  const std::int32_t wanted = (mode.flush ? 1 : 0) | rounding << 1;
  if (begin_block_) begin_block();
  if (mode_ == wanted) return;
  mode_ = wanted;
  const auto guard = guard_;
  const auto flip = flip_;
  guard_ = true_;
  flip_ = 0;
  emit(set_mode).imm = wanted;
  guard_ = guard;
  flip_ = flip;
}

void Decoder::label_target(Inst& inst, std::string_view label) {
  scopes_.back().pending.push_back({static_cast<std::uint32_t>(&inst - function.code.data()), label, line_});
}

const std::vector<std::string_view>* Decoder::branch_targets(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (auto found = scope->targets.find(name); found != scope->targets.end()) return &found->second;
  return nullptr;
}

const CallForm* Decoder::call_form(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (auto found = scope->calls.find(name); found != scope->calls.end()) return &found->second;
  return nullptr;
}

std::size_t Decoder::new_table(std::size_t size) {
  tables_.emplace_back(size, 0);
  return tables_.size() - 1;
}
void Decoder::table_target(std::size_t table, std::size_t index, std::string_view label) {
  scopes_.back().pending.push_back({0, label, line_, table, index});
}
void Decoder::use_table(Inst& inst, std::size_t table) {
  inst_tables_.push_back({static_cast<std::uint32_t>(&inst - function.code.data()), table});
}

void Decoder::finish() {
  pc_ = static_cast<std::uint32_t>(program.statements.size());
  program.statements.push_back({line_, location_, "ret"});
  const Opcode* ret = find_opcode("ret");
  modifiers_.clear();
  operands_.clear();
  accepted_ = 0;
  ret->decode(*this);
  close_scope();
  if (layout_ == nullptr) {
    for (const auto& [from, to] : edges()) lifetimes_.edge(from, to);
  } else {
    note_passed_barriers();
    distinguish_local_arrays(function.local, local_statements_);
  }
  if (following_) {
    function.flows.resize(function.code.size());
    for (std::uint32_t n = 0; n < numbered_.size(); ++n)
      function.places.push_back({numbered_[n].first & ~Slot{3}, layout_->alive[n].first, layout_->alive[n].second});
    std::sort(function.places.begin(), function.places.end(),
              [](const PlaceLife& a, const PlaceLife& b) { return a.offset < b.offset; });
  }
  for (const auto& [inst, target] : inst_targets_) function.code[inst].target = &function.code[target];
  for (const auto& [inst, table] : inst_tables_) {
    std::vector<std::byte> blob(tables_[table].size() * sizeof(const Inst*));
    for (std::size_t k = 0; k < tables_[table].size(); ++k) {
      const Inst* target = &function.code[tables_[table][k]];
      std::memcpy(blob.data() + k * sizeof target, &target, sizeof target);
    }
    function.blobs.push_back(std::move(blob));
    function.code[inst].data = function.blobs.back().data();
  }
}

namespace {

// Decodes the kernel and what it calls into `program`. With `layouts` empty it is filled, function by function.
void decode_functions(Program& program, const ModuleText& module, const FunctionText& kernel, const Options& options,
                      std::vector<FrameLayout>& layouts, bool following) {
  const bool learning = layouts.empty();
  Function& entry = program.functions.emplace_back();
  entry.name = kernel.name;
  entry.is_kernel = true;
  program.by_name[entry.name] = &entry;
  for (std::size_t k = 0; k < program.functions.size(); ++k) {
    Function& f = program.functions[k];
    f.number = static_cast<std::uint32_t>(k);
    const auto& text = k == 0 ? kernel : module.functions[module.by_name.at(f.name)];
    Decoder decoder(module, program, f, options, learning ? nullptr : &layouts[k], following);
    decoder.run(Scanner(module.text, text.body_begin, text.body_end, text.body_line));
    if (learning) layouts.push_back(decoder.layout());
    program.calls |= f.calls;
  }
}

// Names of the functions in which threads may wait for their block, by themselves or in what they call.
std::unordered_set<std::string> waiting_functions(Program& program) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Function& f : program.functions)
      if (!f.waits && std::any_of(f.callees.begin(), f.callees.end(), [](const Function* c) { return c->waits; }))
        f.waits = changed = true;
  }
  std::unordered_set<std::string> names;
  for (const Function& f : program.functions)
    if (f.waits) names.insert(f.name);
  return names;
}

}  // namespace

std::unique_ptr<Program> decode_program(const ModuleText& module, const FunctionText& kernel,
                                        const SharedLayout& shared, std::span<const Param> params,
                                        const Options& options, bool following) {
  auto fresh = [&] {
    auto program = std::make_unique<Program>();
    program->kernel = kernel.name;
    program->shared = &shared;
    program->params = params;
    return program;
  };
  std::vector<FrameLayout> layouts;
  const auto learned = fresh();
  decode_functions(*learned, module, kernel, options, layouts, false);
  auto program = fresh();
  program->waiting = waiting_functions(*learned);
  decode_functions(*program, module, kernel, options, layouts, following);
  program->stack = stack_need(program->functions);
  program->communicates |= program->grid_sync;
  program->again = [=, &module, &kernel, &shared, &options] {
    return decode_program(module, kernel, shared, params, options, true);
  };
  return program;
}

}  // namespace machine
