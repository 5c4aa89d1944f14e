#include "planner/recompute/published/checkmate_program.h"

#include <algorithm>
#include <unordered_map>

#include "planner/recompute/published/remaking.h"

namespace memopt::recompute {
namespace {

using swap::Kind;

constexpr double kCostOfPeriod = 1e4;
constexpr double kSmallPart = 1.0 / 1024;

bool reads_block(const Launch& launch, std::uint32_t block) {
  return std::any_of(launch.reads.begin(), launch.reads.end(), [&](const Use& use) { return use.block == block; });
}

}  // namespace

// The terms of a row, of which some are no columns.
class CheckmateProgram::Row {
 public:
  Row& add(double factor, Term term) {
    if (term.column >= 0) {
      terms_.emplace_back(term.column, factor);
    } else {
      constant_ += factor * term.value;
    }
    return *this;
  }
  Row& add(double factor, const Row& row) {
    for (const auto& [column, its] : row.terms_) terms_.emplace_back(column, factor * its);
    constant_ += factor * row.constant_;
    return *this;
  }

 private:
  friend class CheckmateProgram;
  std::vector<std::pair<int, double>> terms_;
  double constant_ = 0;
};

// Memory of one stage: steps are its replays, in order, and its launch.
class CheckmateProgram::StageMemory {
 public:
  StageMemory(CheckmateProgram& program, const Stage& stage, const Stage* next)
      : program_(program), stage_(stage), next_(next), freed_(stage.replays.size() + 1) {}

  void add() {
    collect();
    if (program_.form_.reduced && always_fits()) return;
    for (const std::uint32_t b : blocks_) {
      make(b);
      if (!held(b)) free(b);
    }
    add_sums();
  }

 private:
  struct Of {
    std::uint32_t block = 0;
    std::vector<std::size_t> users;  // steps, ascending; that of the first maker, too
    std::optional<std::size_t> maker;
    bool read_at_end = false;
    Term made;
  };

