#include "planner/swap/simulation/simulator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memopt::swap {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr double kNoCopy = -1;
// The checker's: so many iterations are looked at, and it gives up beyond so many operations.
constexpr std::uint64_t kLeastIterations = 8;
constexpr std::uint64_t kMostOperations = 1500000;
constexpr double kSteady = 1e-6;  // of the period

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

}  // namespace

Simulator::Simulator(const Problem& problem, const Liveness& liveness) : problem_(problem), liveness_(liveness) {
  const std::size_t n = problem.operations.size();
  begin_.resize(n);
  end_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    begin_[i] = problem.operations[i].time;
    end_[i] = i + 1 < n ? problem.operations[i + 1].time : problem.period;
  }
}

Timing Simulator::evaluate(const Decisions& decisions) { return run(decisions, false); }
Timing Simulator::record(const Decisions& decisions) { return run(decisions, true); }

Timing Simulator::prepare(const Decisions& decisions) {
  Timing timing;
  const std::uint64_t n = liveness_.operations;
  swaps_ = decisions.swaps.size();
  find_residency(problem_, liveness_, decisions, residency_);
  rounds_ = 1;
  if (problem_.layout) {
    for (const Place& place : decisions.places)
      rounds_ = std::lcm(rounds_, std::max<std::uint64_t>(place.offsets.size(), 1));
  }
  span_ = 1;
  for (const Lifetime& lifetime : liveness_.of) {
    if (lifetime.freed != kNever) span_ = std::max(span_, lifetime.freed / n);
  }
  out_ns_.resize(swaps_);
  in_ns_.resize(swaps_);
  outs_.resize(swaps_);
  ins_order_.clear();
  waits_.clear();
  in_waits_.clear();
  for (std::uint32_t j = 0; j < swaps_; ++j) {
    const Swap& swap = decisions.swaps[j];
    const std::uint64_t bytes = problem_.blocks[swap.block].bytes;
    out_ns_[j] = swap.copy ? problem_.machine.out_ns(bytes) : kNoCopy;
    in_ns_[j] = problem_.machine.in_ns(bytes);
    outs_[j] = j;
    if (!swap.returns()) continue;
    ins_order_.push_back(j);
    span_ = std::max(span_, swap.need / n + 1);
  }
  std::sort(outs_.begin(), outs_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t x = decisions.swaps[a].out_after % n, y = decisions.swaps[b].out_after % n;
    return x != y ? x < y : a < b;
  });
  std::sort(ins_order_.begin(), ins_order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t x = decisions.swaps[a].in_after % n, y = decisions.swaps[b].in_after % n;
    return x != y ? x < y : a < b;
  });
  out_at_.resize(swaps_);
  for (std::size_t k = 0; k < swaps_; ++k) out_at_[k] = decisions.swaps[outs_[k]].out_after % n;
  if (problem_.layout) {
    find_beginnings();
    sweep(decisions, timing);
    if (timing.fault == Fault::kNone) order_copies_in(decisions, timing);
  } else {
    prepare_load(decisions, timing);
  }
  if (timing.fault != Fault::kNone) return timing;
  find_remappings(decisions);
  add_waits_for_copies_in(decisions);
  history_ = 1;
  for (const Wait& wait : waits_) history_ = std::max<std::uint64_t>(history_, wait.back);
  for (const OutOf& wait : in_waits_) history_ = std::max<std::uint64_t>(history_, wait.back);
  if (remaps_) history_ = std::max<std::uint64_t>(history_, *std::max_element(out_back_.begin(), out_back_.end()));
  make_steps();
  return timing;
}

