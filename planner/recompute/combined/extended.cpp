#include "planner/recompute/combined/extended.h"

#include <algorithm>
#include <string>
#include <utility>

namespace memopt::recompute {
namespace {

using swap::Kind;
using swap::Operation;

class Extension {
 public:
  Extension(const swap::Problem& problem, const Graph& graph)
      : problem_(problem), graph_(graph), states_(problem.blocks.size()) {
    swap::Problem& made = extended_.problem;
    made.name = problem.name;
    made.blocks = problem.blocks;
    made.machine = problem.machine;
    made.limit = problem.limit;
    made.chunk = problem.chunk;
    made.align = problem.align;
    made.layout = false;
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      extended_.block_of.push_back(b);
      // Without an allocation in front of them: those that persist, or an earlier iteration's instance.
      if (!graph.can_be_made(b)) states_[b].life = b;
      last_id_ = std::max(last_id_, problem.blocks[b].id);
    }
  }

  Extended make(const Steps& steps) {
    std::size_t next = 0;
    const auto n = static_cast<std::uint32_t>(problem_.operations.size());
    for (std::uint32_t i = 0; i <= n; ++i) {
      now_ = std::max(now_, (i < n ? problem_.operations[i].time : problem_.period) + added_);  // sums are rounded
      for (; next < steps.size() && steps[next].before == i; ++next) {
        extended_.step_at.push_back(here());
        step_ = static_cast<std::uint32_t>(next);
        steps[next].kind == Step::Kind::kDrop ? release(steps[next].what) : replay(graph_.launches[steps[next].what]);
      }
      if (i == n) break;
      extended_.operation_at.push_back(here());
      operation(i);
    }
    extended_.problem.period = now_;
    return std::move(extended_);
  }

 private:
  struct State {
    std::uint32_t life = kNone;  // the block's in the iteration with its steps; kNone: it is not there
    std::uint32_t version = 0;
  };

  std::uint32_t here() const { return static_cast<std::uint32_t>(extended_.problem.operations.size()); }

  void add(Kind kind, std::uint32_t life) { extended_.problem.operations.push_back({kind, life, now_}); }

  // Of an allocation by a step.
  std::uint32_t new_life(std::uint32_t b, bool besides) {
    swap::Block block = problem_.blocks[b];
    block.id = ++last_id_;
    block.persistent = false;
    block.pinned = besides;
    const auto life = static_cast<std::uint32_t>(extended_.problem.blocks.size());
    extended_.problem.blocks.push_back(std::move(block));
    extended_.block_of.push_back(b);
    extended_.made_by.push_back(step_);
    add(Kind::kMalloc, life);
    return life;
  }

  void release(std::uint32_t b) {
    add(Kind::kFree, states_[b].life);
    states_[b] = {};
  }

  void operation(std::uint32_t i) {
    Operation one = problem_.operations[i];
    one.time = now_;
    const std::uint32_t b = one.block;
    if (b != swap::kNoBlock) {
      State& state = states_[b];
      if (one.kind == Kind::kFree && state.life == kNone) return;
      if (one.kind == Kind::kMalloc) state = {b};
      one.block = state.life;
      // Of one that lives on, there is another instance.
      if (one.kind == Kind::kFree && one.age == 0) state = {};
    }
    extended_.problem.operations.push_back(one);
    if (!graph_.begins(i)) return;
    for (const Use& write : graph_.launches[graph_.launch_at[i]].writes) states_[write.block].version = write.version;
  }

