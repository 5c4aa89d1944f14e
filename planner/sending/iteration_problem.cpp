#include "planner/sending/iteration_problem.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "planner/swap/model/load.h"
#include "planner/swap/model/machines.h"
#include "shm/plan.h"

namespace memopt::planner {
namespace {

// Which block of the problem an instance is, and how many iterations ago it was born.
class Instances {
 public:
  Instances(const OperationStore& store, const IterationPlan& plan, const IterationMallocs& mallocs)
      : store_(store), mallocs_(mallocs) {
    const IterationLifetimes& lifetimes = plan.lifetimes;
    cuts_.assign(store.lanes().size(), std::numeric_limits<std::uint32_t>::max());
    for (const LanePeriod& lane : plan.iteration.lanes) cuts_[lane.lane] = lane.end;
    for (std::uint64_t k = 0; k < lifetimes.unwrapped; ++k) {
      const Operation& op = store.operations()[lifetimes.order[k]];
      cuts_[op.lane] = std::min(cuts_[op.lane], op.lane_index);
    }
    std::uint32_t count = mallocs.count();
    for (const std::uint32_t block : lifetimes.persistent) persistent_.emplace(block, count++);
  }

  struct Instance {
    std::uint32_t block;
    std::uint32_t age;
  };
  bool is_persistent(std::uint32_t block) const { return persistent_.contains(block); }
  std::optional<Instance> find(std::uint32_t operation, std::uint32_t block) const {
    if (const auto found = persistent_.find(block); found != persistent_.end()) return Instance{found->second, 0};
    const Block& b = store_.blocks()[block];
    if (b.birth == kNone) return std::nullopt;
    const std::uint32_t lane_index = store_.operations()[b.birth].lane_index;
    const IterationMallocs::Malloc* const found = mallocs_.find(b.lane, lane_index);
    if (found == nullptr) return std::nullopt;
    const std::int64_t p = mallocs_.iteration().find(b.lane)->period;
    const std::int64_t born = lane_index;
    const std::int64_t from_cut = born - cuts_[b.lane];
    const std::int64_t frame = from_cut >= 0 ? from_cut / p : -((-from_cut + p - 1) / p);
    const Operation& op = store_.operations()[operation];
    return Instance{found->block, static_cast<std::uint32_t>((op.lane_index >= cuts_[op.lane] ? 0 : -1) - frame)};
  }

 private:
  const OperationStore& store_;
  const IterationMallocs& mallocs_;
  std::vector<std::uint32_t> cuts_;  // where the boundary lies in the last repeat, by lane
  std::unordered_map<std::uint32_t, std::uint32_t> persistent_;
};

// Of the repeats before the last one so many are asked what an operation has named.
constexpr std::uint32_t kRepeatsAsked = 8;

// What an operation of the last repeat names, and what it named in the repeats before it: parameters may hold stale
// words, by which a launch names other blocks every other time, or every third time. The program can't be told to use
// them only sometimes: a block that is named while it is away is brought back at once, and the iteration is not as
// planned. A block of an earlier repeat stands for the one that was made at the same place of the last one, where that
// lives.
class NamedBlocks {
 public:
  NamedBlocks(const OperationStore& store, const Iteration& iteration, const Instances& instances)
      : store_(store), iteration_(iteration), instances_(instances) {
    // Of the first one a part, perhaps: whether an operation was in it is seen from the operation.
    const std::uint32_t before = (std::max(iteration.repeated, 1u) - 1) / iteration.lanes[iteration.main].period;
    repeats_ = std::min(before, kRepeatsAsked);
  }

  struct Counted {
    Access access;
    std::uint32_t times;  // repeats in which it was, the last of them being that one
    std::uint32_t last;
  };

  // `repeats`: how many were looked at.
  std::span<const Counted> of(std::uint32_t index, std::uint32_t* repeats) {
    const Operation op = store_.operations()[index];
    const LanePeriod* const lane = iteration_.find(op.lane);
    named_.clear();
    *repeats = 1;
    for (const Access& access : store_.accesses(index)) add(access, 1);
    if (lane == nullptr) return named_;
    const LaneOperations& operations = store_.lanes()[op.lane].operations;
    for (std::uint32_t back = 1; back <= repeats_; ++back) {
      const std::uint64_t distance = std::uint64_t{lane->period} * back;
      if (distance > op.lane_index) break;
      const std::uint32_t earlier = operations[op.lane_index - distance];
      if (store_.operations()[earlier].token != op.token) break;
      ++*repeats;
      for (Access access : store_.accesses(earlier)) {
        const std::optional<std::uint32_t> block = counterpart(access.block, back, index);
        if (!block) continue;
        access.block = *block & Access::kBlockMask;
        add(access, *repeats);
      }
    }
    return named_;
  }

