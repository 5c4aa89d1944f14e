#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "planner/recompute/observed/know.h"
#include "planner/recompute/observed/rewriting.h"
#include "planner/swap/model/liveness.h"

namespace memopt::recompute {
namespace {

using swap::Kind;
using swap::Operation;

// That a launch names.
struct Named {
  std::uint32_t block = 0;
  std::uint32_t age = 0;
  bool fresh = false;    // there is nothing in it yet
  bool written = false;  // it may be; else it is known to be read only
};

class Recording {
 public:
  Recording(const swap::Problem& problem, const Observation& seen, const KernelList& list, bool assume_reads)
      : problem_(problem),
        liveness_(swap::find_liveness(problem)),
        seen_(seen),
        list_(list),
        assume_reads_(assume_reads),
        rules_(seen.kernels.size()),
        rewriting_(problem) {
    rewriting_.known().rules.resize(list.rules().size());
  }

  Known know() {
    const std::size_t n = problem_.operations.size();
    std::vector<std::uint64_t> blind(n + 1);  // operations before, of blind launches
    for (std::size_t i = 0, end = 0; i < n; i = end) {
      end = swap::end_of_launch(problem_, i);
      const Seen& seen = seen_.operations[seen_.ranks[i]];
      for (std::size_t k = i; k < end; ++k) blind[k + 1] = blind[k] + (seen.blind ? 1 : 0);
      // Where the device idles behind a launch, an operation has its rank.
      const bool again = i != 0 && seen_.ranks[i] == seen_.ranks[i - 1];
      if (seen.blind && !again) ++rewriting_.known().blind;
      if (!swap::is_access(problem_.operations[i])) {
        rewriting_.pass(problem_.operations[i]);
      } else {
        find_named(i, end);
        add(problem_.operations[i], seen);
      }
    }
    keep(blind);
    return std::move(rewriting_.known());
  }

 private:
  // Each block of the operations from `begin` to `end` once, in order.
  void find_named(std::size_t begin, std::size_t end) {
    named_.clear();
    places_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const Operation& operation = problem_.operations[i];
      const std::uint64_t position = i + std::uint64_t{operation.age} * problem_.operations.size();
      const bool fresh = !problem_.blocks[operation.block].persistent &&
                         liveness_.accesses_of(operation.block).front().position == position;
      places_.push_back({{operation.block, operation.age}, static_cast<std::uint32_t>(i - begin)});
      named_.push_back({operation.block, operation.age, fresh, operation.kind == Kind::kWrite});
    }
    // Behind the first of each block and age, the others only add to it.
    std::sort(places_.begin(), places_.end());
    std::vector<bool> once(named_.size());
    for (std::size_t i = 0; i < places_.size();) {
      Named& first = named_[places_[i].second];
      once[places_[i].second] = true;
      std::size_t same = i;
      for (; same < places_.size() && places_[same].first == places_[i].first; ++same) {
        first.written = first.written || named_[places_[same].second].written;
      }
      i = same;
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < named_.size(); ++i) {
      if (once[i]) named_[kept++] = named_[i];
    }
    named_.resize(kept);
  }

  void add(const Operation& first, const Seen& seen) {
    used_.clear();
    Doubt doubt = Doubt::kNoDoubt;
    switch (seen.kind) {
      case Seen::Kind::kCopy:
        use_copy(seen);
        break;
      case Seen::Kind::kMemset:
        for (const Named& one : named_) add_written(one, seen.bytes);
        break;
      default:
        doubt = use_launch(seen);
        break;
    }
    if (doubt == Doubt::kNoDoubt && changes_older()) doubt = Doubt::kMayChange;
    // What is in the way of a replay, whatever it reads and writes.
    std::optional<Doubt> never;
    if (doubt == Doubt::kNever) never = doubt;
    if (touches_pinned()) never = Doubt::kEscaped;
    if (seen.elsewhere) never = Doubt::kElsewhere;
    if (seen.from_host) never = Doubt::kFromHost;
    if (seen.blind) never = Doubt::kBlind;
    rewriting_.launch(first, used_, {seen.kernel, never.value_or(doubt)}, never.has_value());
  }

  void use_copy(const Seen& seen) {
    // Within a block, it reads what it writes.
    const bool within =
        !seen.from_host && std::none_of(named_.begin(), named_.end(), [](const Named& one) { return !one.written; });
    for (const Named& one : named_) {
      if (!one.written) {
        used_.push_back({one.block, one.age, true, false});
      } else if (within) {
        used_.push_back({one.block, one.age, true, true});
      } else {
        add_written(one, seen.bytes);
      }
    }
  }

