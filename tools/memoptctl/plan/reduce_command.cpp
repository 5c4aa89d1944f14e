#include "tools/memoptctl/plan/reduce_command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <stdexcept>

#include "planner/recording/reader.h"
#include "tools/memoptctl/common/partial_file.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/plan/file_plan.h"

namespace memopt::tools {
namespace {

constexpr int kExitNoIteration = 4;

}  // namespace

int reduce(const ReduceOptions& options) {
  expect_replaceable(options.output, options.force);
  input::File file(options.file);
  if (options.whole) {
    const PartialFile partial(options.output);
    const ReducedCounts counts =
        write_reduced(file, partial.path(), 0, std::numeric_limits<std::uint64_t>::max(), options.reduction);
    partial.keep();
    fmt::print("{}: {} records, {}: all of them\n", printable(options.output), counts.records,
               bytes_text(static_cast<double>(counts.bytes)));
    return 0;
  }
  SteadyWindow window;
  try {
    window = find_steady_window(file);
  } catch (const planner::RecordingError& error) {
    throw std::runtime_error(printable(options.file) + ": " + error.what());
  } catch (const input::InputError&) {
    throw;
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "memoptctl: {}\n", printable(error.what()));
    return kExitNoIteration;
  }
  // Two more than are wanted where there are as many: an iteration is known by its repeat, and what a block met before
  // the first is not in it. More where blocks outlive one.
  const PartialFile partial(options.output);
  const std::size_t wanted = std::size_t{options.reduction.iterations} + 2;
  std::size_t kept = wanted <= window.begins.size() ? wanted : wanted - 1;
  for (; kept <= window.begins.size(); ++kept) {
    partial.remove();
    const ReducedCounts counts =
        write_reduced(file, partial.path(), window.begins[kept - 1], window.last, options.reduction);
    input::File reduced(partial.path());
    const FilePlanning again = plan_file(reduced);
    if (!again.plan || again.plan->operations != window.operations || again.plan->peak_load != window.peak_load)
      continue;
    partial.keep();
    fmt::print("{}: {} records, {}: {} iterations of {} operations behind {} blocks that were there before\n",
               printable(options.output), counts.records, bytes_text(static_cast<double>(counts.bytes)), kept,
               window.operations, counts.before);
    return 0;
  }
  fmt::print(stderr,
             "memoptctl: {}: of the {} iterations in it, no number was found by itself to have the same {} operations "
             "and peak load of {} bytes; record more of them\n",
             printable(options.file), window.begins.size(), window.operations, window.peak_load);
  return kExitNoIteration;
}

}  // namespace memopt::tools
