// What memoptd would send for a recording: to an agent that places only, or that carries swaps out, which waits for it.
//   sent_plans RECORDING [MACHINE [LIMIT]]
// A line of JSON for each plan, as an agent reads it.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "agent/plan/plan.h"
#include "planner/program.h"
#include "planner/recording/reader.h"
#include "planner/swap/model/machines.h"
#include "shm/channel.h"

namespace {

using memopt::planner::Program;
using memopt::planner::RecordingReader;

void print(const std::vector<std::byte>& bytes) {
  std::string fault;
  const auto plan = memopt::agent::parse_plan(bytes, &fault);
  if (plan == nullptr) throw std::runtime_error("an agent refuses a plan: " + fault);
  std::size_t unplaced = 0;
  std::uint64_t unplaced_bytes = 0;
  for (const memopt::shm::PlannedMalloc& malloc : plan->mallocs) {
    unplaced += malloc.places == 0;
    unplaced_bytes += malloc.places == 0 ? malloc.bytes : 0;
  }
  fmt::print(R"({{"generation": {}, "operations": {}, "mallocs": {}, "unplaced": {}, "unplaced_bytes": {}, )",
             plan->generation, plan->operations, plan->mallocs.size(), unplaced, unplaced_bytes);
  fmt::print(R"("swaps": {}, "footprint": {}, "period_ns": {}, "added_ns": {}}})"
             "\n",
             plan->swaps.size(), plan->slab_bytes + (plan->swaps.empty() ? plan->persistent_bytes : 0), plan->period_ns,
             plan->added_ns);
}

void run(const std::string& file, Program& program) {
  RecordingReader reader = RecordingReader::open(file);
  std::uint64_t last = 0, sent = 0, check_point = memopt::shm::kFirstCheckPoint;
  while (const auto entry = reader.next()) {
    if (entry->kind != memopt::planner::recording::EntryKind::kRecord) continue;
    const std::uint64_t sequence = entry->record.header.sequence;
    if (sequence != last + 1) program.add_gap();
    last = sequence;
    program.add(entry->lane, entry->record);
    if (sequence < check_point) continue;
    check_point = memopt::shm::next_check_point(check_point);
    if (auto plan = program.plan()) {
      memopt::planner::set_generation(*plan, ++sent);
      print(*plan);
      program.sent(sent);
    }
  }
  fmt::print(stderr, "{}\n", program.note());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: sent_plans RECORDING [MACHINE [LIMIT]]\n");
    return 2;
  }
  try {
    Program program;
    if (argc > 2) {
      const memopt::swap::Machine machine = memopt::swap::parse_machine(argv[2]);
      program.swap_on({machine.out_bytes_per_ns, machine.in_bytes_per_ns, machine.out_latency_ns, machine.in_latency_ns,
                       std::uint64_t{2} << 20, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0, 0});
    }
    run(argv[1], program);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sent_plans: {}\n", error.what());
    return 1;
  }
  return 0;
}
