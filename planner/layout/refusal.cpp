#include "planner/layout/refusal.h"

namespace memopt::layout {

std::optional<std::string> refuse_sums_from(unsigned exponent, const Problem& problem) {
  const std::uint64_t limit = std::uint64_t{1} << exponent;
  std::uint64_t sum = 0;
  for (const Buffer& buffer : problem.buffers) {
    sum += buffer.bytes + buffer.alignment;
    if (sum >= limit || (buffer.fixed != kAnywhere && buffer.fixed >= limit)) {
      return "its sizes add up to 2^" + std::to_string(exponent) + " or more";
    }
  }
  return {};
}

}  // namespace memopt::layout
