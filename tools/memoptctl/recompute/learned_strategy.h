// The strategies of `plan --recompute` that learn, where the build has them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/recompute/combined/combine.h"
#include "planner/recompute/model/graph.h"
#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace memopt::tools {

enum class Learned : std::uint8_t {
  kDqn,       // on the iteration
  kTransfer,  // on generated ones
};

// Of --strategy. Throws std::runtime_error where it is one of these, and the build has none.
std::optional<Learned> learned_strategy(const std::string& name);
std::string name_of(Learned strategy);

// Plans by them; what was learned on generated iterations is kept. Not thread-safe.
class LearnedPlanner {
 public:
  explicit LearnedPlanner(const SwapPlanOptions& options);
  ~LearnedPlanner();

  // `part`: of the time that the options leave. Nothing where no plan is found.
  std::optional<recompute::Combined> plan(Learned strategy, const swap::Problem& problem,
                                          const swap::Liveness& liveness, const recompute::Graph& graph,
                                          std::uint64_t limit, double part);

  // Of the last plan(), for people; and its episodes, as CSV.
  std::vector<std::pair<std::string, std::string>> rows() const;
  std::string training_curve() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace memopt::tools
