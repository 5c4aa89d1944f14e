#include "planner/layout/strategies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>

namespace memopt::layout {
namespace {

// Keys of MiniMalloc's kind, each descending: load is the largest of any section in which the buffer lives, area is
// bytes times lifetime, length and extent are the same counted in sections.
enum class Preorder { kLoadLifetime, kLoadLength, kExtent };

struct Recipe {
  Choice choice;
  Preorder preorder;
  bool conflicts_first;
};

// Chosen of all combinations so that the least successful kind of instance has the best chance that one of them finds
// a placement within some thousand nodes.
constexpr std::array<Recipe, kStrategies> kRecipes{{
    {Choice::kLowest, Preorder::kLoadLifetime, false},
    {Choice::kScarcest, Preorder::kLoadLength, false},
    {Choice::kTightest, Preorder::kExtent, false},
    {Choice::kScarcest, Preorder::kLoadLifetime, false},
    {Choice::kLowest, Preorder::kLoadLength, false},
    {Choice::kScarcest, Preorder::kLoadLifetime, true},
    {Choice::kTightest, Preorder::kLoadLength, false},
    {Choice::kTightest, Preorder::kLoadLifetime, true},
}};

// splitmix64 (Steele et al., 2014).
std::uint64_t next(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t x = state;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Strategy strategy_of(const Sections& sections, std::uint64_t seed, std::uint64_t number) {
  const Recipe recipe = kRecipes[number % kStrategies];
  const std::uint64_t round = number / kStrategies;
  // Keys are multiplied by up to this power of two, or divided.
  constexpr std::array<double, 3> kNoise{0.1, 0.3, 1};
  const double noise = round == 0 ? 0 : kNoise[round % kNoise.size()];
  std::uint64_t state = seed * 0x2545f4914f6cdd1d + number;

  const std::size_t count = sections.buffers();
  std::vector<std::tuple<double, double, double>> keys(count);
  for (std::size_t b = 0; b < count; ++b) {
    const double factor = std::exp2(noise * (static_cast<double>(next(state) >> 11) * 0x1p-52 - 1));
    const double bytes = static_cast<double>(sections.bytes[b]);
    const double load = static_cast<double>(sections.load[b]);
    const double lifetime = static_cast<double>(sections.lifetime[b]) * factor;
    const double length = static_cast<double>(sections.hull[b].end - sections.hull[b].begin) * factor;
    switch (recipe.preorder) {
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
  Strategy strategy{recipe.choice, recipe.conflicts_first, std::vector<std::int32_t>(count)};
  for (std::size_t i = 0; i < count; ++i) strategy.rank[order[i]] = static_cast<std::int32_t>(i);
  return strategy;
}

}  // namespace memopt::layout
