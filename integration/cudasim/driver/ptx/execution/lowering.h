// From a function's instructions to steps. Each family of instructions has a function here that finds the runner for
// an instruction, or nothing where it is missing.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "ptx/execution/executable.h"

namespace cudasim::ptx {

// Thrown where an instruction can't be run; its text names it.
struct Missing {
  std::string what;
};

class Lowering {
 public:
  Lowering(Executable& executable, const AddressOf& address_of,
           std::unordered_map<std::uint64_t, std::uint32_t>& constants, const Function& function);
  Code run();

  // Sources, as rows; steps that make them come first.
  Ref source(const Operand& operand, Type type);
  Ref destination(const Operand& operand) const;
  Ref pair(const Operand& operand) const;
  // A vector, or a single operand as a vector of one, into Code::refs.
  void vector(const Operand& operand, Type type, bool is_destination, Step& step);
  // Destinations, then sources, into Code::refs; how many in the step's count and aux.
  void lists(const std::vector<Ref>& destinations, const std::vector<Ref>& sources, Step& step);
  // Base and offset of what stands in brackets.
  void address(const Operand& operand, Step& step);
  Ref constant(std::uint64_t value);
  Ref temporary();
  void emit(Step step);
  const Executable& executable() const { return executable_; }
  const Function& function() const { return function_; }
  std::uint32_t width_of_register(const Operand& operand) const;

 private:
  void lower(const Instruction& instruction);
  void lower_control(const Instruction& instruction, Step step);
  void lower_call(const Instruction& instruction, Step step);
  Ref variable_address(const Operand& operand);

  Executable& executable_;
  const AddressOf& address_of_;
  std::unordered_map<std::uint64_t, std::uint32_t>& constants_;
  const Function& function_;
  Code code_;
  std::uint32_t block_ = 0;
};

// Simple instructions: d, a, b, c, e are filled in, `runner` is what to do with them. Null: not one of the family, or
// missing.
Runner integer_runner(const Instruction& instruction);
Runner bit_runner(const Instruction& instruction);
Runner carry_runner(const Instruction& instruction);
Runner floating_runner(const Instruction& instruction);
Runner half_runner(const Instruction& instruction);
Runner approximate_runner(const Instruction& instruction);
Runner compare_runner(const Instruction& instruction);
Runner convert_runner(const Instruction& instruction);
Runner warp_runner(const Instruction& instruction);
// Those with operands of their own form: true where the instruction was lowered.
bool lower_move(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_memory(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_atomic(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_matrix(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_wmma(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_mbarrier(Lowering& lowering, const Instruction& instruction, Step& step);
bool lower_texture(Lowering& lowering, const Instruction& instruction, Step& step);
// A function that the device brings: vprintf and its like. Null for others.
Runner builtin_runner(const std::string& name);

}  // namespace cudasim::ptx