// What the host maps anew for a return to another place; also for what a freed block's addresses are mapped back to
// until it is allocated again, with its last return.
void Simulator::find_remappings(const Decisions& decisions) {
  remaps_ = problem_.layout && std::any_of(decisions.swaps.begin(), decisions.swaps.end(),
                                           [](const Swap& swap) { return !swap.returns_to.empty(); });
  if (!remaps_) return;
  remapped_chunks_.assign(swaps_, 0);
  out_back_.assign(swaps_, 0);
  for (std::uint32_t j = 0; j < swaps_; ++j) {
    const Swap& swap = decisions.swaps[j];
    if (swap.returns())
      out_back_[j] =
          static_cast<std::uint32_t>(swap.in_after / liveness_.operations - swap.out_after / liveness_.operations);
  }
  const std::vector<ResidencyInterval>& all = residency_.intervals;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    const std::uint32_t b = all[begin].block;
    while (end < all.size() && all[end].block == b) ++end;
    const auto offsets = [&](std::size_t k) -> auto& { return offsets_since(decisions, b, all[k].in_swap); };
    const std::uint64_t chunks = chunks_of(problem_, problem_.blocks[b].bytes);
    for (std::size_t k = begin; k < end; ++k) {
      if (all[k].in_swap == kNoSwap) continue;
      const std::size_t before = k == begin ? end - 1 : k - 1;
      if (offsets(k) != offsets(before)) remapped_chunks_[static_cast<std::size_t>(all[k].in_swap)] += chunks;
    }
    const ResidencyInterval& last = all[end - 1];
    if (!problem_.blocks[b].persistent && last.in_swap != kNoSwap && offsets(end - 1) != offsets(begin))
      remapped_chunks_[static_cast<std::size_t>(last.in_swap)] += chunks;
  }
}

// What falls behind a little in each iteration is seen to be waited for only much later, but no iteration is shorter
// than what one engine, or the host, has to do in it.
double Simulator::busiest_ns(const Decisions& decisions) const {
  double out = 0, in = 0, host = 0;
  for (std::uint32_t j = 0; j < swaps_; ++j) {
    if (out_ns_[j] != kNoCopy) out += out_ns_[j];
    if (!decisions.swaps[j].returns()) continue;
    in += in_ns_[j];
    host += static_cast<double>(remapped_chunks(j)) * problem_.machine.remap_ns.value_or(0);
  }
  return std::max({out, in, host});
}

bool Simulator::issue_at_once(Decisions& decisions) {
  for (Swap& swap : decisions.swaps) {
    if (swap.returns()) swap.in_after = swap.out_after;
  }
  if (prepare(decisions).fault == Fault::kOverlap) return false;
  for (const std::uint32_t j : ins_order_) {
    std::uint64_t ready = 0;
    for (std::uint64_t round = 0; round < rounds_; ++round) ready = std::max(ready, in_ready_[j * rounds_ + round]);
    Swap& swap = decisions.swaps[j];
    swap.in_after = swap.in_after / liveness_.operations * liveness_.operations + ready;
  }
  return true;
}

// Chains the intervals by the operation with which they begin, over all rounds.
void Simulator::find_beginnings() {
  const auto n = static_cast<std::int64_t>(liveness_.operations);
  const std::int64_t cycle = n * static_cast<std::int64_t>(rounds_);
  beginning_at_.assign(static_cast<std::size_t>(cycle), kNone);
  beginnings_.clear();
  for (std::uint32_t i = 0; i < residency_.intervals.size(); ++i) {
    for (std::uint32_t round = 0; round < rounds_; ++round) {
      const std::int64_t at = static_cast<std::int64_t>(residency_.intervals[i].first) + round * n;
      const std::int64_t shift = round * n - at / cycle * cycle;
      std::uint32_t& head = beginning_at_[static_cast<std::size_t>(at % cycle)];
      beginnings_.push_back({i, head, round, shift});
      head = static_cast<std::uint32_t>(beginnings_.size() - 1);
    }
  }
}