 private:
  // The block at the same place `back` repeats later, if it lives at the operation `index`.
  std::optional<std::uint32_t> counterpart(std::uint32_t block, std::uint32_t back, std::uint32_t index) const {
    if (instances_.is_persistent(block)) return block;
    const Block before = store_.blocks()[block];
    if (before.birth == kNone) return std::nullopt;
    const LanePeriod* const lane = iteration_.find(before.lane);
    if (lane == nullptr) return std::nullopt;
    const LaneOperations& operations = store_.lanes()[before.lane].operations;
    const Operation birth = store_.operations()[before.birth];
    const std::uint64_t at = birth.lane_index + std::uint64_t{lane->period} * back;
    if (at >= lane->end) return std::nullopt;
    const Operation later = store_.operations()[operations[at]];
    if (later.token != birth.token || later.block == kNone) return std::nullopt;
    const Block now = store_.blocks()[later.block];
    const bool lives = now.birth <= index && (now.alive() || now.death > index);
    return lives ? std::optional(later.block) : std::nullopt;
  }

  // `repeat`: the so-manieth that is looked at.
  void add(const Access& access, std::uint32_t repeat) {
    for (Counted& known : named_) {
      if (known.access.block != access.block) continue;
      known.access.reads |= access.reads;
      known.access.writes |= access.writes;
      known.times += known.last != repeat ? 1 : 0;
      known.last = repeat;
      return;
    }
    named_.push_back({access, 1, repeat});
  }

  const OperationStore& store_;
  const Iteration& iteration_;
  const Instances& instances_;
  std::uint32_t repeats_ = 0;
  std::vector<Counted> named_;
};

}  // namespace

// The problem's operations, with times from the boundary on.
class IterationProblemBuilder::Operations {
 public:
  Operations(std::uint64_t begin, IterationProblem& result) : begin_(begin), result_(result) {}

  // What follows is of this rank. It happens then, or when what was before it happens.
  void at(std::uint64_t nanoseconds, std::uint64_t rank) {
    const std::uint64_t since = nanoseconds > begin_ ? nanoseconds - begin_ : 0;
    if (since > now_) end_launch(since);
    accessed_ = {};
    rank_ = rank;
    now_ = std::max(now_, since);
  }
  void add(std::span<const swap::Operation> operations) {
    for (const swap::Operation& operation : operations) append(operation);
    const auto accesses = std::find_if(operations.begin(), operations.end(), swap::is_access);
    accessed_ = operations.subspan(static_cast<std::size_t>(accesses - operations.begin()));
  }
  void add_nothing() { append({}); }

  double end(std::uint64_t period) {
    at(begin_ + period, rank_);
    return static_cast<double>(now_);
  }

 private:
  // The time until the next operation is the last one's. All blocks of a launch are on the device until it is over, so
  // the others are accessed again at its end.
  void end_launch(std::uint64_t since) {
    now_ = since;
    if (!accessed_.empty()) {
      for (const swap::Operation& operation : accessed_.first(accessed_.size() - 1)) append(operation);
    }
  }
  void append(swap::Operation operation) {
    operation.time = static_cast<double>(now_);
    result_.problem.operations.push_back(operation);
    result_.ranks.push_back(rank_);
  }

