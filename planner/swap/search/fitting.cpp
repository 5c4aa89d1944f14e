#include "planner/swap/search/fitting.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace memopt::swap {

void Fitting::Shelf::clear() {
  from.clear();
  to.clear();
  item.clear();
}

void Fitting::Shelf::insert(std::uint64_t begin, std::uint64_t end, std::uint32_t of) {
  const auto at = std::upper_bound(from.begin(), from.end(), begin) - from.begin();
  from.insert(from.begin() + at, begin);
  to.insert(to.begin() + at, end);
  item.insert(item.begin() + at, of);
}

Fitting::Fitting(const Problem& problem, const Lives& lives, const Candidates& candidates)
    : problem_(problem),
      lives_(lives),
      candidates_(candidates),
      clock_(problem),
      times_(problem, lives, candidates, clock_),
      maker_(problem, lives, candidates, clock_),
      words_(problem.layout ? (candidates.items.size() + 63) / 64 : 0) {
  const auto count = static_cast<std::uint32_t>(candidates.items.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = problem.blocks[candidates.items[i].block].bytes;
    whole_.push_back(maker_.whole(i));
    bytes_.push_back(bytes);
    chunks_.push_back(problem.layout ? (bytes + problem.chunk - 1) / problem.chunk * problem.chunk : bytes);
  }
  stays_ = whole_;
  meets_.resize(count * words_);
  met_.resize(words_);
  for (std::uint32_t a = 0; a < count && problem.layout; ++a) {
    for (std::uint32_t b = 0; b < count; ++b) {
      if (a == b || meet(whole_[a], whole_[b])) meets_[a * words_ + b / 64] |= std::uint64_t{1} << (b % 64);
    }
  }
  could_meet_ = meets_;
  tops_.resize(count);
  new_tops_.resize(count);
  below_.resize(count);
  new_below_.resize(count);
  bottoms_.resize(count);
  new_bottoms_.resize(count);
  rank_.resize(count);
  new_rank_.resize(count);
}

// Who meets an item whose stay has changed. An item is away for a part of its life only, so it never meets more.
void Fitting::find_met(std::uint32_t item) {
  const Stay& stay = stays_[item];
  const std::uint64_t* const could = &could_meet_[item * words_];
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t met = 0;
    for (std::uint64_t left = could[w]; left != 0; left &= left - 1) {
      const std::size_t other = w * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (other == item || meet(stay, stays_[other])) met |= left & -left;
    }
    met_[w] = met;
  }
}

// What is in `row` becomes what meets_ says, and the other way round.
void Fitting::exchange(std::uint32_t item, std::uint64_t* row) {
  const std::uint64_t bit = std::uint64_t{1} << (item % 64);
  std::uint64_t* const now = &meets_[item * words_];
  for (std::size_t w = 0; w < words_; ++w) {
    for (std::uint64_t left = row[w] ^ now[w]; left != 0; left &= left - 1) {
      meets_[(w * 64 + static_cast<std::size_t>(std::countr_zero(left))) * words_ + item / 64] ^= bit;
    }
    std::swap(row[w], now[w]);
  }
}

bool Fitting::find_changes(const Choice& choice) {
  for (std::uint32_t i = 0; i < stays_.size(); ++i) {
    const Item& item = candidates_.items[i];
    const auto first = choice.away.begin() + item.first_absence;
    const bool away = std::any_of(first, first + item.absences, [](std::uint8_t one) { return one != 0; });
    if (!away && !stays_[i].swapped) continue;
    if (away && !maker_.find(i, choice, times_, stay_)) return false;
    const Stay& now = away ? stay_ : whole_[i];
    if (now == stays_[i]) continue;
    if (changed_ == changes_.size()) changes_.emplace_back();
    Change& change = changes_[changed_++];
    change.item = i;
    change.before = stays_[i];
    change.met_before.clear();
    stays_[i] = now;
  }
  for (std::size_t k = 0; k < changed_ && problem_.layout; ++k) {
    find_met(changes_[k].item);
    exchange(changes_[k].item, met_.data());
    changes_[k].met_before.assign(met_.begin(), met_.end());
  }
  return true;
}

void Fitting::undo() {
  for (std::size_t k = changed_; k-- > 0;) {
    Change& change = changes_[k];
    std::swap(stays_[change.item], change.before);
    if (!change.met_before.empty()) exchange(change.item, change.met_before.data());
  }
  changed_ = 0;
  open_ = false;
}

