#include "planner/layout/exact/strategies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

#include "planner/layout/problem/random.h"

namespace memopt::layout {
namespace {

// Static preordering as in MiniMalloc; each key descending: load is the largest of any section in which the buffer
// lives, area is bytes times lifetime, length and extent are the same counted in sections.
enum class Preorder { kLoadLifetime, kLoadLength, kExtent };

struct Configuration {
  Branching branching;
  Preorder preorder;
  bool last_conflict_first;
};

// Chosen of all combinations so that the least successful kind of instance has the best chance that one of them finds
// a placement within some thousand nodes.
constexpr std::array<Configuration, kStrategies> kConfigurations{{
    {Branching::kLeastOffset, Preorder::kLoadLifetime, false},
    {Branching::kFewestCandidates, Preorder::kLoadLength, false},
    {Branching::kLeastSlack, Preorder::kExtent, false},
    {Branching::kFewestCandidates, Preorder::kLoadLifetime, false},
    {Branching::kLeastOffset, Preorder::kLoadLength, false},
    {Branching::kFewestCandidates, Preorder::kLoadLifetime, true},
    {Branching::kLeastSlack, Preorder::kLoadLength, false},
    {Branching::kLeastSlack, Preorder::kLoadLifetime, true},
}};

}  // namespace

Strategy strategy_of(const PreparedProblem& prepared, std::uint64_t seed, std::uint64_t number) {
  const Configuration configuration = kConfigurations[number % kStrategies];
  const std::uint64_t round = number / kStrategies;
  // Keys are multiplied by up to this power of two, or divided.
  constexpr std::array<double, 3> kNoise{0.1, 0.3, 1};
  const double noise = round == 0 ? 0 : kNoise[round % kNoise.size()];
  Random random(seed * 0x2545f4914f6cdd1d + number);

  const std::size_t count = prepared.buffers();
  std::vector<std::tuple<double, double, double>> keys(count);
  for (std::size_t b = 0; b < count; ++b) {
    const double factor = std::exp2(noise * (static_cast<double>(random.next() >> 11) * 0x1p-52 - 1));
    const double bytes = static_cast<double>(prepared.bytes[b]);
    const double load = static_cast<double>(prepared.load[b]);
    const double lifetime = static_cast<double>(prepared.lifetime[b]) * factor;
    const double length = static_cast<double>(prepared.hull[b].end - prepared.hull[b].begin) * factor;
    switch (configuration.preorder) {
      case Preorder::kLoadLifetime:
        keys[b] = {load, lifetime, bytes};
        break;
      case Preorder::kLoadLength:
        keys[b] = {load, length, bytes};
        break;
      case Preorder::kExtent:
        keys[b] = {length * bytes, load, lifetime};
        break;
    }
  }
  std::vector<std::int32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return keys[a] > keys[b]; });
  Strategy strategy{configuration.branching, configuration.last_conflict_first, std::vector<std::int32_t>(count)};
  for (std::size_t i = 0; i < count; ++i) strategy.rank[order[i]] = static_cast<std::int32_t>(i);
  return strategy;
}

}  // namespace memopt::layout
