// Variables and their initial values.
#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/front/parser.h"

namespace cudasim::ptx {
namespace {

constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 36;
// Of text that is short: a lie about them costs nothing.
constexpr std::uint64_t kMaxInitialBytes = std::uint64_t{1} << 28;

}  // namespace

std::uint32_t Parser::add_variable(Variable variable) {
  program_->variables.push_back(std::move(variable));
  return static_cast<std::uint32_t>(program_->variables.size() - 1);
}

Variable Parser::read_declaration(Space space) {
  Variable v;
  v.space = space;
  v.type = Type::kNone;
  std::uint64_t vector = 1;
  std::uint64_t declared_alignment = 0;
  while (tokens_.current().starts_with('.')) {
    const std::string_view word = tokens_.take();
    if (word == ".align") {
      const std::uint64_t n = take_number();
      if (n == 0 || n > 4096 || (n & (n - 1)) != 0) fail(".align " + std::to_string(n));
      if (v.type == Type::kNone || declared_alignment == 0) declared_alignment = n;
    } else if (word == ".ptr") {
      read_pointee();
    } else if (word == ".attribute") {
      expect("(");
      while (!tokens_.at_end() && !tokens_.is(")")) v.managed |= tokens_.take() == ".managed";
      expect(")");
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      vector = static_cast<std::uint64_t>(word[2] - '0');
    } else if (const auto type = type_named(word.substr(1))) {
      v.type = *type;
    } else {
      fail("unknown type or attribute '" + shortened(word) + "'");
    }
  }
  if (v.type == Type::kNone) fail("a declaration without a type");
  const std::string_view name = tokens_.take();
  if (!is_name(name)) fail("a declaration without a name");
  v.name = name;
  read_shape(v, vector, declared_alignment);
  return v;
}

// Of a pointer parameter: what it points at; its .align is the pointee's.
void Parser::read_pointee() {
  for (const std::string_view space : {".global", ".const", ".shared", ".local"}) tokens_.take_if(space);
  if (tokens_.take_if(".align")) take_number();
}

void Parser::read_shape(Variable& v, std::uint64_t vector, std::uint64_t declared_alignment) {
  v.size = bytes_of(v.type) * vector;
  v.alignment = declared_alignment != 0 ? declared_alignment : v.size;
  if (tokens_.take_if("<")) fail("parameterised names are not supported");
  while (tokens_.take_if("[")) {
    if (tokens_.take_if("]")) {
      v.size = 0;
      continue;
    }
    const std::uint64_t count = take_number();
    expect("]");
    if (v.size != 0 && count > kMaxVariableBytes / v.size) fail(v.name + " is too large");
    v.size *= count;
  }
}

void Parser::read_module_variables(Space space, bool external) {
  // .const[bank] of old.
  if (tokens_.take_if("[")) {
    tokens_.next();
    expect("]");
  }
  Variable v = read_declaration(space);
  v.external = external;
  if (tokens_.take_if("=")) read_initial(v);
  // What another module defines is not ours; dynamic shared memory is.
  const bool ours = !external || space == Space::kShared;
  const std::string name = v.name;
  const std::uint32_t index = add_variable(std::move(v));
  if (ours || !module_variables_.contains(name)) module_variables_.insert_or_assign(name, index);
  program_->module_variables.push_back(index);
  if (tokens_.is(",")) fail("several variables in one declaration are not supported");
  expect(";");
}

// Values in order, braces flat.
void Parser::read_initial(Variable& v) {
  if (v.size == 0) fail("variable " + v.name + " has no size but an initial value");
  std::uint64_t at = 0;
  int depth = 0;
  while (!tokens_.is(";")) {
    if (tokens_.at_end()) fail("variable " + v.name + ": its initial value has no end");
    if (tokens_.take_if("{")) {
      ++depth;
    } else if (tokens_.take_if("}")) {
      --depth;
    } else if (tokens_.is(",")) {
      if (depth == 0) return;
      tokens_.next();
      at += bytes_of(v.type);
    } else {
      read_initial_value(v, at);
    }
  }
}

void Parser::add_initial(Variable& v, std::uint64_t at, std::uint64_t bits) {
  const std::uint64_t element = bytes_of(v.type);
  if (v.size < element || at > v.size - element || at + element > kMaxInitialBytes) return;
  v.initial.resize(std::max<std::uint64_t>(v.initial.size(), at + element));
  std::memcpy(&v.initial[at], &bits, std::min<std::size_t>(element, sizeof bits));
}

// A number, or an address: name, generic(name), mask(name), each perhaps with + or - bytes.
void Parser::read_initial_value(Variable& v, std::uint64_t at) {
  bool negative = false;
  while (tokens_.is("-") || tokens_.is("+")) negative ^= tokens_.take() == "-";
  std::string_view token = tokens_.take();
  if (const auto value = integer_of(token)) {
    // 0xFF(name): that byte of the address.
    if (!tokens_.is("(")) return add_initial(v, at, negative ? 0 - *value : *value);
    tokens_.next();
    Relocation relocation{at, bytes_of(v.type), "", 0, *value, 0};
    if (*value != 0) relocation.shift = static_cast<std::uint32_t>(std::countr_zero(*value));
    token = tokens_.take();
    if (tokens_.take_if("(")) token = tokens_.take();  // generic(name)
    relocation.symbol = token;
    while (!tokens_.at_end() && !tokens_.is(",") && !tokens_.is("}") && !tokens_.is(";")) tokens_.next();
    v.relocations.push_back(std::move(relocation));
    return;
  }
  if (const auto value = float_of(token)) {
    if (value->single) return add_initial(v, at, negative ? value->bits ^ 0x80000000u : value->bits);
    const double number = std::bit_cast<double>(value->bits) * (negative ? -1 : 1);
    return add_initial(v, at,
                       v.type == Type::kF32 ? std::bit_cast<std::uint32_t>(static_cast<float>(number))
                                            : std::bit_cast<std::uint64_t>(number));
  }
  if (!is_name(token)) fail("variable " + v.name + ": expected a value, found '" + shortened(token) + "'");
  Relocation relocation{at, bytes_of(v.type), std::string(token), 0, 0, 0};
  if (tokens_.take_if("(")) {
    relocation.symbol = tokens_.take();
    expect(")");
  }
  while (tokens_.is("+") || tokens_.is("-")) {
    const bool minus = tokens_.take() == "-";
    const auto addend = static_cast<std::int64_t>(take_number());
    relocation.addend += minus ? -addend : addend;
  }
  v.relocations.push_back(std::move(relocation));
}

}  // namespace cudasim::ptx