  const Launch& launch_of(std::size_t step) const {
    return program_.graph_.launches[step < stage_.replays.size() ? stage_.replays[step] : stage_.launch];
  }
  double part(std::uint64_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, program_.limit_));
  }
  std::uint64_t bytes(std::uint32_t b) const { return program_.problem_.blocks[b].bytes; }
  Of& of(std::uint32_t b) {
    const auto [at, fresh] = place_.emplace(b, all_.size());
    if (fresh) {
      all_.emplace_back();
      all_.back().block = b;
      blocks_.push_back(b);
    }
    return all_[at->second];
  }
  Term kept(std::uint32_t b) const { return next_ != nullptr ? program_.saved(*next_, b) : Term{}; }
  // It counts with what is there anyway.
  bool stays(std::uint32_t b) const { return program_.stays(b, stage_.launch); }
  bool held(std::uint32_t b) {
    const Term next = kept(b);
    return of(b).read_at_end || (next.column < 0 && next.value > 0);
  }

  void collect() {
    for (std::size_t step = 0; step <= stage_.replays.size(); ++step) {
      const Launch& launch = launch_of(step);
      const bool last = step == stage_.replays.size();
      const auto use = [&](std::uint32_t b) {
        if (!program_.is_ready(b, stage_.launch) || stays(b)) return;
        if (last) {
          of(b).read_at_end = true;
        } else if (of(b).users.empty() || of(b).users.back() != step) {
          of(b).users.push_back(step);
        }
      };
      for (const Use& read : launch.reads) use(read.block);
      if (last) break;
      for (const Use& write : launch.writes) {
        use(write.block);
        if (write.version == 1 && program_.is_ready(write.block, stage_.launch) && !stays(write.block))
          of(write.block).maker = step;
      }
      besides_.push_back(besides(launch));
    }
  }

  // Bytes that a replay needs beside the blocks that are there or that it makes.
  std::uint64_t besides(const Launch& launch) const {
    std::uint64_t sum = 0;
    for (const Use& write : launch.writes) {
      const std::uint32_t b = write.block;
      const bool whole = program_.graph_.can_be_made(b) && program_.is_ready(b, stage_.launch);
      const bool changed = write.version > 1 && reads_block(launch, b);
      const bool only = write.version == program_.graph_.last_version(b) || launch.writes.size() == 1;
      if (!whole || stays(b) || (write.version > 1 ? !changed : !only)) sum += bytes(b);
    }
    return sum;
  }

  bool always_fits() {
    const Memory& fixed = program_.fixed_[stage_.launch];
    std::uint64_t sum = std::max({fixed.gap, fixed.before, fixed.at});
    for (const std::uint32_t b : stage_.saved) sum += bytes(b);
    for (const Of& one : all_) {
      if (one.maker && program_.saved(stage_, one.block).column < 0) sum += bytes(one.block);
    }
    if (!besides_.empty()) sum += *std::max_element(besides_.begin(), besides_.end());
    return sum <= program_.limit_;
  }

  // Of all that the replay writes, one block may have left.
  bool makes_one(std::size_t step) const {
    const std::vector<Use>& writes = launch_of(step).writes;
    return std::count_if(writes.begin(), writes.end(), [&](const Use& write) {
             return program_.is_ready(write.block, stage_.launch) && !stays(write.block);
           }) <= 1;
  }

  // What the replay of its first maker takes: nothing where the block was kept, which may be for other outputs only.
  void make(std::uint32_t b) {
    Of& one = of(b);
    if (!one.maker) return;
    const Term replay = program_.replay(stage_, stage_.replays[*one.maker]);
    const Term before = program_.saved(stage_, b);
    one.made = replay;
    if (before.column < 0 || makes_one(*one.maker)) return;
    one.made = {program_.column(0, 1, false), 0};
    program_.add(Row().add(1, one.made).add(-1, replay).add(1, before), 0, kUnbounded);
  }

  void free(std::uint32_t b) {
    const Of& one = of(b);
    if (one.users.empty()) return;
    program_.form_.hazards ? free_by_hazards(one) : free_by_sums(one);
  }

  // Behind its last user, D is as large as it may be, S + R - S of the next stage, and needs no column.
  void free_by_sums(const Of& one) {
    const Row left = Row().add(1, program_.saved(stage_, one.block)).add(1, one.made).add(-1, kept(one.block));
    const double bytes_part = part(bytes(one.block));
    Term before;
    for (std::size_t k = 0; k < one.users.size(); ++k) {
      Row& freed = freed_[one.users[k]];
      freed.add(-bytes_part, before);
      if (k + 1 == one.users.size()) {
        freed.add(bytes_part, left);
        // Without a column before, (1c) says so, too; but CBC finds plans sooner with it.
        if (k > 0) program_.add(Row(left).add(-1, before), 0, kUnbounded);
        break;
      }
      // Not replayed for nothing: there is a user behind it.
      if (k == 0 && one.maker && makes_one(*one.maker)) continue;
      const Term now{program_.column(0, 1, false), 0};
      if (before.column >= 0) program_.add(Row().add(1, now).add(-1, before), 0, kUnbounded);
      const Term next = program_.replay(stage_, stage_.replays[one.users[k + 1]]);
      program_.add(Row().add(1, now).add(1, next), -kUnbounded, 1);
      freed.add(bytes_part, now);
      before = now;
    }
  }

  void free_by_hazards(const Of& one) {
    for (std::size_t k = 0; k < one.users.size(); ++k) {
      const Term now{program_.column(0, 1, true), 0};
      Row hazards;  // less one
      double most = 1 + (kept(one.block).column >= 0 ? 1 : 0);
      hazards.add(-1, program_.replay(stage_, stage_.replays[one.users[k]])).add(1, kept(one.block));
      for (std::size_t j = k + 1; j < one.users.size(); ++j) {
        hazards.add(1, program_.replay(stage_, stage_.replays[one.users[j]]));
        ++most;
      }
      Row upper = hazards;
      program_.add(std::move(hazards.add(1, now)), 0, kUnbounded);
      program_.add(std::move(upper.add(most, now)), -kUnbounded, most - 1);
      freed_[one.users[k]].add(part(bytes(one.block)), now);
    }
  }

  int memory_column(std::uint64_t fixed) {
    if (fixed > program_.limit_) program_.infeasible_ = true;
    const int column = program_.column(0, std::max(0.0, 1 - part(fixed)), false);
    program_.memory_.push_back(column);
    return column;
  }

  void add_sums() {
    const Memory& fixed = program_.fixed_[stage_.launch];
    Term now{memory_column(std::max(fixed.gap, fixed.before)), 0};
    Row row;
    row.add(-1, now);
    for (const std::uint32_t b : stage_.saved) row.add(part(bytes(b)), program_.saved(stage_, b));
    program_.add(std::move(row), 0, 0);
    std::vector<std::vector<const Of*>> made(stage_.replays.size());
    for (const Of& one : all_) {
      if (one.maker) made[*one.maker].push_back(&one);
    }
    for (std::size_t step = 0; step <= stage_.replays.size(); ++step) {
      const bool last = step == stage_.replays.size();
      const bool more = !last && besides_[step] > 0;
      const Term next{more ? program_.column(0, kUnbounded, false) : memory_column(last ? fixed.at : fixed.before), 0};
      Row sum;
      sum.add(-1, next).add(1, now);
      if (step > 0) sum.add(-1, freed_[step - 1]);
      if (!last) {
        for (const Of* const one : made[step]) sum.add(part(bytes(one->block)), one->made);
      }
      program_.add(std::move(sum), 0, 0);
      if (more) {
        const Term with{memory_column(fixed.before), 0};
        program_.add(
            Row().add(-1, with).add(1, next).add(part(besides_[step]), program_.replay(stage_, stage_.replays[step])),
            0, 0);
      }
      now = next;
    }
  }

  CheckmateProgram& program_;
  const Stage& stage_;
  const Stage* const next_;
  std::unordered_map<std::uint32_t, std::size_t> place_;  // in all_
  std::vector<Of> all_;
  std::vector<std::uint32_t> blocks_;
  std::vector<std::uint64_t> besides_;  // by replay
  std::vector<Row> freed_;              // by step, behind it: parts of the limit
};

