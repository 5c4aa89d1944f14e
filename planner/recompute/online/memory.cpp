#include "planner/recompute/online/memory.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace memopt::recompute {
namespace {

using swap::Kind;

// Of each launch, on average: they may take no time.
constexpr std::uint64_t kMostReplays = 100;

class Memory {
 public:
  Memory(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, std::uint64_t budget,
         std::span<const Absence> absences, Policy& policy, double most_ns, const std::function<bool()>& ends)
      : problem_(problem),
        liveness_(liveness),
        graph_(graph),
        budget_(budget),
        absences_(absences),
        policy_(policy),
        most_ns_(most_ns),
        ends_(ends),
        blocks_(problem.blocks.size()),
        ahead_(problem.operations.size(), kNone) {
    // As far as there is nothing but allocations and frees before it.
    for (std::size_t i = ahead_.size(); i-- > 0;) {
      const Kind kind = problem.operations[i].kind;
      if (kind != Kind::kMalloc && kind != Kind::kFree) {
        ahead_[i] = graph.launch_at[i];
      } else if (i + 1 < ahead_.size()) {
        ahead_[i] = ahead_[i + 1];
      }
    }
    for (std::uint32_t k = 0; k < absences.size(); ++k) {
      leaves_.emplace_back(absences[k].from, k);
      if (absences[k].to != kNone) returns_.emplace_back(absences[k].to, k);
      ++blocks_[absences[k].block].absences;
    }
    std::sort(leaves_.begin(), leaves_.end());
    std::sort(returns_.begin(), returns_.end());
  }

