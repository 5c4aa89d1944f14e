// Columns and rows of the memory of each stage (section 4.3 to 4.5).
#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/recompute/published/checkmate_program.h"
#include "planner/recompute/published/checkmate_row.h"

namespace memopt::recompute {

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
      const bool changed = write.version > 1 && names(launch.reads, b);
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

void CheckmateProgram::add_memory(const Stage& stage, const Stage* next) { StageMemory(*this, stage, next).add(); }

}  // namespace memopt::recompute
