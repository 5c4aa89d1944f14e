#include "planner/swap/bounds/bounds.h"

#include <algorithm>
#include <cmath>
#include <coin/ClpSimplex.hpp>
#include <coin/CoinPackedMatrix.hpp>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

namespace memopt::swap {
namespace {

constexpr double kMiB = 1 << 20;
constexpr int kNone = -1;
constexpr std::size_t kFewestIntervals = 24;

// A block is not accessed at the operations [from, to).
struct Absence {
  std::uint64_t from = 0, to = 0;
  double size = 0;  // MiB
  bool returns = true;
  bool drops = false;  // may leave without a copy

  auto key() const { return std::tuple(from, to, returns, drops); }
};

class Absences {
 public:
  Absences(const Problem& problem, const Liveness& liveness, std::uint64_t least_bytes)
      : problem_(problem), liveness_(liveness), least_bytes_(least_bytes), load(liveness.operations, 0.0) {
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
      if (problem.blocks[b].bytes != 0) add(b);
    }
    std::sort(gaps.begin(), gaps.end(), [](const Absence& a, const Absence& b) { return a.key() < b.key(); });
    // Those of the same time are one.
    std::vector<Absence> joined;
    for (const Absence& gap : gaps) {
      if (!joined.empty() && joined.back().key() == gap.key()) {
        joined.back().size += gap.size;
      } else {
        joined.push_back(gap);
      }
    }
    gaps = std::move(joined);
  }

 private:
  const Problem& problem_;
  const Liveness& liveness_;
  std::uint64_t least_bytes_;

 public:
  std::vector<Absence> gaps;
  std::vector<std::uint64_t> changes;  // operations where the load changes
  std::vector<double> load;            // MiB by operation, of what can't be away or is away for nothing

 private:
  void add(std::uint32_t b) {
    const Block& block = problem_.blocks[b];
    const Lifetime& lifetime = liveness_.of[b];
    const std::uint64_t n = liveness_.operations;
    const auto accesses = liveness_.accesses_of(b);
    const double size = static_cast<double>(block.bytes) / kMiB;
    if (block.persistent) {
      if (accesses.empty() && !block.pinned) return;  // away nearly always
      count(0, n, size);
      for (std::size_t k = 0; k < accesses.size(); ++k) {
        const bool last = k + 1 == accesses.size();
        const std::uint64_t next = last ? accesses[0].position + n : accesses[k + 1].position;
        gap(block, accesses[k].position + 1, next, {.size = size, .drops = drops(accesses[k])});
      }
      return;
    }
    count(lifetime.start, lifetime.freed + 1, size);
    if (block.bytes >= least_bytes_) changes.insert(changes.end(), {lifetime.start % n, (lifetime.freed + 1) % n});
    Access before{lifetime.start, true};
    for (const Access& access : accesses) {
      gap(block, before.position + 1, access.position, {.size = size, .drops = drops(before)});
      before = access;
    }
    gap(block, before.position + 1, lifetime.freed + 1, {.size = size, .returns = false, .drops = drops(before)});
  }

  void count(std::uint64_t from, std::uint64_t to, double size) {
    for (std::uint64_t p = from; p < to; ++p) load[p % liveness_.operations] += size;
  }

  // Behind an access that only reads, the host's copy may be current.
  bool drops(const Access& access) const { return problem_.clean_drops && !access.write; }

  void gap(const Block& block, std::uint64_t from, std::uint64_t to, Absence gap) {
    if (from >= to || block.pinned) return;
    gap.from = from;
    gap.to = to;
    if (block.bytes < least_bytes_) {
      count(from, to, -gap.size);
    } else {
      gaps.push_back(gap);
    }
  }
};

// Rows and columns of a programme, as CLP wants them.
class Programme {
 public:
  static constexpr double kFree = std::numeric_limits<double>::max();  // COIN_DBL_MAX

