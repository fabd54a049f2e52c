// Turns the body of one function into instructions. A family's decode function sees one statement through this class:
// it accepts the modifiers it knows (what is left over is an error), asks for operands as slots, and emits a handler.
#pragma once

#include <array>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "exec/inserted.hpp"
#include "exec/module.hpp"
#include "exec/program.hpp"
#include "exec/time_registers.hpp"
#include "exec/types.hpp"
#include "exec/warp.hpp"
#include "ptx/first_guesses.hpp"
#include "ptx/lifetimes.hpp"
#include "ptx/scanner.hpp"

namespace machine {

struct Operand {
  enum Kind : std::uint8_t { name, number, address, list, sink } kind = sink;
  bool negated = false;   // !p
  bool minus = false;     // -name
  std::string_view text;  // name, or the base of an address (empty: absolute)
  Number number_value;
  std::int64_t offset = 0;     // address
  std::vector<Operand> parts;  // {a, b}, (a, b), and p|q as a list of two with `piped`
  bool piped = false;
};

// An instruction of a function with local arrays, kept until it is known which of them it means (local_arrays.hpp).
struct LocalStatement {
  std::uint32_t pc = 0;
  std::string_view base;  // opcode without modifiers
  std::vector<Operand> operands;
};

// What a label names that stands before ".callprototype" or ".calltargets": where a call by address may go.
struct CallForm {
  bool listed = false;  // by name; else by their parameters and results
  std::vector<std::string_view> names;
  Signature prototype;
};

// Floating-point mode of an instruction, kept in the host's control register.
struct Mode {
  bool flush = false;
  char rounding = 'n';  // n, z, m, p
};

struct Variable {
  enum Kind : std::uint8_t { reg, local, shared, param_area, kernel_param, global, dynamic_shared } kind = reg;
  Type type = Type::none;
  std::uint8_t bytes = 0;  // reg: width, 0 for a predicate
  bool allocated = false;
  bool single = false;                       // reg: one instruction of the text writes it
  Slot slot = 0;                             // reg; param_area: index of the area
  std::uint32_t number = ~std::uint32_t{0};  // reg: in order of first mention; none for constants and formals
  std::uint64_t address = 0;                 // others: offset or address
  std::uint64_t size = 0;
};

// A function is decoded twice: first with a place for each register, to learn when each is alive (`layout` is null),
// then with the layout that comes of it.
class Decoder {
 public:
  // With `following`, the flow of undefined values is noted for each instruction.
  Decoder(const ModuleText& module, Program& program, Function& function, const Options& options,
          const FrameLayout* layout, bool following);
  void run(Scanner body);
  FrameLayout layout() const { return lifetimes_.layout(); }

  // ---- the statement at hand
  std::string_view opcode() const { return opcode_; }
  // Consumes the modifier. False: it is not there, or consumed already.
  bool accept(std::string_view modifier);
  // The first of `choices` that is there; its index, or -1.
  int accept_one(std::span<const std::string_view> choices);
  int accept_one(std::initializer_list<std::string_view> choices) {
    return accept_one(std::span(choices.begin(), choices.size()));
  }
  // The next modifier that is not consumed, which it stays; empty at the end.
  std::string_view next() const;
  // The next modifier that is not consumed must be a type.
  Type type();
  Type type(std::initializer_list<Type> allowed);
  bool flush() { return accept("ftz"); }
  // All modifiers are consumed, and there are between `least` and `most` operands.
  void end(std::size_t least, std::size_t most);
  void end(std::size_t count) { end(count, count); }
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void refuse_type(Type type) const;

  std::size_t count() const { return operands_.size(); }
  const Operand& operand(std::size_t index) const { return operands_[index]; }

