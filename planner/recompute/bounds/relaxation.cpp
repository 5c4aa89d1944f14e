#include "planner/recompute/bounds/relaxation.h"

#include <algorithm>
#include <utility>

#include "planner/recompute/bounds/linear_programme.h"

namespace memopt::recompute {
namespace {

constexpr int kNoColumn = -1;

// From when instant `from` begins to run until instant `to` does.
struct Range {
  std::size_t from = 0, to = 0;
};

class Relaxation {
 public:
  Relaxation(const Contents& contents, std::uint64_t budget, const std::vector<std::uint32_t>& instants)
      : contents_(contents), budget_(budget), begins_{0} {
    begins_.insert(begins_.end(), instants.begin(), instants.end());
    begins_.push_back(contents.launches());
    const std::size_t last = begins_.size() - 1;
    for (std::size_t k = 0; k < last; ++k) ranges_.push_back({k, k + 1});
    for (std::size_t k = 1; k + 1 < last; ++k) ranges_.push_back({k, last});
    in_memory_.assign(begins_.size(), std::vector<int>(contents.all().size(), kNoColumn));
    replayed_.assign(ranges_.size(), std::vector<int>(contents.launches(), kNoColumn));
  }

  Relaxed solve(double seconds) {
    while (add_columns()) {
    }
    for (std::size_t r = 0; r < ranges_.size(); ++r) add_rows(r);
    for (std::size_t k = 1; k + 1 < begins_.size(); ++k) add_memory(k);
    const LinearProgramme::Result result = programme_.solve(seconds);
    Relaxed relaxed{result.bound, result.optimal, {}};
    if (result.optimal) relaxed.loads = loads(result.columns);
    return relaxed;
  }

 private:
  bool is_interval(std::size_t r) const { return r + 1 < begins_.size(); }
  bool is_old(std::uint32_t c, const Range& range) const { return contents_.all()[c].maker < begins_[range.from]; }
  bool ends_in(std::uint32_t c, const Range& range) const {
    const std::uint32_t until = contents_.all()[c].there_until;
    return until >= begins_[range.from] && until < begins_[range.to];
  }
  bool begins_instant(std::uint32_t l, const Range& range) const { return range.from > 0 && l == begins_[range.from]; }
  bool is_replayed_in(std::uint32_t l, const Range& range) const {
    return l < begins_[range.to] && contents_.replayed_until(l) >= static_cast<std::int64_t>(begins_[range.from]);
  }

  bool want(int& column, double cost) {
    if (column != kNoColumn) return false;
    column = programme_.add_column(cost);
    return true;
  }

  // Those that a row of another column names; what none names costs nothing. Whether there are new ones.
  bool add_columns() {
    bool any = false;
    for (std::size_t r = ranges_.size(); r-- > 0;) any = add_columns(r) || any;
    return any;
  }

  bool add_columns(std::size_t r) {
    const Range& range = ranges_[r];
    const std::vector<Content>& all = contents_.all();
    bool any = false;
    std::vector<bool> wanted(contents_.launches(), false);
    const auto need = [&](std::uint32_t c) {
      if (!is_old(c, range)) return;
      any = want(in_memory_[range.from][c], 0) || any;
      wanted[all[c].maker] = true;
    };
    for (std::uint32_t c = 0; c < all.size(); ++c) {
      if (in_memory_[range.to][c] == kNoColumn) continue;
      if (ends_in(c, range)) {
        wanted[all[c].maker] = true;
      } else {
        need(c);
      }
    }
    for (std::uint32_t l = begins_[range.from]; l < begins_[range.to]; ++l) {
      for (const std::uint32_t c : contents_.finds(l)) {
        if (begins_instant(l, range)) {
          any = want(in_memory_[range.from][c], 0) || any;
        } else {
          need(c);
        }
      }
    }
    const double cost = is_interval(r) ? 1 : 0;
    for (std::uint32_t l = begins_[range.to]; l-- > 0;) {
      if ((!wanted[l] && replayed_[r][l] == kNoColumn) || !is_replayed_in(l, range)) continue;
      any = want(replayed_[r][l], cost * contents_.ns(l)) || any;
      for (const std::uint32_t c : contents_.reads(l)) need(c);
      if (is_interval(r)) continue;
      for (std::size_t k = range.from; k < range.to; ++k) {
        if (is_replayed_in(l, ranges_[k])) {
          any = want(replayed_[k][l], contents_.ns(l)) || any;
        }
      }
    }
    return any;
  }

  void put(int row, int column, double factor) {
    if (column != kNoColumn) programme_.add(row, column, factor);
  }

  // S + R of the range less what `column` says, or 1, is not below 0.
  void add_source(std::size_t r, std::uint32_t c, int column, bool kept) {
    const int row = programme_.add_row(column == kNoColumn ? 1 : 0, LinearProgramme::kFree);
    if (kept) put(row, in_memory_[ranges_[r].from][c], 1);
    put(row, replayed_[r][contents_.all()[c].maker], 1);
    put(row, column, -1);
  }

