#include "tests/planner/swap/exhaustive/exhaustive.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>

#include "planner/swap/model/liveness.h"
#include "planner/swap/simulation/verify.h"

namespace memopt::swap::testing {
namespace {

constexpr std::uint64_t kMostOperations = 12;
constexpr std::size_t kMostPlaces = 6;
constexpr std::uint64_t kRounds = 2;  // places take turns at most by two
constexpr double kSame = 1e-6;        // ns

using Positions = std::uint64_t;  // a set of positions, or of operations over two iterations
using Pairs = std::uint64_t;      // a set of pairs of places

using Choices = std::vector<std::optional<Swap>>;  // of one gap; the first is to stay

bool crosses(const Problem& problem, const Liveness& liveness, std::uint32_t block) {
  return !problem.blocks[block].persistent && liveness.of[block].freed >= liveness.operations;
}

void refuse(bool wrong, const std::string& what) {
  if (wrong) throw std::invalid_argument("exhaustive search: " + what);
}

void check_size(const Problem& problem, const Liveness& liveness) {
  refuse(liveness.operations > kMostOperations, "too many operations");
  std::size_t places = 0;
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    refuse(problem.blocks[b].bytes == 0, "a block of no bytes");
    refuse(!problem.blocks[b].persistent && liveness.of[b].freed >= 2 * liveness.operations, "a block lives too long");
    places += crosses(problem, liveness, b) ? 2 : 1;
  }
  refuse(places > kMostPlaces, "too many places");
}

// Swaps that are back for `need`.
Choices choices_of_gap(std::uint32_t block, std::uint64_t begin, std::uint64_t need, bool drops) {
  Choices choices = {std::nullopt};
  for (std::uint64_t out = begin; out + 2 <= need; ++out) {
    for (std::uint64_t in = out; in < need; ++in) {
      choices.push_back(Swap{block, out, in, need, true});
      if (drops) choices.push_back(Swap{block, out, in, need, false});
    }
  }
  return choices;
}

// Of a persistent block: out_after must be in the first iteration.
Choices wrapped(Choices choices, std::uint64_t operations) {
  for (auto& choice : choices) {
    if (!choice || choice->out_after < operations) continue;
    choice->out_after -= operations;
    choice->in_after -= operations;
    choice->need -= operations;
  }
  return choices;
}

std::vector<Choices> find_choices(const Problem& problem, const Liveness& liveness) {
  const std::uint64_t n = liveness.operations;
  std::vector<Choices> all;
  const auto add = [&](Choices choices) {
    if (choices.size() > 1) all.push_back(std::move(choices));
  };
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (problem.blocks[b].pinned) continue;
    const auto accesses = liveness.accesses_of(b);
    if (problem.blocks[b].persistent) {
      for (std::size_t k = 0; k < accesses.size(); ++k) {
        const std::uint64_t next = k + 1 < accesses.size() ? accesses[k + 1].position : accesses[0].position + n;
        const bool drops = problem.clean_drops && !accesses[k].write;
        add(wrapped(choices_of_gap(b, accesses[k].position, next, drops), n));
      }
      if (!accesses.empty()) continue;
      Choices anywhere = {std::nullopt};
      for (std::uint64_t out = 0; out < n; ++out) {
        for (std::uint64_t in = out; in < out + n; ++in) anywhere.push_back(Swap{b, out, in, out + n, true});
      }
      add(std::move(anywhere));
      continue;
    }
    Access before{liveness.of[b].start, true};
    const auto drops = [&] { return problem.clean_drops && !before.write; };
    for (const Access& access : accesses) {
      add(choices_of_gap(b, before.position, access.position, drops()));
      before = access;
    }
    Choices gone = {std::nullopt};
    for (std::uint64_t out = before.position; out < liveness.of[b].freed; ++out) {
      gone.push_back(Swap{b, out, kNever, kNever, true});
      if (drops()) gone.push_back(Swap{b, out, kNever, kNever, false});
    }
    add(std::move(gone));
  }
  return all;
}

std::size_t product(const std::vector<Choices>& gaps) {
  std::size_t count = 1;
  for (const Choices& choices : gaps) {
    if (count > SIZE_MAX / choices.size()) return SIZE_MAX;
    count *= choices.size();
  }
  return count;
}

struct Layout {
  std::vector<std::uint64_t> offsets;  // by place
  std::uint64_t footprint = 0;
  Pairs shared = 0;  // places with bytes in common
};

