// The mixed-integer program of Checkmate, Jain et al., "Checkmate: Breaking the Memory Wall with Optimal Tensor
// Rematerialization" (MLSys 2020), on an iteration of launches, without a solver: its columns and rows, what a solution
// of it replays, and the rounding of section 5.
//
// Theirs: stages, one for each launch in order, each of which ends with its launch (frontier-advancing, section 4.6);
// R[t,l]: launch l is replayed in stage t, at most once, in the order of launches; S[t,b]: block b is kept from stage
// t - 1 into stage t; what is read was kept or is made in the stage, and so is what is kept (1b to 1e); memory U[t,k]
// behind each launch k of a stage, FREE[t,b,k] for what is not used behind it (section 4.3 to 4.5).
//
// Ours, since a program is no graph of tensors that are made once, with one output each:
// - R is by launch, S by block. A block with several makers, which change it in place, counts as there when all of them
//   have run; in an earlier version it is not kept. From its allocation to its last maker's end in the iteration it is
//   memory that each stage has, as is what can't be made again.
// - A block that can't be made again at a stage (graph.h) is kept, or is gone for good.
// - What the program frees can't be kept over that, but may be made again behind it.
// - A stage's replays run before its launch's outputs are allocated.
// - Other outputs of a replay take their bytes, and are freed when nothing of the stage uses them. What a replay writes
//   beside what is there counts for as long as it runs, in some cases also where it would not be needed.
//
// Ours, so that it is small. With the same optimum: there are no stages before the first one that does not fit with all
// that is still needed, no replays of what nothing needs any more, and no memory where all that there can be fits. FREE
// is summed up over a stage, D[t,b,k] = FREE[t,b,..k] <= 1 - R[t,next user], D <= S[t,b] + R[t,b] - S[t+1,b]: with
// whole R and S that is the same as their hazards, D need not be whole, and the relaxation is closer. Behind the last
// user D is as large as it may be, and needs no column.
// Mostly with the same optimum (CheckmateForm::reduced):
// - What lies unused over no launch that does not fit stays up to its last use; so do the smallest blocks, together up
//   to 1/1024 of the limit.
// - Replays are in stages whose launches read what may have left since its last use, and of what is made for that.
// - What the program has freed is kept for no later stage.
// - Where a stage has no replays, and its launch does not use a block, S is the same before and behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planner/recompute/model/graph.h"
#include "planner/recompute/model/plan.h"
#include "planner/recompute/published/forward.h"

namespace memopt::recompute {

struct CheckmateForm {
  bool hazards = false;  // FREE as published, whole, with num_hazards (section 4.5)
  bool reduced = true;   // else a stage for each launch, with memory, replays of all and each block
};

inline constexpr double kUnbounded = std::numeric_limits<double>::max();  // COIN_DBL_MAX

// Least cost over columns within their bounds, and rows within theirs.
struct LinearProgram {
  std::vector<double> cost, least, most;
  std::vector<std::uint8_t> whole;
  std::vector<double> row_least, row_most;
  std::vector<int> rows, columns;  // entries; each pair once
  std::vector<double> factors;
};

class CheckmateProgram {
 public:
  // Costs are in 1/10000 of the period, memory in parts of `limit`. Stops building above `most_columns`, and once
  // `ends` says so: it is asked for each stage.
  CheckmateProgram(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                   std::uint64_t limit, std::size_t most_columns, CheckmateForm form = {},
                   const std::function<bool()>& ends = {});

  bool is_too_large() const { return too_large_; }
  bool is_stopped() const { return stopped_; }
  bool is_infeasible() const { return infeasible_; }  // found while building
  const LinearProgram& linear() const { return linear_; }
  // Columns of memory, whose upper bounds are what the limit leaves; of a limit that is lower by a part of it, as much
  // lower.
  const std::vector<int>& memory() const { return memory_; }
  double to_ns(double cost) const;
  std::size_t stages() const { return stages_.size(); }

  // What a whole solution comes to. Not looked at: whether it is one.
  Steps steps_of(std::span<const double> solution) const;
  // Two-phase rounding, algorithm 2: S at 0.5, then the R that it needs. What can't be made in a stage where it is
  // needed is kept, whatever S says. Nothing: there is no such R. The plan may need more memory than the limit.
  std::optional<Steps> round(std::span<const double> solution) const;

 private:
  // Of a stage, or a column that there is not.
  struct Term {
    int column = -1;
    double value = 0;  // without a column
  };
  struct Stage {
    std::uint32_t launch = 0;
    std::vector<std::uint32_t> replays, saved;  // launches, blocks; ascending
    int first_replay = 0;                       // their columns, in order
    std::vector<int> saved_columns;
  };
  struct Memory {
    std::uint64_t gap = 0, before = 0, at = 0;  // bytes that are there anyway: since the last launch, at replays, at it
  };
  class Row;
  class StageMemory;

  void choose_small();
  void choose_unmoved();
  void stay(std::uint32_t block);
  void find_memory(const swap::Liveness& liveness);
  std::vector<std::uint64_t> loads() const;
  std::vector<std::uint32_t> replays_at(std::uint32_t stage) const;
  void build(std::uint32_t first, std::size_t most, const std::function<bool()>& ends);
  void add_stage(std::uint32_t launch);
  void add_rules(std::size_t stage);
  void add_memory(const Stage& stage, const Stage* next);
  int column(double cost, double most, bool whole);
  void add(Row row, double least, double most);

  bool is_ready(std::uint32_t block, std::uint32_t stage) const;
  bool stays(std::uint32_t block, std::uint32_t stage) const;
  bool is_alive(std::uint32_t block, std::uint32_t stage) const;
  bool is_needed(std::uint32_t block, std::uint32_t stage) const;
  bool can_be_kept(std::uint32_t block, std::uint32_t stage) const;
  bool can_be_made_at(std::uint32_t block, std::uint32_t stage) const;
  Term replay(const Stage& stage, std::uint32_t launch) const;
  Term saved(const Stage& stage, std::uint32_t block) const;

  const swap::Problem& problem_;
  const Graph& graph_;
  const Forward forward_;
  const std::uint64_t limit_;
  const CheckmateForm form_;
  const double scale_;                             // cost of a nanosecond
  std::vector<std::vector<std::uint32_t>> users_;  // by block that can be made: launches, ascending
  std::vector<std::uint32_t> fixed_until_;         // by block that can be made: the last launch at which it is for sure
  std::vector<std::uint8_t> stays_;                // by block: up to its last use
  std::vector<Memory> fixed_;                      // by launch
  std::vector<Stage> stages_;
  LinearProgram linear_;
  std::vector<int> memory_;
  bool too_large_ = false, infeasible_ = false, stopped_ = false;
};

}  // namespace memopt::recompute