// Goes over two cycles of rounds: the first leaves behind which block owns which bytes, the second finds what waits for
// what.
void Simulator::sweep(const Decisions& decisions, Timing& timing) {
  const auto n = static_cast<std::int64_t>(liveness_.operations);
  const std::int64_t cycle = n * static_cast<std::int64_t>(rounds_);
  in_ready_.resize(swaps_ * rounds_);
  for (const std::uint32_t j : ins_order_) {
    const Swap& swap = decisions.swaps[j];
    const std::uint64_t back = swap.in_after / liveness_.operations - swap.out_after / liveness_.operations;
    for (std::uint64_t round = 0; round < rounds_; ++round) {
      const std::uint64_t key = j * rounds_ + round;
      in_ready_[key] = swap.in_after % liveness_.operations;
      if (swap.copy) in_waits_.push_back({key, j, static_cast<std::uint32_t>(back)});
    }
  }
  owners_.clear();
  const auto overlap = [&](const ByteOwners::Owner& owner) {
    timing.fault = Fault::kOverlap;
    timing.culprit = owner.block;
  };
  std::size_t at_interval = 0;
  for (std::uint32_t b = 0; b < problem_.blocks.size(); ++b) {
    const bool swapped = at_interval < residency_.intervals.size() && residency_.intervals[at_interval].block == b;
    while (at_interval < residency_.intervals.size() && residency_.intervals[at_interval].block == b) ++at_interval;
    const Block& block = problem_.blocks[b];
    if (!block.persistent || swapped || block.bytes == 0) continue;
    const std::uint64_t from = decisions.places[b].offsets[0];
    owners_.take(from, from + block.bytes, {0, ByteOwners::kForever, kNoSwap, b}, overlap);
  }
  for (std::int64_t pass = 0; pass < 2 && timing.fault == Fault::kNone; ++pass) {
    for (std::int64_t at = 0; at < cycle; ++at) {
      for (std::uint32_t k = beginning_at_[static_cast<std::size_t>(at)]; k != kNone; k = beginnings_[k].next) {
        const ResidencyInterval& it = residency_.intervals[beginnings_[k].interval];
        const std::int64_t shift = beginnings_[k].shift + pass * cycle;
        const std::int64_t first = static_cast<std::int64_t>(it.first) + shift;
        const auto& offsets = offsets_since(decisions, it.block, it.in_swap);
        const std::uint64_t from = offsets.size() == 1 ? offsets[0] : offsets[beginnings_[k].round % offsets.size()];
        std::int64_t issued = 0;
        std::uint64_t key = 0;
        if (it.in_swap != kNoSwap && pass == 1) {
          issued = floor_divide(static_cast<std::int64_t>(decisions.swaps[it.in_swap].in_after) + shift, n);
          const auto rounds = static_cast<std::int64_t>(rounds_);
          key = it.in_swap * rounds_ + static_cast<std::uint64_t>(issued - floor_divide(issued, rounds) * rounds);
        }
        const ByteOwners::Owner owner{0, static_cast<std::int64_t>(it.last) + shift, it.out_swap, it.block};
        owners_.take(from, from + problem_.blocks[it.block].bytes, owner, [&](const ByteOwners::Owner& before) {
          if (before.last >= first) return overlap(before);
          if (pass == 0) return;
          const bool copied = before.out_swap != kNoSwap && out_ns_[before.out_swap] != kNoCopy;
          const std::int64_t let_go = floor_divide(before.last, n);
          if (it.in_swap == kNoSwap) {
            if (copied) {
              waits_.push_back({static_cast<std::uint64_t>(at), static_cast<std::uint32_t>(before.out_swap),
                                static_cast<std::uint32_t>(first / n - let_go), false});
            }
            return;
          }
          if (before.last > issued * n)
            in_ready_[key] = std::max(in_ready_[key], static_cast<std::uint64_t>(before.last - issued * n));
          // Negative for a crossing, which is refused before it is used.
          if (copied)
            in_waits_.push_back(
                {key, static_cast<std::uint32_t>(before.out_swap), static_cast<std::uint32_t>(issued - let_go)});
        });
        if (timing.fault != Fault::kNone) return;
      }
    }
  }
}

// Copies in go in order of issue, so each is ready no earlier than those before it.
void Simulator::order_copies_in(const Decisions& decisions, Timing& timing) {
  const std::uint64_t n = liveness_.operations;
  std::sort(in_waits_.begin(), in_waits_.end(),
            [](const OutOf& a, const OutOf& b) { return a.key != b.key ? a.key < b.key : a.swap < b.swap; });
  ins_.clear();
  early_.assign(rounds_, 0);
  const auto refuse = [&](Fault fault, std::uint32_t swap) {
    timing.fault = fault;
    timing.culprit = decisions.swaps[swap].block;
  };
  for (std::uint64_t round = 0; round < rounds_; ++round) {
    std::uint64_t ready = 0;
    for (const std::uint32_t j : ins_order_) {
      const Swap& swap = decisions.swaps[j];
      const std::uint64_t key = j * rounds_ + round;
      if (in_ready_[key] >= n) return refuse(Fault::kCrossing, j);
      if (in_ready_[key] > swap.in_after % n) ++early_[round];
      ready = std::max(ready, in_ready_[key]);
      if (swap.need - swap.in_after / n * n <= ready) return refuse(Fault::kDeadlock, j);
      const auto first = std::lower_bound(in_waits_.begin(), in_waits_.end(), key,
                                          [](const OutOf& one, std::uint64_t wanted) { return one.key < wanted; });
      auto last = first;
      while (last != in_waits_.end() && last->key == key) ++last;
      ins_.push_back({round * n + ready, j, static_cast<std::uint32_t>(first - in_waits_.begin()),
                      static_cast<std::uint32_t>(last - first)});
    }
  }
}

