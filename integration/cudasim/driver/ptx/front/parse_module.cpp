// What stands at module scope. Grammar: "Parallel Thread Execution ISA", chapters 4, 5 and 11.
#include <algorithm>
#include <charconv>

#include "ptx/front/control_flow.h"
#include "ptx/front/parser.h"

namespace cudasim::ptx {

std::shared_ptr<const Program> parse(std::string_view text) { return Parser(text).read(); }

void Parser::expect(std::string_view word) {
  if (!tokens_.take_if(word))
    fail("expected '" + std::string(word) + "', found '" + shortened(tokens_.current()) + "'");
}

std::uint64_t Parser::take_number() {
  const std::string_view token = tokens_.take();
  const auto value = integer_of(token);
  if (!value) fail("expected a number, found '" + shortened(token) + "'");
  return *value;
}

bool Parser::is_name(std::string_view token) {
  return !token.empty() && std::string_view("(){}[];,=<>\"+-!|@:").find(token[0]) == std::string_view::npos;
}

std::shared_ptr<const Program> Parser::read() {
  if (!tokens_.take_if(".version")) throw ParseError(0, "image: text, but not PTX (no .version at its begin)");
  tokens_.next();
  while (!tokens_.at_end()) read_top_level();
  if (program_->arch == 0) fail("no .target");
  finish(*program_);
  return std::move(program_);
}

void Parser::read_top_level() {
  const std::string_view word = tokens_.current();
  if (word == ".target") {
    read_target();
  } else if (word == ".entry") {
    read_function(true);
  } else if (word == ".func") {
    read_function(false);
  } else if (word == ".global" || word == ".const" || word == ".shared") {
    tokens_.next();
    read_module_variables(word == ".global"  ? Space::kGlobal
                          : word == ".const" ? Space::kConst
                                             : Space::kShared,
                          false);
  } else if (word == "{") {
    skip_block();
  } else if (word == ".extern") {
    tokens_.next();
    const std::string_view space = tokens_.current();
    if (space == ".shared" || space == ".global" || space == ".const") {
      tokens_.next();
      read_module_variables(space == ".global"  ? Space::kGlobal
                            : space == ".const" ? Space::kConst
                                                : Space::kShared,
                            true);
    }
  } else if (word == ".file" || word == ".loc") {
    skip_line();
  } else {
    tokens_.next();  // .visible, .weak, .address_size 64, .section name, ;
  }
}

void Parser::skip_line() {
  const int line = tokens_.line();
  while (!tokens_.at_end() && tokens_.line() == line) tokens_.next();
}

void Parser::read_target() {
  tokens_.next();
  const std::string_view token = tokens_.take();
  std::string_view number = token;
  if (!number.starts_with("sm_")) fail("unknown target '" + shortened(token) + "'");
  number.remove_prefix(3);
  if (!number.empty() && (number.back() == 'a' || number.back() == 'f')) {
    program_->arch_suffix = number.back();
    number.remove_suffix(1);
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), program_->arch);
  if (error != std::errc() || end != number.data() + number.size() || program_->arch <= 0)
    fail("unknown target '" + shortened(token) + "'");
}

// From "{" to the matching "}".
void Parser::skip_block() {
  std::size_t depth = 0;
  do {
    if (tokens_.at_end()) fail("a '{' without its '}'");
    if (tokens_.is("{")) ++depth;
    if (tokens_.is("}")) --depth;
    tokens_.next();
  } while (depth != 0);
}

std::uint32_t Parser::function_named(std::string_view name) {
  const auto [at, is_new] = functions_.try_emplace(name, static_cast<std::uint32_t>(program_->functions.size()));
  if (is_new) program_->functions.emplace_back().name = name;
  return at->second;
}

std::vector<std::uint32_t> Parser::read_formals() {
  std::vector<std::uint32_t> formals;
  while (!tokens_.take_if(")")) {
    if (!formals.empty()) expect(",");
    if (tokens_.take_if(".reg")) fail("formals in registers are not supported");
    expect(".param");
    formals.push_back(add_variable(read_declaration(Space::kParam)));
  }
  return formals;
}

void Parser::lay_out_kernel_parameters(Function& function) {
  std::uint64_t end = 0;
  for (const std::uint32_t index : function.parameters) {
    Variable& v = program_->variables[index];
    v.offset = (end + v.alignment - 1) / v.alignment * v.alignment;
    if (v.size > 65536 || v.offset + v.size > 65536)
      fail("kernel " + function.name + " has too many bytes of parameters");
    end = v.offset + v.size;
  }
  function.parameter_bytes = end;
}

void Parser::read_function(bool is_kernel) {
  tokens_.next();
  std::vector<std::uint32_t> results;
  if (!is_kernel && tokens_.take_if("(")) results = read_formals();
  const std::string_view name = tokens_.take();
  if (!is_name(name)) fail(is_kernel ? ".entry without a name" : ".func without a name");
  const std::uint32_t index = function_named(name);
  std::vector<std::uint32_t> parameters;
  if (tokens_.take_if("(")) parameters = read_formals();
  // Declared before, or twice: the definition counts.
  const bool again = program_->functions[index].is_defined;
  if (!again) {
    Function& function = program_->functions[index];
    function.is_kernel = is_kernel;
    function.parameters = std::move(parameters);
    function.results = std::move(results);
    if (is_kernel) lay_out_kernel_parameters(function);
    read_function_attributes(function);
  }
  while (again && !tokens_.at_end() && !tokens_.is("{") && !tokens_.is(";")) tokens_.next();
  if (tokens_.take_if(";")) return;  // declared only
  if (again) return skip_block();
  program_->functions[index].is_defined = true;
  read_body(index);
}

void Parser::read_function_attributes(Function& function) {
  while (!tokens_.is("{") && !tokens_.is(";")) {
    if (tokens_.at_end()) fail((function.is_kernel ? "kernel " : "function ") + function.name + " has no body");
    const std::string_view word = tokens_.take();
    if (word == ".maxntid" || word == ".reqntid") read_max_threads(function);
    if (word == ".pragma") {
      tokens_.next();
      expect(";");
    }
  }
}

void Parser::read_max_threads(Function& function) {
  std::uint32_t threads = 1;
  do {
    threads =
        std::clamp(threads * static_cast<std::uint32_t>(std::clamp<std::uint64_t>(take_number(), 1, 1024)), 1u, 1024u);
  } while (tokens_.take_if(","));
  function.max_threads = threads;
}

}  // namespace cudasim::ptx
