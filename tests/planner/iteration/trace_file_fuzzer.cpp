// Arbitrary bytes as a text trace, packed or not. What is read names blocks only between their Malloc and their Free,
// and all bytes together are a number that fits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "planner/iteration/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace memopt;
  planner::Trace trace;
  try {
    input::File file = input::File::holding(std::string(reinterpret_cast<const char*>(data), size), "fuzzed");
    trace = planner::read_trace(file);
  } catch (const std::runtime_error&) {
    return 0;
  }
  std::unordered_map<std::uint64_t, std::uint64_t> live;
  std::uint64_t bytes = 0;
  for (const planner::TraceOperation& operation : trace.operations) {
    if (operation.kind == planner::TraceKind::kLayer) continue;
    if (operation.kind == planner::TraceKind::kMalloc) {
      if (!live.emplace(operation.block, operation.bytes).second) std::abort();
      bytes += operation.bytes;
      if (bytes > std::uint64_t{1} << 62) std::abort();
      continue;
    }
    const auto found = live.find(operation.block);
    if (found == live.end() || found->second != operation.bytes) std::abort();
    if (operation.kind != planner::TraceKind::kFree) continue;
    bytes -= operation.bytes;
    live.erase(found);
  }
  return 0;
}
