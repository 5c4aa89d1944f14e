#include "planner/recompute/published/checkmate_program.h"

#include <algorithm>

#include "planner/recompute/published/checkmate_row.h"

namespace memopt::recompute {
namespace {

using swap::Kind;

constexpr double kCostOfPeriod = 1e4;
constexpr double kSmallPart = 1.0 / 1024;

}  // namespace

CheckmateProgram::CheckmateProgram(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                   std::uint64_t limit, std::size_t most_columns, CheckmateForm form,
                                   const std::function<bool()>& ends)
    : problem_(problem),
      graph_(graph),
      forward_(problem, graph),
      limit_(limit),
      form_(form),
      scale_(problem.period > 0 ? kCostOfPeriod / problem.period : 1),
      users_(problem.blocks.size()),
      fixed_until_(problem.blocks.size(), kNone),
      stays_(problem.blocks.size()) {
  for (std::uint32_t l = 0; l < graph.launches.size(); ++l) {
    for (const std::vector<Use>* uses : {&graph.launches[l].reads, &graph.launches[l].writes}) {
      for (const Use& use : *uses) {
        std::vector<std::uint32_t>& users = users_[use.block];
        if (graph.can_be_made(use.block) && (users.empty() || users.back() != l)) users.push_back(l);
      }
    }
  }
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (graph.can_be_made(b)) fixed_until_[b] = graph.makers[b].back();
  }
  std::uint32_t first = 0;
  if (form.reduced) {
    choose_small();
    find_memory(liveness);
    choose_unmoved();
  }
  find_memory(liveness);
  if (infeasible_) return;
  if (form.reduced) {
    const std::vector<std::uint64_t> load = loads();
    while (first < load.size() && load[first] <= limit) ++first;
  }
  build(first, most_columns, ends);
}

void CheckmateProgram::build(std::uint32_t first, std::size_t most, const std::function<bool()>& ends) {
  const auto goes_on = [&] {
    too_large_ = linear_.cost.size() > most;
    stopped_ = ends && ends();
    return !infeasible_ && !too_large_ && !stopped_;
  };
  for (std::uint32_t t = first; t < graph_.launches.size(); ++t) {
    add_stage(t);
    if (!goes_on()) return;
  }
  for (std::size_t k = 0; k < stages_.size(); ++k) {
    add_rules(k);
    add_memory(stages_[k], k + 1 < stages_.size() ? &stages_[k + 1] : nullptr);
    if (!goes_on()) return;
  }
}

double CheckmateProgram::to_ns(double cost) const { return cost / scale_; }

// Up to its last use. Not what replays may need behind that, and can't make.
void CheckmateProgram::stay(std::uint32_t block) {
  if (graph_.last_need[block] > graph_.last_use[block] && graph_.made_until[block] < graph_.last_need[block]) return;
  stays_[block] = 1;
  fixed_until_[block] = users_[block].back();
}

void CheckmateProgram::choose_small() {
  std::vector<std::uint32_t> order;
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    if (graph_.can_be_made(b)) order.push_back(b);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return problem_.blocks[a].bytes < problem_.blocks[b].bytes; });
  auto left = static_cast<std::uint64_t>(static_cast<double>(limit_) * kSmallPart);
  for (const std::uint32_t b : order) {
    if (problem_.blocks[b].bytes > left) break;
    left -= problem_.blocks[b].bytes;
    stay(b);
  }
}

// Between one use and the next there is no launch that does not fit with all that is needed.
void CheckmateProgram::choose_unmoved() {
  const std::vector<std::uint64_t> load = loads();
  std::vector<std::uint32_t> over(load.size() + 1);  // so many before a launch
  for (std::size_t t = 0; t < load.size(); ++t) over[t + 1] = over[t] + (load[t] > limit_ ? 1 : 0);
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    if (!graph_.can_be_made(b)) continue;
    const std::vector<std::uint32_t>& users = users_[b];
    bool moved = false;
    for (std::size_t k = 1; k < users.size(); ++k)
      moved = moved || (users[k - 1] >= graph_.makers[b].back() && over[users[k]] > over[users[k - 1] + 1]);
    if (!moved) stay(b);
  }
}

// All of its makers have run, in the iteration: S may say whether it is there.
bool CheckmateProgram::is_ready(std::uint32_t block, std::uint32_t stage) const {
  return graph_.can_be_made(block) && graph_.makers[block].back() < stage;
}

bool CheckmateProgram::stays(std::uint32_t block, std::uint32_t stage) const {
  return stays_[block] != 0 && stage <= fixed_until_[block];
}

bool CheckmateProgram::is_alive(std::uint32_t block, std::uint32_t stage) const {
  return forward_.freed[block] >= forward_.before[stage];
}

