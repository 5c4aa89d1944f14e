// What a solution of Checkmate's program replays, and the rounding of one that is not whole (section 5).
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "planner/recompute/published/checkmate_program.h"
#include "planner/recompute/published/remaking.h"

namespace memopt::recompute {

Steps CheckmateProgram::steps_of(std::span<const double> solution) const {
  std::vector<Replay> replays;
  for (const Stage& stage : stages_) {
    for (std::size_t k = 0; k < stage.replays.size(); ++k) {
      if (solution[static_cast<std::size_t>(stage.first_replay) + k] > 0.5)
        replays.push_back({forward_.before[stage.launch], stage.replays[k]});
    }
  }
  return with_drops(problem_, graph_, forward_, replays);
}

std::optional<Steps> CheckmateProgram::round(std::span<const double> solution) const {
  std::vector<double> whole(solution.size());
  for (const Stage& stage : stages_) {
    for (const int column : stage.saved_columns)
      whole[static_cast<std::size_t>(column)] = solution[static_cast<std::size_t>(column)] > 0.5 ? 1 : 0;
  }
  const auto is_set = [&](Term term) {
    return term.column < 0 ? term.value > 0 : whole[static_cast<std::size_t>(term.column)] > 0;
  };
  // Backward: a stage's needs are those of what is kept for the next one, of its launch, and of its replays.
  for (std::size_t k = stages_.size(); k-- > 0;) {
    const Stage& stage = stages_[k];
    bool possible = true;
    const auto need = [&](std::uint32_t b) {
      const Term before = saved(stage, b);
      if (is_set(before)) return;
      const std::vector<std::uint32_t>& makers = graph_.makers[b];
      const auto may_run = [&](std::uint32_t l) { return replay(stage, l).column >= 0; };
      if (std::all_of(makers.begin(), makers.end(), may_run)) {
        for (const std::uint32_t l : makers) whole[static_cast<std::size_t>(replay(stage, l).column)] = 1;
      } else if (before.column >= 0) {
        whole[static_cast<std::size_t>(before.column)] = 1;
      } else {
        possible = false;
      }
    };
    const auto need_reads = [&](const Launch& launch) {
      for (const Use& use : launch.reads) {
        if (is_ready(use.block, stage.launch) && use.version == graph_.last_version(use.block)) need(use.block);
      }
    };
    if (k + 1 < stages_.size()) {
      for (const std::uint32_t b : stages_[k + 1].saved) {
        if (is_set(saved(stages_[k + 1], b)) && graph_.makers[b].back() != stage.launch) need(b);
      }
    }
    need_reads(graph_.launches[stage.launch]);
    for (std::size_t r = stage.replays.size(); r-- > 0;) {
      if (is_set({stage.first_replay + static_cast<int>(r), 0})) need_reads(graph_.launches[stage.replays[r]]);
    }
    if (!possible) return std::nullopt;
  }
  return steps_of(whole);
}

}  // namespace memopt::recompute
