// Indexes a PTX text: functions with their headers, and the module's variables with their initial bytes.
#include "ptx/module_index.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/declaration.hpp"
#include "ptx/scanner.hpp"

namespace machine {
namespace {

struct Initialiser {
  std::uint64_t offset = 0;  // in the variable
  unsigned bytes = 0;
  Number number;
  std::string_view symbol;
  std::int64_t addend = 0;
  std::uint64_t mask = ~std::uint64_t{0};  // of the address: 0xFF00(symbol) is its second byte
};

struct PendingSymbol {
  std::uint64_t address = 0;
  Initialiser value;
  std::uint32_t line = 0;
};

class Indexer {
 public:
  Indexer(ModuleText& module) : module_(module), text_(module.text, 0, module.text.size(), 1) {}

  void run() {
    while (!text_.done()) top_level();
    if (module_.target.empty()) throw PtxError("PTX line 1: no .target directive: this is not a PTX text");
    for (const auto& [alias, aliasee] : aliases_) name_again(alias, aliasee);
    std::vector<std::string_view> names;
    for (const auto& f : module_.functions) names.push_back(f.name);
    module_.code.settle(std::move(names));
    for (const auto& p : pending_) resolve(p);
  }

 private:
  void top_level() {
    const auto word = text_.word();
    if (word == ".version" || word == ".address_size") {
      const auto value = text_.word();
      if (word == ".address_size" && value != "64")
        text_.fail("address size " + std::string(value) + ": only 64-bit PTX runs here");
    } else if (word == ".target") {
      module_.target = text_.word();
      while (text_.accept(',')) text_.word();
    } else if (word == ".file") {
      const auto number = text_.word();
      Number n;
      if (!parse_number(number, n)) text_.fail("bad .file number");
      module_.files[static_cast<std::uint32_t>(n.bits)] = std::string(text_.string());
      while (text_.accept(',')) text_.word();
    } else if (word == ".section") {
      text_.until('{');
      text_.expect('{');
      text_.skip_braces();
    } else if (word == ".visible" || word == ".extern" || word == ".weak" || word == ".common") {
      extern_ = word == ".extern";
      return;  // belongs to what follows
    } else if (word == ".entry" || word == ".func") {
      function(word == ".entry");
    } else if (word == ".global" || word == ".const") {
      global(word == ".const");
    } else if (word == ".shared") {
      do {
        const auto d = parse_declaration(text_);
        module_.shared.push_back({d.name, d.bytes, d.align, extern_ || d.open_array});
      } while (text_.accept(','));
      text_.expect(';');
    } else if (word == ".pragma") {
      text_.string();
      text_.expect(';');
    } else if (word == ".alias") {
      const auto alias = text_.word();
      text_.expect(',');
      aliases_.push_back({alias, text_.word()});
      text_.expect(';');
    } else if (word.empty()) {
      text_.fail(std::string("unexpected '") + text_.raw() + "' at module scope");
    } else {
      text_.fail("unknown directive '" + std::string(word) + "' at module scope");
    }
    extern_ = false;
  }

  std::vector<std::uint32_t> numbers() {
    std::vector<std::uint32_t> list;
    do {
      Number n;
      const auto word = text_.word();
      if (!parse_number(word, n)) text_.fail("expected a number, found '" + std::string(word) + "'");
      list.push_back(static_cast<std::uint32_t>(n.bits));
    } while (text_.accept(','));
    list.resize(std::max<std::size_t>(list.size(), 3), 1);
    return list;
  }

  void function(bool kernel) {
    FunctionText f;
    f.is_kernel = kernel;
    f.line = text_.line();
    while (text_.peek() == '.') {  // .func .attribute(...), .noreturn before the name
      const auto word = text_.word();
      if (word == ".noreturn") continue;
      text_.fail("unexpected '" + std::string(word) + "' before a function's name");
    }
    if (text_.peek() == '(') f.signature.results = parse_formals(text_);
    f.name = text_.word();
    if (f.name.empty()) text_.fail("a function has no name");
    f.header = text_.offset();
    if (text_.peek() == '(') f.signature.formals = parse_formals(text_);
    auto& a = f.attributes;
    for (;;) {
      if (text_.accept(';')) break;
      if (text_.accept('{')) {
        f.has_body = true;
        f.body_begin = text_.offset();
        f.body_line = text_.line();
        text_.skip_braces();
        f.body_end = text_.offset() - 1;
        break;
      }
      const auto word = text_.word();
      if (word == ".maxntid") {
        const auto n = numbers();
        a.max_threads = n[0] * n[1] * n[2];
      } else if (word == ".reqntid") {
        const auto n = numbers();
        a.required_block = {n[0], n[1], n[2]};
        a.max_threads = n[0] * n[1] * n[2];
      } else if (word == ".minnctapersm") {
        a.min_blocks = numbers()[0];
      } else if (word == ".maxnreg" || word == ".maxnctapersm" || word == ".maxclusterrank") {
        numbers();
      } else if (word == ".reqnctapercluster") {
        const auto n = numbers();
        a.cluster = {n[0], n[1], n[2]};
      } else if (word == ".explicitcluster" || word == ".noreturn" || word == ".blocksareclusters") {
        continue;
      } else if (word == ".pragma") {
        text_.string();
        text_.expect(';');
      } else if (word == ".abi_preserve" || word == ".abi_preserve_control") {
        numbers();
      } else {
        text_.fail("function '" + std::string(f.name) + "': unknown directive '" + std::string(word) + "'");
      }
    }
    auto [found, fresh] = module_.by_name.emplace(f.name, module_.functions.size());
    if (fresh) {
      module_.functions.push_back(std::move(f));
    } else if (f.has_body) {
      if (module_.functions[found->second].has_body)
        text_.fail("function '" + std::string(f.name) + "' is defined twice");
      module_.functions[found->second] = std::move(f);
    }
  }

