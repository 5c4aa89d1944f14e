// The link to the planner without a planner: rings in this process's memory, read by the test. Takes the place of
// agent/link/link.cpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/channel.h"
#include "shm/ring.h"

namespace memopt::test {

struct ReadRecord {
  std::uint32_t lane;
  std::vector<std::byte> bytes;

  shm::RecordView view() const { return *shm::parse_record(bytes); }
};

// Everything back to the beginning; rings of that many bytes from now on.
void reset_link(std::size_t ring_bytes = 1u << 20);
// Threads get no ring.
void refuse_rings(bool refuse);
// What was written since the last call, in order of sequence.
std::vector<ReadRecord> read_records();
std::vector<ReadRecord> records_of_kind(const std::vector<ReadRecord>& records, shm::RecordKind kind);
shm::Control& link_page();
// Sequences that were waited for.
std::vector<std::uint64_t> waits();
std::chrono::milliseconds longest_wait();  // that the last of them would have taken
int released_rings();

}  // namespace memopt::test