  void replay(const Launch& launch) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> besides;  // block, what is written instead
    for (const Use& write : launch.writes) {
      State& state = states_[write.block];
      switch (outcome(write, graph_.can_be_made(write.block), state.life != kNone, state.version)) {
        case Outcome::kMade:
          state.life = new_life(write.block, false);
          state.version = write.version;
          break;
        case Outcome::kChanged:
          state.version = write.version;
          break;
        case Outcome::kThere:
          break;
        case Outcome::kBesides:
          besides.emplace_back(write.block, new_life(write.block, true));
          break;
      }
    }
    const double begin = now_;
    for (std::uint32_t i = launch.first; i < launch.end; ++i) {
      Operation one = problem_.operations[i];
      one.time = std::min(begin + (one.time - problem_.operations[launch.first].time), begin + launch.ns);
      one.age = 0;
      if (one.block != swap::kNoBlock && problem_.blocks[one.block].bytes == 0) {
        one.kind = Kind::kNothing;  // it may be freed
        one.block = swap::kNoBlock;
      } else if (one.block != swap::kNoBlock) {
        const auto instead = std::find_if(besides.begin(), besides.end(),
                                          [&](const auto& each) { return each.first == problem_.operations[i].block; });
        one.block = one.kind == Kind::kWrite && instead != besides.end() ? instead->second : states_[one.block].life;
      }
      extended_.problem.operations.push_back(one);
    }
    now_ = begin + launch.ns;
    added_ += launch.ns;
    for (const auto& [block, life] : besides) add(Kind::kFree, life);
  }

  const swap::Problem& problem_;
  const Graph& graph_;
  std::vector<State> states_;  // by block of the iteration
  Extended extended_;
  std::uint64_t last_id_ = 0;
  std::uint32_t step_ = 0;  // that is made
  double now_ = 0, added_ = 0;
};

}  // namespace

Extended extend(const swap::Problem& problem, const Graph& graph, const Steps& steps) {
  return Extension(problem, graph).make(steps);
}

namespace {

// The launches in which this operation, and that at the other end of a swap, may be.
struct Ends {
  std::uint64_t out_after = 0, need = 0;
};

// An operation of [first, end), of the swap's instance.
bool touches(const swap::Problem& problem, std::uint64_t first, std::uint64_t end, const swap::Swap& swap,
             std::uint64_t position) {
  const std::uint64_t age = problem.blocks[swap.block].persistent ? 0 : position / problem.operations.size();
  const auto begin = problem.operations.begin();
  return std::any_of(
      begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end),
      [&](const Operation& one) { return swap::is_access(one) && one.block == swap.block && one.age == age; });
}

// Where they would be at the earliest and the latest, so that launches are whole.
Ends whole_launches(const swap::Problem& problem, const swap::Swap& swap) {
  const std::uint64_t n = problem.operations.size();
  Ends ends{swap.out_after, swap.need};
  const auto first_of = [&](std::uint64_t operation) {
    while (problem.operations[operation].continues) --operation;
    return operation;
  };
  const std::uint64_t out = swap.out_after % n, out_end = swap::end_of_launch(problem, out);
  if (touches(problem, first_of(out), out_end, swap, swap.out_after)) ends.out_after += out_end - 1 - out;
  if (!swap.returns()) return ends;
  const std::uint64_t need = swap.need % n, need_first = first_of(need);
  if (touches(problem, need_first, swap::end_of_launch(problem, need), swap, swap.need)) ends.need -= need - need_first;
  return ends;
}

}  // namespace

void keep_launches_whole(const swap::Problem& problem, std::vector<swap::Swap>& swaps) {
  for (swap::Swap& swap : swaps) {
    const Ends ends = whole_launches(problem, swap);
    swap.out_after = ends.out_after;
    if (!swap.returns()) continue;
    swap.need = ends.need;
    swap.in_after = std::clamp(swap.in_after, ends.out_after, std::max(ends.out_after, ends.need - 1));
  }
}

std::optional<std::string> find_launch_fault(const swap::Problem& problem, const std::vector<swap::Swap>& swaps) {
  for (std::size_t j = 0; j < swaps.size(); ++j) {
    const Ends ends = whole_launches(problem, swaps[j]);
    if (ends.out_after != swaps[j].out_after)
      return "swaps[" + std::to_string(j) + "]: it goes out within a launch that touches its block";
    if (ends.need != swaps[j].need)
      return "swaps[" + std::to_string(j) + "]: it comes back within a launch that touches its block";
  }
  return std::nullopt;
}

