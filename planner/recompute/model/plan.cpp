#include "planner/recompute/model/plan.h"

#include <algorithm>
#include <utility>

namespace memopt::recompute {
namespace {

using swap::Kind;
using swap::Operation;

class Run {
 public:
  Run(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph)
      : problem_(problem), graph_(graph), blocks_(problem.blocks.size()) {
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      // Several instances at once count as often.
      const std::uint64_t before = swap::instances_at_begin(problem, liveness, b);
      take(before * problem.blocks[b].bytes);
      blocks_[b].instances = before;
      blocks_[b].there = before != 0;
      lives_on_.push_back(swap::lives_on(problem, liveness, b));
    }
  }

  Cost run(const Steps& steps) {
    std::size_t next = 0;
    const auto n = static_cast<std::uint32_t>(problem_.operations.size());
    for (std::uint32_t i = 0; i <= n && !cost_.fault; ++i) {
      for (; next < steps.size() && steps[next].before == i && !cost_.fault; ++next) {
        const Step& step = steps[next];
        step.kind == Step::Kind::kDrop ? drop(step.what, i) : replay(step.what, i);
        if (cost_.fault) cost_.fault = "steps[" + std::to_string(next) + "]: " + *cost_.fault;
      }
      if (i == n || cost_.fault) break;
      operation(i);
      if (cost_.fault) cost_.fault = "operation " + std::to_string(i) + ": " + *cost_.fault;
    }
    if (next < steps.size())
      fail("steps[" + std::to_string(next) + "]: expected operations in order, up to " + std::to_string(n));
    for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
      if (blocks_[b].there && blocks_[b].instances == 0) fail(name(b) + " is left behind at the end");
    }
    return std::move(cost_);
  }

 private:
  struct State {
    bool there = false;           // in memory
    std::uint32_t version = 0;    // in there
    std::uint64_t instances = 0;  // by the program: allocated, not freed yet
  };

  std::string name(std::uint32_t b) const { return "block " + std::to_string(problem_.blocks[b].id); }
  std::uint64_t bytes(std::uint32_t b) const { return problem_.blocks[b].bytes; }

  void fail(std::string why) {
    if (!cost_.fault) cost_.fault = std::move(why);
  }

  void take(std::uint64_t bytes) {
    load_ += bytes;
    cost_.peak = std::max(cost_.peak, load_);
  }

  void drop(std::uint32_t b, std::uint32_t before) {
    ++cost_.drops;
    if (graph_.is_within_launch(before)) return fail("it is within a launch");
    if (b >= blocks_.size()) return fail("there is no such block");
    if (!graph_.can_be_made(b)) return fail(name(b) + " can't be made again");
    if (!blocks_[b].there || blocks_[b].version == 0) return fail(name(b) + " is not in memory");
    blocks_[b].there = false;
    load_ -= bytes(b);
  }

  bool reads(const Launch& launch) {
    for (const Use& read : launch.reads) {
      const State& state = blocks_[read.block];
      if (state.there && state.version == read.version) continue;
      fail(name(read.block) +
           (state.there ? ", which is read, is not as it was" : ", which is read, is not in memory"));
      return false;
    }
    return true;
  }

  void replay(std::uint32_t l, std::uint32_t before) {
    ++cost_.replays;
    if (l >= graph_.launches.size()) return fail("there is no such launch");
    const Launch& launch = graph_.launches[l];
    if (before < launch.end) return fail("the launch is not behind it");
    if (graph_.is_within_launch(before)) return fail("it is within a launch");
    for (const std::vector<Use>* uses : {&launch.reads, &launch.writes}) {
      for (const Use& use : *uses) {
        if (lives_on_[use.block]) return fail(name(use.block) + ", which it touches, lives on into the next iteration");
      }
    }
    if (!reads(launch)) return;
    std::uint64_t scratch = 0;
    for (const Use& write : launch.writes) {
      State& state = blocks_[write.block];
      switch (outcome(write, graph_.can_be_made(write.block), state.there, state.version)) {
        case Outcome::kMade:
          take(bytes(write.block));
          state = {true, write.version, state.instances};
          break;
        case Outcome::kChanged:
          state.version = write.version;
          break;
        case Outcome::kThere:
          break;
        case Outcome::kBesides:
          scratch += bytes(write.block);
          break;
      }
    }
    take(scratch);
    load_ -= scratch;
    cost_.added_ns += launch.ns;
  }

  void operation(std::uint32_t i) {
    const Operation& operation = problem_.operations[i];
    if (operation.kind == Kind::kMalloc) return allocate(operation.block);
    if (operation.kind == Kind::kFree) return release(operation.block);
    if (!graph_.begins(i)) return;
    const Launch& launch = graph_.launches[graph_.launch_at[i]];
    if (!reads(launch)) return;
    for (const Use& write : launch.writes) {
      State& state = blocks_[write.block];
      if (!state.there) return fail(name(write.block) + ", which is written, is not in memory");
      if (state.version + 1 != write.version) return fail(name(write.block) + ", which is written, is not as it was");
      state.version = write.version;
    }
  }

  void allocate(std::uint32_t b) {
    if (bytes(b) == 0) return;
    State& state = blocks_[b];
    if (graph_.can_be_made(b) && state.there) return fail(name(b) + " is in memory already");
    take(bytes(b));
    state.there = true;
    ++state.instances;
  }

  void release(std::uint32_t b) {
    if (bytes(b) == 0) return;
    State& state = blocks_[b];
    --state.instances;
    if (!graph_.can_be_made(b)) {
      load_ -= bytes(b);
      state.there = state.instances != 0;
    } else if (state.there) {
      load_ -= bytes(b);
      state.there = false;
    }
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  std::vector<State> blocks_;
  std::vector<bool> lives_on_;  // from iteration to iteration
  std::uint64_t load_ = 0;
  Cost cost_;
};

}  // namespace

Cost find_cost(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph, const Steps& steps) {
  return Run(problem, liveness, graph).run(steps);
}

}  // namespace memopt::recompute