  int column(double cost, double most) {
    cost_.push_back(cost);
    most_.push_back(most);
    return static_cast<int>(cost_.size()) - 1;
  }
  int row(double least, double most) {
    row_least_.push_back(least);
    row_most_.push_back(most);
    return static_cast<int>(row_least_.size()) - 1;
  }
  void put(int row, int column, double factor) {
    rows_.push_back(row);
    columns_.push_back(column);
    factors_.push_back(factor);
  }

  // The least cost; infinite if there is no solution.
  std::optional<double> solve(double seconds) const {
    const CoinPackedMatrix matrix(true, rows_.data(), columns_.data(), factors_.data(),
                                  static_cast<CoinBigIndex>(factors_.size()));
    const std::vector<double> least(cost_.size(), 0.0);
    ClpSimplex model;
    model.setLogLevel(0);
    model.loadProblem(matrix, least.data(), most_.data(), cost_.data(), row_least_.data(), row_most_.data());
    model.setMaximumSeconds(seconds);
    model.initialSolve();
    if (model.isProvenOptimal()) return std::max(0.0, model.objectiveValue());  // a hair below, now and again
    if (model.isProvenPrimalInfeasible()) return std::numeric_limits<double>::infinity();
    return std::nullopt;
  }

 private:
  std::vector<double> cost_, most_, row_least_, row_most_, factors_;
  std::vector<int> rows_, columns_;
};

class Fluid {
 public:
  Fluid(const Problem& problem, const Liveness& liveness, const BoundLimits& limits)
      : problem_(problem),
        n_(liveness.operations),
        absences_(problem, liveness, limits.least_bytes),
        seconds_(limits.seconds) {
    find_fine();
    std::size_t intervals = std::max<std::size_t>(limits.intervals, 2);
    find_coarse(intervals);
    while (intervals > kFewestIntervals && spanned() > limits.columns) {
      intervals = std::max(kFewestIntervals, intervals / 2);
      find_coarse(intervals);
    }
    choose(limits.entries);
  }

  // Without `limit`: MiB, no stalls. With one (MiB): stalls.
  std::optional<double> solve(std::optional<double> limit) {
    const int height = limit ? -1 : programme_.column(1, Programme::kFree);
    Rows rows;
    auto& [out, in, loads, begins] = rows;
    std::vector<int> stalls;
    for (std::size_t k = 0; k + 1 < coarse_.size(); ++k) {
      const double duration = time(fine_[coarse_[k + 1]]) - time(fine_[coarse_[k]]);
      const double out_rate = problem_.machine.out_bytes_per_ns / kMiB,
                   in_rate = problem_.machine.in_bytes_per_ns / kMiB;
      out.push_back(programme_.row(-Programme::kFree, out_rate * duration));
      in.push_back(programme_.row(-Programme::kFree, in_rate * duration));
      if (!limit) continue;
      stalls.push_back(programme_.column(1, Programme::kFree));
      programme_.put(out.back(), stalls.back(), -out_rate);
      programme_.put(in.back(), stalls.back(), -in_rate);
    }
    const auto below_limit = [&](std::vector<int>& list, double load) {
      list.push_back(programme_.row(load - limit.value_or(0), Programme::kFree));
      if (!limit) programme_.put(list.back(), height, 1);
    };
    for (std::size_t f = 0; f + 1 < fine_.size(); ++f) {
      if (looked_at_[f]) {
        below_limit(loads, highest_[f]);
      } else {
        loads.push_back(kNone);
      }
    }
    for (std::size_t k = 0; k + 1 < coarse_.size(); ++k) below_limit(begins, absences_.load[fine_[coarse_[k]]]);
    for (const Absence& gap : absences_.gaps) add(gap, rows);
    if (limit) add_waits_between(stalls, rows);
    return programme_.solve(seconds_);
  }

 private:
  struct Rows {
    std::vector<int> out, in;  // the rates, by coarse interval
    std::vector<int> loads;    // by fine interval, or kNone: less what is away at some time of its coarse one
    std::vector<int> begins;   // by coarse interval: at its first operation, only what is away by then is gone
  };

