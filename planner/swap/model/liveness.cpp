#include "planner/swap/model/liveness.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace memopt::swap {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 62;
constexpr std::uint32_t kLargestAge = 7;

std::string text(std::uint64_t number) { return std::to_string(number); }

void expect(bool holds, const auto& message) {
  if (!holds) throw Invalid(message());
}

void check_machine(const Machine& machine) {
  const auto rate = [](double value, const char* name) {
    if (!(std::isfinite(value) && value >= 1e-12)) {
      throw Invalid(std::string("machine.") + name + ": expected a rate above 0, found " + std::to_string(value));
    }
  };
  const auto latency = [](double value, const char* name) {
    if (!(std::isfinite(value) && value >= 0)) {
      throw Invalid(std::string("machine.") + name + ": expected a time of 0 or more, found " + std::to_string(value));
    }
  };
  rate(machine.out_bytes_per_ns, "out_bytes_per_ns");
  rate(machine.in_bytes_per_ns, "in_bytes_per_ns");
  latency(machine.out_latency_ns, "out_latency_ns");
  latency(machine.in_latency_ns, "in_latency_ns");
}

std::uint64_t peak_of(const Problem& problem, const Liveness& liveness) {
  const std::uint64_t n = liveness.operations;
  std::vector<std::int64_t> change(n + 1, 0);
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    const auto bytes = static_cast<std::int64_t>(problem.blocks[b].bytes);
    const Lifetime& lifetime = liveness.of[b];
    if (problem.blocks[b].persistent) {
      change[0] += bytes;
      continue;
    }
    const std::uint64_t length = lifetime.freed - lifetime.born + 1;  // the free counts
    change[0] += bytes * static_cast<std::int64_t>(length / n);
    const std::uint64_t end = lifetime.born + length % n;
    change[lifetime.born] += bytes;
    if (end <= n) {
      change[end] -= bytes;
    } else {
      change[0] += bytes;
      change[end - n] -= bytes;
    }
  }
  std::int64_t now = 0, peak = 0;
  for (std::uint64_t i = 0; i < n; ++i) peak = std::max(peak, now += change[i]);
  return static_cast<std::uint64_t>(peak);
}

struct BlockAccess {
  std::uint32_t block;
  Access access;

  std::pair<std::uint32_t, std::uint64_t> place() const { return {block, access.position}; }
};

// What operations that belong together access while one of them takes time (if none does, by the last one), but do not
// name then. Each block and position once. O(m log m) for m that belong together, and for each of them that takes time.
std::vector<BlockAccess> shared_accesses(const Problem& problem) {
  const auto& operations = problem.operations;
  const std::uint64_t n = operations.size();
  const auto by_place = [](const BlockAccess& a, const BlockAccess& b) { return a.place() < b.place(); };
  std::vector<BlockAccess> all, named, missing;
  for (std::uint64_t begin = 0, end = 0; begin < n; begin = end) {
    end = end_of_launch(problem, begin);
    if (end - begin == 1) continue;
    named.clear();
    for (std::uint64_t i = begin; i < end; ++i) {
      const Operation& op = operations[i];
      if (is_access(op)) named.push_back({op.block, {i + op.age * n, op.kind == Kind::kWrite}});
    }
    std::sort(named.begin(), named.end(), by_place);
    const double over = end < n ? operations[end].time : problem.period;
    for (std::uint64_t t = begin; t < end; ++t) {
      const double next = t + 1 < n ? operations[t + 1].time : problem.period;
      const bool takes_time = next > operations[t].time;
      if (!takes_time && (t + 1 < end || over > operations[begin].time)) continue;
      missing.clear();
      for (const BlockAccess& one : named) {
        const BlockAccess then{one.block, {one.access.position / n * n + t, one.access.write}};
        if (std::binary_search(named.begin(), named.end(), then, by_place)) continue;
        if (missing.empty() || missing.back().place() != then.place()) missing.push_back(then);
        missing.back().access.write = missing.back().access.write || then.access.write;
      }
      all.insert(all.end(), missing.begin(), missing.end());
    }
  }
  return all;
}

}  // namespace