std::vector<swap::Swap> swaps_of_lives(const Extended& extended, std::vector<swap::Swap> swaps) {
  const std::size_t n = extended.problem.operations.size();
  struct Life {
    std::uint32_t life = 0;
    std::uint64_t begin = 0, end = 0;  // allocation and free
  };
  std::vector<std::uint64_t> begin(extended.block_of.size());
  std::vector<std::vector<Life>> lives(extended.block_of.size());
  for (std::uint64_t i = 0; i < n; ++i) {
    const Operation& one = extended.problem.operations[i];
    if (one.kind == Kind::kMalloc) begin[one.block] = i;
  }
  for (std::uint64_t i = 0; i < n; ++i) {
    const Operation& one = extended.problem.operations[i];
    const bool besides = one.kind == Kind::kFree && extended.is_besides(one.block);
    if (one.kind == Kind::kFree && !besides)
      lives[extended.block_of[one.block]].push_back({one.block, begin[one.block], i + one.age * n});
  }
  for (std::size_t j = 0; j < swaps.size(); ++j) {
    swap::Swap& swap = swaps[j];
    const auto fail = [&](const std::string& why) { throw swap::Invalid("swaps[" + std::to_string(j) + "]: " + why); };
    if (swap.block >= extended.problem.blocks.size() || extended.block_of[swap.block] != swap.block)
      fail("there is no such block");
    if (extended.problem.blocks[swap.block].bytes == 0) fail("the block has no bytes");
    if (extended.problem.blocks[swap.block].persistent) continue;
    const std::vector<Life>& all = lives[swap.block];
    const auto found = std::find_if(all.begin(), all.end(), [&](const Life& life) {
      return life.begin <= swap.out_after && swap.out_after < life.end;
    });
    if (found == all.end()) fail("out_after: the block is not there");
    swap.block = found->life;
  }
  return swaps;
}

std::vector<swap::Swap> swaps_of_blocks(const Extended& extended, std::vector<swap::Swap> swaps) {
  for (swap::Swap& swap : swaps) swap.block = extended.block_of[swap.block];
  return swaps;
}

std::vector<swap::Place> places_of_lives(const Extended& extended, std::vector<swap::Place> of_blocks,
                                         const std::vector<StepPlace>& of_steps) {
  std::vector<swap::Place> places = std::move(of_blocks);
  if (places.size() != extended.blocks()) throw swap::Invalid("expected a place for each block, found none");
  places.resize(extended.block_of.size());
  std::vector<bool> placed(extended.made_by.size());
  for (const StepPlace& one : of_steps) {
    const auto fail = [&](const char* why) {
      throw swap::Invalid("recompute[" + std::to_string(one.step) + "].places: block " +
                          std::to_string(extended.problem.blocks[one.block].id) + why);
    };
    const auto [begin, end] = std::equal_range(extended.made_by.begin(), extended.made_by.end(), one.step);
    std::size_t life = static_cast<std::size_t>(begin - extended.made_by.begin());
    const auto behind = static_cast<std::size_t>(end - extended.made_by.begin());
    while (life < behind && extended.block_of[extended.blocks() + life] != one.block) ++life;
    if (life == behind) fail(" takes no bytes there");
    if (placed[life]) fail(" is given twice");
    placed[life] = true;
    places[extended.blocks() + life] = one.place;
  }
  const auto none = static_cast<std::size_t>(std::find(placed.begin(), placed.end(), false) - placed.begin());
  if (none == placed.size()) return places;
  const std::uint32_t block = extended.block_of[extended.blocks() + none];
  throw swap::Invalid("recompute[" + std::to_string(extended.made_by[none]) + "].places: expected one of block " +
                      std::to_string(extended.problem.blocks[block].id) + ", which takes its bytes there");
}

std::vector<StepPlace> places_of_steps(const Extended& extended, const std::vector<swap::Place>& places) {
  std::vector<StepPlace> of_steps;
  for (std::size_t k = 0; k < extended.made_by.size(); ++k) {
    const std::size_t life = extended.blocks() + k;
    of_steps.push_back({extended.made_by[k], extended.block_of[life], places[life]});
  }
  return of_steps;
}

}  // namespace memopt::recompute
