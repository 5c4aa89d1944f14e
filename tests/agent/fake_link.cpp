#include "fake_link.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "agent/link/link.h"

namespace memopt::test {
namespace {

struct Ring {
  std::size_t capacity = 0;
  std::unique_ptr<void, decltype(&std::free)> memory{nullptr, &std::free};
  shm::RingReader reader;
};

struct State {
  std::mutex mutex;
  std::size_t ring_bytes = 1u << 20;
  bool refuse = false;
  std::vector<Ring> rings;
  std::vector<std::uint64_t> waits;
  std::chrono::milliseconds longest_wait{0};  // of the last one
  int released = 0;
  shm::Control control{};
};
// Leaked: threads may end after main.
State& state() {
  static State& instance = *new State;
  return instance;
}

}  // namespace

void reset_link(std::size_t ring_bytes) {
  State& link = state();
  const std::lock_guard lock(link.mutex);
  link.ring_bytes = ring_bytes;
  link.refuse = false;
  link.waits.clear();
  link.released = 0;
}

void refuse_rings(bool refuse) {
  const std::lock_guard lock(state().mutex);
  state().refuse = refuse;
}

std::vector<ReadRecord> read_records() {
  const std::lock_guard lock(state().mutex);
  std::vector<ReadRecord> records;
  std::vector<std::byte> buffer;
  for (Ring& ring : state().rings) {
    // Twice empty: the first time the ring may just have wrapped.
    for (int empty = 0; empty < 2;) {
      auto bytes = ring.reader.read(buffer, 1u << 20);
      if (bytes.empty()) ++empty;
      while (!bytes.empty()) {
        const auto record = shm::parse_record(bytes);
        if (!record) std::abort();
        const std::size_t size = std::size_t{record->header.words} * 8;
        records.push_back({ring.reader.lane(), {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}});
        bytes = bytes.subspan(size);
      }
    }
  }
  std::sort(records.begin(), records.end(), [](const ReadRecord& a, const ReadRecord& b) {
    return a.view().header.sequence < b.view().header.sequence;
  });
  return records;
}

std::vector<ReadRecord> records_of_kind(const std::vector<ReadRecord>& records, shm::RecordKind kind) {
  std::vector<ReadRecord> found;
  for (const ReadRecord& record : records) {
    if (record.view().kind() == kind) found.push_back(record);
  }
  return found;
}

shm::Control& link_page() { return state().control; }

std::chrono::milliseconds longest_wait() {
  const std::lock_guard lock(state().mutex);
  return state().longest_wait;
}

std::vector<std::uint64_t> waits() {
  const std::lock_guard lock(state().mutex);
  return state().waits;
}

int released_rings() {
  const std::lock_guard lock(state().mutex);
  return state().released;
}

}  // namespace memopt::test

namespace memopt::agent {

bool acquire_ring(shm::RingWriter* ring) noexcept {
  test::State& link = test::state();
  const std::lock_guard lock(link.mutex);
  if (link.refuse) return false;
  test::Ring made;
  made.capacity = link.ring_bytes;
  const std::size_t bytes = shm::kRingDataOffset + made.capacity;
  made.memory.reset(std::aligned_alloc(4096, bytes));
  *ring = shm::RingWriter::create(made.memory.get(), made.capacity, static_cast<std::uint32_t>(link.rings.size()));
  made.reader = shm::RingReader::open(made.memory.get(), bytes);
  link.rings.push_back(std::move(made));
  return true;
}

void release_ring(const shm::RingWriter&) noexcept {
  const std::lock_guard lock(test::state().mutex);
  ++test::state().released;
}

shm::Control* link_control() noexcept { return &test::state().control; }
void tell_recording(bool on) noexcept { test::state().control.recording.store(on ? 1 : 0); }

bool wait_processed(std::uint64_t sequence, std::chrono::milliseconds limit) noexcept {
  const std::lock_guard lock(test::state().mutex);
  test::state().waits.push_back(sequence);
  test::state().longest_wait = limit;
  return true;
}

}  // namespace memopt::agent