// The places of all blocks, given how many each has and which are swapped.
class Layouts {
 public:
  Layouts(const Problem& problem, const std::vector<std::uint32_t>& turns, std::uint64_t swapped, bool fewest_waits) {
    for (std::uint32_t b = 0; b < turns.size(); ++b) {
      const std::uint64_t unit = swapped >> b & 1 ? problem.chunk : problem.align;
      for (std::uint32_t turn = 0; turn < turns[b]; ++turn) {
        bytes_.push_back(problem.blocks[b].bytes);
        unit_.push_back(unit);
      }
    }
    put(std::vector<std::uint64_t>(bytes_.size(), kNever));
    std::sort(all_.begin(), all_.end(), [](const Layout& a, const Layout& b) {
      if (a.footprint != b.footprint) return a.footprint < b.footprint;
      const int x = std::popcount(a.shared), y = std::popcount(b.shared);
      return x != y ? x < y : a.offsets < b.offsets;
    });
    if (!fewest_waits) return;
    std::vector<Layout> kept;
    for (Layout& layout : all_) {
      const bool worse =
          std::any_of(kept.begin(), kept.end(), [&](const Layout& k) { return (k.shared & ~layout.shared) == 0; });
      if (!worse) kept.push_back(std::move(layout));
    }
    all_ = std::move(kept);
  }

  const std::vector<Layout>& all() const { return all_; }

 private:
  void put(const std::vector<std::uint64_t>& offsets) {
    if (!seen_.insert(offsets).second) return;
    bool complete = true;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] != kNever) continue;
      complete = false;
      auto next = offsets;
      next[i] = 0;
      put(next);
      for (std::size_t k = 0; k < offsets.size(); ++k) {
        if (offsets[k] == kNever) continue;
        next[i] = (offsets[k] + bytes_[k] + unit_[i] - 1) / unit_[i] * unit_[i];
        put(next);
      }
    }
    if (!complete) return;
    Layout layout{offsets, 0, 0};
    std::size_t pair = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      layout.footprint = std::max(layout.footprint, offsets[i] + bytes_[i]);
      for (std::size_t k = 0; k < i; ++k, ++pair) {
        const bool apart = offsets[i] + bytes_[i] <= offsets[k] || offsets[k] + bytes_[k] <= offsets[i];
        if (!apart) layout.shared |= Pairs{1} << pair;
      }
    }
    all_.push_back(std::move(layout));
  }

  std::vector<std::uint64_t> bytes_, unit_;  // by place
  std::set<std::vector<std::uint64_t>> seen_;
  std::vector<Layout> all_;
};

class Search {
 public:
  Search(const Problem& problem, const ExhaustiveOptions& options)
      : problem_(problem), options_(options), liveness_(find_liveness(problem)) {
    check_size(problem, liveness_);
    gaps_ = find_choices(problem, liveness_);
    result_.candidates = product(gaps_);
    refuse(result_.candidates > options.most_candidates, "too many candidates");
    if (problem_.layout) problem_.limit.reset();
    std::vector<std::uint32_t> turns(problem.blocks.size(), 1);
    find_turns(0, turns);
  }

  Optimum run() {
    choose(0);
    std::sort(result_.plans.begin(), result_.plans.end(),
              [](const OptimalPlan& a, const OptimalPlan& b) { return a.footprint < b.footprint; });
    return std::move(result_);
  }

 private:
  void find_turns(std::uint32_t block, std::vector<std::uint32_t>& turns) {
    if (block == turns.size()) {
      turns_.push_back(turns);
      return;
    }
    for (turns[block] = 1; turns[block] <= (crosses(problem_, liveness_, block) ? 2U : 1U); ++turns[block])
      find_turns(block + 1, turns);
    turns[block] = 1;
  }

  void choose(std::size_t gap) {
    if (gap == gaps_.size()) return order();
    for (const auto& choice : gaps_[gap]) {
      if (choice) swaps_.push_back(*choice);
      choose(gap + 1);
      if (choice) swaps_.pop_back();
    }
  }

  // Every order of the swaps that gives another order of copies.
  void order() {
    const std::uint64_t n = liveness_.operations;
    std::vector<std::size_t> order(swaps_.size());
    std::iota(order.begin(), order.end(), 0);
    std::set<std::vector<std::size_t>> seen;
    do {
      std::vector<std::size_t> outs = order, ins = order;
      std::stable_sort(outs.begin(), outs.end(),
                       [&](std::size_t a, std::size_t b) { return swaps_[a].out_after % n < swaps_[b].out_after % n; });
      std::erase_if(ins, [&](std::size_t j) { return !swaps_[j].returns(); });
      std::stable_sort(ins.begin(), ins.end(),
                       [&](std::size_t a, std::size_t b) { return swaps_[a].in_after % n < swaps_[b].in_after % n; });
      outs.insert(outs.end(), ins.begin(), ins.end());
      if (!seen.insert(outs).second) continue;
      Decisions decisions;
      for (const std::size_t j : order) decisions.swaps.push_back(swaps_[j]);
      if (problem_.layout) {
        place(decisions);
      } else {
        judge(decisions, *problem_.limit);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }

  void place(Decisions& decisions) {
    std::uint64_t swapped = 0;
    for (const Swap& swap : decisions.swaps) swapped |= std::uint64_t{1} << swap.block;
    for (const auto& turns : turns_) {
      const auto apart = find_apart(turns);
      if (!apart) continue;
      auto [at, is_new] = layouts_.try_emplace({turns, swapped}, nullptr);
      if (is_new) at->second = std::make_unique<Layouts>(problem_, turns, swapped, options_.fewest_waits);
      for (const Layout& layout : at->second->all()) {
        if ((layout.shared & *apart) != 0) continue;
        if (options_.skip_worse && worse(layout.footprint, least_added())) break;  // footprints ascend
        decisions.places.assign(problem_.blocks.size(), {});
        auto offset = layout.offsets.begin();
        for (std::uint32_t b = 0; b < turns.size(); ++b) {
          decisions.places[b].own = swapped >> b & 1;
          for (std::uint32_t turn = 0; turn < turns[b]; ++turn) decisions.places[b].offsets.push_back(*offset++);
        }
        judge(decisions, layout.footprint);
      }
    }
  }

  // The places that are in use at the same operation; nothing if one would be in use twice.
  std::optional<Pairs> find_apart(const std::vector<std::uint32_t>& turns) const {
    const std::uint64_t n = liveness_.operations, all = kRounds * n;
    std::vector<Positions> uses;
    for (std::uint32_t b = 0; b < turns.size(); ++b) {
      const Positions stay = stay_of(b);
      for (std::uint32_t turn = 0; turn < turns[b]; ++turn) {
        Positions use = 0;
        for (std::uint64_t born = 0; born < kRounds; ++born) {
          if (born % turns[b] != turn) continue;
          for (std::uint64_t p = 0; p < all; ++p) {
            if ((stay >> p & 1) == 0) continue;
            const Positions bit = Positions{1} << (born * n + p) % all;
            if ((use & bit) != 0) return std::nullopt;
            use |= bit;
          }
        }
        uses.push_back(use);
      }
    }
    Pairs apart = 0;
    std::size_t pair = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k, ++pair) {
        if ((uses[i] & uses[k]) != 0) apart |= Pairs{1} << pair;
      }
    }
    return apart;
  }

