// How long the device took for the operations of an iteration, as a program's records say (kKernelTime): of one
// operation in so many it was measured, each time the iteration came round of others.
//
// An operation has the least time that was measured of it in the iterations that were seen, under whatever call stacks;
// where its times differ by more than what a late host adds, the median less that. Without any, a launch has
// what those of the same function with the same grid take on average in the iteration, of as many bytes if there are
// any: so the sum is right where only a part of the iteration was measured, and that part was chosen by chance. Else it
// has the least that was measured of one like it anywhere (a copy of as many bytes in the same direction, a memset of
// as many). Else it is guessed: a launch as long for each byte of the blocks that it names as those of the iteration
// that are known (or the median of all launches), a copy as the least of the next larger copy in that direction, or
// memset, or in proportion to the largest. How long its stream had nothing to do before it is the least of its own.
//
// The device's clock tells how long the iteration takes, since some operations were measured in several. Where the
// operations take less than that, what was seen of idle times fills the rest, made shorter if it is more. If it is
// less, the device idles equally long before each operation of which that is not known: a host that issues operations
// one by one, too late, is as late for all of them. What then is missing is at the end of the iteration. Where the
// operations take more, some ran at the same time, on several streams: no idle times are counted, and the list of
// operations takes longer than the program did.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "planner/iteration/iteration_plan.h"
#include "planner/iteration/operation_store.h"
#include "shm/record.h"

namespace memopt::planner {

// Nanoseconds.
struct IterationTimes {
  enum class Source : std::uint8_t { kUnknown, kMeasured, kAlike, kGuessed };
  struct Time {
    std::uint64_t idle = 0;  // of the device, before it
    std::uint64_t busy = 0;
    Source source = Source::kUnknown;  // kUnknown: of a malloc or free, or nothing like it was ever measured
  };
  std::vector<Time> operations;  // as in IterationLifetimes::order
  std::uint64_t idle_at_end = 0;
  std::uint64_t busy = 0;    // of all operations
  std::uint64_t period = 0;  // by the device's clock; 0: not known
  // The same, or about that where no operation was measured in two iterations: from others before and behind it.
  std::uint64_t pace = 0;
  std::uint64_t on_device = 0;        // launches, copies and memsets
  std::array<std::uint64_t, 4> of{};  // these, by source

  std::uint64_t from(Source source) const { return of[static_cast<std::size_t>(source)]; }
  // Something of the iteration itself was measured.
  bool known() const { return from(Source::kMeasured) != 0; }
  std::uint64_t total() const;
  // As if the device never idled: for what was measured while it waited for something that will not be.
  void forget_idle();
};

// Not thread-safe. Memory is bounded by a constant: of very many measurements the latest are kept.
class MeasuredTimes {
 public:
  // Instead of the records so far, which the store has: what is measured from now on counts.
  void begin_behind(const OperationStore& store);
  // Each record, in order. `gap`: before it, some are missing.
  void add(std::uint32_t lane, const shm::RecordView& record, bool gap);

  // An iteration has been planned: its operations are to have times. Before another record is added.
  void begin(const OperationStore& store, const IterationPlan& plan);
  // Now and then: does the program still repeat it, or again?
  void follow(const OperationStore& store);

  // Of the iteration that was begun last.
  IterationTimes of_iteration() const;

 private:
  struct Recent {
    std::uint64_t sequence;
    std::uint64_t shape;
    std::uint64_t bytes;  // of copies and memsets
    std::uint64_t index;  // among the lane's operations
    std::uint32_t lane;
    std::uint32_t kind;  // kLaunches, ...
  };
  struct Sample {
    std::uint64_t index;
    std::uint32_t lane;
    std::uint32_t idle;
    std::uint64_t nanoseconds;
    std::uint64_t end;
  };
  // Operations of a lane that repeat the iteration, by their numbers since the beginning, as all positions here.
  struct Run {
    std::uint64_t begin;  // of an iteration
    std::uint64_t end;
  };
  struct Lane {
    std::uint32_t number = 0;
    std::uint32_t in_store = 0;
    std::vector<std::uint64_t> tokens;  // of one iteration
    std::vector<std::uint64_t> plain;   // the same, by whatever call stacks
    std::vector<std::uint32_t>
        borders;                 // of each beginning of them, its longest that is also its end, as it is shorter
    std::vector<Run> runs;       // in order; the last one goes on while `matched` is all of an iteration
    std::uint64_t followed = 0;  // up to here was looked
    std::size_t matched = 0;     // tokens before that, as an iteration begins
    bool broken = false;         // operations are missing behind it
    const Run* run_with(std::uint64_t index) const;
  };
  struct Step {
    bool on_device = false;
    std::uint32_t lane = 0;  // into lanes_
    std::uint64_t phase = 0;
    std::uint64_t shape = 0;
    std::uint64_t bytes = 0;  // of a launch: of the blocks that it names
    std::uint32_t kind = 0;
  };

  void measured(const shm::KernelTimeBody& body, std::uint32_t idle);
  const Recent* find(std::uint64_t sequence) const;
  std::uint64_t about_period() const;
  // A sum of made-up times would be beyond an integer.
  struct Average {
    double sum = 0;
    double count = 0;
    void add(std::uint64_t nanoseconds) {
      sum += static_cast<double>(nanoseconds);
      ++count;
    }
    std::uint64_t value() const { return static_cast<std::uint64_t>(sum / count); }
  };
  using Averages = std::unordered_map<std::uint64_t, Average>;  // by shape
  IterationTimes::Time of_others(const Step& step, const Averages& alike_here, std::uint64_t launch,
                                 double launched_rate) const;

  std::vector<std::uint64_t> counts_;  // operations, by lane
  std::deque<Recent> recent_;          // by sequence
  std::vector<Sample> samples_;
  std::unordered_map<std::uint64_t, std::uint64_t> least_by_shape_;
  std::vector<std::uint64_t> launches_;                             // all times
  std::array<std::map<std::uint64_t, std::uint64_t>, 6> by_bytes_;  // by kind: least times of copies and memsets
  std::vector<Lane> lanes_;
  std::vector<Step> steps_;
};

}  // namespace memopt::planner
