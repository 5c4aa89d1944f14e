#include "planner/swap/evaluation/evaluator.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace memopt::swap {
namespace {

constexpr std::size_t kBinsPlaced = 512, kBins = 2048, kMostBins = 8192;
constexpr std::uint64_t kOperationsPerBin = 4;

}  // namespace

Evaluator::Evaluator(const Problem& problem, const Liveness& liveness, const EvictionCandidates& candidates,
                     Places places)
    : problem_(problem),
      candidates_(candidates),
      placed_(problem.layout && places == Places::kFirstFit),
      clock_(problem),
      times_(problem, liveness, candidates, clock_),
      intervals_(problem, liveness, candidates, clock_),
      points_(static_cast<double>(point_of(liveness.operations))),
      peak_(static_cast<double>(liveness.peak)),
      packing_(placed_ ? candidates.items.size() : 0),
      bins_(
          (placed_ ? kBinsPlaced : std::clamp<std::size_t>(liveness.operations / kOperationsPerBin, kBins, kMostBins)) +
          1),
      in_use_(candidates.evictions.size()),
      out_end_(candidates.evictions.size()),
      in_begin_(candidates.evictions.size()),
      tops_(candidates.items.size()) {
  const auto count = static_cast<std::uint32_t>(candidates.items.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    whole_.push_back(intervals_.whole(i));
    const Block& block = problem.blocks[candidates.items[i].block];
    shapes_.push_back({block.bytes, alignment_of(problem, candidates.items[i].block, false), whole_[i].places});
  }
  residencies_ = whole_;
  if (placed_) conflicts_ = Conflicts(whole_);
  for (std::uint32_t i = 0; i < count; ++i) this->count(i, 1);
  ceased_.resize(conflicts_.words());
}

// What an item, in whole chunks where it takes those, adds to the load.
void Evaluator::count(std::uint32_t item, std::int64_t sign) {
  const ItemResidency& residency = residencies_[item];
  const std::uint64_t bytes = shapes_[item].bytes;
  const std::uint64_t taken =
      residency.swapped && problem_.layout ? chunks_of(problem_, bytes) * problem_.chunk : bytes;
  const std::int64_t change = sign * static_cast<std::int64_t>(taken * residency.places);
  const std::size_t bins = bins_.size() - 1;
  const double scale = static_cast<double>(bins) / points_;
  for (const PointInterval& interval : residency.intervals) {
    bins_[static_cast<std::size_t>(static_cast<double>(interval.begin) * scale)] += change;
    bins_[std::min(bins, static_cast<std::size_t>(std::ceil(static_cast<double>(interval.end) * scale)))] -= change;
  }
}

void Evaluator::take(std::uint32_t item, const ItemResidency& residency) {
  count(item, -1);
  residencies_[item] = residency;
  shapes_[item].alignment = alignment_of(problem_, candidates_.items[item].block, residency.swapped);
  shapes_[item].places = residency.places;
  count(item, 1);
}

// Items of which a copy is used, or no longer used, or made at another time than in what was kept get a new residency.
bool Evaluator::find_changes(const Choice& choice) {
  looked_at_.clear();
  const bool delayed = choice.delays != delays_;
  for (const std::uint32_t a : times_.used()) {
    const bool same = !delayed && in_use_[a] != 0 && times_.out_end(a) == out_end_[a] &&
                      (!candidates_.evictions[a].returns() || times_.in_begin(a) == in_begin_[a]);
    if (!same) looked_at_.push_back(candidates_.evictions[a].item);
  }
  for (const std::uint32_t a : used_) {
    if (choice.evicted[a] == 0) looked_at_.push_back(candidates_.evictions[a].item);
  }
  std::sort(looked_at_.begin(), looked_at_.end());
  looked_at_.erase(std::unique(looked_at_.begin(), looked_at_.end()), looked_at_.end());
  for (const std::uint32_t i : looked_at_) {
    const Item& item = candidates_.items[i];
    const auto first = choice.evicted.begin() + item.first_eviction;
    const bool away = std::any_of(first, first + item.evictions, [](std::uint8_t one) { return one != 0; });
    if (away && !intervals_.find(i, choice, times_, residency_)) return false;
    const ItemResidency& now = away ? residency_ : whole_[i];
    if (now == residencies_[i]) continue;
    if (changed_ == changes_.size()) changes_.emplace_back();
    Change& change = changes_[changed_++];
    change.item = i;
    change.before = residencies_[i];
    change.conflicts_before.clear();
    take(i, now);
  }
  if (!placed_) return true;
  changed_items_.clear();
  ceased_.assign(ceased_.size(), 0);
  for (std::size_t k = 0; k < changed_; ++k) {
    Change& change = changes_[k];
    conflicts_.update(change.item, residencies_, change.conflicts_before);
    changed_items_.push_back(change.item);
    const std::uint64_t* const row = conflicts_.row(change.item);
    for (std::size_t w = 0; w < ceased_.size(); ++w) ceased_[w] |= change.conflicts_before[w] & ~row[w];
  }
  return true;
}

