// Bytes from anywhere as a kernel table of G10's, packed or not. What is read must be an iteration.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/swap/files/g10_tables.h"
#include "planner/swap/model/liveness.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt;
  swap::PlanFile plan;
  try {
    input::File file = input::File::holding(std::string(reinterpret_cast<const char*>(data), size), "fuzzed");
    plan = swap::read_g10_table(file);
  } catch (const input::InputError&) {
    return 0;
  } catch (const swap::Invalid&) {
    return 0;
  }
  plan.problem.machine = {1, 1, 0, 0};
  swap::find_liveness(plan.problem);  // throws: a finding
  return 0;
}
