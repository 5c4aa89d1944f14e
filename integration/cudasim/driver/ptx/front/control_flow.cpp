#include "ptx/front/control_flow.h"

#include <algorithm>

namespace cudasim::ptx {
namespace {

bool leaves(Op op) { return op == Op::kRet || op == Op::kExit || op == Op::kTrap; }

bool ends_block(const Instruction& i) { return i.op == Op::kBra || i.op == Op::kBrx || leaves(i.op); }

template <class Visit>
void for_each_target(Instruction& i, Visit visit) {
  if (i.op == Op::kBra) visit(i.operands[0].index);
  if (i.op == Op::kBrx) {
    for (Operand& target : i.operands[1].elements) visit(target.index);
  }
}

// What runs over the end of a function returns.
void end_with_return(Function& f) {
  const auto size = static_cast<std::uint32_t>(f.instructions.size());
  bool needed = size == 0 || !ends_block(f.instructions.back()) || f.instructions.back().guard != kNoIndex;
  for (Instruction& i : f.instructions) for_each_target(i, [&](std::uint32_t target) { needed |= target >= size; });
  if (!needed) return;
  Instruction ret;
  ret.op = Op::kRet;
  ret.line = size == 0 ? 0 : f.instructions.back().line;
  f.instructions.push_back(std::move(ret));
}

// Blocks in the order in which the reversed graph's depth-first search leaves them, the exit left out.
std::vector<std::uint32_t> reverse_post_order(const std::vector<std::vector<std::uint32_t>>& before,
                                              const std::vector<std::uint32_t>& exits) {
  std::vector<std::uint32_t> order;
  std::vector<bool> seen(before.size());
  std::vector<std::pair<std::uint32_t, std::size_t>> stack;
  for (const std::uint32_t exit : exits) {
    if (seen[exit]) continue;
    seen[exit] = true;
    stack.emplace_back(exit, 0);
    while (!stack.empty()) {
      auto& [block, next] = stack.back();
      if (next == before[block].size()) {
        order.push_back(block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t other = before[block][next++];
      if (!seen[other]) {
        seen[other] = true;
        stack.emplace_back(other, 0);
      }
    }
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace

void find_blocks(Function& f) {
  end_with_return(f);
  const auto size = static_cast<std::uint32_t>(f.instructions.size());
  std::vector<bool> leader(size + 1);
  leader[0] = leader[size] = true;
  for (std::uint32_t at = 0; at < size; ++at) {
    for_each_target(f.instructions[at], [&](std::uint32_t& target) {
      target = std::min(target, size - 1);
      leader[target] = true;
    });
    if (ends_block(f.instructions[at])) leader[at + 1] = true;
  }
  std::vector<std::uint32_t> block_of(size);
  f.blocks.clear();
  for (std::uint32_t at = 0; at < size; ++at) {
    if (leader[at]) f.blocks.push_back({at, at + 1, {}, kNoIndex});
    f.blocks.back().last = at + 1;
    block_of[at] = static_cast<std::uint32_t>(f.blocks.size() - 1);
  }
  for (std::uint32_t b = 0; b < f.blocks.size(); ++b) {
    Block& block = f.blocks[b];
    Instruction& end = f.instructions[block.last - 1];
    const auto add = [&](std::uint32_t successor) {
      if (std::ranges::find(block.successors, successor) == block.successors.end())
        block.successors.push_back(successor);
    };
    for_each_target(end, [&](std::uint32_t& target) {
      target = block_of[target];
      add(target);
    });
    if (!ends_block(end) || end.guard != kNoIndex) add(b + 1);
  }
}

void find_post_dominators(Function& f) {
  const auto count = static_cast<std::uint32_t>(f.blocks.size());
  std::vector<std::vector<std::uint32_t>> before(count);
  std::vector<std::uint32_t> exits;
  for (std::uint32_t b = 0; b < count; ++b) {
    for (const std::uint32_t s : f.blocks[b].successors) before[s].push_back(b);
    if (leaves(f.instructions[f.blocks[b].last - 1].op)) exits.push_back(b);
  }
  const std::vector<std::uint32_t> order = reverse_post_order(before, exits);
  // Numbers of the order, the exit's is 0; blocks from which no exit is reached keep kNoIndex.
  std::vector<std::uint32_t> number(count, kNoIndex);
  for (std::uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i + 1;
  std::vector<std::uint32_t> dominator(order.size() + 1, kNoIndex);
  dominator[0] = 0;
  const auto meet = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (a > b) a = dominator[a];
      while (b > a) b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t b : order) {
      std::uint32_t found = leaves(f.instructions[f.blocks[b].last - 1].op) ? 0 : kNoIndex;
      for (const std::uint32_t s : f.blocks[b].successors) {
        if (number[s] == kNoIndex || dominator[number[s]] == kNoIndex) continue;
        found = found == kNoIndex ? number[s] : meet(number[s], found);
      }
      if (found != dominator[number[b]]) {
        dominator[number[b]] = found;
        changed = true;
      }
    }
  }
  for (std::uint32_t b = 0; b < count; ++b) {
    const std::uint32_t at = number[b] == kNoIndex ? 0 : dominator[number[b]];
    f.blocks[b].post_dominator = at == 0 || at == kNoIndex ? kNoIndex : order[at - 1];
  }
}

namespace {

void lay_out_shared(const Program& program, Function& kernel) {
  std::uint64_t end = 0, alignment = 16;
  std::vector<std::uint32_t> dynamic;
  std::vector<bool> placed(program.variables.size());
  for (const std::uint32_t f : program.closure_of(kernel)) {
    for (const std::uint32_t v : program.functions[f].shared_variables) {
      if (placed[v]) continue;
      placed[v] = true;
      const Variable& variable = program.variables[v];
      if (variable.external || variable.size == 0) {
        dynamic.push_back(v);
        alignment = std::max(alignment, variable.alignment);
        continue;
      }
      end = (end + variable.alignment - 1) / variable.alignment * variable.alignment;
      kernel.shared.push_back({v, end});
      end += variable.size;
    }
  }
  kernel.static_shared_bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, UINT32_MAX));
  kernel.dynamic_shared_offset = (end + alignment - 1) / alignment * alignment;
  for (const std::uint32_t v : dynamic) kernel.shared.push_back({v, kernel.dynamic_shared_offset});
  if (end > UINT32_MAX / 2 && kernel.problem.empty()) kernel.problem = "more shared memory than an address has bits";
}

}  // namespace

void finish(Program& program) {
  for (Function& f : program.functions) {
    if (!f.is_defined) continue;
    find_blocks(f);
    find_post_dominators(f);
  }
  for (Function& f : program.functions) {
    if (f.is_kernel && f.is_defined) lay_out_shared(program, f);
  }
}

}  // namespace cudasim::ptx
