// The interval map against one cell for each byte.
#include "checker/shadow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace cudasim {
namespace {

constexpr std::uint32_t kActors = 4;

struct Cell {
  AccessorPtr writer;
  std::vector<AccessorPtr> readers;                 // all since the write
  enum { kOpen, kFreed, kReserved } state = kOpen;  // not open: by the writer
};

enum Call { kReadBytes, kWriteBytes, kForget, kAllocate, kFree, kReserve };
constexpr Call kCalls[] = {kReadBytes,  kReadBytes, kReadBytes, kReadBytes, kWriteBytes, kWriteBytes,
                           kWriteBytes, kForget,    kAllocate,  kAllocate,  kFree,       kReserve};

// What happens to one byte: whether there is a conflict with its writer, and with its readers.
struct Expected {
  bool with_writer = false, with_readers = false;
};

Expected happen(Cell& cell, Call call, const AccessorPtr& by, const VectorClock& clock) {
  Expected expected;
  const bool unordered_writer = cell.writer && !cell.writer->before(clock);
  const bool unordered_reader = std::any_of(cell.readers.begin(), cell.readers.end(),
                                            [&](const AccessorPtr& reader) { return !reader->before(clock); });
  const bool accesses = call == kReadBytes || call == kWriteBytes;
  if (cell.state != Cell::kOpen && accesses) return {true, false};
  if (call == kReadBytes) {
    cell.readers.push_back(by);
    return {unordered_writer, false};
  }
  if (cell.state == Cell::kOpen && call != kReserve) expected = {unordered_writer, unordered_reader};
  if (cell.state == Cell::kFreed && (call == kForget || call == kFree)) expected = {unordered_writer, false};
  cell = {call == kForget ? nullptr : by,
          {},
          call == kFree      ? Cell::kFreed
          : call == kReserve ? Cell::kReserved
                             : Cell::kOpen};
  return expected;
}

using Found = std::set<std::tuple<std::uint64_t, const Accessor*, bool>>;  // byte, earlier, earlier wrote

TEST(Shadow, FindsWhatACellForEachByteFinds) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 150; ++round) {
    Shadow shadow;
    std::map<std::uint64_t, Cell> cells;
    std::vector<VectorClock> clocks(kActors);
    std::vector<AccessorPtr> kept;
    for (int i = 0; i < 120; ++i) {
      const auto actor = std::uint32_t(random() % kActors);
      if (random() % 3 == 0) clocks[actor].join(clocks[random() % kActors]);
      VectorClock& clock = clocks[actor];
      const ActorId id{actor};
      clock.set(id, clock.of(id) + 1);
      const auto accessor = std::make_shared<Accessor>(Accessor{id, clock.of(id), "operation", "actor"});
      kept.push_back(accessor);
      const std::uint64_t begin = random() % 40, end = begin + 1 + random() % 12;

      // A byte's earlier readers that are ordered before another reader of it are not named: the other one stands for
      // them. The oracle keeps all, so only bytes are compared for reads, and writers in full.
      std::set<std::uint64_t> found_bytes, expected_bytes;
      Found found_writers, expected_writers;
      const auto conflict = [&](const Accessor& earlier, AccessKind earlier_kind, std::uint64_t from,
                                std::uint64_t to) {
        for (std::uint64_t byte = std::max(from, begin); byte < std::min(to, end); ++byte) {
          found_bytes.insert(byte);
          if (earlier_kind != AccessKind::kRead) found_writers.emplace(byte, &earlier, true);
        }
        EXPECT_GE(from, begin);
        EXPECT_LE(to, end);
        if (earlier_kind == AccessKind::kRead || earlier_kind == AccessKind::kWrite) {
          EXPECT_FALSE(earlier.before(clock));
        }
      };
      const Call call = kCalls[random() % std::size(kCalls)];
      for (std::uint64_t byte = begin; byte < end; ++byte) {
        Cell& cell = cells[byte];
        const AccessorPtr writer = cell.writer;
        const Expected expected = happen(cell, call, accessor, clock);
        if (expected.with_writer) expected_writers.emplace(byte, writer.get(), true);
        if (expected.with_writer || expected.with_readers) expected_bytes.insert(byte);
      }
      switch (call) {
        case kReadBytes:
          shadow.read(begin, end, accessor, clock, conflict);
          break;
        case kWriteBytes:
          shadow.write(begin, end, accessor, clock, conflict);
          break;
        case kForget:
          shadow.forget(begin, end, clock, conflict);
          break;
        case kAllocate:
          shadow.allocate(begin, end, accessor, clock, conflict);
          break;
        case kFree:
          shadow.free_in_order(begin, end, accessor, clock, conflict);
          break;
        case kReserve:
          shadow.reserve(begin, end, accessor);
          break;
      }
      ASSERT_EQ(found_bytes, expected_bytes) << "round " << round << ", access " << i;
      ASSERT_EQ(found_writers, expected_writers) << "round " << round << ", access " << i;
    }
  }
}

TEST(Shadow, NeighboursThatAgreeBecomeOneSegment) {
  Shadow shadow;
  VectorClock clock;
  const ActorId actor{0};
  clock.set(actor, 1);
  const auto writer = std::make_shared<Accessor>(Accessor{actor, 1, "write", "stream 1"});
  const auto none = [](const Accessor&, AccessKind, std::uint64_t, std::uint64_t) { FAIL(); };
  for (std::uint64_t at = 0; at < 1000; ++at) shadow.write(at * 8, at * 8 + 8, writer, clock, none);
  EXPECT_EQ(shadow.segments(), 1u);
  clock.set(actor, 2);
  const auto reader = std::make_shared<Accessor>(Accessor{actor, 2, "read", "stream 1"});
  for (std::uint64_t at = 500; at-- > 0;) shadow.read(at * 16, at * 16 + 16, reader, clock, none);
  EXPECT_EQ(shadow.segments(), 1u);
  shadow.read(4, 8, reader, clock, none);
  EXPECT_EQ(shadow.segments(), 1u);
  shadow.forget(100, 200, clock, none);
  EXPECT_EQ(shadow.segments(), 2u);
  shadow.write(0, 8000, reader, clock, none);
  EXPECT_EQ(shadow.segments(), 1u);
  shadow.read(10, 10, reader, clock, none);
  EXPECT_EQ(shadow.segments(), 1u);
}

}  // namespace
}  // namespace cudasim