Liveness find_liveness(const Problem& problem) {
  check_machine(problem.machine);
  const std::uint64_t n = problem.operations.size();
  expect(n > 0, [] { return "ops: expected at least one operation"; });
  expect(problem.chunk >= 1 && problem.chunk <= kLargest, [] { return "chunk: expected at least 1"; });
  expect(problem.align >= 1 && problem.align <= kLargest, [] { return "align: expected at least 1"; });
  expect(problem.layout || problem.limit, [] { return "limit: expected a number of bytes, as layout is false"; });
  std::uint64_t sum = 0;
  for (const Block& block : problem.blocks) {
    // Every instance alive at once, eight at most, must still be countable.
    expect(block.bytes <= kLargest / 8 - sum,
           [&] { return "block " + text(block.id) + ": size: the sizes add up to 2^59 bytes or more"; });
    sum += block.bytes;
  }

  Liveness liveness;
  liveness.operations = n;
  liveness.of.resize(problem.blocks.size());
  const auto name = [&](std::uint32_t block) { return "block " + text(problem.blocks[block].id); };
  double before = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const Operation& op = problem.operations[i];
    expect(std::isfinite(op.time) && op.time >= before,
           [&] { return "ops[" + text(i) + "]: time: expected a number not below that of the operation before"; });
    before = op.time;
    if (op.kind == Kind::kNothing) continue;
    expect(op.block < problem.blocks.size(), [&] { return "ops[" + text(i) + "]: there is no such block"; });
    expect(op.age <= kLargestAge, [&] { return "ops[" + text(i) + "]: age: expected at most 7"; });
    Lifetime& lifetime = liveness.of[op.block];
    const bool persistent = problem.blocks[op.block].persistent;
    expect(!persistent || op.age == 0,
           [&] { return "ops[" + text(i) + "]: age: expected none, as " + name(op.block) + " is persistent"; });
    const std::uint64_t position = i + op.age * n;
    if (op.kind == Kind::kMalloc) {
      expect(!persistent, [&] { return "ops[" + text(i) + "]: allocates the persistent " + name(op.block); });
      expect(lifetime.born == kNever, [&] { return "ops[" + text(i) + "]: allocates " + name(op.block) + " again"; });
      expect(op.age == 0, [&] { return "ops[" + text(i) + "]: age: expected 0 for an allocation"; });
      lifetime.born = position;
    } else if (op.kind == Kind::kFree) {
      expect(!persistent, [&] { return "ops[" + text(i) + "]: frees the persistent " + name(op.block); });
      expect(lifetime.freed == kNever, [&] { return "ops[" + text(i) + "]: frees " + name(op.block) + " again"; });
      lifetime.freed = position;
    } else {
      ++lifetime.accesses;
    }
  }
  expect(problem.operations[0].time == 0, [] { return "ops[0]: time: expected 0"; });
  expect(std::isfinite(problem.period) && problem.period >= before,
         [] { return "period: expected at least the time of the last operation"; });

  const std::vector<BlockAccess> shared = shared_accesses(problem);
  for (const BlockAccess& one : shared) ++liveness.of[one.block].accesses;
  std::uint32_t next = 0;
  for (Lifetime& lifetime : liveness.of) {
    lifetime.first_access = next;
    next += lifetime.accesses;
    lifetime.accesses = 0;
  }
  liveness.accesses.resize(next);
  for (std::uint64_t i = 0; i < n; ++i) {
    const Operation& op = problem.operations[i];
    if (!is_access(op)) continue;
    Lifetime& lifetime = liveness.of[op.block];
    liveness.accesses[lifetime.first_access + lifetime.accesses++] = {i + op.age * n, op.kind == Kind::kWrite};
  }
  for (const BlockAccess& one : shared) {
    Lifetime& lifetime = liveness.of[one.block];
    liveness.accesses[lifetime.first_access + lifetime.accesses++] = one.access;
  }
  for (std::uint32_t b = 0; b < liveness.of.size(); ++b) {
    Lifetime& lifetime = liveness.of[b];
    const auto from = liveness.accesses.begin() + lifetime.first_access;
    std::sort(from, from + lifetime.accesses);
    if (problem.blocks[b].persistent) continue;
    expect(lifetime.born != kNever && lifetime.freed != kNever,
           [&] { return name(b) + ": expected an allocation and a free, as it is not persistent"; });
    expect(lifetime.born < lifetime.freed, [&] { return name(b) + ": is freed before it is allocated"; });
    for (const Access& access : liveness.accesses_of(b)) {
      expect(lifetime.born < access.position && access.position < lifetime.freed, [&] {
        return name(b) + ": access at position " + text(access.position) + " is outside its lifetime, " +
               text(lifetime.born) + " to " + text(lifetime.freed);
      });
    }
    lifetime.start = problem.lazy_malloc && lifetime.accesses != 0 ? from->position : lifetime.born;
  }
  liveness.peak = peak_of(problem, liveness);
  return liveness;
}

}  // namespace memopt::swap
