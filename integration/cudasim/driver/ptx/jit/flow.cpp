#include "ptx/jit/flow.h"

#include <algorithm>
#include <functional>
#include <set>

namespace cudasim::ptx::jit {
namespace {

bool is_left(Control c) { return c == Control::kBarrier || c == Control::kCall; }
bool is_waited(Control c) { return c == Control::kWarpOperation || c == Control::kWarpBarrier; }

std::vector<FlowBlock> blocks_of(const Code& code) {
  const auto size = static_cast<std::uint32_t>(code.steps.size());
  std::vector<bool> leader(size + 1);
  leader[0] = leader[size] = true;
  for (std::uint32_t at = 0; at < size; ++at) {
    const Step& s = code.steps[at];
    if (s.control == Control::kGoto || s.control == Control::kBranch) leader[s.target] = true;
    if (s.control == Control::kSwitch) {
      for (std::uint32_t t = 0; t < s.count; ++t) leader[code.refs[s.list + t]] = true;
    }
    if (is_left(s.control) || is_waited(s.control)) leader[at] = true;
    if (s.control != Control::kNone && !is_waited(s.control)) leader[at + 1] = true;
  }
  std::vector<std::uint32_t> block_of(size + 1, kNoIndex);
  std::vector<FlowBlock> blocks;
  for (std::uint32_t at = 0; at < size; ++at) {
    if (leader[at]) blocks.push_back({at, at, Ending::kFalls, is_waited(code.steps[at].control), {}, {}, {}});
    blocks.back().last = at + 1;
    block_of[at] = static_cast<std::uint32_t>(blocks.size() - 1);
  }
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    FlowBlock& block = blocks[b];
    const Step& s = code.steps[block.last - 1];
    bool next = false;
    switch (s.control) {
      case Control::kGoto:
        block.ending = Ending::kGoto;
        block.successors = {block_of[s.target]};
        break;
      case Control::kBranch:
        block.ending = Ending::kBranch;
        block.successors = {block_of[s.target]};
        next = true;
        break;
      case Control::kSwitch:
        block.ending = Ending::kSwitch;
        for (std::uint32_t t = 0; t < s.count; ++t) block.successors.push_back(block_of[code.refs[s.list + t]]);
        next = s.guard != kNoRef;
        break;
      case Control::kReturn:
      case Control::kExit:
        block.ending = Ending::kReturn;
        next = s.guard != kNoRef;
        break;
      case Control::kBarrier:
      case Control::kCall:
        block.ending = Ending::kLeaves;
        next = true;
        break;
      default:
        next = true;
    }
    // A trap at the end has nothing behind it.
    if (next && b + 1 < blocks.size()) block.successors.push_back(b + 1);
  }
  return blocks;
}

// Strongly connected components of a part of the graph, in topological order (Tarjan).
class Components {
 public:
  Components(const std::vector<std::vector<std::uint32_t>>& edges, const std::vector<std::uint32_t>& nodes)
      : edges_(edges),
        index_(edges.size(), 0),
        low_(edges.size(), 0),
        on_stack_(edges.size(), false),
        in_(edges.size(), false) {
    for (const std::uint32_t n : nodes) in_[n] = true;
    for (const std::uint32_t n : nodes) {
      if (index_[n] == 0) visit(n);
    }
    std::ranges::reverse(found);
  }
  std::vector<std::vector<std::uint32_t>> found;

 private:
  void visit(std::uint32_t n) {
    index_[n] = low_[n] = ++count_;
    stack_.push_back(n);
    on_stack_[n] = true;
    for (const std::uint32_t s : edges_[n]) {
      if (!in_[s]) continue;
      if (index_[s] == 0) {
        visit(s);
        low_[n] = std::min(low_[n], low_[s]);
      } else if (on_stack_[s]) {
        low_[n] = std::min(low_[n], index_[s]);
      }
    }
    if (low_[n] != index_[n]) return;
    std::vector<std::uint32_t> component;
    std::uint32_t member;
    do {
      member = stack_.back();
      stack_.pop_back();
      on_stack_[member] = false;
      component.push_back(member);
    } while (member != n);
    std::ranges::sort(component);
    found.push_back(std::move(component));
  }

