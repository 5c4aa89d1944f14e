#include "planner/exchange/exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "planner/input/unpacking.h"
#include "planner/recording/reader.h"
#include "tests/planner/exchange/random_program.h"

namespace memopt::exchange {
namespace {

using planner::test::ScratchFile;

// All that a recording holds, but its description and its clock: as text, to be compared.
std::vector<std::string> entries(const std::string& bytes) {
  planner::RecordingReader reader(std::make_unique<std::istringstream>(bytes));
  std::vector<std::string> all;
  while (const auto entry = reader.next()) {
    std::string one = std::to_string(static_cast<int>(entry->kind));
    if (entry->kind == planner::recording::EntryKind::kRecord) {
      const shm::RecordHeader& header = entry->record.header;
      one += " " + std::to_string(entry->lane) + " " + std::to_string(header.kind) + " " +
             std::to_string(header.flags) + " " + std::to_string(header.aux) + " " + std::to_string(header.sequence) +
             " " + std::to_string(header.ticks) + " ";
      one.append(reinterpret_cast<const char*>(entry->record.body.data()), entry->record.body.size());
    }
    all.push_back(std::move(one));
  }
  EXPECT_FALSE(reader.damage().has_value());
  return all;
}

template <typename Read>
std::string imported(const std::string& text, const Read& read, Counts* counts = nullptr) {
  const ScratchFile file;
  input::File input = input::File::holding(text, "made up");
  planner::RecordingWriter writer(file.fd(), {}, {});
  const Counts found = read(input, writer);
  if (counts != nullptr) *counts = found;
  EXPECT_TRUE(writer.finish());
  return file.bytes();
}

template <typename Write>
std::string exported(const std::string& recording, const Write& write, Counts* counts = nullptr) {
  input::File input = input::File::holding(recording, "made up");
  std::ostringstream out;
  const Counts found = write(input, out);
  if (counts != nullptr) *counts = found;
  return std::move(out).str();
}

template <typename Read>
std::string refusal(const std::string& text, const Read& read) {
  try {
    imported(text, read);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(OperationsCsv, EveryRecordComesBack) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 60; ++i) {
    const std::string recording = test::random_program(random, {});
    const std::string csv = exported(recording, write_operations_csv);
    EXPECT_TRUE(is_operations_csv(csv));
    const std::string again = imported(csv, read_operations_csv);
    ASSERT_TRUE(entries(again) == entries(recording)) << i;
    ASSERT_TRUE(exported(again, write_operations_csv) == csv) << i;
  }
}

TEST(OperationsCsv, FewColumnsAreEnough) {
  const std::string recording = imported(
      "operation,block,bytes,accesses,name\r\nmalloc,1,512,,\r\n\r\nlaunch,,,1:rw 2,\"add,\"\"1\"\"\"\r\nfree,1,,,\r\n",
      read_operations_csv);
  planner::RecordingReader reader(std::make_unique<std::istringstream>(recording));
  std::vector<shm::RecordKind> kinds;
  std::uint64_t number = 0;
  while (const auto entry = reader.next()) {
    kinds.push_back(entry->record.kind());
    EXPECT_EQ(entry->record.header.sequence, ++number);
    if (kinds.back() == shm::RecordKind::kFunction) {
      const auto body = entry->record.as<shm::NameBody>();
      const auto text = entry->record.bytes_behind<shm::NameBody>(body.length);
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data()), text.size()), "add,\"1\"");
    }
  }
  using Kind = shm::RecordKind;
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kMalloc, Kind::kFunction, Kind::kLaunch, Kind::kFree}));
}

TEST(OperationsCsv, SaysWhatIsWrong) {
  const std::string head = "operation,block,bytes,accesses,values,flags,name\n";
  const std::pair<const char*, const char*> wrong[] = {
      {"mallok,1,2,,,,",
       "line 2: expected operation to be malloc, free, launch, copy, memset or another, found \"mallok\""},
      {"malloc,0,2,,,,", "line 2: expected block to be a number from 1, found \"0\""},
      {"malloc,1,,,,,", "line 2: expected bytes to be a whole number from 0 to 4611686018427387904, found nothing"},
      {"malloc,1,-2,,,,", "expected bytes to be"},
      {"malloc,1,2,,,seldom,", "expected flags to be"},
      {"launch,,,1:x,,,", "expected accesses to be BLOCK, BLOCK:r, BLOCK:w or BLOCK:rw, found \"1:x\""},
      {"copy,,1,1:rw,,,", "expected accesses to be BLOCK:r, BLOCK:w or both, of a copy"},
      {"parameters,,,,7 abc,,", "expected values to be a launch and bytes"},
      {"event_wait,,,,1 2,,", "expected values to be at most 1 numbers"},
      {"function,,,,1,,\"open", "expected a quote at the end of the field"},
      {"function,,,,1,,a\\q", "expected name to be text in which"},
      {"free,1,,,,,,", "expected 7 fields, found 8"},
      {"kernel_time,1,,,,,", "expected operation to be"},
      {"pad,1,,,,,", "expected operation to be"}};
  for (const auto& [row, message] : wrong) {
    const std::string said = refusal(head + row + "\n", read_operations_csv);
    EXPECT_NE(said.find(message), std::string::npos) << row << ": " << said;
  }
  EXPECT_NE(refusal("block,bytes\n1,2\n", read_operations_csv).find("expected a column operation"), std::string::npos);
  EXPECT_NE(refusal("operation,block,operation\n", read_operations_csv).find("twice"), std::string::npos);
  EXPECT_NE(refusal("operation,colour\n", read_operations_csv).find("found \"colour\""), std::string::npos);
  EXPECT_NE(refusal("", read_operations_csv).find("found nothing"), std::string::npos);
}

