// Times, and what becomes of many of them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace facts {

using Json = nlohmann::ordered_json;

// Nanoseconds of the host's monotonic clock; on the simulated driver of the calling thread's virtual clock.
std::int64_t now_ns();

// How long `work` took on the host.
template <typename Work>
double timed(Work&& work) {
  const std::int64_t begin = now_ns();
  work();
  return static_cast<double>(now_ns() - begin);
}

// {"n", "min", "p10", "median", "p90", "p99", "max", "mean"} of nanoseconds; {"n": 0} of none.
Json spread(std::vector<double> nanoseconds);

}  // namespace facts
