// Arbitrary bytes as a CSV, packed or not. What is read must be valid, must be the same when written and read again,
// and must be solved.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "planner/layout/files/csv.h"
#include "planner/layout/problem/validation.h"
#include "planner/layout/published/smart_pool.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt::layout;
  Instance instance;
  try {
    memopt::input::File file =
        memopt::input::File::holding(std::string(reinterpret_cast<const char*>(data), size), "fuzzed");
    instance = read_csv(file);
  } catch (const CsvError&) {
    return 0;
  } catch (const memopt::input::InputError&) {
    return 0;
  }
  if (find_fault(instance.problem)) std::abort();
  const Outcome outcome = smart_pool_best_fit(instance.problem, {});
  if (validate(instance.problem, outcome.solution)) std::abort();
  const std::string once = write_csv(instance, outcome.solution.offsets);
  if (write_csv(read_csv(once), outcome.solution.offsets) != once) std::abort();
  return 0;
}