void Evaluator::undo() {
  for (std::size_t k = changed_; k-- > 0;) {
    Change& change = changes_[k];
    take(change.item, change.before);
    if (!change.conflicts_before.empty()) conflicts_.restore(change.item, change.conflicts_before);
  }
  changed_ = 0;
  open_ = false;
}

double Evaluator::attempt(Choice& choice, double most) {
  if (open_) undo();
  open_ = true;
  clock_.delay(choice.delays);
  double rest = 0;
  for (const Delay& delay : choice.delays) rest += prices_.delay * delay.ns;
  while (true) {
    if (!times_.find(choice)) return kInfinite;
    if (times_.late().empty()) break;
    choice.evicted[times_.late().front()] = 0;
  }
  if (!find_changes(choice)) return kInfinite;
  if (prices_.mean_load > 0) rest += prices_.mean_load * std::max(0.0, mean_load() - prices_.goal);
  return placed_ ? place(choice, rest, most) : problem_.layout ? peak_load_of_parts(rest, most) : peak_load(rest, most);
}

// The eighth power's mean of the load over operations, in whole chunks where those are taken.
double Evaluator::mean_load() const {
  std::int64_t now = 0;
  const double unit = 1 / (peak_ + 1);
  double sum = 0;
  for (std::size_t k = 0; k + 1 < bins_.size(); ++k) {
    now += bins_[k];
    const double x = static_cast<double>(now) * unit, x2 = x * x, x4 = x2 * x2;
    sum += x4 * x4;
  }
  return std::sqrt(std::sqrt(std::sqrt(sum / static_cast<double>(bins_.size() - 1)))) / unit;
}

double Evaluator::cost_of(std::uint64_t height) const {
  return prices_.above_goal * std::max(0.0, static_cast<double>(height) - prices_.goal);
}

double Evaluator::place(const Choice& choice, double rest, double most) {
  if (rest > most) return kInfinite;
  std::uint64_t highest = Packing::kTooHigh;
  if (prices_.above_goal > 0 && most != kInfinite) {
    // A little more, as this is rounded: the cost decides.
    const double height = prices_.goal + (most - rest) / prices_.above_goal + 1;
    if (height < 0x1p63) highest = static_cast<std::uint64_t>(height);
  }
  const std::uint64_t height = packing_.attempt(choice.order, shapes_, conflicts_, changed_items_, ceased_, highest);
  if (height == Packing::kTooHigh) return kInfinite;
  const double cost = rest + cost_of(height);
  if (cost > most) return kInfinite;
  height_ = height;
  return cost;
}

// Without layout: the peak of the load.
double Evaluator::peak_load(double rest, double most) {
  events_.clear();
  for (std::uint32_t i = 0; i < residencies_.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(shapes_[i].bytes * residencies_[i].places);
    for (const PointInterval& interval : residencies_[i].intervals) {
      events_.emplace_back(interval.begin, bytes);
      events_.emplace_back(interval.end, -bytes);
    }
  }
  std::sort(events_.begin(), events_.end());
  std::int64_t now = 0, peak = 0;
  Point when = 0;
  for (const auto& [point, bytes] : events_) {
    now += bytes;
    if (now <= peak) continue;
    peak = now;
    when = point;
  }
  return cost_of_peak(static_cast<std::uint64_t>(peak), when, rest, most);
}

// With a layout, but nothing placed: the peak of the load over parts of the iteration.
double Evaluator::peak_load_of_parts(double rest, double most) {
  std::int64_t now = 0, peak = 0;
  std::size_t when = 0;
  for (std::size_t k = 0; k + 1 < bins_.size(); ++k) {
    now += bins_[k];
    if (now <= peak) continue;
    peak = now;
    when = k;
  }
  const double part = points_ / static_cast<double>(bins_.size() - 1);
  return cost_of_peak(static_cast<std::uint64_t>(peak), static_cast<Point>((static_cast<double>(when) + 0.5) * part),
                      rest, most);
}

// The cost of a load with its peak then. Items that are there then count as on top.
double Evaluator::cost_of_peak(std::uint64_t height, Point when, double rest, double most) {
  const double cost = rest + cost_of(height);
  if (cost > most) return kInfinite;
  height_ = height;
  new_tops_.assign(residencies_.size(), 0);
  for (std::uint32_t i = 0; i < residencies_.size(); ++i) {
    const auto& intervals = residencies_[i].intervals;
    const bool there = std::any_of(intervals.begin(), intervals.end(),
                                   [&](const PointInterval& one) { return one.begin <= when && when < one.end; });
    if (there) new_tops_[i] = height_;
  }
  return cost;
}

void Evaluator::keep() {
  open_ = false;
  changed_ = 0;
  if (placed_) {
    packing_.keep();
  } else {
    std::swap(tops_, new_tops_);
  }
  for (const std::uint32_t a : used_) in_use_[a] = 0;
  used_ = times_.used();
  for (const std::uint32_t a : used_) {
    in_use_[a] = 1;
    out_end_[a] = times_.out_end(a);
    in_begin_[a] = times_.in_begin(a);
  }
  delays_.assign(clock_.delays().begin(), clock_.delays().end());
}

}  // namespace memopt::swap