  void name_again(std::string_view alias, std::string_view aliasee) {
    const auto found = module_.by_name.find(aliasee);
    if (found == module_.by_name.end() || !module_.functions[found->second].has_body)
      throw PtxError("'.alias' names '" + std::string(aliasee) + "', which is no function of this module");
    module_.by_name[alias] = found->second;
  }

  // "name", "name+8", "generic(name)+8": an address, the same one in either form.
  void symbol(Initialiser& v, std::string_view word) {
    if (word == "generic") {
      text_.expect('(');
      word = text_.word();
      text_.expect(')');
    }
    if (word.empty()) text_.fail("an initialiser names nothing");
    v.symbol = word;
    if (text_.accept('+')) {
      Number n;
      if (!parse_number(text_.word(), n)) text_.fail("bad offset in an initialiser");
      v.addend = static_cast<std::int64_t>(n.bits);
    }
    if (text_.peek() == '(') text_.fail("initialiser operator '" + std::string(word) + "' is not supported");
  }

  void values(const Declaration& d, std::uint64_t& offset, std::vector<Initialiser>& out, int depth = 0) {
    if (depth > 8) text_.fail("an initialiser is nested too deeply");
    const unsigned element = bytes_of(d.type);
    if (text_.accept('{')) {
      if (text_.accept('}')) return;
      do values(d, offset, out, depth + 1);
      while (text_.accept(','));
      text_.expect('}');
      return;
    }
    Initialiser v;
    v.offset = offset;
    v.bytes = element;
    const bool minus = text_.accept('-');
    auto word = text_.word();
    if (parse_number(word, v.number)) {
      if (!minus && v.number.kind == Number::integer && text_.accept('(')) {
        v.mask = v.number.bits;
        if (v.mask == 0) text_.fail("an initialiser's mask is zero");
        symbol(v, text_.word());
        text_.expect(')');
      }
      if (minus && v.number.kind == Number::integer) v.number.bits = 0 - v.number.bits;
      if (minus && v.number.kind != Number::integer)
        v.number.bits ^= v.number.kind == Number::float64 ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
    } else if (!word.empty()) {
      symbol(v, word);
    } else {
      text_.fail("bad initialiser");
    }
    out.push_back(v);
    offset += element;
  }

  void global(bool constant) {
    Declaration first;
    bool more = false;
    do {
      const auto d = more ? parse_declarator(text_, first) : parse_declaration(text_);
      first = d;
      more = true;
      std::vector<Initialiser> initial;
      std::uint64_t filled = 0;
      if (text_.accept('=')) {
        values(d, filled, initial);
        if (filled > d.bytes && !d.open_array) text_.fail("'" + std::string(d.name) + "' has more values than room");
      }
      const auto bytes = d.open_array ? filled : d.bytes;
      if (extern_)
        text_.fail("'" + std::string(d.name) +
                   "' is extern: relocatable device code needs linking, which is not done here");
      const auto kind = d.managed  ? ObjectKind::managed
                        : constant ? ObjectKind::constant_symbol
                                   : ObjectKind::device_symbol;
      const Object* object = AddressSpace::instance().allocate(kind, bytes, std::max(d.align, 16u), d.name);
      if (object == nullptr)
        text_.fail("no memory for '" + std::string(d.name) + "', " + std::to_string(bytes) + " bytes");
      for (const auto& v : initial) {
        if (!v.symbol.empty()) {
          pending_.push_back({object->base + v.offset, v, text_.line()});
          continue;
        }
        write(object->base + v.offset, d.type, v.number);
      }
      module_.global_by_name[d.name] = module_.globals.size();
      module_.globals.push_back({d.name, object, constant});
    } while (text_.accept(','));
    text_.expect(';');
  }

  void write(std::uint64_t address, Type type, const Number& n) {
    std::uint64_t bits = n.bits;
    if (type == Type::f32 && n.kind == Number::float64) {
      double wide;
      std::memcpy(&wide, &n.bits, 8);
      const float narrow = static_cast<float>(wide);
      std::uint32_t b;
      std::memcpy(&b, &narrow, 4);
      bits = b;
    }
    std::memcpy(reinterpret_cast<void*>(address), &bits, bytes_of(type));
  }

  void resolve(const PendingSymbol& p) {
    std::uint64_t value = address_of(p) + static_cast<std::uint64_t>(p.value.addend);
    value = (value & p.value.mask) >> std::countr_zero(p.value.mask);
    std::memcpy(reinterpret_cast<void*>(p.address), &value, p.value.bytes);
  }

  std::uint64_t address_of(const PendingSymbol& p) {
    if (const auto found = module_.global_by_name.find(p.value.symbol); found != module_.global_by_name.end())
      return module_.globals[found->second].object->base;
    const auto found = module_.by_name.find(p.value.symbol);
    if (found == module_.by_name.end() || module_.functions[found->second].is_kernel ||
        !module_.functions[found->second].has_body)
      throw PtxError("PTX line " + std::to_string(p.line) + ": initialiser names '" + std::string(p.value.symbol) +
                     "', which is no variable or function of this module");
    module_.in_tables.push_back(found->second);
    return module_.code.of(found->second);
  }

  ModuleText& module_;
  Scanner text_;
  bool extern_ = false;
  std::vector<PendingSymbol> pending_;
  std::vector<std::pair<std::string_view, std::string_view>> aliases_;
};

}  // namespace

void index_module(ModuleText& module) { Indexer(module).run(); }

}  // namespace machine
