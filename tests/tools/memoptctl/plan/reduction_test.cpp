// What write_reduced() keeps of a recording, record by record.
#include "tools/memoptctl/plan/reduction.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "planner/recording/python_code.h"
#include "planner/recording/reader.h"
#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::tools {
namespace {

using planner::RecordingReader;
using planner::RecordingWriter;
using planner::recording::EntryKind;
using planner::test::Record;
using planner::test::ScratchFile;
using shm::RecordKind;

const std::string kLong = std::string(200, 'x') + "y";

struct Read {
  std::uint32_t lane;
  shm::RecordHeader header;
  std::vector<std::byte> body;
  template <typename Body>
  Body as() const {
    return shm::RecordView{header, body}.as<Body>();
  }
  RecordKind kind() const { return static_cast<RecordKind>(header.kind); }
  std::string text() const {
    const auto bytes = shm::RecordView{header, body}.bytes_behind<shm::NameBody>(as<shm::NameBody>().length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

class Reduced : public testing::Test {
 protected:
  Reduced() {
    planner::RecordingInfo info;
    info.program = "/opt/secret/bin/train";
    info.arguments = {"/opt/secret/bin/train", "--token", "abc"};
    RecordingWriter writer(whole_.fd(), info, {});
    const auto add = [&](Record record, std::uint32_t lane = 0) {
      ++sequence_;
      writer.add(lane, record.at(sequence_, 1000 + sequence_).view());
      return sequence_;
    };
    writer.add_clock({1, 11});
    add(Record::name(RecordKind::kModule, 0x1000, "/opt/secret/lib.so"));
    add(Record::name(RecordKind::kFunction, 1, kLong));
    add(Record::name(RecordKind::kFunction, 3, "never_launched_again"));
    add(Record::stack(7, {1, 2, 3}));
    add(Record::make(RecordKind::kStreamCreate, shm::StreamBody{5}));
    add(Record::make(RecordKind::kStreamCreate, shm::StreamBody{6}));
    add(Record::make(RecordKind::kStreamCreate, shm::StreamBody{8}));
    add(Record::make(RecordKind::kStreamDestroy, shm::StreamBody{6}));
    add(Record::name(RecordKind::kPythonFrame, 31, "main (/opt/secret/train.py:3)"));
    add(Record::make(RecordKind::kPythonStack, shm::StackBody{91, 1}, std::vector<std::uint64_t>{31}), 1);
    add(Record::malloc(1, 4096, 0x10000, 7), 1);
    add(Record::make(RecordKind::kPythonStack, shm::StackBody{92, 2}, std::vector<std::uint64_t>{31, 31}));
    add(Record::malloc(2, 512, 0x20000, 7));
    add(Record::malloc(3, 8192, 0x30000, 7));
    add(Record::make(RecordKind::kEscape, shm::EscapeBody{3}));
    add(Record::free(2));
    early_launch_ = add(Record::launch(3, {1, 3 | shm::kAccessReads}));
    add(Record::make(RecordKind::kPythonStack, shm::StackBody{0, 0}));
    add(Record::make(RecordKind::kPythonStack, shm::StackBody{92, 0}), 1);
    first_ = add(Record::malloc(4, 256, 0x40000, 9), 1);
    add(Record::make(RecordKind::kPythonStack, shm::StackBody{91, 0}));
    add(Record::stack(9, {4, 5}));
    add(Record::name(RecordKind::kFunction, 2, "gemm"));
    add(Record::make(RecordKind::kState, shm::StateBody{1, 2}));
    launch_ = add(Record::launch(1, {1, 4}));
    const std::vector<std::uint64_t> bytes = {42};
    add(Record::make(RecordKind::kParameters, shm::ParametersBody{launch_, 8}, bytes));
    add(Record::launch(2, {3}));
    add(Record::make(RecordKind::kHostFunction, shm::StreamBody{5}));
    last_ = add(Record::free(4), 1);
    add(Record::malloc(5, 1 << 20, 0x50000));
    add(Record::make(RecordKind::kKernelTime, shm::KernelTimeBody{launch_, 777, 5555}));
    add(Record::make(RecordKind::kKernelTime, shm::KernelTimeBody{early_launch_, 888, 4444}));
    writer.add_clock({2, 22});
    EXPECT_TRUE(writer.finish());
  }

  void reduce(const Reduction& reduction) {
    ::unlink(path_.c_str());
    input::File whole(whole_.path());
    counts_ = write_reduced(whole, path_, first_, last_, reduction);
    RecordingReader reader = RecordingReader::open(path_);
    info_ = reader.info();
    records_.clear();
    clocks_.clear();
    while (const auto entry = reader.next()) {
      if (entry->kind == EntryKind::kClock) clocks_.push_back(entry->clock);
      if (entry->kind != EntryKind::kRecord) continue;
      records_.push_back({entry->lane, entry->record.header, {entry->record.body.begin(), entry->record.body.end()}});
    }
    EXPECT_FALSE(reader.damage());
    EXPECT_EQ(counts_.records, records_.size());
    for (std::size_t i = 0; i < records_.size(); ++i) EXPECT_EQ(records_[i].header.sequence, i + 1);
  }
  ~Reduced() override { ::unlink(path_.c_str()); }

  std::vector<RecordKind> kinds() const {
    std::vector<RecordKind> result;
    for (const Read& record : records_) result.push_back(record.kind());
    return result;
  }
  std::vector<const Read*> all(RecordKind kind) const {
    std::vector<const Read*> result;
    for (const Read& record : records_) {
      if (record.kind() == kind) result.push_back(&record);
    }
    return result;
  }

  ScratchFile whole_;
  std::string path_ = whole_.path() + ".reduced";
  std::uint64_t sequence_ = 0, first_ = 0, last_ = 0, launch_ = 0, early_launch_ = 0;
  ReducedCounts counts_;
  planner::RecordingInfo info_;
  std::vector<Read> records_;
  std::vector<planner::ClockPair> clocks_;
};

TEST_F(Reduced, HoldsTheWindowBehindWhatItFinds) {
  reduce({.hash_names = true});
  EXPECT_EQ(kinds(), (std::vector<RecordKind>{
                         RecordKind::kFunction, RecordKind::kStreamCreate, RecordKind::kMalloc, RecordKind::kMalloc,
                         RecordKind::kMemset,  // the prologue
                         RecordKind::kMalloc, RecordKind::kFunction, RecordKind::kLaunch, RecordKind::kLaunch,
                         RecordKind::kHostFunction, RecordKind::kFree, RecordKind::kKernelTime}));
  EXPECT_EQ(counts_.before, 2u);
  // Only what still lives, in its own lane, and only what the window is on.
  EXPECT_EQ(records_[1].as<shm::StreamBody>().stream, 5u);
  EXPECT_EQ(records_[2].as<shm::MallocBody>().block, 1u);
  EXPECT_EQ(records_[2].lane, 1u);
  EXPECT_EQ(records_[3].as<shm::MallocBody>().block, 3u);
  EXPECT_EQ(records_[2].header.flags, 0u);
  EXPECT_EQ(records_[3].header.flags, shm::kStays) << "its address was stored before the window";
  EXPECT_EQ(clocks_, (std::vector<planner::ClockPair>{{1, 11}, {2, 22}}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(records_[i].header.ticks, 1000 + first_);
}

TEST_F(Reduced, WhatHadBeenWrittenIsWritten) {
  reduce({});
  const auto memsets = all(RecordKind::kMemset);
  ASSERT_EQ(memsets.size(), 1u);  // block 3 has only been read
  EXPECT_EQ(memsets[0]->as<shm::MemsetBody>().block, 1u);
  EXPECT_EQ(memsets[0]->as<shm::MemsetBody>().bytes, 4096u);
  EXPECT_EQ(memsets[0]->lane, 1u);
}

TEST_F(Reduced, ReferencesFollowTheNumbers) {
  reduce({.parameters = true});
  const auto launches = all(RecordKind::kLaunch);
  ASSERT_EQ(launches.size(), 2u);
  const auto times = all(RecordKind::kKernelTime);
  ASSERT_EQ(times.size(), 1u);  // the other is of a launch that is not there
  EXPECT_EQ(times[0]->as<shm::KernelTimeBody>().launch, launches[0]->header.sequence);
  EXPECT_EQ(times[0]->as<shm::KernelTimeBody>().nanoseconds, 777u);
  EXPECT_EQ(times[0]->as<shm::KernelTimeBody>().end, 5555u);
  const auto parameters = all(RecordKind::kParameters);
  ASSERT_EQ(parameters.size(), 1u);
  EXPECT_EQ(parameters[0]->as<shm::ParametersBody>().launch, launches[0]->header.sequence);
}

TEST_F(Reduced, ParametersGoUnlessAskedFor) {
  reduce({});
  EXPECT_TRUE(all(RecordKind::kParameters).empty());
  EXPECT_TRUE(all(RecordKind::kState).empty());
}

TEST_F(Reduced, NamesAndStacksStay) {
  reduce({});
  ASSERT_EQ(all(RecordKind::kFunction).size(), 2u);
  EXPECT_EQ(all(RecordKind::kFunction)[0]->text(), kLong);
  EXPECT_EQ(all(RecordKind::kStack).size(), 2u);
  EXPECT_EQ(all(RecordKind::kModule).size(), 1u);
  EXPECT_EQ(info_.arguments.size(), 3u);
  EXPECT_EQ(info_.program, "/opt/secret/bin/train");
}

// Where each block's malloc was, and each thread at the window's beginning; the window refers to what was written
// before it.
TEST_F(Reduced, PlacesInPythonStay) {
  reduce({});
  planner::PythonCode python;
  std::map<std::uint64_t, std::size_t> depths;  // by block
  for (const Read& record : records_) {
    ASSERT_TRUE(python.add(record.lane, shm::RecordView{record.header, record.body}));
    if (record.kind() != RecordKind::kMalloc) continue;
    depths[record.as<shm::MallocBody>().block] = python.names(python.at(record.lane)).size();
  }
  EXPECT_EQ(depths, (std::map<std::uint64_t, std::size_t>{{1, 1}, {3, 2}, {4, 2}}));
  EXPECT_EQ(python.names(python.at(0)), std::vector<std::string>{"main (/opt/secret/train.py:3)"});
}

TEST_F(Reduced, HashedNamesAreShortAndTellNoPaths) {
  reduce({.hash_names = true});
  ASSERT_EQ(all(RecordKind::kFunction).size(), 2u);
  EXPECT_EQ(all(RecordKind::kFunction)[0]->text(), short_name(kLong));
  EXPECT_EQ(all(RecordKind::kFunction)[1]->text(), "gemm");
  EXPECT_EQ(info_.arguments, std::vector<std::string>{"train"});
  EXPECT_EQ(info_.program, "train");
  EXPECT_TRUE(all(RecordKind::kStack).empty());
  EXPECT_TRUE(all(RecordKind::kModule).empty());
  EXPECT_TRUE(all(RecordKind::kPythonFrame).empty());
  EXPECT_TRUE(all(RecordKind::kPythonStack).empty());
}

TEST_F(Reduced, RefusesAFileThatIsThere) {
  reduce({});
  input::File whole(whole_.path());
  EXPECT_THROW(write_reduced(whole, path_, first_, last_, {}), std::runtime_error);
}

TEST(ShortName, KeepsNamesApart) {
  EXPECT_EQ(short_name("gemm"), "gemm");
  EXPECT_EQ(short_name(std::string(56, 'a')), std::string(56, 'a'));
  std::set<std::string> names;
  for (int i = 0; i < 1000; ++i) {
    const std::string name = short_name(std::string(100, 'a') + std::to_string(i));
    EXPECT_EQ(name.size(), 56u);
    EXPECT_EQ(name.substr(0, 40), std::string(39, 'a') + "~");
    names.insert(name);
  }
  EXPECT_EQ(names.size(), 1000u);
}

}  // namespace
}  // namespace memopt::tools
