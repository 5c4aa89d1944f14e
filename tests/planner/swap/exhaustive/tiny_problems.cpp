#include "tests/planner/swap/exhaustive/tiny_problems.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/planner/layout/sanitized.h"
#include "tests/planner/swap/exhaustive/exhaustive.h"

namespace memopt::swap::testing {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kTick = 10000;  // ns

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

int problems_wanted(int usual) {
  const int otherwise = layout::kSanitized ? (usual + 7) / 8 : usual;
  return static_cast<int>(from_environment("MEMOPT_RANDOM_PROBLEMS", static_cast<std::uint64_t>(otherwise)));
}

TinyProblems::TinyProblems(std::uint64_t seed) : random_(seed + 1000 * from_environment("MEMOPT_RANDOM_SEED", 0)) {}

// Anything, anywhere.
void TinyProblems::draw_any(Problem& problem) {
  const auto n = static_cast<std::uint32_t>(6 + below(5));
  std::vector<std::uint32_t> free(n);
  problem.operations.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) free[i] = i;
  for (std::size_t i = n; i > 1; --i) std::swap(free[i - 1], free[below(i)]);
  const auto take = [&] {
    const std::uint32_t i = free.back();
    free.pop_back();
    return i;
  };
  const auto put = [&](std::uint32_t i, Kind kind, std::uint32_t block, std::uint32_t age) {
    Operation& op = problem.operations[i];
    op.kind = kind;
    op.block = block;
    op.age = age;
  };
  const std::uint64_t blocks = 2 + below(3);
  for (std::uint64_t j = 0; j < blocks; ++j) {
    const auto b = static_cast<std::uint32_t>(problem.blocks.size());
    Block block{.id = 3 * j + below(3), .bytes = (1 + below(4)) * kMiB};
    block.pinned = below(12) == 0;
    if (below(3) == 0) {
      block.persistent = true;
      for (std::uint64_t k = below(4); k > 0 && !free.empty(); --k) {
        put(take(), below(3) == 0 ? Kind::kWrite : Kind::kRead, b, 0);
      }
      problem.blocks.push_back(block);
      continue;
    }
    if (free.size() < 2) break;
    const std::uint32_t born = take(), freed = take();
    const std::uint32_t laps = freed < born || below(10) == 0 ? 1 : 0;
    put(born, Kind::kMalloc, b, 0);
    put(freed, Kind::kFree, b, laps);
    for (std::uint64_t k = below(4); k > 0 && !free.empty(); --k) {
      const std::uint32_t i = free.back();
      std::vector<std::uint32_t> ages;
      for (std::uint32_t age = 0; age <= laps; ++age) {
        if (born < i + age * n && i + age * n < freed + laps * n) ages.push_back(age);
      }
      if (ages.empty()) break;
      put(take(), below(2) == 0 ? Kind::kWrite : Kind::kRead, b, ages[below(ages.size())]);
    }
    problem.blocks.push_back(block);
  }
}

// As in training: what is written forwards is read backwards, last first; begun anywhere in the iteration.
void TinyProblems::draw_nested(Problem& problem) {
  const auto blocks = static_cast<std::uint32_t>(2 + below(2));
  std::vector<Operation> line;
  const auto maybe_nothing = [&] {
    if (line.size() + 2 * blocks < 10 && below(2) == 0) line.push_back({});
  };
  for (std::uint32_t b = 0; b < blocks; ++b) {
    problem.blocks.push_back({.id = b, .bytes = (1 + below(4)) * kMiB});
    line.push_back({Kind::kMalloc, b, 0});
    if (blocks == 2 || b == 0) line.push_back({Kind::kWrite, b, 0});
  }
  maybe_nothing();
  for (std::uint32_t b = blocks; b-- > 0;) {
    if (blocks == 2 || b == 0) line.push_back({Kind::kRead, b, 0});
    line.push_back({Kind::kFree, b, 0});
  }
  if (blocks == 2 && below(2) == 0) {  // weights
    problem.blocks.push_back({.id = 9, .bytes = (1 + below(2)) * kMiB, .persistent = true});
    line.insert(line.begin() + 1, {Kind::kRead, blocks, 0});
    line.push_back({Kind::kWrite, blocks, 0});
  }
  const std::size_t n = line.size(), shift = below(2) == 0 ? 0 : below(n);
  problem.operations.resize(n);
  for (std::size_t i = 0; i < n; ++i) problem.operations[(i + shift) % n] = line[i];
  for (std::uint32_t b = 0; b < problem.blocks.size(); ++b) {
    if (problem.blocks[b].persistent) continue;
    bool born = false;
    for (Operation& op : problem.operations) {
      if (op.block != b) continue;
      born = born || op.kind == Kind::kMalloc;
      op.age = born ? 0 : 1;
    }
  }
}

Problem TinyProblems::draw(bool layout) {
  Problem problem;
  if (below(2) == 0) {
    draw_any(problem);
  } else {
    draw_nested(problem);
  }
  for (Operation& op : problem.operations) {
    op.time = problem.period;
    problem.period += kTick * one_of({0.0, 0.5, 1.0, 1.0, 2.0, 4.0});
  }
  const double bytes_per_tick = kMiB / kTick;
  problem.machine = {bytes_per_tick * one_of({0.5, 1.0, 2.0, 4.0, 8.0}), bytes_per_tick * one_of({0.5, 1.0, 2.0, 4.0}),
                     kTick * one_of({0.0, 0.0, 0.25}), kTick * one_of({0.0, 0.0, 0.25})};
  problem.chunk = one_of({std::uint64_t{1}, kMiB, 2 * kMiB});
  problem.align = one_of({std::uint64_t{1}, std::uint64_t{512}});
  problem.lazy_malloc = below(4) == 0;
  problem.layout = layout;
  if (!layout) {
    problem.limit = 0;
    for (const Block& block : problem.blocks) *problem.limit += 2 * block.bytes;
  }
  return problem;
}

Problem TinyProblems::next(bool layout, std::size_t most_candidates) {
  while (true) {
    Problem problem = draw(layout);
    if (problem.blocks.size() < 2 || problem.period == 0) continue;
    try {
      const std::size_t candidates = count_candidates(problem);
      if (candidates > 1 && candidates <= most_candidates) return problem;
    } catch (const std::invalid_argument&) {  // too many places
    }
  }
}

}  // namespace memopt::swap::testing
