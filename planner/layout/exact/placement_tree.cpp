#include "planner/layout/exact/placement_tree.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "planner/layout/exact/nogoods.h"
#include "planner/layout/exact/placement_state.h"

namespace memopt::layout {
namespace {

// Offset is the narrowest type that holds twice the capacity: the search mostly reads arrays of it.
template <typename Offset>
class Tree final : public PlacementTree {
 public:
  Tree(const PreparedProblem& prepared, std::int64_t capacity, Strategy strategy, const Pruning& pruning)
      : prepared_(prepared),
        pruning_(pruning),
        state_(prepared, capacity, pruning),
        strategy_(std::move(strategy)),
        rank_(strategy_.rank),
        nogoods_(prepared.buffers()) {}

  std::uint64_t nodes() const override { return state_.nodes(); }

  std::vector<std::int64_t> offsets() const override { return state_.offsets(); }

 protected:
  Progress advance(std::uint64_t nodes) override {
    const std::uint64_t end = state_.nodes() + nodes;
    if (!begun_) {
      begun_ = true;
      if (!state_.begin()) return Progress::kInfeasible;
      split({0, prepared_.count}, {0, prepared_.count}, kNone);
    }
    bool failed = false;
    while (state_.nodes() < end) {
      if (failed) {
        if (path_.empty()) return Progress::kInfeasible;
        failed = !postpone();
      } else {
        if (pending_ == kNone) return Progress::kSolved;
        failed = !descend();
      }
    }
    // Ends between two decisions: a failure is handled before the next descent.
    while (failed) {
      if (path_.empty()) return Progress::kInfeasible;
      failed = !postpone();
    }
    return pending_ == kNone ? Progress::kSolved : Progress::kUnfinished;
  }

 private:
  using State = PlacementState<Offset>;
  static constexpr std::int32_t kNone = State::kNone;
  static constexpr std::uint64_t kWorthRemembering = 16;  // nodes; smaller subtrees are searched again as quickly

  // Sections [begin, end) that no unplaced buffer connects with others: a subproblem of its own (MiniMalloc's dynamic
  // decomposition).
  struct Component {
    std::int32_t begin;
    std::int32_t end;
    std::int32_t backjump;  // the node to go back to when there is no placement
    std::int32_t next;      // of those pending
  };

  // One component. Its buffers are tried one after the other: placed, and postponed if that leads nowhere.
  struct Node {
    std::int32_t component;  // into components_
    std::int32_t buffer;     // that is being tried
    std::size_t entry;       // of the trail, when the node was made
    std::size_t trial;       // of the trail, before the buffer was placed
    std::size_t components;  // how many there were
    std::uint64_t made;      // after so many nodes
  };

  // After a buffer of a component was placed, makes what is left of it pending. It was connected before, so it can have
  // come apart only where the buffer lives.
  void split(PreparedProblem::Range component, PreparedProblem::Range hull, std::int32_t backjump) {
    if (!pruning_.dynamic_decomposition) {
      for (std::int32_t s = component.begin; s < component.end; ++s) {
        if (state_.unplaced(s) == 0) continue;
        add_component(component.begin, component.end, backjump);
        break;
      }
      return;
    }
    std::int32_t from = component.begin;
    bool any = hull.begin > component.begin;
    for (std::int32_t s = hull.begin; s < hull.end; ++s) {
      if (s > from && state_.crossing(s) == 0) {
        if (any) add_component(from, s, backjump);
        from = s;
        any = false;
      }
      any |= state_.unplaced(s) != 0;
    }
    if (any || hull.end < component.end) add_component(from, component.end, backjump);
  }

  void add_component(std::int32_t begin, std::int32_t end, std::int32_t backjump) {
    components_.push_back({begin, end, backjump, pending_});
    pending_ = static_cast<std::int32_t>(components_.size()) - 1;
  }

  bool refuted_before(const Component& component) {
    state_.count_work(prepared_.begins[component.end] - prepared_.begins[component.begin]);
    return nogoods_.covers(state_.least(), State::kPlaced, prepared_.begins[component.begin],
                           prepared_.begins[component.end]);
  }

  // A node for the next pending component, and its first buffer placed.
  bool descend() {
    if (pruning_.nogoods && refuted_before(components_[pending_])) {
      path_.resize(static_cast<std::size_t>(components_[pending_].backjump + 1));
      return false;
    }
    const std::int32_t component = std::exchange(pending_, components_[pending_].next);
    path_.push_back({component, kNone, state_.mark(), state_.mark(), components_.size(), state_.nodes()});
    return place_next();
  }

  // In the last node: chooses a buffer and places it.
  bool place_next() {
    Node& node = path_.back();
    const Component component = components_[node.component];
    node.trial = state_.mark();
    node.buffer = branch(component);
    pending_ = component.next;
    components_.resize(node.components);
    if (!state_.place(node.buffer)) return false;
    split({component.begin, component.end}, prepared_.hull[node.buffer], static_cast<std::int32_t>(path_.size()) - 1);
    return true;
  }