  const std::vector<std::vector<std::uint32_t>>& edges_;
  std::vector<std::uint32_t> index_, low_, stack_;
  std::vector<bool> on_stack_, in_;
  std::uint32_t count_ = 0;
};

// Appends `nodes` to `order`; each loop in one piece, its header first.
void arrange(std::vector<std::vector<std::uint32_t>>& edges, const std::vector<std::uint32_t>& nodes,
             std::vector<std::uint32_t>& order) {
  Components components(edges, nodes);
  for (const std::vector<std::uint32_t>& component : components.found) {
    if (component.size() == 1) {
      order.push_back(component[0]);
      continue;
    }
    // The header: what is entered from elsewhere, the first of them; block 0 always is.
    const std::set<std::uint32_t> members(component.begin(), component.end());
    std::uint32_t header = component[0];
    for (std::uint32_t from = 0; from < edges.size() && component[0] != 0; ++from) {
      if (members.contains(from)) continue;
      const auto enters = std::ranges::find_if(edges[from], [&](std::uint32_t to) { return members.contains(to); });
      if (enters != edges[from].end()) {
        header = *enters;
        break;
      }
    }
    for (const std::uint32_t n : component) std::erase(edges[n], header);
    arrange(edges, component, order);
  }
}

void find_pending(Flow& flow) {
  std::vector<std::set<std::uint32_t>> pending(flow.blocks.size());
  std::vector<bool> reached(flow.blocks.size());
  std::vector<std::uint32_t> work;
  for (const std::uint32_t entry : flow.entries) {
    reached[entry] = true;
    work.push_back(entry);
  }
  while (!work.empty()) {
    const std::uint32_t b = work.back();
    work.pop_back();
    const FlowBlock& block = flow.blocks[b];
    if (block.ending == Ending::kLeaves) continue;
    std::set<std::uint32_t> next = pending[b];
    next.insert(block.successors.begin(), block.successors.end());
    for (const std::uint32_t to : next) {
      std::set<std::uint32_t>& others = pending[to];
      const std::size_t before = others.size();
      for (const std::uint32_t other : next) {
        // The first of those that wait is the one that goes on.
        if (other > to) others.insert(other);
      }
      if (others.size() != before || !reached[to]) work.push_back(to);
      reached[to] = true;
    }
  }
  for (std::size_t b = 0; b < flow.blocks.size(); ++b)
    flow.blocks[b].pending.assign(pending[b].begin(), pending[b].end());
}

void find_live(const Code& code, Flow& flow) {
  std::vector<std::vector<bool>> killed(flow.blocks.size());
  for (std::size_t b = 0; b < flow.blocks.size(); ++b) {
    FlowBlock& block = flow.blocks[b];
    block.live.resize(code.rows);
    killed[b].resize(code.rows);
    for (std::uint32_t at = block.first; at < block.last; ++at) {
      const Step& s = code.steps[at];
      const Touched rows = touched(code, s);
      for (const std::uint32_t row : rows.reads) {
        if (!killed[b][row]) block.live[row] = true;
      }
      if (s.guard != kNoRef) continue;
      for (const std::uint32_t row : rows.writes) killed[b][row] = true;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t b = flow.blocks.size(); b-- > 0;) {
      FlowBlock& block = flow.blocks[b];
      for (const std::uint32_t s : block.successors) {
        for (std::uint32_t row = 0; row < code.rows; ++row) {
          if (!flow.blocks[s].live[row] || killed[b][row] || block.live[row]) continue;
          block.live[row] = true;
          changed = true;
        }
      }
    }
  }
}

}  // namespace

bool is_frame(Ref ref) { return ref != kNoRef && ref >> 28 == static_cast<std::uint32_t>(Base::kFrame); }
bool is_constant(Ref ref) { return ref != kNoRef && ref >> 28 == static_cast<std::uint32_t>(Base::kConstants); }
std::uint32_t row_of(Ref ref) { return ref & 0xfffffff; }

