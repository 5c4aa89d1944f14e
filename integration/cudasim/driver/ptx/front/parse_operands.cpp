// Operands: registers, literals, addresses, vectors, names.
#include <algorithm>
#include <bit>

#include "ptx/front/parser.h"

namespace cudasim::ptx {
namespace {

struct SpecialRow {
  std::string_view name;
  Special special;
};

constexpr SpecialRow kSpecials[] = {
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%tid.w", Special::kZero},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ntid.w", Special::kZero},
    {"%ctaid.x", Special::kCtaidX},
    {"%ctaid.y", Special::kCtaidY},
    {"%ctaid.z", Special::kCtaidZ},
    {"%ctaid.w", Special::kZero},
    {"%nctaid.x", Special::kNctaidX},
    {"%nctaid.y", Special::kNctaidY},
    {"%nctaid.z", Special::kNctaidZ},
    {"%nctaid.w", Special::kZero},
    {"%laneid", Special::kLaneid},
    {"%warpid", Special::kWarpid},
    {"%nwarpid", Special::kNwarpid},
    {"%smid", Special::kSmid},
    {"%nsmid", Special::kNsmid},
    {"%gridid", Special::kGridid},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobaltimer},
    {"%globaltimer_lo", Special::kGlobaltimerLo},
    {"%globaltimer_hi", Special::kGlobaltimerHi},
    {"%dynamic_smem_size", Special::kDynamicSmemSize},
    {"%total_smem_size", Special::kTotalSmemSize},
    {"%envreg1", Special::kEnvreg1},
    {"%envreg2", Special::kEnvreg2},
    {"%is_explicit_cluster", Special::kZero},
    {"%clusterid.x", Special::kCtaidX},
    {"%clusterid.y", Special::kCtaidY},
    {"%clusterid.z", Special::kCtaidZ},
    {"%nclusterid.x", Special::kNctaidX},
    {"%nclusterid.y", Special::kNctaidY},
    {"%nclusterid.z", Special::kNctaidZ},
    {"%cluster_ctaid.x", Special::kZero},
    {"%cluster_ctaid.y", Special::kZero},
    {"%cluster_ctaid.z", Special::kZero},
    {"%cluster_nctaid.x", Special::kOne},
    {"%cluster_nctaid.y", Special::kOne},
    {"%cluster_nctaid.z", Special::kOne},
    {"%cluster_ctarank", Special::kZero},
    {"%cluster_nctarank", Special::kOne},
};

bool has_coordinates(Op op) { return op == Op::kTex || op == Op::kTld4 || op == Op::kSuld || op == Op::kSust; }

// An operand's own type where it is not the instruction's first: literals are read by it.
Type type_of_operand(const Instruction& i, std::size_t at) {
  if (i.types.empty()) return Type::kB32;
  if (i.op == Op::kCvt || i.op == Op::kSet) return i.types.size() > 1 ? i.types[1] : i.types[0];
  if (i.op == Op::kSlct && at == 3) return i.types[1];
  if ((i.op == Op::kShl || i.op == Op::kShr) && at == 2) return Type::kB32;
  return i.types[0];
}

}  // namespace