// Of allocations and frees, all but what agents alone know.
TEST(Snapshot, BlocksComeBack) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 40; ++i) {
    const std::string recording = test::random_program(random, {.only_blocks = true});
    const std::string snapshot = exported(recording, write_snapshot);
    const std::string again = imported(snapshot, read_snapshot);
    // Stacks have other numbers, if they have any; all else is as it was.
    const auto plain = [](const std::string& bytes) {
      planner::RecordingReader reader(std::make_unique<std::istringstream>(bytes));
      std::vector<std::string> rows;
      while (const auto entry = reader.next()) {
        std::ostringstream row;
        row << entry->lane << ' ' << entry->record.header.ticks << ' ' << static_cast<int>(entry->record.kind()) << ' ';
        if (entry->record.kind() == shm::RecordKind::kMalloc) {
          const auto body = entry->record.as<shm::MallocBody>();
          row << body.block << ' ' << body.bytes << ' ' << body.address << ' ' << body.stream;
        } else {
          row << entry->record.as<shm::FreeBody>().block;
        }
        rows.push_back(row.str());
      }
      return rows;
    };
    ASSERT_EQ(plain(again), plain(recording)) << i;
    ASSERT_TRUE(exported(again, write_snapshot) == snapshot) << i;
  }
}

TEST(Buffers, LifetimesComeBack) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 40; ++i) {
    const std::string recording = test::random_program(random, {.only_blocks = true, .one_thread = true});
    const std::string csv = exported(recording, write_buffers);
    EXPECT_TRUE(is_buffers(csv));
    EXPECT_FALSE(is_operations_csv(csv));
    const std::string again =
        imported(csv, [](input::File& file, planner::RecordingWriter& to) { return read_buffers(file, to, 1); });
    // What was never freed is freed at the end now.
    ASSERT_TRUE(exported(again, write_buffers) == csv) << i;
  }
}

TEST(Buffers, AreRunsOfAProgram) {
  Counts counts;
  const std::string recording = imported(
      "id,lower,upper,size,alignment\nweights,0,9,100,512\na,1,4,10,1\nb,4,6,20,1\n",
      [](input::File& file, planner::RecordingWriter& to) { return read_buffers(file, to, 3); }, &counts);
  EXPECT_EQ(counts.operations, 18u);
  EXPECT_NE(counts.note.find("1 buffers have gaps, alignments or fixed offsets"), std::string::npos);
  planner::RecordingReader reader(std::make_unique<std::istringstream>(recording));
  std::string order;
  std::uint64_t last = 0;
  while (const auto entry = reader.next()) {
    order += entry->record.kind() == shm::RecordKind::kMalloc ? '+' : '-';
    EXPECT_GE(entry->record.header.ticks, last);
    last = entry->record.header.ticks;
  }
  // What ends at a time makes room for what begins then.
  EXPECT_EQ(order, "++-+--++-+--++-+--");
  EXPECT_NE(refusal("id,lower,upper,size\na,4,1,5\n",
                    [](input::File& file, planner::RecordingWriter& to) { return read_buffers(file, to, 1); })
                .find("made up: line 2: lower must be below upper"),
            std::string::npos);
}

TEST(Exports, SayWhereARecordingIsDamaged) {
  std::mt19937_64 random(3);
  std::string recording = test::random_program(random, {.only_blocks = true});
  recording.resize(recording.size() - 30);  // within its end mark
  for (const auto write : {write_operations_csv, write_snapshot, write_buffers, write_trace_events}) {
    Counts counts;
    input::File input = input::File::holding(recording, "cut");
    std::ostringstream out;
    counts = write(input, out);
    EXPECT_FALSE(counts.damage.empty());
  }
}

}  // namespace
}  // namespace memopt::exchange