  std::uint64_t begin_;
  IterationProblem& result_;
  std::uint64_t now_ = 0, rank_ = 0;
  std::span<const swap::Operation> accessed_;  // of the last rank
};

IterationMallocs::IterationMallocs(const OperationStore& store, const IterationPlan& plan)
    : iteration_(plan.iteration) {
  std::uint32_t count = 0;
  for (const LaneMallocs& lane : plan.lifetimes.lanes) {
    for (const std::uint32_t index : lane.operations) {
      const Operation op = store.operations()[index];
      mallocs_.emplace(key(*iteration_.find(op.lane), op.lane_index), Malloc{count++, op.token});
    }
  }
}

std::uint64_t IterationMallocs::key(const LanePeriod& lane, std::int64_t lane_index) {
  const std::int64_t period = lane.period;
  const std::int64_t behind_begin = ((lane_index - lane.middle()) % period + period) % period;
  return std::uint64_t{lane.lane} << 32 | static_cast<std::uint64_t>(behind_begin);
}

const IterationMallocs::Malloc* IterationMallocs::find(std::uint32_t lane, std::uint32_t lane_index) const {
  const LanePeriod* const period = iteration_.find(lane);
  if (period == nullptr) return nullptr;
  const auto found = mallocs_.find(key(*period, lane_index));
  return found != mallocs_.end() ? &found->second : nullptr;
}

IterationProblemBuilder::IterationProblemBuilder(const OperationStore& store, const IterationPlan& plan,
                                                 const std::string& name)
    : mallocs_(store, plan) {
  const IterationLifetimes& lifetimes = plan.lifetimes;
  const auto operations = store.operations();
  const Instances instances(store, plan, mallocs_);
  NamedBlocks named(store, plan.iteration, instances);
  unwrapped_ = lifetimes.unwrapped;
  const LanePeriod& main = plan.iteration.lanes[plan.iteration.main];
  const auto& main_operations = store.lanes()[main.lane].operations;
  const auto ticks = [&](std::uint32_t operation) { return operations[operation].ticks; };
  const auto [first, last] = std::minmax_element(lifetimes.order.begin(), lifetimes.order.end());
  begin_ticks_ = ticks(main_operations[main.begin()]);
  middle_ticks_ = ticks(main_operations[main.middle()]);
  first_ticks_ = ticks(*first);
  last_ticks_ = ticks(*last);

  const auto add = [&](swap::Kind kind, const Instances::Instance& instance) {
    operations_.push_back({kind, instance.block, 0, kind == swap::Kind::kMalloc ? 0 : instance.age});
  };
  for (const std::uint32_t index : lifetimes.order) {
    const Operation& op = operations[index];
    const std::size_t before = operations_.size();
    if (op.block != kNone) {
      if (const auto instance = instances.find(index, op.block)) {
        add(op.kind == OperationKind::kMalloc ? swap::Kind::kMalloc : swap::Kind::kFree, *instance);
      }
    }
    rare_.resize(operations_.size(), false);
    std::uint32_t repeats = 0;
    bool elsewhere = false;
    for (const NamedBlocks::Counted& one : named.of(index, &repeats)) {
      const Access& access = one.access;
      const auto instance = instances.find(index, access.block);
      elsewhere = elsewhere || !instance;
      if (!instance) continue;
      add(access.reads != 0 && access.writes == 0 ? swap::Kind::kRead : swap::Kind::kWrite, *instance);
      rare_.push_back(2 * one.times < repeats);
    }
    steps_.push_back({op.ticks, static_cast<std::uint32_t>(operations_.size() - before), {op.sequence, elsewhere}});
  }

  problem_.name = name;
  problem_.machine = swap::kMachines[0].machine;
  problem_.align = shm::kPlanAlignment;
  const auto add_block = [&](const Block& block, bool persistent, std::string called, std::vector<std::uint64_t> at) {
    problem_.blocks.push_back({.id = problem_.blocks.size(),
                               .bytes = block.bytes,
                               .persistent = persistent,
                               .pinned = block.stays,
                               .name = std::move(called)});
    places_.push_back({std::move(at)});
  };
  for (std::size_t lane = 0; lane < lifetimes.lanes.size(); ++lane) {
    std::vector<std::vector<std::uint64_t>> places = plan.offsets(lane);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Operation op = operations[lifetimes.lanes[lane].operations[i]];
      std::vector<std::uint64_t>& offsets = places[i];
      if (std::equal(offsets.begin() + 1, offsets.end(), offsets.begin())) offsets.resize(1);
      add_block(store.blocks()[op.block], false, "malloc at record " + std::to_string(op.sequence), std::move(offsets));
    }
  }
  persistent_ = lifetimes.staying;
  std::uint64_t offset = plan.outcome.solution.height;
  for (const std::uint32_t index : lifetimes.persistent) {
    const Block block = store.blocks()[index];
    numbers_.emplace(block.number, static_cast<std::uint32_t>(problem_.blocks.size()));
    persistent_numbers_.push_back(block.number);
    add_block(block, true, "block " + std::to_string(block.number), {offset});
    offset += place_bytes(block.bytes);
  }
  for (const OperationStore::Escape& escape : store.escapes()) keep_here(store, escape);
}

