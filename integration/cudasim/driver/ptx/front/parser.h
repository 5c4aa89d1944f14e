// The parser's state and verbs, shared by its files: parse_module.cpp has what stands at module scope,
// parse_declaration.cpp variables, parse_body.cpp statements, parse_operands.cpp operands.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/front/parse.h"
#include "ptx/front/tokens.h"

namespace cudasim::ptx {

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}
  std::shared_ptr<const Program> read();

 private:
  // Names of a pair of braces.
  struct Scope {
    // "%r<10>" is one entry: the count is 10, and the first register's number.
    struct Registers {
      std::uint32_t first;
      std::uint32_t count;  // 0: one register without a number
    };
    std::unordered_map<std::string_view, Registers> registers;
    std::map<std::string, std::uint32_t, std::less<>> variables;
  };
  // Of the function whose body is read.
  struct Body {
    std::uint32_t function;
    std::vector<Scope> scopes;
    std::unordered_map<std::string_view, std::uint32_t> labels;  // to instructions
    // Operands that name a label not seen yet: instruction, operand, element; the operand's index is the place here.
    std::vector<std::string_view> names;
    std::unordered_map<std::string_view, std::vector<std::string_view>> targets;  // .branchtargets by label
  };

  [[noreturn]] void fail(const std::string& text) const { throw ParseError(tokens_.line(), text); }
  void expect(std::string_view word);
  std::uint64_t take_number();
  static std::string shortened(std::string_view text) { return std::string(text.substr(0, 40)); }

  void read_top_level();
  void read_target();
  void read_function(bool is_kernel);
  void read_function_attributes(Function& function);
  void read_max_threads(Function& function);
  std::vector<std::uint32_t> read_formals();
  std::uint32_t function_named(std::string_view name);
  void lay_out_kernel_parameters(Function& function);
  void skip_block();
  void skip_line();

  // After the state space: [.attribute(.managed)] [.align N] [.v4] .type [.ptr …] name [dimensions].
  Variable read_declaration(Space space);
  void read_pointee();
  void read_shape(Variable& variable, std::uint64_t vector, std::uint64_t alignment);
  void read_module_variables(Space space, bool external);
  void read_initial(Variable& variable);
  void read_initial_value(Variable& variable, std::uint64_t at);
  void add_initial(Variable& variable, std::uint64_t at, std::uint64_t bits);
  std::uint32_t add_variable(Variable variable);
  static bool is_name(std::string_view token);

  void read_body(std::uint32_t function);
  void read_statement();
  void read_statement_or_problem();
  void read_registers();
  void read_local_variables(Space space);
  void read_directive();
  void read_instruction();
  void read_suffixes(const Opcode& row, std::string_view suffixes, Instruction& instruction);
  void resolve_labels();
  void set_problem(int line, const std::string& text);
  void skip_statement();

  void read_operands(const Opcode& row, Instruction& instruction);
  void check_operands(const Opcode& row, const Instruction& instruction) const;
  void read_call(Instruction& instruction);
  Operand read_call_list();
  Operand read_operand(char kind, Type type);
  Operand read_address();
  Operand read_vector(Type type);
  Operand read_literal(Type type, bool negative);
  Operand read_name(char kind);
  std::optional<std::uint32_t> find_register(std::string_view name) const;
  std::optional<std::uint32_t> find_variable(std::string_view name) const;
  std::uint32_t take_register();
  Operand symbol_operand(std::string_view name);
  std::uint32_t name_of_label(std::string_view name);

  Function& current() { return program_->functions[body_.function]; }

  Tokens tokens_;
  std::string_view mnemonic_;  // of the statement that is read; empty: not reached yet
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::map<std::string, std::uint32_t, std::less<>> module_variables_;
  std::unordered_map<std::string_view, std::uint32_t> functions_;
  Body body_;
};

}  // namespace cudasim::ptx