// Marks the items whose stays have changed, and those that come earlier or later than they did; the first rank of one.
std::size_t Fitting::find_affected(const Choice& choice) {
  affected_.assign(words_, 0);
  freed_.assign(words_, 0);
  if (order_.empty()) {
    affected_.assign(words_, ~std::uint64_t{0});
    return 0;
  }
  const auto mark = [&](std::uint32_t item) { affected_[item / 64] |= std::uint64_t{1} << (item % 64); };
  const std::size_t count = order_.size();
  std::size_t first = 0, last = count;
  while (first < count && order_[first] == choice.order[first]) ++first;
  while (last > first && order_[last - 1] == choice.order[last - 1]) --last;
  if (first < last) {
    // One that has moved over the others is the only one whose place among each of them is another.
    const auto old = order_.begin();
    const auto now = choice.order.begin();
    const auto at = [](auto begin, std::size_t k) { return begin + static_cast<std::ptrdiff_t>(k); };
    if (std::equal(at(old, first), at(old, last - 1), at(now, first + 1))) {
      mark(choice.order[first]);
    } else if (std::equal(at(old, first + 1), at(old, last), at(now, first))) {
      mark(order_[first]);
    } else {
      for (std::size_t k = first; k < last; ++k) mark(order_[k]);
    }
  }
  for (std::size_t k = 0; k < changed_; ++k) {
    mark(changes_[k].item);
    for (std::size_t w = 0; w < words_; ++w) {
      freed_[w] |= changes_[k].met_before[w] & ~meets_[changes_[k].item * words_ + w];
    }
    first = std::min<std::size_t>(first, new_rank_[changes_[k].item]);
    first = std::min<std::size_t>(first, rank_[changes_[k].item]);
  }
  return first;
}

double Fitting::attempt(Choice& choice, double most) {
  if (open_) undo();
  open_ = true;
  clock_.delay(choice.delays);
  double rest = 0;
  for (const Delay& delay : choice.delays) rest += prices_.delay * delay.ns;
  while (true) {
    if (!times_.find(choice)) return kInfinite;
    if (times_.late().empty()) break;
    choice.away[times_.late().front()] = 0;
  }
  if (!find_changes(choice)) return kInfinite;
  if (prices_.crowd > 0) rest += prices_.crowd * std::max(0.0, crowd() - prices_.goal);
  for (std::uint32_t k = 0; k < choice.order.size(); ++k) new_rank_[choice.order[k]] = k;
  return problem_.layout ? place(choice, rest, most) : pile(rest, most);
}

// The eighth power's mean of the load over operations, in whole chunks where those are taken.
double Fitting::crowd() {
  constexpr std::size_t kBins = 512;
  bins_.assign(kBins + 1, 0);
  const double scale = kBins / static_cast<double>(point_of(lives_.operations));
  double now = 0;
  for (std::uint32_t i = 0; i < stays_.size(); ++i) {
    const Stay& stay = stays_[i];
    const auto bytes = static_cast<double>(stay.swapped ? chunks_[i] : bytes_[i]) * stay.places;
    for (const Stretch& stretch : stay.when) {
      bins_[static_cast<std::size_t>(static_cast<double>(stretch.begin) * scale)] += bytes;
      bins_[std::min(kBins, static_cast<std::size_t>(std::ceil(static_cast<double>(stretch.end) * scale)))] -= bytes;
    }
  }
  const double unit = static_cast<double>(lives_.peak) + 1;
  double sum = 0;
  for (std::size_t k = 0; k < kBins; ++k) {
    now += bins_[k];
    const double x = now / unit, x2 = x * x, x4 = x2 * x2;
    sum += x4 * x4;
  }
  return unit * std::sqrt(std::sqrt(std::sqrt(sum / kBins)));
}

double Fitting::cost_of(std::uint64_t height) const {
  return prices_.above_goal * std::max(0.0, static_cast<double>(height) - prices_.goal);
}

// Where none of the items that it meets lies.
std::uint64_t Fitting::lowest(std::uint32_t i, std::uint64_t bytes, std::uint64_t alignment,
                              std::uint32_t& below) const {
  const bool masks = std::has_single_bit(alignment);  // a division is dear here
  const auto up = [&](std::uint64_t offset) {
    const std::uint64_t last = offset + alignment - 1;
    return masks ? last & ~(alignment - 1) : last / alignment * alignment;
  };
  const std::uint64_t *const from = new_shelf_.from.data(), *const to = new_shelf_.to.data();
  const std::uint32_t* const item = new_shelf_.item.data();
  const std::uint64_t* const row = &meets_[i * words_];
  const std::size_t placed = new_shelf_.from.size();
  std::uint64_t at = 0, end = bytes;
  for (std::size_t s = 0; s < placed && from[s] < end; ++s) {
    const std::uint32_t other = item[s];
    // Not &&: whether two meet is not predictable.
    if ((static_cast<std::uint64_t>(to[s] > at) & (row[other / 64] >> (other % 64))) != 0) {
      at = up(to[s]);
      end = at + bytes;
      below = other;
    }
  }
  return at;
}

