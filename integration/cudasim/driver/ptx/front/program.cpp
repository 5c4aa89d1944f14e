#include "ptx/front/program.h"

#include <algorithm>

namespace cudasim::ptx {

Space Instruction::space() const {
  if (has(Modifier::kGlobal)) return Space::kGlobal;
  if (has(Modifier::kShared) || has(Modifier::kSharedCta)) return Space::kShared;
  if (has(Modifier::kLocal)) return Space::kLocal;
  if (has(Modifier::kParam)) return Space::kParam;
  if (has(Modifier::kConst)) return Space::kConst;
  return Space::kGeneric;
}

std::uint32_t Instruction::vector_width() const {
  return has(Modifier::kV2) ? 2 : has(Modifier::kV4) ? 4 : has(Modifier::kV8) ? 8 : 1;
}

std::string text_of(const Instruction& instruction) {
  std::string text(opcode_of(instruction.op).name);
  for (std::size_t m = 0; m < static_cast<std::size_t>(Modifier::kCount); ++m) {
    if (instruction.has(static_cast<Modifier>(m))) (text += '.') += name_of(static_cast<Modifier>(m));
  }
  for (const Type type : instruction.types) (text += '.') += name_of(type);
  return text;
}

const Function* Program::kernel(std::string_view name) const {
  const auto found =
      std::ranges::find_if(functions, [&](const Function& f) { return f.is_kernel && f.is_defined && f.name == name; });
  return found == functions.end() ? nullptr : &*found;
}

std::vector<std::uint32_t> Program::closure_of(const Function& kernel) const {
  std::vector<bool> seen(functions.size());
  std::vector<std::uint32_t> found{static_cast<std::uint32_t>(&kernel - functions.data())};
  seen[found[0]] = true;
  const auto add = [&](std::uint32_t f) {
    if (!seen[f]) found.push_back(f);
    seen[f] = true;
  };
  for (std::size_t at = 0; at < found.size(); ++at) {
    for (const std::uint32_t callee : functions[found[at]].callees) add(callee);
    if (!functions[found[at]].calls_pointers) continue;
    for (std::uint32_t f = 0; f < functions.size(); ++f) {
      if (!functions[f].is_kernel && functions[f].is_defined) add(f);
    }
  }
  return found;
}

std::string Program::problem_of(const Function& kernel) const {
  for (const std::uint32_t f : closure_of(kernel)) {
    if (!functions[f].problem.empty()) return functions[f].problem;
  }
  return "";
}

}  // namespace cudasim::ptx