void Simulator::add_waits_for_copies_in(const Decisions& decisions) {
  const std::uint64_t n = liveness_.operations;
  for (const std::uint32_t j : ins_order_) {
    const Swap& swap = decisions.swaps[j];
    const auto back = static_cast<std::uint32_t>(swap.need / n - swap.in_after / n);
    for (std::uint64_t round = 0; round < rounds_; ++round)
      waits_.push_back({round * n + swap.need % n, j, back, true});
  }
}

void Simulator::make_steps() {
  const std::uint64_t n = liveness_.operations;
  std::sort(waits_.begin(), waits_.end(), [](const Wait& a, const Wait& b) { return a.at < b.at; });
  steps_.clear();
  round_.assign(1, {});
  std::uint32_t wait = 0, in = 0;
  const auto waits = static_cast<std::uint32_t>(waits_.size()), ins = static_cast<std::uint32_t>(ins_.size());
  const auto outs = static_cast<std::uint32_t>(swaps_);
  for (std::uint64_t round = 0; round < rounds_; ++round) {
    const std::uint64_t base = round * n, end = base + n;
    std::uint32_t out = 0;
    while (true) {
      std::uint64_t at = end;
      if (wait < waits) at = std::min(at, waits_[wait].at);
      if (out < outs) at = std::min(at, base + out_at_[out]);
      if (in < ins) at = std::min(at, ins_[in].ready);
      if (at >= end) break;
      while (wait < waits && waits_[wait].at == at) ++wait;
      while (out < outs && base + out_at_[out] == at) ++out;
      while (in < ins && ins_[in].ready == at) ++in;
      steps_.push_back({at - base, wait, out, in});
    }
    round_.push_back({static_cast<std::uint32_t>(steps_.size()), wait, 0, in});
  }
}

void Simulator::simulate_iteration(std::uint64_t iteration) {
  const Range from = round_[iteration % rounds_], to = round_[iteration % rounds_ + 1];
  const double base = static_cast<double>(iteration) * problem_.period;
  std::uint32_t wait = from.wait, out = from.out, in = from.in;
  for (std::uint32_t s = from.step; s < to.step; ++s) {
    const Step& step = steps_[s];
    const double start = base + begin_[step.operation] + stall_;
    double ready = start;
    for (; wait < step.waits_end; ++wait) {
      const Wait& one = waits_[wait];
      const std::size_t copy = slot(one.swap, iteration) - one.back * swaps_;
      ready = std::max(ready, one.in ? in_end_[copy] : out_end_[copy]);
    }
    if (ready > start) {
      stall_ += ready - start;
      stalls_.push_back({iteration, step.operation, ready - start});
    }
    const double end = base + end_[step.operation] + stall_;
    for (; out < step.outs_end; ++out) {
      const std::uint32_t j = outs_[out];
      double done = end;
      if (out_ns_[j] != kNoCopy) done = out_free_ = std::max(end, out_free_) + out_ns_[j];
      out_end_[slot(j, iteration)] = done;
    }
    for (; in < step.ins_end; ++in) {
      const CopyIn& copy = ins_[in];
      const std::size_t at = slot(copy.swap, iteration);
      double begin = std::max(end, in_free_);
      for (std::uint32_t w = copy.first_wait; w < copy.first_wait + copy.waits; ++w) {
        begin = std::max(begin, out_end_[slot(in_waits_[w].swap, iteration) - in_waits_[w].back * swaps_]);
      }
      if (const std::uint64_t chunks = remapped_chunks(copy.swap); chunks != 0) {
        const double away = out_end_[at - out_back_[copy.swap] * swaps_];
        remap_free_ = std::max(away, remap_free_) + static_cast<double>(chunks) * problem_.machine.remap_ns.value_or(0);
        begin = std::max(begin, remap_free_);
      }
      in_begin_[at] = begin;
      in_end_[at] = in_free_ = begin + in_ns_[copy.swap];
    }
  }
  ends_[iteration] = base + problem_.period + stall_;
}