  // ---- operands
  // Slot of a source of the instruction type `type`: register of that width, or an immediate.
  Slot source(std::size_t index, Type type) { return source(operands_[index], type); }
  Slot source(const Operand& operand, Type type);
  Slot destination(std::size_t index, Type type) { return destination(operands_[index], type); }
  Slot destination(const Operand& operand, Type type);
  // The two 64-bit registers, lower half first, of which a .b128 register is made here.
  std::array<Operand, 2> halves(const Operand& operand);
  Slot predicate_source(const Operand& operand);  // handles !p through a constant; see negated()
  Slot predicate_destination(const Operand& operand);
  // A register of any width >= bytes (loads, stores, cvt); its width comes back.
  Slot wide_source(const Operand& operand, Type type, unsigned& width);
  Slot wide_destination(const Operand& operand, Type type, unsigned& width);
  std::uint32_t immediate(std::size_t index);  // must be an integer constant
  // A literal, or a register that only ever holds one.
  bool is_immediate(std::size_t index);
  bool is_register(const Operand& operand);
  // The unguarded instruction at hand copies `source` to operand 0, and neither ever changes afterwards: the register
  // becomes another name of the slot, and nothing needs to be executed. False when that does not hold.
  bool alias(std::size_t source, Type type);
  Variable* find(std::string_view name);
  // Address operand: slot of the base (constant 0 when absent), its width, and the constant offset.
  struct Address {
    Slot base = 0;
    unsigned width = 8;
    std::int64_t offset = 0;
    const Variable* variable = nullptr;  // named directly
  };
  Address address(std::size_t index);

  Slot constant(const void* value, unsigned bytes);  // broadcast
  Slot constant_mask(Mask mask);
  Slot scratch(unsigned bytes);  // a place of its own
  Slot passing(unsigned bytes);  // the same, for what is alive within this statement only
  Slot local_base();             // of the running frame, as 64-bit offsets (device functions)
  Slot special(Special s) const { return slot(Bank::specials, static_cast<std::uint32_t>(s) * 128); }
  // What instructions point to, for as long as the function lives.
  const Slot* keep_slots(std::vector<Slot> slots);
  const void* keep_bytes(const void* bytes, std::size_t size);
  template <class T>
  const void* keep_value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return keep_bytes(&value, sizeof value);
  }

  // ---- emission
  Inst& emit(Handler handler);
  void need_mode(Mode mode);  // before emit
  void klass(InstructionClass c) { class_ = c; }
  // How undefined values go through this statement, where that does not follow from its spelling.
  void follow(FlowKind kind) { flow_kind_ = kind; }
  // Every thread comes to this instruction, and has done nothing before that other threads or kernels could see.
  bool untouched_memory() const;
  // The instruction ends a basic block (a new one begins behind it), and its lanes go on there, or never do.
  void ends_block(bool goes_on = true);
  // Of the instruction just emitted: threads end here, or wait for all others of the block, or call what may wait for
  // them.
  void thread_ends() { ends_.push_back(last_inst()); }
  void waits_for_block() { barriers_.push_back(last_inst()), function.waits = true; }
  void calls_function(Function& callee);
  void label_target(Inst& inst, std::string_view label);  // resolved when its scope closes
  const std::vector<std::string_view>* branch_targets(std::string_view name) const;
  const CallForm* call_form(std::string_view name) const;
  // Target patched into element `index` of a table owned by the function.
  void table_target(std::size_t table, std::size_t index, std::string_view label);
  std::size_t new_table(std::size_t size);
  Function* callee(std::string_view name);
  std::uint64_t code_address(const Function& target) const { return module.code.of(module.by_name.at(target.name)); }
  ParamArea* area(std::string_view name);

  const ModuleText& module;
  Program& program;
  Function& function;
  const Options& options;

 private:
  struct Scope {
    std::unordered_map<std::string_view, Variable> names;
    std::unordered_map<std::string_view, std::uint32_t> labels;
    std::unordered_map<std::string_view, std::vector<std::string_view>> targets;
    std::unordered_map<std::string_view, CallForm> calls;
    struct RegisterSet {  // of a declaration like %r<9>
      std::string_view prefix;
      std::uint32_t count;
      Type type;
    };
    std::vector<RegisterSet> register_sets;
    struct Pending {
      std::uint32_t inst;
      std::string_view label;
      std::uint32_t line;
      std::size_t table = ~std::size_t{0};
      std::size_t index = 0;
    };
    std::vector<Pending> pending;
  };
  void statement(Scanner& text);
  void directive(Scanner& text, std::string_view word);
  void declare_registers(Scanner& text);
  void declare_memory(Scanner& text, std::string_view space);
  void location(Scanner& text);
  void instruction(Scanner& text, std::string_view word, Operand* guard);
  Operand parse_operand(Scanner& text);
  void find_definitions(Scanner body);
  void declare_halves(Scope& scope, std::string_view name);
  Variable* find_numbered(Scope& scope, std::string_view name);
  std::optional<Variable> find_in_module(std::string_view name) const;
  std::optional<Variable> find_formal(std::string_view name);
  void open_scope() { scopes_.emplace_back(); }
  void close_scope();
  void begin_block();
  void close_block();
  void place_label(std::string_view label);
  enum class Use : std::uint8_t { read, write };
  Slot reg_slot(Variable& variable, Use use);
  Slot source_slot(const Operand& operand, Type type);
  Slot variable_slot(Variable& variable, const Operand& operand, Type type);
  std::optional<Slot> special_slot(const Operand& operand, Type type);
  Slot predicate_slot(const Operand& operand, Use use);
  Slot noted(Use use, Slot slot, unsigned bytes);
  // Registers that nobody may have written before this statement reads or writes them: reported when it runs.
  void watch_unwritten();
  void settle_watched();
  void note_flow(std::uint32_t first);
  Slot register_place(unsigned bytes);
  std::uint32_t last_inst() const { return static_cast<std::uint32_t>(function.code.size()) - 1; }
  std::uint32_t block_of(std::uint32_t inst) const;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges() const;  // where lanes go from block to block
  void note_passed_barriers();
  Slot number_slot(const Operand& operand, Type type);
  void finish();