  // After a failure below the last node: its buffer does not lie where it was tried. Once no offset is left for it,
  // goes back to the node that made its component: no decision in between has to do with it (backjumping).
  bool postpone() {
    Node& node = path_.back();
    state_.undo(node.trial);
    pending_ = kNone;
    if (state_.raise(node.buffer)) return place_next();
    state_.undo(node.entry);
    if (pruning_.nogoods && state_.nodes() - node.made >= kWorthRemembering) {
      const Component& component = components_[node.component];
      nogoods_.add(state_.least(), State::kPlaced, prepared_.begins[component.begin], prepared_.begins[component.end]);
    }
    const std::int32_t backjump = components_[node.component].backjump;
    path_.resize(static_cast<std::size_t>(backjump + 1));
    return false;
  }

  std::int32_t branch(const Component& component) {
    state_.count_work(prepared_.begins[component.end] - prepared_.begins[component.begin]);
    if (strategy_.last_conflict_first && state_.conflict() >= component.begin && state_.conflict() < component.end &&
        state_.unplaced(state_.conflict()) != 0)
      return lowest_in(state_.conflict());
    switch (strategy_.branching) {
      case Branching::kLeastOffset:
        return with_least_offset(component);
      case Branching::kLeastSlack:
        return with_least_slack(component);
      case Branching::kFewestCandidates:
        return with_fewest_candidates(component);
    }
    return kNone;
  }

  Offset lowest_offset(const Component& component) const {
    Offset least = State::kPlaced;
    for (std::int32_t b = prepared_.begins[component.begin]; b < prepared_.begins[component.end]; ++b) {
      least = std::min(least, state_.least(b));
    }
    return least;
  }

  std::int32_t with_least_offset(const Component& component) const {
    const Offset offset = lowest_offset(component);
    std::int32_t best = kNone;
    for (std::int32_t b = prepared_.begins[component.begin]; b < prepared_.begins[component.end]; ++b) {
      if (state_.least(b) == offset && (best == kNone || rank_[b] < rank_[best])) best = b;
    }
    return best;
  }

  std::int32_t with_least_slack(const Component& component) {
    const Offset offset = lowest_offset(component);
    std::int32_t best = kNone;
    Offset best_slack = State::kPlaced;
    for (std::int32_t b = prepared_.begins[component.begin]; b < prepared_.begins[component.end]; ++b) {
      if (state_.least(b) != offset) continue;
      state_.count_work(prepared_.hull[b].end - prepared_.hull[b].begin);
      Offset slack = State::kPlaced;
      for (const auto& piece : prepared_.pieces_of(b)) {
        for (std::int32_t s = piece.begin; s < piece.end; ++s) slack = std::min(slack, state_.slack_of(s));
      }
      if (best != kNone && (slack > best_slack || (slack == best_slack && rank_[b] > rank_[best]))) continue;
      best = b;
      best_slack = slack;
    }
    return best;
  }

  std::int32_t with_fewest_candidates(const Component& component) {
    std::int32_t section = kNone;
    std::int32_t fewest = 0;
    Offset least_slack = 0;
    for (std::int32_t s = component.begin; s < component.end; ++s) {
      if (state_.unplaced(s) == 0) continue;
      const Offset slack = state_.slack_of(s);
      const Offset highest = state_.floor(s) + std::max<Offset>(slack, 0);
      state_.count_work(static_cast<std::int32_t>(state_.live_members_of(s).size()));
      std::int32_t candidates = 0;
      for (const std::int32_t b : state_.live_members_of(s)) candidates += state_.least(b) <= highest ? 1 : 0;
      if (section != kNone && (candidates > fewest || (candidates == fewest && slack >= least_slack))) continue;
      section = s;
      fewest = candidates;
      least_slack = slack;
    }
    return lowest_in(section);
  }

  // The lowest unplaced buffer of a section, or one that could still come below it and has to be decided first.
  std::int32_t lowest_in(std::int32_t section) const {
    std::int32_t best = kNone;
    for (const std::int32_t b : state_.live_members_of(section)) {
      if (state_.least(b) == state_.floor(section) && (best == kNone || rank_[b] < rank_[best])) best = b;
    }
    for (;;) {
      std::int32_t below = kNone;
      state_.for_neighbours(best, [&](std::int32_t k) {
        if (state_.least(k) + state_.bytes(k) > state_.least(best)) return;
        if (below == kNone || state_.least(k) < state_.least(below) ||
            (state_.least(k) == state_.least(below) && rank_[k] < rank_[below])) {
          below = k;
        }
      });
      if (below == kNone) return best;
      best = below;
    }
  }

  const PreparedProblem& prepared_;
  const Pruning pruning_;
  PlacementState<Offset> state_;
  const Strategy strategy_;
  const std::vector<std::int32_t>& rank_;
  Nogoods<Offset> nogoods_;
  std::vector<Node> path_;
  std::vector<Component> components_;
  std::int32_t pending_ = kNone;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<PlacementTree> make_placement_tree(const PreparedProblem& prepared, std::int64_t capacity,
                                                   Strategy strategy, const Pruning& pruning) {
  // Twice the largest sum must fit: a least offset plus a section's unplaced bytes is compared with the capacity.
  std::int64_t sum = capacity;
  for (const std::int64_t bytes : prepared.bytes) sum += bytes;
  if (sum < std::numeric_limits<std::int32_t>::max() / 4) {
    return std::make_unique<Tree<std::int32_t>>(prepared, capacity, std::move(strategy), pruning);
  }
  return std::make_unique<Tree<std::int64_t>>(prepared, capacity, std::move(strategy), pruning);
}

}  // namespace memopt::layout
