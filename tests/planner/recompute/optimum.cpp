#include "tests/planner/recompute/optimum.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <vector>

namespace memopt::recompute::testing {
namespace {

using swap::Kind;
using swap::Operation;

// What a launch needs to find, and leaves behind.
struct Node {
  std::size_t first = 0, end = 0;
  double ns = 0;
  std::map<std::uint32_t, int> reads, writes;  // version by block
};

constexpr int kAway = -1;
using Versions = std::vector<int>;  // by block, kAway: not in memory

class Exhaustive {
 public:
  Exhaustive(const swap::Problem& problem, const swap::Liveness& liveness, std::uint64_t budget)
      : problem_(problem), liveness_(liveness), budget_(budget), alive_(problem.blocks.size()) {
    std::vector<int> version(problem.blocks.size());
    node_at_.assign(problem.operations.size(), -1);
    for (std::size_t i = 0; i < problem.operations.size();) {
      const std::size_t end = swap::end_of_launch(problem, i);
      if (problem.operations[i].kind != Kind::kMalloc && problem.operations[i].kind != Kind::kFree) {
        node_at_[i] = static_cast<int>(nodes_.size());
        nodes_.push_back(node(i, end, version));
      }
      i = end;
    }
    for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) makeable_.push_back(is_makeable(b));
  }

  std::optional<double> run() {
    Versions start(problem_.blocks.size(), kAway);
    for (std::uint32_t b = 0; b < start.size(); ++b) {
      if (problem_.blocks[b].persistent) start[b] = 0;
      alive_[b] = problem_.blocks[b].persistent;
    }
    std::map<Versions, double> states;
    if (load(start) <= budget_) states[start] = 0;
    for (std::size_t i = 0; i < problem_.operations.size(); ++i) {
      if (!problem_.operations[i].continues) states = spread(states, i);
      std::map<Versions, double> next;
      for (const auto& [versions, ns] : states) {
        if (auto after = follow(versions, i)) offer(next, *after, ns);
      }
      const Operation& operation = problem_.operations[i];
      if (operation.kind == Kind::kMalloc) alive_[operation.block] = true;
      if (operation.kind == Kind::kFree) alive_[operation.block] = false;
      states = std::move(next);
    }
    std::optional<double> least;
    for (const auto& [versions, ns] : spread(states, problem_.operations.size())) {
      bool clean = true;
      for (std::uint32_t b = 0; b < versions.size(); ++b) clean = clean && (versions[b] == kAway || alive_[b]);
      if (clean) least = std::min(least.value_or(std::numeric_limits<double>::infinity()), ns);
    }
    return least;
  }

 private:
  Node node(std::size_t first, std::size_t end, std::vector<int>& version) const {
    Node result;
    result.first = first;
    result.end = end;
    result.ns = (end < problem_.operations.size() ? problem_.operations[end].time : problem_.period) -
                problem_.operations[first].time;
    for (std::size_t i = first; i < end; ++i) {
      const Operation& one = problem_.operations[i];
      if (one.kind == Kind::kRead && problem_.blocks[one.block].bytes > 0) result.reads[one.block] = version[one.block];
      if (one.kind == Kind::kWrite && problem_.blocks[one.block].bytes > 0) result.writes[one.block] = 0;
    }
    for (auto& [b, written] : result.writes) written = ++version[b];
    return result;
  }

  bool is_makeable(std::uint32_t b) const {
    if (problem_.blocks[b].persistent || problem_.blocks[b].pinned || problem_.blocks[b].bytes == 0) return false;
    if (liveness_.of[b].freed >= problem_.operations.size()) return false;
    for (const Node& one : nodes_) {
      if (one.reads.contains(b)) return false;
      if (one.writes.contains(b)) return true;
    }
    return false;
  }

  std::uint64_t load(const Versions& versions) const {
    std::uint64_t sum = 0;
    for (std::uint32_t b = 0; b < versions.size(); ++b) sum += versions[b] == kAway ? 0 : problem_.blocks[b].bytes;
    return sum;
  }

  static void offer(std::map<Versions, double>& states, const Versions& versions, double ns) {
    const auto [at, fresh] = states.emplace(versions, ns);
    if (!fresh) at->second = std::min(at->second, ns);
  }

  // All that drops and replays before operation i come to: shortest paths.
  std::map<Versions, double> spread(const std::map<Versions, double>& from, std::size_t i) const {
    using Entry = std::pair<double, Versions>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ahead;
    std::map<Versions, double> best = from;
    for (const auto& [versions, ns] : from) ahead.emplace(ns, versions);
    while (!ahead.empty()) {
      const auto [ns, versions] = ahead.top();
      ahead.pop();
      if (best.at(versions) < ns) continue;
      const auto reach = [&](const Versions& next, double its) {
        const auto found = best.find(next);
        if (found != best.end() && found->second <= its) return;
        best[next] = its;
        ahead.emplace(its, next);
      };
      for (std::uint32_t b = 0; b < versions.size(); ++b) {
        if (!makeable_[b] || versions[b] <= 0) continue;
        Versions next = versions;
        next[b] = kAway;
        reach(next, ns);
      }
      for (const Node& one : nodes_) {
        if (one.end > i) break;
        if (auto next = replayed(versions, one)) reach(*next, ns + one.ns);
      }
    }
    return best;
  }

  std::optional<Versions> replayed(const Versions& versions, const Node& one) const {
    for (const auto& [b, version] : one.reads) {
      if (versions[b] != version) return std::nullopt;
    }
    Versions next = versions;
    std::uint64_t besides = 0;
    for (const auto& [b, version] : one.writes) {
      const bool made = makeable_[b] && (versions[b] == kAway ? version == 1 : versions[b] == version - 1);
      if (made) {
        next[b] = version;
      } else if (versions[b] != version) {
        besides += problem_.blocks[b].bytes;
      }
    }
    return load(next) + besides <= budget_ ? std::optional(next) : std::nullopt;
  }

  std::optional<Versions> follow(const Versions& versions, std::size_t i) const {
    const Operation& operation = problem_.operations[i];
    Versions next = versions;
    if (operation.kind == Kind::kMalloc || operation.kind == Kind::kFree) {
      if (problem_.blocks[operation.block].bytes == 0) return next;
      next[operation.block] = operation.kind == Kind::kMalloc ? 0 : kAway;
    } else if (node_at_[i] >= 0) {
      const Node& one = nodes_[static_cast<std::size_t>(node_at_[i])];
      for (const auto& [b, version] : one.reads) {
        if (versions[b] != version) return std::nullopt;
      }
      for (const auto& [b, version] : one.writes) {
        if (versions[b] == kAway) return std::nullopt;
        next[b] = version;
      }
    }
    return load(next) <= budget_ ? std::optional(next) : std::nullopt;
  }

  const swap::Problem& problem_;
  const swap::Liveness& liveness_;
  const std::uint64_t budget_;
  std::vector<bool> alive_, makeable_;
  std::vector<Node> nodes_;
  std::vector<int> node_at_;
};

}  // namespace

std::optional<double> optimum(const swap::Problem& problem, const swap::Liveness& liveness, std::uint64_t budget) {
  return Exhaustive(problem, liveness, budget).run();
}

}  // namespace memopt::recompute::testing