bool CheckmateProgram::is_needed(std::uint32_t block, std::uint32_t stage) const {
  return graph_.last_need[block] >= forward_.before[stage];
}

bool CheckmateProgram::can_be_made_at(std::uint32_t block, std::uint32_t stage) const {
  return is_ready(block, stage) && graph_.made_until[block] >= forward_.before[stage];
}

void CheckmateProgram::find_memory(const swap::Liveness& liveness) {
  const std::uint64_t n = problem_.operations.size();
  std::uint64_t load = 0;
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    load += swap::instances_at_begin(problem_, liveness, b) * problem_.blocks[b].bytes;
  }
  std::uint64_t most = load;
  std::uint32_t stage = 0;
  std::vector<std::vector<std::uint32_t>> last(graph_.launches.size());
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    if (graph_.can_be_made(b)) last[fixed_until_[b]].push_back(b);
  }
  fixed_.assign(graph_.launches.size(), {});
  for (std::uint32_t i = 0; i < n; ++i) {
    if (stage < fixed_.size() && i == forward_.before[stage]) {
      fixed_[stage].gap = most;
      fixed_[stage].before = load;
    }
    const swap::Operation& operation = problem_.operations[i];
    const std::uint32_t b = operation.block;
    if (operation.kind == Kind::kMalloc) {
      load += problem_.blocks[b].bytes;
      most = std::max(most, load);
    } else if (operation.kind == Kind::kFree) {
      if (!graph_.can_be_made(b)) load -= problem_.blocks[b].bytes;
    } else if (graph_.launch_at[i] != kNone && graph_.launches[graph_.launch_at[i]].end == i + 1) {
      fixed_[stage].at = load;
      for (const std::uint32_t done : last[stage]) load -= problem_.blocks[done].bytes;
      most = load;
      ++stage;
    }
  }
  infeasible_ = most > limit_;
}

// By launch: what is there anyway, and what may be needed again.
std::vector<std::uint64_t> CheckmateProgram::loads() const {
  const auto stages = static_cast<std::uint32_t>(fixed_.size());
  std::vector<std::uint64_t> begins(stages + 1), ends(stages + 1);  // bytes of blocks that may be, by stage
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    if (!graph_.can_be_made(b) || stays_[b] != 0) continue;
    // Once it is not alive, or not needed, it is so for good.
    std::uint32_t begin = graph_.makers[b].back() + 1, end = stages;
    while (begin < end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      is_alive(b, middle) && is_needed(b, middle) ? begin = middle + 1 : end = middle;
    }
    begins[graph_.makers[b].back() + 1] += problem_.blocks[b].bytes;
    ends[end] += problem_.blocks[b].bytes;
  }
  std::vector<std::uint64_t> result;
  std::uint64_t load = 0;
  for (std::uint32_t t = 0; t < stages; ++t) {
    load = load + begins[t] - ends[t];
    result.push_back(std::max({fixed_[t].gap, fixed_[t].before, fixed_[t].at}) + load);
  }
  return result;
}

bool CheckmateProgram::can_be_kept(std::uint32_t block, std::uint32_t stage) const {
  if (!is_ready(block, stage) || !is_needed(block, stage) || stays_[block] != 0) return false;
  const bool alive = is_alive(block, stage);
  if (stages_.empty() || (form_.reduced && !alive)) return alive;
  if (!alive && is_alive(block, stage - 1)) return false;
  const Stage& before = stages_.back();
  if (graph_.makers[block].back() == before.launch || saved(before, block).column >= 0) return true;
  return std::all_of(graph_.makers[block].begin(), graph_.makers[block].end(),
                     [&](std::uint32_t l) { return replay(before, l).column >= 0; });
}

std::vector<std::uint32_t> CheckmateProgram::replays_at(std::uint32_t stage) const {
  std::vector<std::uint8_t> chosen(graph_.launches.size());
  std::vector<std::uint32_t> wanted;
  std::vector<std::uint8_t> seen(problem_.blocks.size());
  const auto want = [&](std::uint32_t b) {
    const bool may_be_away = can_be_made_at(b, stage) && is_needed(b, stage) && !stays(b, stage);
    if (!may_be_away || seen[b] != 0) return;
    seen[b] = 1;
    wanted.push_back(b);
  };
  if (form_.reduced) {
    for (const Use& read : graph_.launches[stage].reads) {
      const std::vector<std::uint32_t>& users = users_[read.block];
      const bool just_now = stage > 0 && std::binary_search(users.begin(), users.end(), stage - 1);
      if (!just_now) want(read.block);
    }
  } else {
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) want(b);
  }
  while (!wanted.empty()) {
    const std::uint32_t b = wanted.back();
    wanted.pop_back();
    for (const std::uint32_t l : graph_.makers[b]) {
      chosen[l] = 1;
      for (const Use& read : graph_.launches[l].reads) want(read.block);
    }
  }
  std::vector<std::uint32_t> replays;
  for (std::uint32_t l = 0; l < stage; ++l) {
    if (chosen[l] != 0) replays.push_back(l);
  }
  return replays;
}