  std::vector<Scope> scopes_;
  std::deque<std::string> half_names_;                               // of the halves of .b128 registers
  std::unordered_map<std::string_view, std::uint32_t> definitions_;  // how often a name stands first among the operands
  FirstGuesses guesses_;
  TimeRegisters times_;
  std::string_view opcode_, base_;
  std::vector<std::string_view> modifiers_;
  std::uint64_t accepted_ = 0;
  std::vector<Operand> operands_;
  std::uint32_t line_ = 0, pc_ = 0, location_ = 0;
  Slot guard_ = 0;
  Mask flip_ = 0;
  InstructionClass class_ = InstructionClass::other;
  bool begin_block_ = true, block_open_ = false;
  std::int32_t mode_ = -1;  // known host mode inside the block; -1 unknown
  std::uint32_t block_inst_ = 0;
  std::unordered_map<std::string, Slot> constants_;
  std::vector<std::vector<std::uint32_t>> tables_;  // target instruction indices, turned into pointers by finish()
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inst_targets_;
  std::vector<std::pair<std::uint32_t, std::size_t>> inst_tables_;
  std::vector<LocalStatement> local_statements_;
  std::unordered_map<std::string_view, std::size_t> areas_;
  std::vector<ParamArea> area_list_;
  Slot true_ = 0;

  // First decoding: what is learned. Second: where registers lie.
  Lifetimes lifetimes_;
  std::vector<std::pair<Slot, std::uint8_t>> numbered_;  // registers and predicates by number: place and bytes
  struct Watched {
    std::uint32_t inst, number;
  };
  std::vector<Watched> watched_;                     // of this statement
  std::unordered_map<std::uint32_t, Slot> written_;  // by number: which lanes have written it
  const bool following_;
  std::optional<FlowKind> flow_kind_;
  std::vector<FlowOperand> reads_, writes_;     // of this statement, when following
  std::vector<std::uint32_t> block_insts_;      // first instruction of each basic block
  std::vector<bool> block_goes_on_;             // into the block behind it
  std::vector<std::uint32_t> ends_, barriers_;  // instructions at which threads end, or wait for their block
  std::vector<std::uint32_t> waiting_calls_;    // of functions in which they may
  const FrameLayout* layout_;
  std::uint32_t register_base_ = 0;

 public:
  void use_table(Inst& inst, std::size_t table);
};

// An opcode and the function that decodes it. One table a family; opcodes.cpp joins them.
struct Opcode {
  std::string_view base;
  void (*decode)(Decoder&);
  InstructionClass klass;
};
const Opcode* find_opcode(std::string_view base);
// Why there is no such opcode.
std::string_view refusal(std::string_view base);

// The register in an operand that may choose a part of it: %r1 of %r1.b0 or %r1.h10.
std::string_view register_of(std::string_view operand);

// The end of threads: exit, and ret of the kernel.
const Inst* leave(const Inst& i, Warp& w, Mask mask);
// Branches of which one side leads past a barrier of the block; the region is in `imm`.
const Inst* branch_past_barriers(const Inst& i, Warp& w, Mask mask);
const Inst* branch_indexed_past_barriers(const Inst& i, Warp& w, Mask mask);

}  // namespace machine
