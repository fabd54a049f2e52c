// Statements: labels, directives, instructions, and the text of their operands.
//
// One pass over the body, statement by statement. An instruction is split into mnemonic, modifiers and operands, which
// the family's decode function consumes; guards become a mask in front of the handler.
#include "ptx/decoder.hpp"

#include <cstring>

#include "exec/kernel.hpp"

namespace machine {
Decoder::Decoder(const ModuleText& m, Program& p, Function& f, const Options& o, const FrameLayout* layout,
                 bool following)
    : module(m),
      program(p),
      function(f),
      options(o),
      following_(following),
      layout_(layout),
      register_base_(f.frame_bytes) {
  if (layout != nullptr) function.frame_bytes += layout->bytes;
  true_ = constant_mask(kFullMask);
  guard_ = true_;
}

void Decoder::fail(const std::string& what) const {
  throw PtxError("kernel '" + program.kernel + "'" + (function.is_kernel ? "" : ", function '" + function.name + "'") +
                 ", PTX line " + std::to_string(line_) + ": " + what +
                 (opcode_.empty() ? "" : " in '" + std::string(opcode_) + "'"));
}
void Decoder::refuse_type(Type t) const { fail("type '." + std::string(name_of(t)) + "' is not supported"); }

// ---- statements --------------------------------------------------------------------------------------------------

// How many instructions write each register. The destination stands first; names that stand first without being
// written (st, bra) only make the count too high, which is harmless.
void Decoder::find_definitions(Scanner body) {
  LinearAddresses addresses;
  while (!body.done()) {
    if (body.accept('{') || body.accept('}') || body.accept(';')) continue;
    if (body.accept('@')) {
      body.accept('!');
      body.word();
    }
    const auto word = body.word();
    if (word.empty()) body.fail(std::string("unexpected '") + body.raw() + "'");
    if (body.peek() == ':') {
      body.accept(':');
      continue;
    }
    if (word == ".loc") {
      // up to three numbers, then optional attributes; ends where the next statement begins
      for (int k = 0; k < 3; ++k) body.word();
      while (body.accept(',')) {
        const bool name = body.word() == "function_name";
        body.word();
        if (name && body.accept('+')) body.word();
        if (!name) body.word(), body.word();
      }
      continue;
    }
    if (word[0] != '.') {
      const auto operands = Scanner(body).until(';');
      addresses.look_at(word, operands);
      guesses_.look_at(word, operands);
      times_.look_at(word, operands);
      if (body.accept('{')) {
        do ++definitions_[register_of(body.word())];
        while (body.accept(','));
      } else if (body.peek() != '(' && body.peek() != '[') {
        do ++definitions_[register_of(body.word())];
        while (body.accept('|'));
      }
    }
    body.until(';');
    body.expect(';');
  }
  addresses.settle(definitions_);
  guesses_.settle(addresses);
  program.stores.strides |= addresses.strides();
}

void Decoder::run(Scanner body) {
  find_definitions(body);
  open_scope();
  // Parameters are names like any other.
  while (!body.done()) statement(body);
  if (scopes_.size() != 1) fail("a '{' is not closed");
  for (const std::string_view name : times_.settle())
    if (const Variable* v = find(name); v != nullptr && v->kind == Variable::reg && v->allocated && v->bytes != 0 &&
                                        (v->slot & 3) == static_cast<Slot>(Bank::registers))
      function.times.push_back({v->slot & ~Slot{3}, v->bytes * std::uint32_t{kWarp}});
  std::sort(function.times.begin(), function.times.end());
  opcode_ = "ret";
  guard_ = true_;
  flip_ = 0;
  line_ = body.line();
  finish();
}

void Decoder::statement(Scanner& text) {
  opcode_ = {};
  const char c = text.peek();
  line_ = text.line();
  if (c == '{') {
    text.accept('{');
    open_scope();
    return;
  }
  if (c == '}') {
    text.accept('}');
    if (scopes_.size() == 1) text.fail("unexpected '}'");
    close_scope();
    return;
  }
  if (c == ';') {
    text.accept(';');
    return;
  }
  Operand guard;
  bool guarded = false;
  if (text.accept('@')) {
    guarded = true;
    guard.negated = text.accept('!');
    guard.kind = Operand::name;
    guard.text = text.word();
  }
  const auto word = text.word();
  if (word.empty()) text.fail(std::string("unexpected '") + text.raw() + "'");
  if (!guarded && word[0] == '.') {
    directive(text, word);
    return;
  }
  if (!guarded && text.peek() == ':') {
    text.accept(':');
    if (text.peek() == '.') {
      const auto kind = text.word();
      if (kind == ".branchtargets") {
        auto& list = scopes_.back().targets[word];
        do list.push_back(text.word());
        while (text.accept(','));
        text.expect(';');
        return;
      }
      if (kind == ".callprototype") {
        scopes_.back().calls[word] = {false, {}, parse_prototype(text)};
        return;
      }
      if (kind == ".calltargets") {
        CallForm& form = scopes_.back().calls[word] = {true, {}, {}};
        do form.names.push_back(text.word());
        while (text.accept(','));
        text.expect(';');
        return;
      }
      place_label(word);
      directive(text, kind);
      return;
    }
    place_label(word);
    return;
  }
  instruction(text, word, guarded ? &guard : nullptr);
}

void Decoder::instruction(Scanner& text, std::string_view word, Operand* guard) {
  const auto start = static_cast<std::size_t>(word.data() - module.text.data());
  opcode_ = word;
  modifiers_.clear();
  accepted_ = 0;
  // Split at '.', keep "L2::128B" whole.
  std::size_t at = word.find('.');
  base_ = word.substr(0, at);
  while (at != std::string_view::npos) {
    const auto from = at + 1;
    at = word.find('.', from);
    modifiers_.push_back(word.substr(from, at == std::string_view::npos ? at : at - from));
  }
  if (modifiers_.size() > 60) fail("too many modifiers");
  if (guesses_.has(word)) modifiers_.insert(modifiers_.begin(), "relaxed");
  operands_.clear();
  if (text.peek() != ';') {
    do {
      operands_.push_back(parse_operand(text));
      if (operands_.size() > 64) fail("too many operands");
    } while (text.accept(','));
  }
  const auto finish_at = text.offset();
  text.expect(';');
  pc_ = static_cast<std::uint32_t>(program.statements.size());
  if (guard != nullptr) {
    flip_ = guard->negated ? kFullMask : 0;
    Operand plain = *guard;
    plain.negated = false;
    guard_ = predicate_slot(plain, Use::read);
  } else {
    guard_ = true_;
    flip_ = 0;
  }
  const Opcode* opcode = find_opcode(base_);
  if (opcode == nullptr) fail(std::string(refusal(base_)));
  program.statements.push_back({line_, location_, std::string_view(module.text).substr(start, finish_at - start)});
  class_ = opcode->klass;
  const auto blocks_before = function.blocks.size();
  const bool fresh = begin_block_;
  if (layout_ != nullptr) watch_unwritten();
  const auto first = static_cast<std::uint32_t>(function.code.size());
  reads_.clear(), writes_.clear();
  flow_kind_.reset();
  opcode->decode(*this);
  if (layout_ != nullptr && !function.local.arrays.empty()) local_statements_.push_back({pc_, base_, operands_});
  if (!watched_.empty()) settle_watched();
  if (following_) note_flow(first);
  if (!fresh || function.blocks.size() != blocks_before) {
    auto& block = function.blocks.back();
    ++block.length;
    if (block.classes[static_cast<std::size_t>(class_)] != 0xffff) ++block.classes[static_cast<std::size_t>(class_)];
    ++program.instruction_count;
  }
}

}  // namespace machine
