#include "shm/ring.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <thread>

#include "tests/shm/test_ring.h"

namespace memopt::shm {
namespace {

using test::TestRing;
using test::write_free;
using test::write_name;

// Reads what is there and returns the numbers, having checked each record's contents.
std::vector<std::uint64_t> read_all(RingReader& reader, std::size_t limit = 1 << 20) {
  std::vector<std::uint64_t> numbers;
  std::vector<std::byte> buffer;
  // Twice: what comes first may be the pad at the end.
  for (int empty = 0; empty < 2;) {
    std::span<const std::byte> bytes = reader.read(buffer, limit);
    empty = bytes.empty() ? empty + 1 : 0;
    while (!bytes.empty()) {
      const std::optional<RecordView> record = parse_record(bytes);
      if (!record) {
        ADD_FAILURE() << "a malformed record behind " << (numbers.empty() ? 0 : numbers.back());
        return numbers;
      }
      const std::uint64_t number = record->header.sequence;
      if (record->kind() == RecordKind::kFree) {
        EXPECT_EQ(record->as<FreeBody>().block, number);
      } else {
        const auto name = record->as<NameBody>();
        for (const std::byte byte : record->bytes_behind<NameBody>(name.length)) {
          EXPECT_EQ(byte, static_cast<std::byte>(number & 0xff));
        }
      }
      numbers.push_back(number);
      bytes = bytes.subspan(std::size_t{record->header.words} * 8);
    }
  }
  return numbers;
}

TEST(RingTest, WrapsWithoutSplittingRecords) {
  TestRing ring(5);
  const SharedMapping mapping = ring.map();
  RingReader reader = RingReader::open(mapping.data(), mapping.size());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader.lane(), 5u);
  std::mt19937_64 random(1);
  std::uint64_t next = 1;
  for (int round = 0; round < 300; ++round) {
    const std::uint64_t first = next;
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      const std::size_t words = random() % 10 == 0 ? kMaxRecordBytes / 8 - 1 : 5 + random() % 100;
      if (!write_name(ring.writer, next, words)) break;
      ++next;
    }
    const std::vector<std::uint64_t> numbers = read_all(reader, kMaxRecordBytes + random() % (1 << 20));
    ASSERT_EQ(numbers.size(), next - first);
    for (std::size_t i = 0; i < numbers.size(); ++i) ASSERT_EQ(numbers[i], first + i);
  }
  EXPECT_GT(next, 1000u);
  EXPECT_EQ(reader.state(), RingReader::State::kGood);
}

TEST(RingTest, AFullRingDropsAndCountsAndGoesOnWhenRead) {
  TestRing ring(0);
  const SharedMapping mapping = ring.map();
  RingReader reader = RingReader::open(mapping.data(), mapping.size());
  std::uint64_t written = 0;
  while (write_free(ring.writer, written + 1)) ++written;
  EXPECT_EQ(written, kMinRingCapacity / 40);
  EXPECT_EQ(ring.writer.dropped(), 1u);
  EXPECT_FALSE(write_free(ring.writer, written + 2));
  EXPECT_EQ(reader.dropped(), 2u);
  EXPECT_EQ(read_all(reader).size(), written);
  EXPECT_TRUE(write_free(ring.writer, written + 3));
  EXPECT_EQ(read_all(reader), (std::vector<std::uint64_t>{written + 3}));
}

TEST(RingTest, ANewReaderBeginsWhereTheLastOneStopped) {
  TestRing ring(0);
  const SharedMapping mapping = ring.map();
  for (std::uint64_t i = 1; i <= 10; ++i) write_free(ring.writer, i);
  RingReader first = RingReader::open(mapping.data(), mapping.size());
  EXPECT_FALSE(first.resumed());
  EXPECT_EQ(read_all(first).size(), 10u);
  write_free(ring.writer, 11);
  RingReader second = RingReader::open(mapping.data(), mapping.size());
  EXPECT_TRUE(second.resumed());
  EXPECT_EQ(second.waiting(), 40u);
  EXPECT_EQ(read_all(second), (std::vector<std::uint64_t>{11}));
}

// One thread writes as fast as it can, one reads: every record arrives whole, in order, or is counted as dropped.
TEST(RingTest, WriterAndReaderAtOnce) {
  for (const std::size_t capacity : {kMinRingCapacity, std::size_t{1} << 20}) {
    TestRing ring(0, capacity);
    const SharedMapping mapping = ring.map();
    constexpr std::uint64_t kCount = 400'000;
    std::atomic<bool> done{false};
    std::thread writer([&] {
      std::mt19937_64 random(2);
      for (std::uint64_t i = 1; i <= kCount; ++i) {
        if (i % 2 == 0) {
          write_free(ring.writer, i);
        } else {
          write_name(ring.writer, i, 5 + random() % 20);
        }
      }
      done.store(true, std::memory_order_release);
    });
    RingReader reader = RingReader::open(mapping.data(), mapping.size());
    std::uint64_t last = 0;
    std::uint64_t seen = 0;
    for (bool last_look = false; !last_look;) {
      last_look = done.load(std::memory_order_acquire);
      for (const std::uint64_t number : read_all(reader)) {
        ASSERT_GT(number, last);
        last = number;
        ++seen;
      }
    }
    writer.join();
    EXPECT_EQ(reader.state(), RingReader::State::kGood);
    EXPECT_EQ(seen + reader.dropped(), kCount);
    EXPECT_GT(seen, 1000u);
  }
}

// Bytes that are no records, or nearly: parse_record stays within them, and what it accepts is as its kind says.
TEST(RecordTest, MutatedRecordsAreRefusedOrWhole) {
  TestRing ring(0);
  std::mt19937_64 random(3);
  std::uint64_t accepted = 0;
  for (int round = 0; round < 50'000; ++round) {
    const std::size_t words = 1 + random() % 20;
    std::vector<std::byte> bytes(words * 8);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 3 == 0 ? random() : 0);
    RecordHeader header{};
    std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof(header)));
    header.kind = static_cast<std::uint8_t>(random() % (kLastRecordKind + 3));
    header.words = static_cast<std::uint16_t>(random() % 4 == 0 ? random() : words);
    std::memcpy(bytes.data(), &header, std::min(bytes.size(), sizeof(header)));
    if (bytes.size() >= 40 && random() % 2 == 0) {
      const std::uint64_t length = random() % 8 == 0 ? random() : random() % 128;
      std::memcpy(bytes.data() + 32, &length, sizeof(length));
    }
    const std::optional<RecordView> record = parse_record(bytes);
    if (!record) continue;
    ++accepted;
    ASSERT_LE(record->header.words * 8u, bytes.size());
    ASSERT_GE(record->body.size(), *fixed_body_bytes(record->header.kind));
    if (record->kind() == RecordKind::kStack) {
      const std::uint64_t frames = record->as<StackBody>().frames;
      if (frames > 0) (void)record->word_behind<StackBody>(frames - 1);
    }
    if (record->kind() == RecordKind::kFunction) {
      ASSERT_EQ(record->bytes_behind<NameBody>(record->as<NameBody>().length).size(), record->as<NameBody>().length);
    }
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace memopt::shm
