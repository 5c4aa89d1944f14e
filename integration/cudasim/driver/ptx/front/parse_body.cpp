// Statements of a function's body. What is wrong or unknown here is a problem of the function alone.
#include <algorithm>

#include "ptx/front/parser.h"

namespace cudasim::ptx {
namespace {

constexpr std::uint32_t kMaxRegisters = 1u << 20;
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 24;

}  // namespace

void Parser::set_problem(int line, const std::string& text) {
  if (current().problem.empty()) current().problem = "line " + std::to_string(line) + ": " + text;
}

void Parser::skip_statement() {
  while (!tokens_.at_end() && !tokens_.is(";") && !tokens_.is("{") && !tokens_.is("}")) tokens_.next();
  tokens_.take_if(";");
}

void Parser::read_body(std::uint32_t function) {
  body_ = {};
  body_.function = function;
  body_.scopes.emplace_back();
  const auto declare = [&](const std::vector<std::uint32_t>& formals) {
    for (const std::uint32_t index : formals) {
      Variable& v = program_->variables[index];
      body_.scopes.back().variables.insert_or_assign(v.name, index);
      if (current().is_kernel) continue;
      Function& f = current();
      v.offset = (f.frame_bytes + v.alignment - 1) / v.alignment * v.alignment;
      f.frame_bytes = v.offset + v.size;
    }
  };
  declare(current().parameters);
  declare(current().results);
  expect("{");
  while (true) {
    if (tokens_.at_end()) fail("a '{' without its '}'");
    if (tokens_.take_if("{")) {
      body_.scopes.emplace_back();
    } else if (tokens_.take_if("}")) {
      body_.scopes.pop_back();
      if (body_.scopes.empty()) break;
    } else {
      read_statement_or_problem();
    }
  }
  resolve_labels();
  if (current().frame_bytes > kMaxFrameBytes) set_problem(tokens_.line(), "more than 16 MiB of local variables");
}

void Parser::read_statement_or_problem() {
  const int line = tokens_.line();
  try {
    read_statement();
  } catch (const ParseError& problem) {
    set_problem(line, problem.text());
    skip_statement();
  }
}

void Parser::read_statement() {
  if (tokens_.take_if(";")) return;
  if (tokens_.current().starts_with('.')) return read_directive();
  if (!tokens_.is("@") && is_name(tokens_.current())) {
    const std::string_view word = tokens_.take();
    if (tokens_.take_if(":")) {
      body_.labels.insert_or_assign(word, static_cast<std::uint32_t>(current().instructions.size()));
      if (tokens_.take_if(".branchtargets")) {
        std::vector<std::string_view> targets;
        do {
          targets.push_back(tokens_.take());
        } while (tokens_.take_if(","));
        body_.targets.insert_or_assign(word, std::move(targets));
        expect(";");
      } else if (tokens_.is(".callprototype") || tokens_.is(".calltargets")) {
        skip_statement();
      }
      return;
    }
    mnemonic_ = word;
  } else {
    mnemonic_ = {};
  }
  read_instruction();
}

void Parser::read_directive() {
  const std::string_view word = tokens_.take();
  if (word == ".reg") {
    read_registers();
  } else if (word == ".local" || word == ".param" || word == ".shared" || word == ".global" || word == ".const") {
    read_local_variables(word == ".local"    ? Space::kLocal
                         : word == ".param"  ? Space::kParam
                         : word == ".shared" ? Space::kShared
                         : word == ".global" ? Space::kGlobal
                                             : Space::kConst);
  } else if (word == ".loc" || word == ".file") {
    // A line of its own, the end of which is all that it has.
    const int line = tokens_.line();
    while (!tokens_.at_end() && tokens_.line() == line) tokens_.next();
  } else if (word == ".pragma" || word == ".extern" || word == ".weak" || word == ".alias") {
    skip_statement();
  } else if (word == ".section") {
    while (!tokens_.at_end() && !tokens_.is("{")) tokens_.next();
    skip_block();
  } else {
    fail("unknown directive " + shortened(word));
  }
}

void Parser::read_registers() {
  std::string_view word = tokens_.take();
  if (word == ".v2" || word == ".v4") fail("vectors of registers are not supported");
  const auto type = word.starts_with('.') ? type_named(word.substr(1)) : std::nullopt;
  if (!type) fail("unknown type '" + shortened(word) + "'");
  do {
    const std::string_view name = tokens_.take();
    if (!is_name(name)) fail("a register without a name");
    std::uint64_t count = 0;
    if (tokens_.take_if("<")) {
      count = take_number();
      expect(">");
    }
    auto& registers = current().registers;
    if (count > kMaxRegisters || registers.size() + count >= kMaxRegisters) fail("too many registers");
    body_.scopes.back().registers.insert_or_assign(
        name, Scope::Registers{static_cast<std::uint32_t>(registers.size()), static_cast<std::uint32_t>(count)});
    registers.resize(registers.size() + std::max<std::size_t>(count, 1), Register{*type});
  } while (tokens_.take_if(","));
  expect(";");
}

void Parser::read_local_variables(Space space) {
  do {
    Variable v = read_declaration(space);
    if (tokens_.take_if("=")) read_initial(v);
    Function& f = current();
    if (space == Space::kLocal || space == Space::kParam) {
      v.offset = (f.frame_bytes + v.alignment - 1) / v.alignment * v.alignment;
      if (v.size > kMaxFrameBytes || v.offset > kMaxFrameBytes) fail("more than 16 MiB of local variables");
      f.frame_bytes = v.offset + v.size;
    }
    const std::string name = v.name;
    const std::uint32_t index = add_variable(std::move(v));
    body_.scopes.back().variables.insert_or_assign(name, index);
    if (space == Space::kShared) f.shared_variables.push_back(index);
    if (space == Space::kGlobal || space == Space::kConst) program_->module_variables.push_back(index);
  } while (tokens_.take_if(","));
  expect(";");
}

void Parser::read_instruction() {
  Instruction instruction;
  instruction.line = static_cast<std::uint32_t>(tokens_.line());
  if (mnemonic_.empty()) {
    expect("@");
    instruction.guard_negated = tokens_.take_if("!");
    instruction.guard = take_register();
    mnemonic_ = tokens_.take();
  }
  const std::string_view word = mnemonic_;
  const std::size_t dot = std::min(word.find('.'), word.size());
  const Opcode* const row = opcode_named(word.substr(0, dot));
  if (row == nullptr) fail(shortened(word));
  instruction.op = row->op;
  read_suffixes(*row, word.substr(dot), instruction);
  if (row->op == Op::kCall) {
    read_call(instruction);
  } else {
    read_operands(*row, instruction);
    check_operands(*row, instruction);
  }
  expect(";");
  Function& f = current();
  f.uses_carry |=
      instruction.has(Modifier::kCc) || row->op == Op::kAddc || row->op == Op::kSubc || row->op == Op::kMadc;
  f.instructions.push_back(std::move(instruction));
}

void Parser::read_suffixes(const Opcode& row, std::string_view suffixes, Instruction& instruction) {
  const auto unknown = [&] { fail(shortened(mnemonic_)); };
  while (!suffixes.empty()) {
    suffixes.remove_prefix(1);
    const std::size_t end = std::min(suffixes.find('.'), suffixes.size());
    const std::string_view word = suffixes.substr(0, end);
    suffixes.remove_prefix(end);
    if (const auto type = type_named(word); type && list_has(row.types, word)) {
      instruction.types.push_back(*type);
    } else if (list_has(row.modifiers, word)) {
      const auto modifier = modifier_named(word);
      if (!modifier) unknown();
      instruction.modifiers.add(*modifier);
    } else if (list_has(row.modifiers, "cache") && (word.starts_with("L1::") || word.starts_with("L2::"))) {
      continue;
    } else {
      unknown();
    }
  }
  if (instruction.types.size() < row.min_types || instruction.types.size() > row.max_types) unknown();
}

std::uint32_t Parser::name_of_label(std::string_view name) {
  body_.names.push_back(name);
  return static_cast<std::uint32_t>(body_.names.size() - 1);
}

// From places in `names` to instructions; control_flow turns these into blocks.
void Parser::resolve_labels() {
  const auto resolve = [&](const Instruction& i, Operand& operand) {
    const auto found = body_.labels.find(body_.names[operand.index]);
    if (found == body_.labels.end())
      set_problem(static_cast<int>(i.line), "no label " + shortened(body_.names[operand.index]));
    operand.index = found == body_.labels.end() ? 0 : found->second;
  };
  for (Instruction& i : current().instructions) {
    if (i.op == Op::kBra) resolve(i, i.operands[0]);
    if (i.op == Op::kBrx) {
      const auto list = body_.targets.find(body_.names[i.operands[1].index]);
      i.operands[1] = {};
      i.operands[1].kind = Operand::Kind::kVector;
      if (list == body_.targets.end()) {
        set_problem(static_cast<int>(i.line), "brx.idx without its .branchtargets");
        continue;
      }
      for (const std::string_view name : list->second) {
        Operand target;
        target.kind = Operand::Kind::kBlock;
        target.index = name_of_label(name);
        resolve(i, target);
        i.operands[1].elements.push_back(std::move(target));
      }
    }
  }
}

}  // namespace cudasim::ptx