Touched touched(const Code& code, const Step& s) {
  Touched t;
  const auto add = [](std::vector<std::uint32_t>& rows, Ref ref) {
    if (is_frame(ref)) rows.push_back(row_of(ref));
  };
  const auto add_list = [&](std::vector<std::uint32_t>& rows, std::uint32_t list, std::uint32_t count) {
    for (std::uint32_t n = 0; n < count; ++n) add(rows, code.refs[list + n]);
  };
  add(t.reads, s.guard);
  const Op op = s.source == nullptr ? Op::kMov : s.source->op;
  if (op == Op::kMma) {
    // Lists: as many as each operand has elements.
    const auto count = [&](std::size_t operand) {
      const std::size_t n = s.source->operands[operand].elements.size();
      return n == 0 ? 1u : static_cast<std::uint32_t>(n);
    };
    add_list(t.writes, s.list, count(0));
    add_list(t.reads, s.a, count(1));
    add_list(t.reads, s.b, count(2));
    add_list(t.reads, s.c, count(3));
    return t;
  }
  if (has_lists(op)) {
    add_list(t.writes, s.list, s.count);
    add_list(t.reads, s.list + s.count, static_cast<std::uint32_t>(s.aux));
    return t;
  }
  for (const Ref ref : {s.a, s.b, s.c, s.e}) add(t.reads, ref);
  const bool vectors = op == Op::kMov && s.source != nullptr;
  if (op == Op::kLd || op == Op::kLdmatrix || (vectors && s.source->operands[0].kind == Operand::Kind::kVector))
    add_list(t.writes, s.list, s.count);
  if (op == Op::kSt || op == Op::kStmatrix || (vectors && s.source->operands[1].kind == Operand::Kind::kVector) ||
      (op == Op::kCall && s.control == Control::kNone &&
       !(s.source->operands[0].elements.empty() && s.source->operands[2].elements.empty())))
    add_list(t.reads, s.list, s.count);
  if (op == Op::kLop3 && s.pair != kNoRef) add(t.reads, s.list);
  // cp.async: the destination is an address.
  add(op == Op::kCp ? t.reads : t.writes, s.d);
  add(t.writes, s.pair);
  if (code.function->uses_carry &&
      (op == Op::kAdd || op == Op::kAddc || op == Op::kSub || op == Op::kSubc || op == Op::kMad || op == Op::kMadc)) {
    const auto carry = static_cast<std::uint32_t>(code.function->registers.size());
    t.reads.push_back(carry);
    if (s.source->has(Modifier::kCc)) t.writes.push_back(carry);
  }
  return t;
}

Flow flow_of(const Code& code) {
  std::vector<FlowBlock> blocks = blocks_of(code);
  std::vector<std::vector<std::uint32_t>> edges(blocks.size());
  std::vector<std::uint32_t> all;
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    edges[b] = blocks[b].successors;
    all.push_back(b);
  }
  std::vector<std::uint32_t> order;
  arrange(edges, all, order);
  std::vector<std::uint32_t> place(blocks.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) place[order[at]] = at;
  Flow flow;
  for (const std::uint32_t b : order) {
    FlowBlock& block = blocks[b];
    for (std::uint32_t& s : block.successors) s = place[s];
    flow.blocks.push_back(std::move(block));
  }
  // Where the function begins, what follows a step that the warp does, the headers of loops.
  const auto add_entry = [&](std::uint32_t b) {
    FlowBlock& block = flow.blocks[b];
    if (block.ending == Ending::kLeaves || block.waits || block.entry != kNoIndex) return;
    block.entry = static_cast<std::uint32_t>(flow.entries.size());
    flow.entries.push_back(b);
  };
  add_entry(place[0]);
  for (std::uint32_t b = 0; b < flow.blocks.size(); ++b) {
    for (const std::uint32_t s : flow.blocks[b].successors) {
      if (s <= b || flow.blocks[b].ending == Ending::kLeaves) add_entry(s);
    }
  }
  find_pending(flow);
  find_live(code, flow);
  return flow;
}

}  // namespace cudasim::ptx::jit
