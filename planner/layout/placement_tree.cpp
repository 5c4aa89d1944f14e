#include "planner/layout/placement_tree.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "planner/layout/placement_state.h"
#include "planner/layout/refutations.h"

namespace memopt::layout {
namespace {

// Offset is the narrowest type that takes twice the capacity: the search reads little else than arrays of it.
template <typename Offset>
class Tree final : public PlacementTree {
 public:
  Tree(const Sections& sections, std::int64_t capacity, Strategy strategy, const Pruning& pruning)
      : sections_(sections),
        pruning_(pruning),
        state_(sections, capacity, pruning),
        strategy_(std::move(strategy)),
        rank_(strategy_.rank),
        refutations_(sections.buffers()) {}

  std::uint64_t nodes() const override { return state_.nodes(); }

  std::vector<std::int64_t> offsets() const override { return state_.offsets(); }

 protected:
  Progress go_on(std::uint64_t nodes) override {
    const std::uint64_t end = state_.nodes() + nodes;
    if (!begun_) {
      begun_ = true;
      if (!state_.begin()) return Progress::kRefuted;
      split({0, sections_.count}, {0, sections_.count}, kNone);
    }
    bool failed = false;
    while (state_.nodes() < end) {
      if (failed) {
        if (path_.empty()) return Progress::kRefuted;
        failed = !postpone();
      } else {
        if (agenda_ == kNone) return Progress::kSolved;
        failed = !descend();
      }
    }
    // A failure has to be dealt with before the next descent.
    while (failed) {
      if (path_.empty()) return Progress::kRefuted;
      failed = !postpone();
    }
    return agenda_ == kNone ? Progress::kSolved : Progress::kUnfinished;
  }

 private:
  using State = PlacementState<Offset>;
  static constexpr std::int32_t kNone = State::kNone;
  static constexpr std::uint64_t kWorthRemembering = 16;  // nodes; less is found out again as quickly

  // Sections [begin, end) that no buffer without a place connects with others; searched for on its own.
  struct Part {
    std::int32_t begin;
    std::int32_t end;
    std::int32_t blame;  // the node to go back to when there is no placement
    std::int32_t next;   // of the agenda
  };

  // One part, of which one buffer after the other is placed, and postponed if that leads nowhere.
  struct Node {
    std::int32_t part;    // into parts_
    std::int32_t buffer;  // that is being tried
    std::size_t entry;    // of the trail, when the node was made
    std::size_t trial;    // of the trail, before the buffer was placed
    std::size_t parts;    // how many there were
    std::uint64_t made;   // after so many nodes
  };

  // Puts what is left of a part on the agenda after a buffer of it was placed; the part was connected before, so that
  // it can only have come apart where the buffer lives.
  void split(Sections::Range part, Sections::Range hull, std::int32_t blame) {
    if (!pruning_.decomposition) {
      for (std::int32_t s = part.begin; s < part.end; ++s) {
        if (state_.rest(s) == 0) continue;
        add_part(part.begin, part.end, blame);
        break;
      }
      return;
    }
    std::int32_t from = part.begin;
    bool any = hull.begin > part.begin;
    for (std::int32_t s = hull.begin; s < hull.end; ++s) {
      if (s > from && state_.crossing(s) == 0) {
        if (any) add_part(from, s, blame);
        from = s;
        any = false;
      }
      any |= state_.rest(s) != 0;
    }
    if (any || hull.end < part.end) add_part(from, part.end, blame);
  }

  void add_part(std::int32_t begin, std::int32_t end, std::int32_t blame) {
    parts_.push_back({begin, end, blame, agenda_});
    agenda_ = static_cast<std::int32_t>(parts_.size()) - 1;
  }

  bool refuted_before(const Part& part) {
    state_.look_at(sections_.begins[part.end] - sections_.begins[part.begin]);
    return refutations_.covers(state_.least(), State::kPlaced, sections_.begins[part.begin],
                               sections_.begins[part.end]);
  }

  // A node for the next part of the agenda, and its first buffer placed.
  bool descend() {
    if (pruning_.memory && refuted_before(parts_[agenda_])) {
      path_.resize(static_cast<std::size_t>(parts_[agenda_].blame + 1));
      return false;
    }
    const std::int32_t part = std::exchange(agenda_, parts_[agenda_].next);
    path_.push_back({part, kNone, state_.mark(), state_.mark(), parts_.size(), state_.nodes()});
    return place_next();
  }

  // In the last node: chooses a buffer and places it.
  bool place_next() {
    Node& node = path_.back();
    const Part part = parts_[node.part];
    node.trial = state_.mark();
    node.buffer = choose(part);
    agenda_ = part.next;
    parts_.resize(node.parts);
    if (!state_.place(node.buffer)) return false;
    split({part.begin, part.end}, sections_.hull[node.buffer], static_cast<std::int32_t>(path_.size()) - 1);
    return true;
  }

