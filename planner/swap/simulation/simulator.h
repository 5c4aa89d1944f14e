// When everything in a steady iteration happens: the simulator. Operations run one after the other, each waiting for
// what it needs; two copy engines, out and in, do their copies one at a time in order of issue; bytes are taken when
// all previous owners have let go of them; what returns to another place has its addresses mapped first.
// docs/formats/plan-json.md, "Timing", has the rules.
//
// Built for search: one evaluation is a sweep over the intervals of residency, which finds what waits for what, and
// then a few steps per copy and iteration; operations that neither wait nor issue cost nothing. Memory is kept between
// evaluations. O(i log i + k s) for i intervals, s swaps and k iterations until steady.
//
// Not thread-safe: one Simulator a thread. The problem and its liveness must outlive it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/swap/model/liveness.h"
#include "planner/swap/model/model.h"
#include "planner/swap/simulation/byte_owners.h"
#include "planner/swap/simulation/residency.h"

namespace memopt::swap {

enum class Fault : std::uint8_t {
  kNone,
  kOverlap,    // two blocks are resident on the same bytes at the same operation
  kDeadlock,   // an operation waits for a copy that waits for it
  kCrossing,   // a swap-in is issued in an earlier iteration than that in which its bytes are given up
  kOverLimit,  // without layout: more bytes are wanted than the limit leaves
};

struct Timing {
  Fault fault = Fault::kNone;
  std::uint32_t culprit = 0;  // a block: at fault
  bool steady = false;        // the iterations' length has settled
  std::uint32_t iterations = 0;
  double added_ns = 0;  // to each steady iteration
  double stall_malloc_ns = 0;
  double stall_access_ns = 0;
  double early_swap_ins = 0;        // an iteration, issued before their bytes were given up
  std::uint64_t peak_resident = 0;  // without layout only; with one, occupancy.h finds it
};

// A wait of an operation.
struct Stall {
  std::uint64_t iteration = 0;
  std::uint64_t operation = 0;
  double ns = 0;
};

class Simulator {
 public:
  Simulator(const Problem& problem, const Liveness& liveness);

  // Stops as soon as the iterations repeat. The decisions must pass find_swap_fault, and find_place_fault if the
  // problem has a layout.
  Timing evaluate(const Decisions& decisions);

  // The same over all iterations that the checker looks at, even where they repeat; then what follows can be asked.
  Timing record(const Decisions& decisions);

  // Sets each in_after to the first operation behind which all previous owners of the block's bytes have let go or been
  // told to: no swap-in can be issued earlier. Swaps that do not return are left alone. With a layout only; false if
  // blocks overlap.
  bool issue_at_once(Decisions& decisions);

  // Of the last record(): all iterations that were simulated.
  std::uint64_t rounds() const { return rounds_; }  // iterations after which the offsets repeat
  const Residency& residency() const { return residency_; }
  std::span<const Stall> stalls() const { return stalls_; }
  double iteration_end(std::uint64_t iteration) const { return ends_[iteration]; }
  // Of the copy that is issued in this iteration. Out: ended when the bytes are given up.
  double out_end(std::uint32_t swap, std::uint64_t iteration) const { return out_end_[slot(swap, iteration)]; }
  double in_begin(std::uint32_t swap, std::uint64_t iteration) const { return in_begin_[slot(swap, iteration)]; }
  // That the host maps anew before the copy in, in every iteration.
  std::uint64_t remapped_chunks(std::uint32_t swap) const { return remaps_ ? remapped_chunks_[swap] : 0; }
  double in_end(std::uint32_t swap, std::uint64_t iteration) const { return in_end_[slot(swap, iteration)]; }