  void add_rows(std::size_t r) {
    const Range& range = ranges_[r];
    const std::vector<Content>& all = contents_.all();
    for (std::uint32_t c = 0; c < all.size(); ++c) {
      const int column = in_memory_[range.to][c];
      if (column == kNoColumn) continue;
      if (ends_in(c, range)) {
        add_source(r, c, column, false);
      } else if (is_old(c, range)) {
        add_source(r, c, column, true);
      }
    }
    std::vector<bool> found(all.size(), false);
    for (std::uint32_t l = begins_[range.from]; l < begins_[range.to]; ++l) {
      for (const std::uint32_t c : contents_.finds(l)) {
        if (!is_old(c, range) || found[c]) continue;
        found[c] = true;
        if (begins_instant(l, range)) {
          programme_.set_least(in_memory_[range.from][c], 1);
        } else {
          add_source(r, c, kNoColumn, true);
        }
      }
    }
    for (std::uint32_t l = 0; l < begins_[range.to]; ++l) {
      const int column = replayed_[r][l];
      if (column == kNoColumn) continue;
      for (const std::uint32_t c : contents_.reads(l)) {
        if (is_old(c, range)) add_source(r, c, column, true);
      }
      if (is_interval(r)) continue;
      const int row = programme_.add_row(0, LinearProgramme::kFree);
      put(row, column, -1);
      for (std::size_t k = range.from; k < range.to; ++k) put(row, replayed_[k][l], 1);
    }
  }

  void add_memory(std::size_t k) {
    const std::vector<Content>& all = contents_.all();
    const auto budget = static_cast<double>(std::max<std::uint64_t>(1, budget_));
    const int row = programme_.add_row(
        -LinearProgramme::kFree,
        (static_cast<double>(budget_) - static_cast<double>(contents_.other_bytes(begins_[k]))) / budget);
    // Those of a block are side by side.
    for (std::uint32_t c = 0; c < all.size();) {
      std::uint32_t end = c;
      std::size_t columns = 0;
      for (; end < all.size() && all[end].block == all[c].block; ++end) {
        put(row, in_memory_[k][end], all[end].bytes / budget);
        columns += in_memory_[k][end] != kNoColumn ? 1 : 0;
      }
      if (columns > 1) {
        const int once = programme_.add_row(-LinearProgramme::kFree, 1);
        for (std::uint32_t one = c; one < end; ++one) put(once, in_memory_[k][one], 1);
      }
      c = end;
    }
  }

  // What has to be in memory between instants at least: what is made again in an interval may be away until then, but
  // what its first launch finds there is not made again behind that.
  std::vector<double> loads(const std::vector<double>& solution) const {
    const std::vector<Content>& all = contents_.all();
    const std::uint32_t launches = contents_.launches();
    std::vector<double> change(launches + 1, 0.0), loads(launches);
    const auto value = [&](int column) {
      return column == kNoColumn ? 0.0 : solution[static_cast<std::size_t>(column)];
    };
    std::vector<std::vector<std::uint32_t>> users(all.size());
    for (std::uint32_t l = 0; l < launches; ++l) {
      for (const std::uint32_t c : contents_.finds(l)) users[c].push_back(l);
    }
    for (std::size_t k = 1; k < begins_.size(); ++k) {
      for (std::uint32_t c = 0; c < all.size(); ++c) {
        const Content& one = all[c];
        if (one.maker + 1 >= begins_[k] || one.there_until < begins_[k - 1]) continue;
        const double again = value(replayed_[k - 1][one.maker]);
        const double at_begin = is_old(c, ranges_[k - 1]) ? value(in_memory_[k - 1][c]) : 1.0;
        const double at_end = ends_in(c, ranges_[k - 1]) ? 0.0 : value(in_memory_[k][c]);
        const std::uint32_t from = std::max(begins_[k - 1], one.maker + 1);
        const auto first = std::lower_bound(users[c].begin(), users[c].end(), from);
        const auto end = std::lower_bound(users[c].begin(), users[c].end(), begins_[k]);
        std::uint32_t at = from;
        double left = again;  // of what is made again
        for (auto user = first; user != end; ++user) {
          change[at] += (1 - left) * one.bytes;
          change[*user] += left * one.bytes;
          at = *user + 1;
          change[at] -= one.bytes;
          if (user == first) left = std::max(0.0, again - (1 - at_begin));
        }
        const double kept = std::max(0.0, at_end - left);
        if (kept > 0 && at < begins_[k]) {
          change[at] += kept * one.bytes;
          change[begins_[k]] -= kept * one.bytes;
        }
      }
    }
    double sum = 0;
    for (std::uint32_t l = 0; l < launches; ++l) {
      sum += change[l];
      loads[l] = sum + static_cast<double>(contents_.other_bytes(l));
    }
    return loads;
  }

  const Contents& contents_;
  const std::uint64_t budget_;
  std::vector<std::uint32_t> begins_;
  std::vector<Range> ranges_;                // the intervals first, in order
  std::vector<std::vector<int>> in_memory_;  // columns S, by place in begins_ and content
  std::vector<std::vector<int>> replayed_;   // columns R, by range and launch
  LinearProgramme programme_;
};

}  // namespace

Relaxed relax(const Contents& contents, std::uint64_t budget, const std::vector<std::uint32_t>& instants,
              double seconds) {
  return Relaxation(contents, budget, instants).solve(seconds);
}

}  // namespace memopt::recompute
