// What fuzzers of readers of iterations have in common: bytes from anywhere, packed or not, are refused or are an
// iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "planner/input/file.h"
#include "planner/swap/files/plan_file.h"
#include "planner/swap/model/liveness.h"

namespace memopt::swap::testing {

template <typename Reader>
void fuzz_reader(const Reader& reader, const std::uint8_t* data, std::size_t size) {
  PlanFile plan;
  try {
    input::File file = input::File::holding(std::string(reinterpret_cast<const char*>(data), size), "fuzzed");
    plan = reader(file);
  } catch (const input::InputError&) {
    return;
  } catch (const Invalid&) {
    return;
  }
  plan.problem.machine = {1, 1, 0, 0};
  find_liveness(plan.problem);  // throws: a finding
}

}  // namespace memopt::swap::testing