 private:
  // An operation waits for a copy issued `back` iterations before it, or a copy in for a copy out.
  struct Wait {
    std::uint64_t at = 0;  // operation, counted over all rounds; of copies in: unused
    std::uint32_t swap = 0;
    std::uint32_t back = 0;
    bool in = false;
  };
  struct CopyIn {
    std::uint64_t ready = 0;  // the operation behind which nothing that it waits for is still to be issued
    std::uint32_t swap = 0;
    std::uint32_t first_wait = 0;
    std::uint32_t waits = 0;
  };
  // An operation at which something happens.
  struct Step {
    std::uint64_t operation = 0;
    std::uint32_t waits_end = 0, outs_end = 0, ins_end = 0;  // its own begin where those of the step before end
  };
  struct Range {
    std::uint32_t step = 0, wait = 0, out = 0, in = 0;
  };

  std::size_t slot(std::uint32_t swap, std::uint64_t iteration) const { return (iteration + history_) * swaps_ + swap; }
  Timing run(const Decisions& decisions, bool whole);
  Timing prepare(const Decisions& decisions);
  void find_beginnings();
  void sweep(const Decisions& decisions, Timing& timing);
  void find_remappings(const Decisions& decisions);
  double busiest_ns(const Decisions& decisions) const;
  void order_copies_in(const Decisions& decisions, Timing& timing);
  void add_waits_for_copies_in(const Decisions& decisions);
  void make_steps();
  void simulate_iteration(std::uint64_t iteration);
  void prepare_load(const Decisions& decisions, Timing& timing);
  bool simulate_load_iteration(const Decisions& decisions, std::uint64_t iteration, Timing& timing);
  double take(std::uint64_t bytes, double now);
  bool repeats(std::uint64_t iteration) const;
  void grow(std::uint64_t iterations);

  const Problem& problem_;
  const Liveness& liveness_;
  std::vector<double> begin_, end_;  // of each operation in an iteration without stalls

  std::uint64_t rounds_ = 1;
  std::size_t swaps_ = 0;
  std::uint64_t history_ = 0;  // iterations before the first that waits may look back to
  std::uint64_t span_ = 1;     // iterations that a lifetime can reach beyond its first
  Residency residency_;
  std::vector<double> out_ns_, in_ns_;          // by swap; out_ns_ < 0: no copy
  bool remaps_ = false;                         // a block returns to another place; else what follows is of no meaning
  std::vector<std::uint64_t> remapped_chunks_;  // by swap, before its copy in
  std::vector<std::uint32_t>
      out_back_;  // by swap: iterations between the issue of its copy out and that of its copy in

  ByteOwners owners_;
  struct Beginning {
    std::uint32_t interval = 0;
    std::uint32_t next = 0;  // another at the same operation
    std::uint32_t round = 0;
    std::int64_t shift = 0;  // from positions of the instance born in iteration 0 to those of the first cycle
  };
  std::vector<std::uint32_t> beginning_at_;  // by operation over all rounds: into beginnings_
  std::vector<Beginning> beginnings_;
  struct OutOf {
    std::uint64_t key = 0;  // copy in: swap * rounds + round
    std::uint32_t swap = 0, back = 0;
  };
  std::vector<OutOf> in_waits_;
  std::vector<std::uint32_t> early_;     // by round
  std::vector<std::uint64_t> in_ready_;  // by key, relative to the iteration of issue

  std::vector<Wait> waits_;
  std::vector<std::uint32_t> outs_, ins_order_;  // swaps in order of issue
  std::vector<std::uint64_t> out_at_;            // by place in outs_: the operation
  std::vector<CopyIn> ins_;
  std::vector<Step> steps_;
  std::vector<Range> round_;

  std::vector<double> out_end_, in_begin_, in_end_, ends_;
  std::vector<Stall> stalls_;
  double stall_ = 0, out_free_ = 0, in_free_ = 0, remap_free_ = 0;

  // Without layout.
  struct Token {
    double time = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<std::uint64_t> taken_at_, released_at_;  // by operation
  std::vector<Token> tokens_;                          // bytes of copies out under way, in order of their ends
  std::size_t token_ = 0;
  std::uint64_t ready_bytes_ = 0, room_ = 0;
};

}  // namespace memopt::swap
