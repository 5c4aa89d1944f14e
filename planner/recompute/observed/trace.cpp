#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "planner/recompute/observed/know.h"
#include "planner/recompute/observed/rewriting.h"
#include "planner/swap/model/liveness.h"

namespace memopt::recompute {
namespace {

using swap::Kind;
using swap::Operation;

class Trace {
 public:
  Trace(const swap::Problem& problem, bool assume_writes)
      : problem_(problem),
        assume_writes_(assume_writes),
        liveness_(swap::find_liveness(problem)),
        only_written_(problem.blocks.size()),
        workspace_(problem.blocks.size()),
        rewriting_(problem) {
    for (std::size_t b = 0; b < problem.blocks.size(); ++b) only_written_[b] = problem.blocks[b].persistent;
    for (const Operation& operation : problem.operations) {
      if (operation.kind == Kind::kRead) only_written_[operation.block] = false;
    }
  }

  Known know() {
    const std::vector<Operation>& operations = problem_.operations;
    for (std::size_t i = 0, end = 0; i < operations.size(); i = end) {
      end = i + 1;
      if (!swap::is_access(operations[i])) {
        rewriting_.pass(operations[i]);
        continue;
      }
      while (end < operations.size() && swap::is_access(operations[end])) ++end;
      add(i, end);
    }
    Known& known = rewriting_.known();
    known.workspaces = static_cast<std::uint64_t>(std::count(workspace_.begin(), workspace_.end(), true));
    take_times(known.problem);
    return std::move(known);
  }

 private:
  struct Line {
    std::uint32_t block;
    std::uint32_t age;
    std::size_t place;
    bool write;

    std::pair<std::uint32_t, std::uint32_t> instance() const { return {block, age}; }
  };

  // The lines from `begin` to `end`.
  void add(std::size_t begin, std::size_t end) {
    lines_.clear();
    bool any_read = false;
    for (std::size_t i = begin; i < end; ++i) {
      const Operation& operation = problem_.operations[i];
      lines_.push_back({operation.block, operation.age, i, operation.kind == Kind::kWrite});
      any_read = any_read || operation.kind == Kind::kRead;
    }
    std::sort(lines_.begin(), lines_.end(), [](const Line& a, const Line& b) {
      return std::pair(a.instance(), a.place) < std::pair(b.instance(), b.place);
    });
    used_.clear();
    bool changes = false;
    for (std::size_t i = 0; i < lines_.size();) {
      const Line& first = lines_[i];
      Used used{first.block, first.age, false, false};
      std::size_t same = i;
      for (; same < lines_.size() && lines_[same].instance() == first.instance(); ++same) {
        used.reads = used.reads || !lines_[same].write;
        used.writes = used.writes || lines_[same].write;
      }
      if (is_for_the_free(first, end)) {
        ++rewriting_.known().pointers;
        i = same;
        continue;
      }
      if (first.write && is_fresh(first)) {
        used.reads = false;
      } else if (used.writes) {
        workspace_[first.block] = only_written_[first.block];
        used.reads = used.reads || (!only_written_[first.block] && !assume_writes_);
      }
      changes = changes || (used.reads && used.writes);
      used_.push_back(used);
      i = same;
    }
    if (!used_.empty()) ++rewriting_.known().launches;
    const bool from_nothing = !any_read;
    const Doubt doubt = from_nothing ? Doubt::kFromNothing : changes ? Doubt::kMayChange : Doubt::kNoDoubt;
    rewriting_.launch(problem_.operations[begin], used_, {kNone, doubt}, from_nothing);
  }

  bool is_fresh(const Line& line) const {
    const std::uint64_t position = line.place + std::uint64_t{line.age} * problem_.operations.size();
    return !problem_.blocks[line.block].persistent && liveness_.accesses_of(line.block).front().position == position;
  }

  // The first of its block, and the last of the launch, which ends before `end`.
  bool is_for_the_free(const Line& line, std::size_t end) const {
    if (!line.write || line.place + 1 != end || end == problem_.operations.size()) return false;
    const Operation& next = problem_.operations[end];
    return next.kind == Kind::kFree && next.block == line.block && next.age == line.age;
  }

  // What is between two launches that write takes no time, but for what is before the first.
  static void take_times(swap::Problem& problem) {
    std::vector<Operation>& operations = problem.operations;
    double next = problem.period;
    for (std::size_t end = operations.size(); end > 0;) {
      std::size_t begin = end - 1;
      while (operations[begin].continues) --begin;
      const bool writes = std::any_of(operations.begin() + static_cast<std::ptrdiff_t>(begin),
                                      operations.begin() + static_cast<std::ptrdiff_t>(end),
                                      [](const Operation& operation) { return operation.kind == Kind::kWrite; });
      if (writes) {
        for (std::size_t i = end; i < operations.size() && operations[i].time < next; ++i) operations[i].time = next;
        next = operations[begin].time;
      }
      end = begin;
    }
  }

  const swap::Problem& problem_;
  const bool assume_writes_;
  const swap::Liveness liveness_;
  std::vector<bool> only_written_;  // by block: it persists, and no line reads it
  std::vector<bool> workspace_;     // by block: one of these that a launch writes
  Rewriting rewriting_;
  std::vector<Line> lines_;  // of a launch
  std::vector<Used> used_;
};

}  // namespace

Known know_trace(const swap::Problem& problem, bool assume_writes) { return Trace(problem, assume_writes).know(); }

}  // namespace memopt::recompute