double Fitting::place(const Choice& choice, double rest, double most) {
  const std::size_t first = find_affected(choice);
  new_shelf_.clear();
  std::uint64_t height = 0;
  for (std::size_t k = 0; k < shelf_.item.size(); ++k) {
    const std::uint32_t i = shelf_.item[k];
    if (new_rank_[i] >= first) continue;
    new_shelf_.from.push_back(shelf_.from[k]);
    new_shelf_.to.push_back(shelf_.to[k]);
    new_shelf_.item.push_back(i);
  }
  for (std::size_t k = 0; k < first; ++k) {
    const std::uint32_t i = choice.order[k];
    new_tops_[i] = tops_[i];
    new_below_[i] = below_[i];
    new_bottoms_[i] = bottoms_[i];
    height = std::max(height, tops_[i]);
  }
  for (std::size_t k = first; k < choice.order.size(); ++k) {
    const std::uint32_t i = choice.order[k];
    const std::uint64_t bytes = bytes_[i];
    const std::uint64_t* const row = &meets_[i * words_];
    std::uint64_t near = (affected_[i / 64] | freed_[i / 64]) & (std::uint64_t{1} << (i % 64));
    for (std::size_t w = 0; w < words_; ++w) near |= affected_[w] & row[w];
    std::uint64_t top = 0;
    if (near == 0 && stays_[i].places == 1) {
      // Those that it meets are where they were.
      new_bottoms_[i] = bottoms_[i];
      new_below_[i] = below_[i];
      top = tops_[i];
      new_shelf_.insert(bottoms_[i], top, i);
    } else {
      new_below_[i] = kGround;
      for (std::uint32_t turn = 0; turn < stays_[i].places; ++turn) {
        const std::uint64_t at = lowest(i, bytes, stays_[i].swapped ? problem_.chunk : problem_.align, new_below_[i]);
        new_shelf_.insert(at, at + bytes, i);
        top = std::max(top, at + bytes);
        if (turn == 0) new_bottoms_[i] = at;
      }
      if (new_bottoms_[i] != bottoms_[i] || stays_[i].places != 1) affected_[i / 64] |= std::uint64_t{1} << (i % 64);
    }
    new_tops_[i] = top;
    height = std::max(height, top);
    if (rest + cost_of(height) > most) return kInfinite;
  }
  height_ = height;
  return rest + cost_of(height);
}

// Without layout: the peak of the load. Items that are there then count as on top.
double Fitting::pile(double rest, double most) {
  events_.clear();
  for (std::uint32_t i = 0; i < stays_.size(); ++i) {
    const auto bytes = static_cast<std::int64_t>(bytes_[i] * stays_[i].places);
    for (const Stretch& stretch : stays_[i].when) {
      events_.emplace_back(stretch.begin, bytes);
      events_.emplace_back(stretch.end, -bytes);
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
  height_ = static_cast<std::uint64_t>(peak);
  for (std::uint32_t i = 0; i < stays_.size(); ++i) {
    const auto& stretches = stays_[i].when;
    const bool there = std::any_of(stretches.begin(), stretches.end(),
                                   [&](const Stretch& one) { return one.begin <= when && when < one.end; });
    new_tops_[i] = there ? height_ : 0;
    new_below_[i] = kGround;
  }
  const double cost = rest + cost_of(height_);
  return cost > most ? kInfinite : cost;
}

void Fitting::keep() {
  open_ = false;
  changed_ = 0;
  std::swap(shelf_, new_shelf_);
  std::swap(tops_, new_tops_);
  std::swap(below_, new_below_);
  std::swap(bottoms_, new_bottoms_);
  std::swap(rank_, new_rank_);
  order_.resize(rank_.size());
  for (std::uint32_t i = 0; i < rank_.size(); ++i) order_[rank_[i]] = i;
}

std::vector<std::uint64_t> Fitting::places(std::uint32_t item) const {
  std::vector<std::uint64_t> result;
  for (std::size_t s = 0; s < shelf_.item.size(); ++s) {
    if (shelf_.item[s] == item) result.push_back(shelf_.from[s]);
  }
  return result;
}

}  // namespace memopt::swap