std::optional<std::uint32_t> Parser::find_register(std::string_view name) const {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  for (auto scope = body_.scopes.rbegin(); scope != body_.scopes.rend(); ++scope) {
    if (const auto exact = scope->registers.find(name); exact != scope->registers.end() && exact->second.count == 0)
      return exact->second.first;
    // "%r12" of "%r<20>", and "%r12" of "%r1<5>": the longest prefix that is declared.
    for (std::size_t at = name.size() > 0 ? name.size() - 1 : 0; at >= digits && at > 0; --at) {
      const auto found = scope->registers.find(name.substr(0, at));
      if (found == scope->registers.end() || found->second.count == 0) continue;
      const std::string_view number = name.substr(at);
      const auto value = number.size() > 1 && number[0] == '0' ? std::nullopt : integer_of(number);
      if (value && *value < found->second.count) return found->second.first + static_cast<std::uint32_t>(*value);
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> Parser::find_variable(std::string_view name) const {
  for (auto scope = body_.scopes.rbegin(); scope != body_.scopes.rend(); ++scope) {
    if (const auto found = scope->variables.find(name); found != scope->variables.end()) return found->second;
  }
  const auto found = module_variables_.find(name);
  return found == module_variables_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t Parser::take_register() {
  const std::string_view name = tokens_.take();
  const auto found = find_register(name);
  if (!found) fail("expected a register, found '" + shortened(name) + "'");
  return *found;
}

Operand Parser::read_literal(Type type, bool negative) {
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  const std::string_view token = tokens_.take();
  if (const auto value = integer_of(token)) {
    operand.value = negative ? 0 - *value : *value;
    return operand;
  }
  const auto value = float_of(token);
  if (!value) fail("expected an operand, found '" + shortened(token) + "'");
  const bool is_double = type == Type::kF64 || type == Type::kB64 || type == Type::kU64 || type == Type::kS64;
  if (value->single) {
    const std::uint32_t bits = static_cast<std::uint32_t>(value->bits) ^ (negative ? 0x80000000u : 0u);
    operand.value =
        type == Type::kF64 ? std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits))) : bits;
  } else {
    const std::uint64_t bits = value->bits ^ (negative ? std::uint64_t{1} << 63 : 0);
    operand.value = is_double ? bits : std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  }
  return operand;
}

Operand Parser::symbol_operand(std::string_view name) {
  Operand operand;
  if (const auto variable = find_variable(name)) {
    operand.kind = Operand::Kind::kVariable;
    operand.index = *variable;
    // Shared memory of the module is laid out for those kernels that name it.
    auto& shared = current().shared_variables;
    if (program_->variables[*variable].space == Space::kShared && std::ranges::find(shared, *variable) == shared.end())
      shared.push_back(*variable);
    return operand;
  }
  if (const auto function = functions_.find(name); function != functions_.end()) {
    operand.kind = Operand::Kind::kFunction;
    operand.index = function->second;
    return operand;
  }
  fail("'" + shortened(name) + "' is not declared");
}

Operand Parser::read_name(char kind) {
  Operand operand;
  const std::string_view name = tokens_.take();
  if (!is_name(name)) fail("expected an operand, found '" + shortened(name) + "'");
  if (kind == 'l' || kind == 't') {
    operand.kind = Operand::Kind::kBlock;
    operand.index = name_of_label(name);
    return operand;
  }
  if (name == "_") {
    operand.kind = Operand::Kind::kSink;
    return operand;
  }
  if (const auto found = find_register(name)) {
    operand.index = *found;
    return operand;
  }
  if (const auto* row = std::ranges::find(kSpecials, name, &SpecialRow::name); row != std::end(kSpecials)) {
    operand.kind = Operand::Kind::kSpecial;
    operand.special = row->special;
    return operand;
  }
  if (name == "WARP_SZ") {
    operand.kind = Operand::Kind::kImmediate;
    operand.value = 32;
    return operand;
  }
  return symbol_operand(name);
}

Operand Parser::read_address() {
  expect("[");
  Operand operand;
  if (tokens_.current().empty()) fail("an address without an end");
  if (const auto absolute = integer_of(tokens_.current())) {
    tokens_.next();
    operand.value = *absolute;
    operand.kind = Operand::Kind::kAddress;
  } else {
    operand = read_name('s');
    if (operand.kind == Operand::Kind::kRegister) operand.kind = Operand::Kind::kAddress;
    if (operand.kind != Operand::Kind::kAddress && operand.kind != Operand::Kind::kVariable)
      fail("an address is a register or a variable");
  }
  while (tokens_.is("+") || tokens_.is("-")) {
    bool minus = tokens_.take() == "-";
    minus ^= tokens_.take_if("-");
    const std::uint64_t bytes = take_number();
    operand.value += minus ? 0 - bytes : bytes;
  }
  // [texture, {x, y}]; integers and floats alike are given as registers mostly, and literals by their bits.
  if (tokens_.take_if(",")) {
    Operand coordinates = tokens_.is("{") ? read_vector(Type::kB32) : read_operand('s', Type::kB32);
    if (tokens_.is(",")) fail(shortened(mnemonic_) + " with a sampler of its own");
    if (coordinates.kind == Operand::Kind::kVector) {
      operand.elements = std::move(coordinates.elements);
    } else {
      operand.elements.push_back(std::move(coordinates));
    }
  }
  expect("]");
  return operand;
}

Operand Parser::read_vector(Type type) {
  expect("{");
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  do {
    operand.elements.push_back(tokens_.is("{") ? Operand{} : read_operand('s', type));
    if (operand.elements.size() > 16) fail("a vector of more than 16 elements");
  } while (tokens_.take_if(","));
  expect("}");
  return operand;
}

Operand Parser::read_operand(char kind, Type type) {
  if (tokens_.is("[")) return read_address();
  if (tokens_.is("{")) return read_vector(type);
  const bool negated = tokens_.take_if("!");
  const bool negative = tokens_.take_if("-");
  const std::string_view token = tokens_.current();
  Operand operand = negative || (!token.empty() && token[0] >= '0' && token[0] <= '9') ? read_literal(type, negative)
                                                                                       : read_name(kind);
  operand.negated = negated;
  if (tokens_.take_if("|")) operand.pair = tokens_.is("_") ? (tokens_.next(), kNoIndex) : take_register();
  // symbol+4 as a source.
  while (operand.kind == Operand::Kind::kVariable && (tokens_.is("+") || tokens_.is("-"))) {
    const bool minus = tokens_.take() == "-";
    const std::uint64_t bytes = take_number();
    operand.value += minus ? 0 - bytes : bytes;
  }
  return operand;
}

void Parser::read_operands(const Opcode& row, Instruction& instruction) {
  std::string_view pattern = row.operands;
  while (!tokens_.is(";")) {
    if (tokens_.at_end()) fail("an instruction without its ';'");
    if (!instruction.operands.empty()) expect(",");
    if (pattern.starts_with('?')) pattern.remove_prefix(1);
    if (pattern.empty()) fail(shortened(mnemonic_) + ": too many operands");
    instruction.operands.push_back(read_operand(pattern[0], type_of_operand(instruction, instruction.operands.size())));
    pattern.remove_prefix(1);
  }
  if (instruction.operands.size() < std::min(row.operands.find('?'), row.operands.size()))
    fail(shortened(mnemonic_) + ": too few operands");
}

void Parser::check_operands(const Opcode& row, const Instruction& instruction) const {
  using Kind = Operand::Kind;
  std::string kinds;
  for (const char c : row.operands) {
    if (c != '?') kinds += c;
  }
  for (std::size_t at = 0; at < instruction.operands.size(); ++at) {
    const Operand& operand = instruction.operands[at];
    const Kind kind = operand.kind;
    const bool value = kind == Kind::kRegister || kind == Kind::kImmediate || kind == Kind::kSpecial ||
                       kind == Kind::kVariable || kind == Kind::kFunction || kind == Kind::kVector;
    bool right = false;
    switch (kinds[at]) {
      case 'd':
        right = kind == Kind::kRegister || kind == Kind::kSink || kind == Kind::kVector;
        if (kind == Kind::kVector) {
          right = std::ranges::all_of(
              operand.elements, [](const Operand& e) { return e.kind == Kind::kRegister || e.kind == Kind::kSink; });
        }
        break;
      case 'x':
        right = true;
        break;
      case 'm':
        right =
            (kind == Kind::kAddress || kind == Kind::kVariable) && operand.elements.empty() != has_coordinates(row.op);
        break;
      case 'l':
      case 't':
        right = kind == Kind::kBlock;
        break;
      default:
        right = value;
    }
    if (!right) fail(shortened(mnemonic_) + ": operand " + std::to_string(at + 1) + " is of the wrong kind");
  }
}

Operand Parser::read_call_list() {
  Operand list;
  list.kind = Operand::Kind::kVector;
  expect("(");
  while (!tokens_.take_if(")")) {
    if (tokens_.at_end()) fail("a call without its ')'");
    if (!list.elements.empty()) expect(",");
    list.elements.push_back(read_operand('s', Type::kB64));
    if (list.elements.back().kind != Operand::Kind::kVariable ||
        program_->variables[list.elements.back().index].space != Space::kParam)
      fail("call: arguments other than .param variables are not supported");
  }
  return list;
}

// call (results), callee, (arguments), prototype; all but the callee may be left out.
void Parser::read_call(Instruction& instruction) {
  Operand none;
  none.kind = Operand::Kind::kVector;
  instruction.operands = {none, none, none};
  if (tokens_.is("(")) {
    instruction.operands[0] = read_call_list();
    expect(",");
  }
  Function& f = current();
  const std::string_view name = tokens_.take();
  Operand& callee = instruction.operands[1];
  callee = {};
  if (const auto found = find_register(name)) {
    callee.index = *found;
    f.calls_pointers = true;
  } else if (const auto function = functions_.find(name); function != functions_.end()) {
    callee.kind = Operand::Kind::kFunction;
    callee.index = function->second;
    if (std::ranges::find(f.callees, function->second) == f.callees.end()) f.callees.push_back(function->second);
  } else {
    fail("call of '" + shortened(name) + "', which is not declared");
  }
  if (tokens_.take_if(",")) {
    if (tokens_.is("(")) {
      instruction.operands[2] = read_call_list();
      if (tokens_.take_if(",")) tokens_.next();  // the prototype: the arguments say the same
    } else {
      tokens_.next();
    }
  }
}

}  // namespace cudasim::ptx