void CheckmateProgram::add_stage(std::uint32_t launch) {
  Stage stage;
  stage.launch = launch;
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    if (can_be_kept(b, launch)) stage.saved.push_back(b);
  }
  for (const std::uint32_t b : stage.saved) {
    const Term before = stages_.empty() ? Term{} : saved(stages_.back(), b);
    const bool same = form_.reduced && before.column >= 0 && stages_.back().replays.empty() &&
                      !std::binary_search(users_[b].begin(), users_[b].end(), launch - 1);
    stage.saved_columns.push_back(same ? before.column : column(0, 1, true));
  }
  stage.replays = replays_at(launch);
  stage.first_replay = static_cast<int>(linear_.cost.size());
  for (const std::uint32_t l : stage.replays) column(graph_.launches[l].ns * scale_, 1, true);
  stages_.push_back(std::move(stage));
}

CheckmateProgram::Term CheckmateProgram::replay(const Stage& stage, std::uint32_t launch) const {
  if (launch == stage.launch) return {-1, 1};
  const auto at = std::lower_bound(stage.replays.begin(), stage.replays.end(), launch);
  if (at == stage.replays.end() || *at != launch) return {};
  return {stage.first_replay + static_cast<int>(at - stage.replays.begin()), 0};
}

CheckmateProgram::Term CheckmateProgram::saved(const Stage& stage, std::uint32_t block) const {
  if (stays_[block] != 0) return {-1, stays(block, stage.launch) ? 1.0 : 0.0};
  const auto at = std::lower_bound(stage.saved.begin(), stage.saved.end(), block);
  if (at == stage.saved.end() || *at != block) return {};
  return {stage.saved_columns[static_cast<std::size_t>(at - stage.saved.begin())], 0};
}

// (1b) and (1c).
void CheckmateProgram::add_rules(std::size_t k) {
  const Stage& stage = stages_[k];
  const auto read = [&](const Launch& launch, Term runs) {
    for (const Use& use : launch.reads) {
      const std::uint32_t b = use.block;
      // In an earlier version, or not made yet, it has not left.
      if (!is_ready(b, stage.launch)) continue;
      const std::vector<std::uint32_t>& makers = graph_.makers[b];
      if (use.version == graph_.last_version(b)) {
        for (const std::uint32_t l : makers)
          add(Row().add(1, saved(stage, b)).add(1, replay(stage, l)).add(-1, runs), 0, kUnbounded);
      } else {
        add(Row().add(1, replay(stage, makers[use.version - 1])).add(-1, runs), 0, kUnbounded);
      }
    }
  };
  for (const std::uint32_t l : stage.replays) {
    const Launch& launch = graph_.launches[l];
    // The one that needs the block of its maker before, also where it does not read it.
    read(launch, replay(stage, l));
  }
  read(graph_.launches[stage.launch], {-1, 1});
  if (k == 0) return;
  const Stage& before = stages_[k - 1];
  for (const std::uint32_t b : stage.saved) {
    if (graph_.makers[b].back() == before.launch) continue;
    for (const std::uint32_t l : graph_.makers[b])
      add(Row().add(1, saved(before, b)).add(1, replay(before, l)).add(-1, saved(stage, b)), 0, kUnbounded);
  }
}

int CheckmateProgram::column(double cost, double most, bool whole) {
  linear_.cost.push_back(cost);
  linear_.least.push_back(0);
  linear_.most.push_back(most);
  linear_.whole.push_back(whole ? 1 : 0);
  return static_cast<int>(linear_.cost.size()) - 1;
}

void CheckmateProgram::add(Row row, double least, double most) {
  std::sort(row.terms_.begin(), row.terms_.end());
  std::vector<std::pair<int, double>> terms;
  for (const auto& [column, factor] : row.terms_) {
    if (!terms.empty() && terms.back().first == column) {
      terms.back().second += factor;
    } else {
      terms.emplace_back(column, factor);
    }
  }
  std::erase_if(terms, [](const auto& term) { return term.second == 0; });
  least -= row.constant_;
  most -= row.constant_;
  if (terms.empty()) {
    infeasible_ = infeasible_ || least > 1e-9 || most < -1e-9;
    return;
  }
  const auto number = static_cast<int>(linear_.row_least.size());
  linear_.row_least.push_back(least);
  linear_.row_most.push_back(most);
  for (const auto& [column, factor] : terms) {
    linear_.rows.push_back(number);
    linear_.columns.push_back(column);
    linear_.factors.push_back(factor);
  }
}

}  // namespace memopt::recompute