bool IterationProblemBuilder::keep_here(const OperationStore& store, const OperationStore::Escape& escape) {
  const auto keep = [&](std::uint32_t block) { return !std::exchange(problem_.blocks[block].pinned, true); };
  if (const auto known = numbers_.find(escape.number); known != numbers_.end()) return keep(known->second);
  if (escape.block == kNone) return false;
  const Block block = store.blocks()[escape.block];
  if (block.number != escape.number || block.birth == kNone) return false;
  const Operation birth = store.operations()[block.birth];
  const IterationMallocs::Malloc* const malloc = mallocs_.find(birth.lane, birth.lane_index);
  // Behind a deviation the program may be elsewhere in the iteration.
  return malloc != nullptr && malloc->token == birth.token && keep(malloc->block);
}

template <typename EachStep>
IterationProblem IterationProblemBuilder::build_with(Named named, std::uint64_t begin, EachStep&& each_step) const {
  IterationProblem result{problem_, places_, {}, {}, persistent_, persistent_numbers_};
  result.origins.reserve(steps_.size());
  for (const Step& step : steps_) result.origins.push_back(step.origin);
  // A launch of several blocks has at most twice as many operations.
  result.problem.operations.reserve(operations_.size() + steps_.size());
  result.ranks.reserve(operations_.size() + steps_.size());
  // With room for all that is left out: an operation looks back at what the last one accesses.
  std::vector<swap::Operation> often;
  if (named == Named::kOften) often.reserve(operations_.size());
  Operations operations(begin, result);
  std::size_t first = 0;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    each_step(operations, k);
    std::span<const swap::Operation> step = std::span(operations_).subspan(first, steps_[k].operations);
    if (named == Named::kOften) {
      const std::size_t before = often.size();
      for (std::size_t i = 0; i < step.size(); ++i) {
        if (!rare_[first + i]) often.push_back(step[i]);
      }
      step = std::span(often).subspan(before);
    }
    if (step.empty()) {
      operations.add_nothing();
    } else {
      operations.add(step);
    }
    first += steps_[k].operations;
  }
  result.problem.period = operations.end(each_step(operations, steps_.size()));
  return result;
}

IterationProblem IterationProblemBuilder::build(const std::function<std::uint64_t(std::uint64_t)>& nanoseconds,
                                                Named named) const {
  // The operations before the boundary happened before those behind it: they are shown one period later.
  const std::uint64_t begin = nanoseconds(begin_ticks_), middle = nanoseconds(middle_ticks_);
  const std::uint64_t first = nanoseconds(first_ticks_), last = nanoseconds(last_ticks_);
  std::uint64_t period = middle > begin ? middle - begin : 0;
  period = std::max(period, last > first ? last - first : 0);
  return build_with(named, nanoseconds(steps_.front().ticks), [&](Operations& operations, std::size_t k) {
    if (k == steps_.size()) return period;
    operations.at(nanoseconds(steps_[k].ticks) + (k < unwrapped_ ? 0 : period), k);
    return std::uint64_t{0};
  });
}

IterationProblem IterationProblemBuilder::build(const IterationTimes& times, Named named) const {
  std::uint64_t now = 0;
  const auto idle = [&](Operations& operations, std::size_t k, std::uint64_t length) {
    if (length == 0) return;
    operations.at(now, k == 0 ? 0 : k - 1);
    operations.add_nothing();
    now += length;
  };
  return build_with(named, 0, [&](Operations& operations, std::size_t k) {
    if (k == steps_.size()) {
      idle(operations, k, times.idle_at_end);
      return now;
    }
    idle(operations, k, times.operations[k].idle);
    operations.at(now, k);
    now += times.operations[k].busy;
    return now;
  });
}

std::uint64_t largest_launch(const IterationProblem& iteration) {
  const std::vector<swap::Operation>& operations = iteration.problem.operations;
  std::uint64_t largest = 0;
  for (std::size_t begin = 0, end = 0; begin < operations.size(); begin = end) {
    for (end = begin; end < operations.size() && iteration.ranks[end] == iteration.ranks[begin];) ++end;
    std::uint64_t bytes = 0;
    for (const auto& [block, age] : swap::accessed_by(iteration.problem, begin, end)) {
      bytes += place_bytes(iteration.problem.blocks[block].bytes);
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

}  // namespace memopt::planner