  // A gap's first operation may wait for bytes of the gap itself: some of what goes out in an interval may do so in the
  // stall at the end of the interval before.
  void add_waits_between(const std::vector<int>& stalls, const Rows& rows) {
    std::vector<double> opening(n_, 0.0);
    for (const Absence& gap : absences_.gaps) opening[gap.from % n_] += gap.size;
    for (std::size_t k = 0; k + 1 < coarse_.size(); ++k) {
      const double size = opening[fine_[coarse_[k]]];
      if (size == 0) continue;
      const std::size_t before = (k == 0 ? coarse_.size() - 1 : k) - 1;
      const int sooner = programme_.column(0, size);
      const int within_stall = programme_.row(-Programme::kFree, 0);
      programme_.put(within_stall, sooner, 1);
      programme_.put(within_stall, stalls[before], -problem_.machine.out_bytes_per_ns / kMiB);
      programme_.put(rows.begins[k], sooner, 1);
      if (before == k) continue;
      programme_.put(rows.out[before], sooner, 1);
      programme_.put(rows.out[k], sooner, -1);
    }
  }

  double time(std::uint64_t operation) const {
    return operation < n_ ? problem_.operations[operation].time : problem_.period;
  }

  // Where gaps begin and end, and the load changes by more than a little: between, only the highest load counts.
  void find_fine() {
    fine_ = {0, n_};
    for (const Absence& gap : absences_.gaps) {
      fine_.push_back(gap.from % n_);
      fine_.push_back(gap.to % n_);
    }
    fine_.insert(fine_.end(), absences_.changes.begin(), absences_.changes.end());
    std::sort(fine_.begin(), fine_.end());
    fine_.erase(std::unique(fine_.begin(), fine_.end()), fine_.end());
  }

  // Joins fine intervals as long as they last no longer than a step; the shortest step that leaves few enough.
  void find_coarse(std::size_t wanted) {
    double low = 0, high = problem_.period;
    join(low);
    if (coarse_.size() - 1 <= wanted) return;
    for (int k = 0; k < 40; ++k) {
      const double step = (low + high) / 2;
      join(step);
      (coarse_.size() - 1 <= wanted ? high : low) = step;
    }
    join(high);
  }

  // By all gaps, coarse intervals.
  std::size_t spanned() const {
    std::size_t sum = 0;
    const std::size_t intervals = coarse_.size() - 1;
    for (const Absence& gap : absences_.gaps) {
      const std::size_t from = of_fine_[fine_at(gap.from % n_)], to = of_fine_[fine_at((gap.to - 1) % n_)];
      sum += ((gap.to - 1) / n_ - gap.from / n_) * intervals + to + 1 - from;
    }
    return sum;
  }

  void join(double step) {
    coarse_ = {0};
    of_fine_.assign(fine_.size() - 1, 0);
    for (std::size_t f = 1; f + 1 < fine_.size(); ++f) {
      if (time(fine_[f + 1]) - time(fine_[coarse_.back()]) > step) coarse_.push_back(f);
      of_fine_[f] = coarse_.size() - 1;
    }
    coarse_.push_back(fine_.size() - 1);
  }