  // By so many bytes: what is left of a block that was there before stays as it was.
  void add_written(const Named& one, std::uint64_t bytes) {
    const bool whole = one.fresh || bytes >= problem_.blocks[one.block].bytes;
    used_.push_back({one.block, one.age, !whole, true});
  }

  Doubt use_launch(const Seen& seen) {
    const KernelRule* const rule = rule_of(seen.kernel);
    KernelRule::Use use = KernelRule::Use::kChanges;
    if (rule != nullptr) {
      use = rule->use;
      ++rewriting_.known().rules[static_cast<std::size_t>(rule - list_.rules().data())];
    } else if (assume_reads_) {
      use = KernelRule::Use::kReads;
    }
    if (use == KernelRule::Use::kByPosition && has_roles(*rule)) {
      for (std::size_t i = 0; i < named_.size(); ++i) {
        Role role = rule->roles[std::min(i, rule->roles.size() - 1)];
        // It may be one of those that are read, named once for both.
        if (rule->rest && role == Role::kWrites && !named_[i].fresh) role = Role::kChanges;
        used_.push_back({named_[i].block, named_[i].age, role != Role::kWrites, role != Role::kReads});
      }
      return Doubt::kNoDoubt;
    }
    // What makes no block would have nothing to write: it changes one of those that it names, which one is not known.
    const bool makes = std::any_of(named_.begin(), named_.end(), [&](const Named& one) {
      return one.fresh && one.written && problem_.blocks[one.block].bytes != 0;
    });
    const bool only_reads = use == KernelRule::Use::kReads && makes;
    for (const Named& one : named_) {
      const bool made = one.fresh && one.written;
      used_.push_back({one.block, one.age, !made, made || (one.written && !only_reads)});
    }
    if (use == KernelRule::Use::kNever) return Doubt::kNever;
    return use == KernelRule::Use::kByPosition ? Doubt::kPositions : Doubt::kNoDoubt;
  }

  bool has_roles(const KernelRule& rule) const {
    return rule.rest ? named_.size() + 1 >= rule.roles.size() : named_.size() == rule.roles.size();
  }

  const KernelRule* rule_of(std::uint32_t kernel) {
    if (kernel == kNone) return list_.find("");
    std::optional<const KernelRule*>& rule = rules_[kernel];
    if (!rule) rule = list_.find(seen_.kernels[kernel]);
    return *rule;
  }

  bool changes_older() const {
    return std::any_of(used_.begin(), used_.end(), [](const Used& one) { return one.reads && one.writes; });
  }
  bool touches_pinned() const {
    return std::any_of(named_.begin(), named_.end(),
                       [&](const Named& one) { return problem_.blocks[one.block].pinned; });
  }

  // All that lives while a blind launch runs. Nothing is made again across it, then: what can be, is freed before it or
  // made behind it, and so is what that is made of.
  void keep(const std::vector<std::uint64_t>& blind) {
    Known& known = rewriting_.known();
    const std::uint64_t n = problem_.operations.size();
    if (blind[n] == 0) return;
    for (std::size_t b = 0; b < problem_.blocks.size(); ++b) {
      const swap::Lifetime& lifetime = liveness_.of[b];
      std::uint64_t while_it_lives = blind[n];
      if (!problem_.blocks[b].persistent && lifetime.freed - lifetime.born < n) {
        const std::uint64_t end = lifetime.freed;
        while_it_lives =
            end <= n ? blind[end] - blind[lifetime.born] : blind[n] - blind[lifetime.born] + blind[end - n];
      }
      swap::Block& block = known.problem.blocks[b];
      if (while_it_lives == 0 || block.pinned) continue;
      block.pinned = true;
      ++known.kept;
    }
  }

  const swap::Problem& problem_;
  const swap::Liveness liveness_;
  const Observation& seen_;
  const KernelList& list_;
  const bool assume_reads_;
  std::vector<std::optional<const KernelRule*>> rules_;  // by kernel, once it was asked for
  Rewriting rewriting_;
  std::vector<Named> named_;  // of a launch
  std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>> places_;
  std::vector<Used> used_;
};

}  // namespace

Known know_recording(const swap::Problem& problem, const Observation& seen, const KernelList& list, bool assume_reads) {
  return Recording(problem, seen, list, assume_reads).know();
}

}  // namespace memopt::recompute
