#include "measure.h"

#include <cudasim/cudasim.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "driver.h"

namespace facts {

std::int64_t now_ns() {
  if (driver().simulated()) {
    CudasimCounters counters{};
    counters.struct_size = sizeof counters;
    driver().cudasim_counters(&counters);
    return static_cast<std::int64_t>(counters.host_now_ns);
  }
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Json spread(std::vector<double> nanoseconds) {
  Json result = {{"n", nanoseconds.size()}};
  if (nanoseconds.empty()) return result;
  std::sort(nanoseconds.begin(), nanoseconds.end());
  const auto at = [&](double part) {
    const auto index = static_cast<std::size_t>(std::llround(part * static_cast<double>(nanoseconds.size() - 1)));
    return std::round(nanoseconds[index]);
  };
  result["min"] = at(0);
  result["p10"] = at(0.1);
  result["median"] = at(0.5);
  result["p90"] = at(0.9);
  result["p99"] = at(0.99);
  result["max"] = at(1);
  result["mean"] = std::round(std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0) /
                              static_cast<double>(nanoseconds.size()));
  return result;
}

}  // namespace facts
