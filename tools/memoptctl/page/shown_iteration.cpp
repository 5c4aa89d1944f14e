#include "tools/memoptctl/page/shown_iteration.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "planner/swap/model/load.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kMostLevels = 4000;
constexpr std::size_t kMostUses = 400'000;

class IterationBuilder {
 public:
  IterationBuilder(const swap::Problem& problem, const swap::Liveness& liveness, const IterationLabels& labels)
      : problem_(problem), liveness_(liveness), labels_(labels) {}

  ShownIteration build() {
    result_.period = problem_.period;
    add_steps();
    add_blocks();
    add_uses();
    add_load();
    return std::move(result_);
  }

 private:
  // Of an operation of any iteration from this one on.
  double time(std::uint64_t position) const {
    const std::uint64_t n = problem_.operations.size();
    return problem_.operations[position % n].time + static_cast<double>(position / n) * problem_.period;
  }

  void add_steps() {
    step_of_.assign(labels_.steps.size(), kNoName);
    const auto& operations = problem_.operations;
    for (std::size_t i = 0; i < operations.size();) {
      const std::uint64_t rank = labels_.ranks[i];
      // Idle time before the first operation has its rank, and so has that behind any other.
      const bool idle_first =
          i == 0 && operations[0].kind == swap::Kind::kNothing && operations.size() > 1 && labels_.ranks[1] == rank;
      const std::size_t first = idle_first ? 1 : i;
      std::size_t end = first + 1;
      while (end < operations.size() && labels_.ranks[end] == rank && operations[end].kind != swap::Kind::kNothing) {
        ++end;
      }
      const double until = end < operations.size() ? operations[end].time : problem_.period;
      while (end < operations.size() && labels_.ranks[end] == rank) ++end;
      i = end;
      const IterationLabels::Step& step = labels_.steps.at(rank);
      if (step.name == kNoName) continue;
      step_of_[rank] = static_cast<std::uint32_t>(result_.steps.size());
      result_.steps.push_back({operations[first].time, until - operations[first].time, step.kind, step.name});
    }
  }

  void add_blocks() {
    bool named = false;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      const swap::Block& block = problem_.blocks[b];
      const IterationLabels::Block& label = labels_.blocks[b];
      ShownBlock shown{.number = label.number,
                       .bytes = block.bytes,
                       .persistent = block.persistent,
                       .pinned = block.pinned,
                       .made_again = label.made_again,
                       .stack = label.stack};
      const swap::Lifetime& life = liveness_.of[b];
      shown.born = block.persistent ? 0 : time(life.born);
      shown.freed = block.persistent ? problem_.period : time(life.freed);
      result_.blocks.push_back(shown);
      named = named || !block.name.empty();
    }
    if (!named) return;
    for (const swap::Block& block : problem_.blocks) result_.block_names.push_back(block.name);
  }

  // By block, each step once.
  void add_uses() {
    std::vector<std::vector<BlockUse>> of(problem_.blocks.size());
    std::size_t all = 0;
    for (std::size_t i = 0; i < problem_.operations.size(); ++i) {
      const swap::Operation& operation = problem_.operations[i];
      if (!swap::is_access(operation)) continue;
      const std::uint32_t step = step_of_[labels_.ranks[i]];
      if (step == kNoName) continue;
      const bool writes = operation.kind == swap::Kind::kWrite;
      std::vector<BlockUse>& uses = of[operation.block];
      if (!uses.empty() && uses.back().step == step) {
        uses.back().writes = uses.back().writes || writes;
      } else {
        uses.push_back({step, writes});
        ++all;
      }
    }
    std::size_t most = all;
    if (all > kMostUses) {
      for (most = 64; most > 2; most /= 2) {
        std::size_t kept = 0;
        for (const auto& uses : of) kept += std::min(uses.size(), most);
        if (kept <= kMostUses) break;
      }
    }
    for (std::uint32_t b = 0; b < of.size(); ++b) {
      ShownBlock& block = result_.blocks[b];
      block.accesses = static_cast<std::uint32_t>(of[b].size());
      block.first_use = static_cast<std::uint32_t>(result_.uses.size());
      // The first and the last ones say most.
      for (std::size_t i = 0; i < of[b].size(); ++i) {
        if (i < most - most / 2 || of[b].size() - i <= most / 2) result_.uses.push_back(of[b][i]);
      }
      block.uses = static_cast<std::uint32_t>(result_.uses.size()) - block.first_use;
    }
  }

  void add_load() {
    swap::Load load(liveness_.operations);
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      load.add_life(problem_, liveness_, b, static_cast<std::int64_t>(problem_.blocks[b].bytes));
    }
    const std::vector<std::int64_t>& levels = load.levels();
    const auto peak = static_cast<std::size_t>(std::max_element(levels.begin(), levels.end()) - levels.begin());
    result_.peak_load = static_cast<std::uint64_t>(levels[peak]);
    result_.peak_at = problem_.operations[peak].time;
    const std::size_t together = (levels.size() + kMostLevels - 1) / kMostLevels;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      const auto bytes = static_cast<std::uint64_t>(levels[i]);
      const double at = problem_.operations[i].time;
      std::vector<LoadLevel>& known = result_.load;
      if (i % together != 0 || (!known.empty() && known.back().at == at)) {
        known.back().bytes = std::max(known.back().bytes, bytes);
      } else if (known.empty() || known.back().bytes != bytes) {
        known.push_back({at, bytes});
      }
    }
    const std::uint64_t n = liveness_.operations;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      const swap::Lifetime& life = liveness_.of[b];
      if (problem_.blocks[b].persistent) {
        result_.at_peak.push_back(b);
        continue;
      }
      // Instances of earlier iterations may live there, too.
      for (std::uint64_t at = peak; at <= life.freed; at += n) {
        if (at >= life.start) result_.at_peak.push_back(b);
      }
    }
    std::stable_sort(result_.at_peak.begin(), result_.at_peak.end(), [this](std::uint32_t a, std::uint32_t b) {
      return problem_.blocks[a].bytes > problem_.blocks[b].bytes;
    });
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const IterationLabels& labels_;
  std::vector<std::uint32_t> step_of_;  // by rank
  ShownIteration result_;
};

}  // namespace

ShownIteration show_iteration(const swap::Problem& problem, const swap::Liveness& liveness,
                              const IterationLabels& labels) {
  return IterationBuilder(problem, liveness, labels).build();
}

}  // namespace memopt::tools