void Simulator::grow(std::uint64_t iterations) {
  const std::size_t slots = (iterations + history_) * swaps_;
  for (std::vector<double>* times : {&out_end_, &in_begin_, &in_end_}) {
    if (times->size() < slots) times->resize(slots);
  }
  if (ends_.size() < iterations) ends_.resize(iterations);
}

// Whether all that later iterations can see is as it was an iteration ago, only later.
bool Simulator::repeats(std::uint64_t iteration) const {
  if (rounds_ != 1 || remaps_ || iteration <= history_ + 1 || (!problem_.layout && token_ < tokens_.size()))
    return false;
  const double length = ends_[iteration] - ends_[iteration - 1];
  const double tolerance = 1e-9 * problem_.period;
  for (std::uint64_t h = 0; h < history_; ++h) {
    const std::uint64_t k = iteration - h;
    if (std::abs(ends_[k] - ends_[k - 1] - length) > tolerance) return false;
    for (std::uint32_t j = 0; j < swaps_; ++j) {
      if (std::abs(out_end(j, k) - out_end(j, k - 1) - length) > tolerance) return false;
    }
    for (const std::uint32_t j : ins_order_) {
      if (std::abs(in_end(j, k) - in_end(j, k - 1) - length) > tolerance) return false;
    }
  }
  return true;
}

Timing Simulator::run(const Decisions& decisions, bool whole) {
  Timing timing = prepare(decisions);
  if (timing.fault != Fault::kNone) return timing;
  const std::uint64_t least = std::max(kLeastIterations, 3 * rounds_ + span_ + 2);
  stall_ = out_free_ = in_free_ = remap_free_ = 0;
  stalls_.clear();
  std::fill(out_end_.begin(), out_end_.begin() + std::min(out_end_.size(), history_ * swaps_), 0.0);
  std::fill(in_end_.begin(), in_end_.begin() + std::min(in_end_.size(), history_ * swaps_), 0.0);
  std::uint64_t done = 0, iterations = least;
  bool repeating = false;
  while (true) {
    grow(iterations);
    for (; done < iterations && !repeating; ++done) {
      if (problem_.layout) {
        simulate_iteration(done);
      } else if (!simulate_load_iteration(decisions, done, timing)) {
        return timing;
      }
      repeating = !whole && repeats(done);
    }
    for (std::uint64_t k = done; repeating && k < iterations; ++k) ends_[k] = 2 * ends_[k - 1] - ends_[k - 2];
    const std::uint64_t width = rounds_ * std::max<std::uint64_t>(1, iterations / 3 / rounds_);
    const std::uint64_t last = iterations - 2;
    const auto added = [&](std::uint64_t end) {
      return (ends_[end] - ends_[end - width]) / static_cast<double>(width) - problem_.period;
    };
    timing.added_ns = added(last);
    timing.steady = last < 2 * width || std::abs(timing.added_ns - added(last - width)) <= kSteady * problem_.period;
    timing.iterations = static_cast<std::uint32_t>(iterations);
    if (timing.steady || iterations >= 8 * least || iterations * liveness_.operations > kMostOperations) break;
    iterations *= 2;
  }
  timing.added_ns = std::max(timing.added_ns, busiest_ns(decisions) - problem_.period);
  std::uint64_t early = 0;
  for (std::uint64_t k = 0; problem_.layout && k < iterations; ++k) early += early_[k % rounds_];
  timing.early_swap_ins = static_cast<double>(early) / static_cast<double>(iterations);
  const std::uint64_t shown = std::min(iterations - 3, done - 1);
  for (const Stall& stall : stalls_) {
    if (stall.iteration != shown) continue;
    const bool malloc = problem_.operations[stall.operation].kind == Kind::kMalloc;
    (malloc ? timing.stall_malloc_ns : timing.stall_access_ns) += stall.ns;
  }
  return timing;
}

}  // namespace memopt::swap