  // After a failure below the last node: its buffer does not lie where it was tried. Goes back to the node that is to
  // blame once there is nowhere left.
  bool postpone() {
    Node& node = path_.back();
    state_.undo(node.trial);
    agenda_ = kNone;
    if (state_.raise(node.buffer)) return place_next();
    state_.undo(node.entry);
    if (pruning_.memory && state_.nodes() - node.made >= kWorthRemembering) {
      const Part& part = parts_[node.part];
      refutations_.add(state_.least(), State::kPlaced, sections_.begins[part.begin], sections_.begins[part.end]);
    }
    const std::int32_t blame = parts_[node.part].blame;
    path_.resize(static_cast<std::size_t>(blame + 1));
    return false;
  }

  std::int32_t choose(const Part& part) {
    state_.look_at(sections_.begins[part.end] - sections_.begins[part.begin]);
    if (strategy_.conflicts_first && state_.conflict() >= part.begin && state_.conflict() < part.end &&
        state_.rest(state_.conflict()) != 0)
      return lowest_in(state_.conflict());
    switch (strategy_.choice) {
      case Choice::kLowest:
        return lowest(part);
      case Choice::kTightest:
        return tightest(part);
      case Choice::kScarcest:
        return scarcest(part);
    }
    return kNone;
  }

  Offset lowest_offset(const Part& part) const {
    Offset least = State::kPlaced;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      least = std::min(least, state_.least(b));
    }
    return least;
  }

  std::int32_t lowest(const Part& part) const {
    const Offset offset = lowest_offset(part);
    std::int32_t best = kNone;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      if (state_.least(b) == offset && (best == kNone || rank_[b] < rank_[best])) best = b;
    }
    return best;
  }

  std::int32_t tightest(const Part& part) {
    const Offset offset = lowest_offset(part);
    std::int32_t best = kNone;
    Offset best_slack = State::kPlaced;
    for (std::int32_t b = sections_.begins[part.begin]; b < sections_.begins[part.end]; ++b) {
      if (state_.least(b) != offset) continue;
      state_.look_at(sections_.hull[b].end - sections_.hull[b].begin);
      Offset slack = State::kPlaced;
      for (const auto& piece : sections_.pieces_of(b)) {
        for (std::int32_t s = piece.begin; s < piece.end; ++s) slack = std::min(slack, state_.slack_of(s));
      }
      if (best != kNone && (slack > best_slack || (slack == best_slack && rank_[b] > rank_[best]))) continue;
      best = b;
      best_slack = slack;
    }
    return best;
  }

  std::int32_t scarcest(const Part& part) {
    std::int32_t section = kNone;
    std::int32_t fewest = 0;
    Offset least_slack = 0;
    for (std::int32_t s = part.begin; s < part.end; ++s) {
      if (state_.rest(s) == 0) continue;
      const Offset slack = state_.slack_of(s);
      const Offset highest = state_.floor(s) + std::max<Offset>(slack, 0);
      state_.look_at(static_cast<std::int32_t>(state_.live_members_of(s).size()));
      std::int32_t candidates = 0;
      for (const std::int32_t b : state_.live_members_of(s)) candidates += state_.least(b) <= highest ? 1 : 0;
      if (section != kNone && (candidates > fewest || (candidates == fewest && slack >= least_slack))) continue;
      section = s;
      fewest = candidates;
      least_slack = slack;
    }
    return lowest_in(section);
  }

  // The lowest of a section, or what could still come below it, which has to be decided first.
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

  const Sections& sections_;
  const Pruning pruning_;
  PlacementState<Offset> state_;
  const Strategy strategy_;
  const std::vector<std::int32_t>& rank_;
  Refutations<Offset> refutations_;
  std::vector<Node> path_;
  std::vector<Part> parts_;
  std::int32_t agenda_ = kNone;
  bool begun_ = false;
};

}  // namespace

std::unique_ptr<PlacementTree> make_placement_tree(const Sections& sections, std::int64_t capacity, Strategy strategy,
                                                   const Pruning& pruning) {
  // Twice the largest sum must fit: a least offset plus a section's rest is compared with the capacity.
  std::int64_t sum = capacity;
  for (const std::int64_t bytes : sections.bytes) sum += bytes;
  if (sum < std::numeric_limits<std::int32_t>::max() / 4) {
    return std::make_unique<Tree<std::int32_t>>(sections, capacity, std::move(strategy), pruning);
  }
  return std::make_unique<Tree<std::int64_t>>(sections, capacity, std::move(strategy), pruning);
}

}  // namespace memopt::layout
