// Made-up problems that have something of everything.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "planner/swap/model/model.h"

namespace memopt::swap::testing {

// Blocks of many sizes and lives, some of which persist or outlive the iteration.
inline Problem busy_problem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto fraction = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  Problem problem;
  constexpr std::uint32_t kBlocks = 90;
  struct Event {
    double time;
    Kind kind;
    std::uint32_t block, age;
  };
  std::vector<Event> events;
  for (std::uint32_t b = 0; b < kBlocks; ++b) {
    const bool persistent = b % 6 == 0;
    problem.blocks.push_back({.id = b, .bytes = (1 + random() % 64) * 1024 + random() % 700});
    problem.blocks.back().persistent = persistent;
    const double born = std::floor(fraction() * 1000);
    const double length = b % 7 == 0 ? 600 + std::floor(fraction() * 900) : std::floor(fraction() * 500);
    const auto put = [&](double time, Kind kind) {
      events.push_back({std::fmod(time, 1000), kind, b, persistent ? 0U : static_cast<std::uint32_t>(time / 1000)});
    };
    if (!persistent) put(born, Kind::kMalloc);
    for (double at = 1; at < 4; ++at)
      put(persistent ? std::floor(fraction() * 1000) : born + at * length / 4, Kind::kWrite);
    if (!persistent) put(born + length, Kind::kFree);
  }
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
  problem.operations.push_back({Kind::kNothing, kNoBlock, 0});
  for (const Event& event : events) problem.operations.push_back({event.kind, event.block, event.time, event.age});
  problem.period = 1000;
  problem.machine = {2000, 1800, 1, 1};
  problem.chunk = 4096;
  problem.align = 512;
  return problem;
}

// Every second operation reads what it wrote before.
inline void allow_clean_drops(Problem& problem) {
  for (std::size_t i = 0; i < problem.operations.size(); i += 2) {
    if (problem.operations[i].kind == Kind::kWrite) problem.operations[i].kind = Kind::kRead;
  }
  problem.clean_drops = true;
}

}  // namespace memopt::swap::testing