CheckmateProgram::CheckmateProgram(const swap::Problem& problem, const swap::Liveness& liveness, const Graph& graph,
                                   std::uint64_t limit, std::size_t most_columns, CheckmateForm form)
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
  if (!add_stages(first, most_columns)) {
    too_large_ = true;
    return;
  }
  add_rules();
  for (std::size_t k = 0; k < stages_.size() && !infeasible_ && !too_large_; ++k) {
    StageMemory(*this, stages_[k], k + 1 < stages_.size() ? &stages_[k + 1] : nullptr).add();
    too_large_ = linear_.cost.size() > most_columns;
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
    load += (problem_.blocks[b].persistent ? 1 : liveness.of[b].freed / n) * problem_.blocks[b].bytes;
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
  std::vector<std::uint64_t> result;
  for (std::uint32_t t = 0; t < fixed_.size(); ++t) {
    std::uint64_t load = std::max({fixed_[t].gap, fixed_[t].before, fixed_[t].at});
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      const bool there = is_ready(b, t) && stays_[b] == 0 && is_alive(b, t) && is_needed(b, t);
      load += there ? problem_.blocks[b].bytes : 0;
    }
    result.push_back(load);
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

bool CheckmateProgram::add_stages(std::uint32_t first, std::size_t most) {
  for (std::uint32_t t = first; t < graph_.launches.size(); ++t) {
    Stage stage;
    stage.launch = t;
    for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
      if (can_be_kept(b, t)) stage.saved.push_back(b);
    }
    for (const std::uint32_t b : stage.saved) {
      const Term before = stages_.empty() ? Term{} : saved(stages_.back(), b);
      const bool same = form_.reduced && before.column >= 0 && stages_.back().replays.empty() &&
                        !std::binary_search(users_[b].begin(), users_[b].end(), t - 1);
      stage.saved_columns.push_back(same ? before.column : column(0, 1, true));
    }
    stage.replays = replays_at(t);
    stage.first_replay = static_cast<int>(linear_.cost.size());
    for (const std::uint32_t l : stage.replays) column(graph_.launches[l].ns * scale_, 1, true);
    stages_.push_back(std::move(stage));
    if (linear_.cost.size() > most) return false;
  }
  return true;
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
void CheckmateProgram::add_rules() {
  for (std::size_t k = 0; k < stages_.size(); ++k) {
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
    if (k == 0) continue;
    const Stage& before = stages_[k - 1];
    for (const std::uint32_t b : stage.saved) {
      if (graph_.makers[b].back() == before.launch) continue;
      for (const std::uint32_t l : graph_.makers[b])
        add(Row().add(1, saved(before, b)).add(1, replay(before, l)).add(-1, saved(stage, b)), 0, kUnbounded);
    }
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