  // Positions at which the instance born in iteration 0 needs its bytes; of a persistent block, operations.
  Positions stay_of(std::uint32_t block) const {
    const std::uint64_t n = liveness_.operations;
    const bool persistent = problem_.blocks[block].persistent;
    const Lifetime& lifetime = liveness_.of[block];
    const std::uint64_t begin = persistent ? 0 : lifetime.start, end = persistent ? n : lifetime.freed + 1;
    Positions stay = 0;
    for (std::uint64_t p = begin; p < end; ++p) stay |= Positions{1} << p;
    for (const Swap& swap : swaps_) {
      if (swap.block != block) continue;
      for (std::uint64_t p = swap.out_after + 1; p < std::min(swap.need, swap.returns() ? kNever : end); ++p)
        stay &= ~(Positions{1} << (persistent ? p % n : p));
    }
    return stay;
  }

  // An iteration is no shorter than the work of either engine.
  double least_added() const {
    double out = 0, in = 0;
    for (const Swap& swap : swaps_) {
      if (swap.copy) out += problem_.machine.out_ns(problem_.blocks[swap.block].bytes);
      if (swap.returns()) in += problem_.machine.in_ns(problem_.blocks[swap.block].bytes);
    }
    return std::max({0.0, out - problem_.period, in - problem_.period});
  }

  bool worse(std::uint64_t footprint, double added_ns) const {
    return std::any_of(result_.plans.begin(), result_.plans.end(), [&](const OptimalPlan& plan) {
      return plan.footprint <= footprint && plan.added_ns <= added_ns + kSame;
    });
  }

  void judge(const Decisions& decisions, std::uint64_t footprint) {
    if (options_.skip_worse && worse(footprint, least_added())) return;
    ++result_.judged;
    const Report report = verify(problem_, decisions);
    if (report.fault || !report.timing.steady) return;
    const double added = report.timing.added_ns;
    if (worse(footprint, added)) return;
    std::erase_if(result_.plans, [&](const OptimalPlan& plan) {
      return plan.footprint >= footprint && plan.added_ns >= added - kSame;
    });
    result_.plans.push_back({footprint, added, decisions});
  }

  Problem problem_;
  ExhaustiveOptions options_;
  Liveness liveness_;
  std::vector<Choices> gaps_;
  std::vector<std::vector<std::uint32_t>> turns_;  // every choice of places a block
  std::map<std::pair<std::vector<std::uint32_t>, std::uint64_t>, std::unique_ptr<Layouts>> layouts_;
  std::vector<Swap> swaps_;
  Optimum result_;
};

}  // namespace

const OptimalPlan* Optimum::least_added_time(std::uint64_t limit) const {
  const OptimalPlan* best = nullptr;
  for (const OptimalPlan& plan : plans) {
    if (plan.footprint <= limit) best = &plan;
  }
  return best;
}

const OptimalPlan* Optimum::least_footprint(double added_ns) const {
  for (const OptimalPlan& plan : plans) {
    if (plan.added_ns <= added_ns) return &plan;
  }
  return nullptr;
}

std::size_t count_candidates(const Problem& problem) {
  const Liveness liveness = find_liveness(problem);
  check_size(problem, liveness);
  return product(find_choices(problem, liveness));
}

Optimum exhaustive(const Problem& problem, const ExhaustiveOptions& options) { return Search(problem, options).run(); }

}  // namespace memopt::swap::testing