  // Looks at the fine intervals with the highest loads only, so many of each coarse one that the programme stays small.
  void choose(std::size_t entries) {
    std::vector<std::size_t> at_once(fine_.size(), 0);  // gaps that begin, less those that end
    std::size_t gaps = 0;
    for (const Absence& gap : absences_.gaps) {
      const std::size_t from = fine_at(gap.from % n_), to = fine_at((gap.to - 1) % n_) + 1;
      ++at_once[from];
      --at_once[to];
      gaps += (gap.to - 1) / n_ - gap.from / n_;  // over the iteration's end
    }
    for (std::size_t f = 0; f + 1 < fine_.size(); ++f) {
      const auto load = absences_.load.begin();
      highest_.push_back(*std::max_element(load + static_cast<std::ptrdiff_t>(fine_[f]),
                                           load + static_cast<std::ptrdiff_t>(fine_[f + 1])));
      gaps += at_once[f];
      at_once[f] = gaps;
    }
    looked_at_.assign(fine_.size() - 1, true);
    std::size_t all = 0;
    for (std::size_t f = 0; f + 1 < fine_.size(); ++f) all += at_once[f];
    for (std::size_t most = 64; all > entries && most > 0; most /= 2) {
      all = 0;
      std::vector<std::size_t> order;
      for (std::size_t k = 0; k + 1 < coarse_.size(); ++k) {
        order.resize(coarse_[k + 1] - coarse_[k]);
        std::iota(order.begin(), order.end(), coarse_[k]);
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return highest_[a] > highest_[b]; });
        for (std::size_t place = 0; place < order.size(); ++place) {
          looked_at_[order[place]] = place < most;
          if (place < most) all += at_once[order[place]];
        }
      }
    }
  }

  std::size_t fine_at(std::uint64_t operation) const {
    return static_cast<std::size_t>(std::upper_bound(fine_.begin(), fine_.end(), operation) - fine_.begin()) - 1;
  }

  void add(const Absence& gap, const Rows& rows) {
    const auto& [out, in, loads, begins] = rows;
    auto f = static_cast<std::size_t>(std::lower_bound(fine_.begin(), fine_.end(), gap.from % n_) - fine_.begin());
    std::uint64_t at = gap.from;
    int left = -1;  // what is away at the end of the interval before
    while (at < gap.to) {
      const std::size_t k = of_fine_[f];
      const int away = programme_.column(0, gap.size);
      if (left >= 0) {
        programme_.put(begins[k], left, 1);
      } else if (gap.drops && f == coarse_[k]) {
        programme_.put(begins[k], away, 1);  // gone before its first operation
      }
      if (!gap.drops) programme_.put(out[k], away, 1);
      if (left >= 0) {
        if (!gap.drops) programme_.put(out[k], left, -1);
        const int more = programme_.row(0, Programme::kFree);
        programme_.put(more, away, 1);
        programme_.put(more, left, -1);
      }
      while (at < gap.to && of_fine_[f] == k) {
        if (loads[f] != kNone) programme_.put(loads[f], away, 1);
        at += fine_[f + 1] - fine_[f];
        f = f + 2 == fine_.size() ? 0 : f + 1;
        if (f == 0) break;
      }
      const bool last = at >= gap.to;
      if (last && !gap.returns) break;
      programme_.put(in[k], away, 1);
      if (last) break;
      left = programme_.column(0, gap.size);
      programme_.put(in[k], left, -1);
      const int less = programme_.row(0, Programme::kFree);
      programme_.put(less, away, 1);
      programme_.put(less, left, -1);
    }
  }

  const Problem& problem_;
  std::uint64_t n_;
  Absences absences_;
  double seconds_;
  std::vector<std::uint64_t> fine_;   // operations, from 0 to n
  std::vector<std::size_t> coarse_;   // into fine_
  std::vector<std::size_t> of_fine_;  // the coarse interval of each fine one
  std::vector<double> highest_;       // load, by fine interval
  std::vector<bool> looked_at_;       // by fine interval
  Programme programme_;
};

}  // namespace

std::optional<double> least_footprint(const Problem& problem, const Liveness& liveness, const BoundLimits& limits) {
  const auto height = Fluid(problem, liveness, limits).solve(std::nullopt);
  return height ? std::optional(*height * kMiB) : std::nullopt;
}

std::optional<double> least_added_time(const Problem& problem, const Liveness& liveness, std::uint64_t limit,
                                       const BoundLimits& limits) {
  return Fluid(problem, liveness, limits).solve(static_cast<double>(limit) / kMiB);
}

}  // namespace memopt::swap
