#include "tools/memoptctl/recording/show_iteration.h"

#include <cstring>
#include <vector>

#include "planner/program.h"
#include "planner/recording/reader.h"
#include "shm/channel.h"
#include "shm/plan.h"

namespace memopt::tools {
namespace {

// No program comes as far; a file can say so.
constexpr std::uint64_t kLargestSequence = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestHole = std::uint64_t{1} << 30;

std::optional<ShownIteration> read_plan(const std::vector<std::byte>& plan) {
  shm::PlanHeader header{};
  if (plan.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, plan.data(), sizeof header);
  return ShownIteration{header.operations,       header.mallocs.count,   header.peak_load,  header.slab_bytes,
                        header.persistent_bytes, header.first_iteration, header.detected_at};
}

}  // namespace

IterationSearch find_iteration(input::File& file) {
  IterationSearch search;
  planner::RecordingReader reader(file.stream());
  planner::Program program;
  std::uint64_t last = 0;
  std::uint64_t check_point = shm::kFirstCheckPoint;
  while (const auto entry = reader.next()) {
    if (entry->kind != planner::recording::EntryKind::kRecord) continue;
    const std::uint64_t sequence = entry->record.header.sequence;
    if (sequence != last + 1) program.add_gap();
    last = sequence;
    program.add(entry->lane, entry->record);
    if (sequence < check_point || sequence > kLargestSequence) continue;
    // Behind a hole too large to be walked over, a point is as good as any.
    if (sequence - check_point > kLargestHole) check_point = sequence;
    while (check_point <= sequence) check_point = shm::next_check_point(check_point);
    if (const auto plan = program.plan()) search.found = read_plan(*plan);
  }
  search.note = program.note();
  return search;
}

}  // namespace memopt::tools