  std::optional<Steps> run(std::vector<EarlyReturn>& early) {
    early_ = &early;
    const std::uint64_t n = problem_.operations.size();
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      const std::uint64_t before = swap::instances_at_begin(problem_, liveness_, b);
      load_ += before * problem_.blocks[b].bytes;
      blocks_[b].in_memory = before != 0;
    }
    for (std::uint32_t k = 0; k < absences_.size(); ++k) {
      if (absences_[k].to < absences_[k].from) leave(k);  // since the iteration before
    }
    if (load_ > budget_) return std::nullopt;
    for (at_ = 0; at_ < n; ++at_) {
      if (!leave_and_return() || !follow()) return std::nullopt;
    }
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      if (is_whole(b) && !blocks_[b].alive) drop(b);
    }
    return std::move(steps_);
  }

 private:
  struct State {
    bool alive = false;         // allocated by the program, not freed yet
    bool in_memory = false;     // its bytes are taken
    std::uint32_t version = 0;  // that is in memory
    std::uint32_t locks = 0;
    std::uint32_t place = kNone;    // in there_, where it is whole
    std::uint32_t absence = kNone;  // in which it is away
    std::uint32_t absences = 0;     // that it has not come back from
  };

  bool is_whole(std::uint32_t b) const { return blocks_[b].place != kNone; }

  // What is swapped, before the operation ahead.
  bool leave_and_return() {
    for (; left_ < leaves_.size() && leaves_[left_].first == at_; ++left_) leave(leaves_[left_].second);
    for (; returned_ < returns_.size() && returns_[returned_].first == at_; ++returned_) {
      const std::uint32_t k = returns_[returned_].second;
      if (blocks_[absences_[k].block].absence == k && !come_back(absences_[k].block)) return false;
    }
    return true;
  }

  void leave(std::uint32_t k) {
    const std::uint32_t b = absences_[k].block;
    State& state = blocks_[b];
    if (!state.in_memory) return;
    state.absence = k;
    state.in_memory = false;
    load_ -= problem_.blocks[b].bytes;
    if (state.place != kNone) remove(b);
  }

  bool come_back(std::uint32_t b) {
    if (!make_room(problem_.blocks[b].bytes)) return false;
    State& state = blocks_[b];
    load_ += problem_.blocks[b].bytes;
    state.in_memory = true;
    state.absence = kNone;
    --state.absences;
    if (graph_.can_be_made(b) && state.version == graph_.last_version(b)) add(b);
    return true;
  }

  // Of all that the launch touches.
  bool come_back_early(const Launch& launch) {
    for (const std::vector<Use>* uses : {&launch.reads, &launch.writes}) {
      for (const Use& use : *uses) {
        const std::uint32_t k = blocks_[use.block].absence;
        if (k == kNone) continue;
        // It would be there when the next iteration begins, which it is not.
        if (absences_[k].to < absences_[k].from && at_ >= absences_[k].from) return false;
        early_->push_back({k, at_, static_cast<std::uint32_t>(steps_.size())});
        if (!come_back(use.block)) return false;
        early_->back().steps = static_cast<std::uint32_t>(steps_.size());
      }
    }
    return true;
  }

  bool follow() {
    const swap::Operation& operation = problem_.operations[at_];
    const std::uint32_t b = operation.block;
    switch (operation.kind) {
      case Kind::kMalloc:
        // What it reads comes first, as long as there is room for that.
        if (!prepare(ahead_[at_]) || !make_room(problem_.blocks[b].bytes)) return false;
        load_ += problem_.blocks[b].bytes;
        blocks_[b].alive = blocks_[b].in_memory = true;
        return true;
      case Kind::kFree:
        blocks_[b].alive = false;
        if (blocks_[b].absence != kNone) {
          blocks_[b].absence = kNone;  // freed while it is away
          --blocks_[b].absences;
          blocks_[b].version = 0;
        } else if (!graph_.can_be_made(b)) {
          load_ -= problem_.blocks[b].bytes;
          blocks_[b].in_memory = false;
        } else if (blocks_[b].in_memory) {
          give_up(b);
        }
        return true;
      default:
        return !graph_.begins(at_) || launch(graph_.launch_at[at_]);
    }
  }

  // All that the launch reads is in memory, and stays until it has run.
  bool prepare(std::uint32_t l) {
    if (l == kNone || l == prepared_) return true;
    prepared_ = l;
    const Launch& launch = graph_.launches[l];
    lock(launch, 1);
    if (!come_back_early(launch)) return false;
    for (const Use& read : launch.reads) {
      // In an earlier version it has never left.
      if (read.version == graph_.last_version(read.block) && !fetch(read.block)) return false;
    }
    return true;
  }

  bool launch(std::uint32_t l) {
    if (!prepare(l)) return false;
    const Launch& launch = graph_.launches[l];
    now_ += launch.ns;
    for (const Use& write : launch.writes) write_version(write);
    touch(launch);
    lock(launch, -1);
    return true;
  }

  void lock(const Launch& launch, int by) {
    for (const std::vector<Use>* uses : {&launch.reads, &launch.writes}) {
      for (const Use& use : *uses) blocks_[use.block].locks += static_cast<std::uint32_t>(by);
    }
  }

  void touch(const Launch& launch) {
    for (const std::vector<Use>* uses : {&launch.reads, &launch.writes}) {
      for (const Use& use : *uses) policy_.used(use.block, now_);
    }
  }

  void write_version(const Use& write) {
    State& state = blocks_[write.block];
    state.version = write.version;
    if (!graph_.can_be_made(write.block) || write.version != graph_.last_version(write.block) ||
        is_whole(write.block)) {
      return;
    }
    add(write.block);
    policy_.made(write.block);
  }

  void add(std::uint32_t b) {
    blocks_[b].place = static_cast<std::uint32_t>(there_.size());
    there_.push_back(b);
  }

  void remove(std::uint32_t b) {
    State& state = blocks_[b];
    there_[state.place] = there_.back();
    blocks_[there_.back()].place = state.place;
    there_.pop_back();
    state.place = kNone;
  }

  void give_up(std::uint32_t b) {
    State& state = blocks_[b];
    load_ -= problem_.blocks[b].bytes;
    state.in_memory = false;
    state.version = 0;
    if (state.place == kNone) return;
    remove(b);
    policy_.dropped(b);
  }

  void drop(std::uint32_t b) {
    steps_.push_back({at_, Step::Kind::kDrop, b});
    give_up(b);
  }

  bool make_room(std::uint64_t bytes) {
    while (load_ + bytes > budget_) {
      const std::uint32_t chosen = least();
      if (chosen == kNone || (ends_ && ends_())) return false;
      drop(chosen);
    }
    return true;
  }

  // Of what may be dropped, that of the least value. Only what may be that is looked at closely.
  std::uint32_t least() {
    candidates_.clear();
    for (const std::uint32_t b : there_) {
      if (blocks_[b].locks == 0 && blocks_[b].absences == 0 && graph_.may_be_dropped(b, at_) &&
          policy_.may_leave(b, at_))
        candidates_.emplace_back(policy_.at_least(b, now_, at_), b);
    }
    std::make_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    std::pair<double, std::uint32_t> best(std::numeric_limits<double>::infinity(), kNone);
    for (auto end = candidates_.end(); end != candidates_.begin() && candidates_.front().first <= best.first; --end) {
      const std::uint32_t b = candidates_.front().second;
      best = std::min(best, {policy_.value(b, now_, at_), b});
      std::pop_heap(candidates_.begin(), end, std::greater<>());
    }
    return best.second;
  }

  // A block of which some makers, and what these read, are still to come.
  struct Wanted {
    std::uint32_t block = 0;
    std::size_t next = 0;  // of the maker's reads
    bool locked = false;   // what the maker ahead uses
  };

  const Launch& maker(const Wanted& wanted) const {
    return graph_.launches[graph_.makers[wanted.block][blocks_[wanted.block].version]];
  }

  // Makes the block, and before it whatever is missing for it. Chains may be as long as the iteration: no recursion.
  bool fetch(std::uint32_t block) {
    if (!graph_.can_be_made(block) || is_whole(block)) return true;
    std::vector<Wanted> stack = {{block}};
    while (!stack.empty()) {
      Wanted& top = stack.back();
      if (is_whole(top.block)) {
        stack.pop_back();
        continue;
      }
      const Launch& launch = maker(top);
      if (!top.locked) {
        if (at_ < launch.end || at_ > launch.valid_until) return false;
        lock(launch, 1);
        top.locked = true;
        if (!come_back_early(launch)) return false;
      }
      std::uint32_t missing = kNone;
      for (; top.next < launch.reads.size(); ++top.next) {
        const Use& read = launch.reads[top.next];
        const bool whole = read.version == graph_.last_version(read.block);
        if (read.block == top.block || !whole || !graph_.can_be_made(read.block) || is_whole(read.block)) continue;
        missing = read.block;
        break;
      }
      if (missing != kNone) {
        stack.push_back({missing});
        continue;
      }
      if (!replay(launch, top.block)) return false;
      lock(launch, -1);
      top.locked = false;
      top.next = 0;
    }
    return true;
  }

  Outcome outcome_of(const Use& write) const {
    const State& state = blocks_[write.block];
    return outcome(write, graph_.can_be_made(write.block), state.in_memory, state.version);
  }

  // For one of the blocks that it writes. Of the others that it makes, what needs more makers is dropped at once.
  bool replay(const Launch& launch, std::uint32_t wanted) {
    if (++replays_ > kMostReplays * graph_.launches.size() || (ends_ && ends_())) return false;
    for (const Use& read : launch.reads) {
      if (!blocks_[read.block].in_memory || blocks_[read.block].version != read.version) return false;
    }
    // What is written besides takes its bytes for as long as the replay, what is made for longer.
    std::uint64_t bytes = 0;
    for (const Use& write : launch.writes) {
      const Outcome its = outcome_of(write);
      if (its == Outcome::kMade || its == Outcome::kBesides) bytes += problem_.blocks[write.block].bytes;
    }
    if (!make_room(bytes)) return false;
    now_ += launch.ns;
    replayed_ns_ += launch.ns;
    steps_.push_back({at_, Step::Kind::kReplay, static_cast<std::uint32_t>(&launch - graph_.launches.data())});
    made_.clear();
    for (const Use& write : launch.writes) {
      const Outcome its = outcome_of(write);
      if (its == Outcome::kThere || its == Outcome::kBesides) continue;
      if (its == Outcome::kMade) {
        load_ += problem_.blocks[write.block].bytes;
        blocks_[write.block].in_memory = true;
        made_.push_back(write.block);
      }
      write_version(write);
    }
    touch(launch);
    // Not what the program itself has made so far, and is going to change.
    for (const std::uint32_t b : made_) {
      if (!is_whole(b) && b != wanted && blocks_[b].locks == 1) drop(b);
    }
    return replayed_ns_ <= most_ns_;
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const Graph& graph_;
  const std::uint64_t budget_;
  const std::span<const Absence> absences_;
  Policy& policy_;
  const double most_ns_;
  const std::function<bool()>& ends_;
  std::vector<State> blocks_;
  std::vector<std::uint32_t> ahead_;  // by operation: the next launch
  std::uint32_t prepared_ = kNone;
  std::vector<std::pair<double, std::uint32_t>> candidates_;
  std::vector<std::uint32_t> made_;                                        // by the replay
  std::vector<std::uint32_t> there_;                                       // whole, and can be made again
  std::vector<std::pair<std::uint32_t, std::uint32_t>> leaves_, returns_;  // operation, absence
  std::size_t left_ = 0, returned_ = 0;
  std::vector<EarlyReturn>* early_ = nullptr;
  Steps steps_;
  std::uint64_t load_ = 0;
  std::uint32_t at_ = 0;
  double now_ = 0, replayed_ns_ = 0;
  std::uint64_t replays_ = 0;
};

}  // namespace

std::optional<Steps> run_online(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, Policy& policy, double most_ns,
                                const std::function<bool()>& ends) {
  std::vector<EarlyReturn> early;
  return run_online(problem, liveness, graph, budget, {}, policy, most_ns, ends, early);
}

std::optional<Steps> run_online(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                std::uint64_t budget, std::span<const Absence> absences, Policy& policy, double most_ns,
                                const std::function<bool()>& ends, std::vector<EarlyReturn>& early) {
  early.clear();
  return Memory(problem, liveness, graph, budget, absences, policy, most_ns, ends).run(early);
}

}  // namespace memopt::recompute
