// Bytes from anywhere as a plan, packed or not. What is read must be written and read again as the same, and be judged
// without harm.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "planner/swap/files/plan_file.h"
#include "planner/swap/simulation/verify.h"

namespace {

constexpr std::size_t kMostOperations = 64;  // judged; the rest is only read and written

std::string written(const memopt::swap::PlanFile& plan) {
  std::ostringstream out;
  memopt::swap::write_plan(plan, out);
  return out.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt::swap;
  PlanFile plan;
  try {
    memopt::input::File file =
        memopt::input::File::holding(std::string(reinterpret_cast<const char*>(data), size), "fuzzed");
    plan = read_plan(file);
  } catch (const memopt::input::InputError&) {
    return 0;
  } catch (const Invalid&) {
    return 0;
  }
  const std::string once = written(plan);
  const PlanFile again = parse_plan(once);
  if (again.problem != plan.problem || again.decisions != plan.decisions || again.comment != plan.comment ||
      again.recompute != plan.recompute || again.launches != (plan.launches || !plan.recompute.empty())) {
    std::abort();
  }
  if (written(again) != once) std::abort();
  if (plan.problem.operations.size() > kMostOperations) return 0;
  const Report report = verify(plan.problem, plan.decisions);
  if (verify(again.problem, again.decisions).fault != report.fault) std::abort();
  return 0;
}
