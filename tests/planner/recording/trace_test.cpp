#include "planner/recording/trace.h"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>

#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::planner {
namespace {

using shm::kAccessReads;
using shm::kAccessWrites;
using test::Record;

class Trace : public testing::Test {
 protected:
  void add(Record record) {
    ++sequence_;
    writer_->add(0, record.at(sequence_, sequence_).view());
  }
  std::string text() {
    writer_->finish();
    RecordingReader reader = RecordingReader::open(file_.path());
    std::ostringstream out;
    counts_ = write_trace(reader, ClockLine{}, out);
    return out.str();
  }

  test::ScratchFile file_;
  std::unique_ptr<RecordingWriter> writer_ = std::make_unique<RecordingWriter>(file_.fd(), RecordingInfo{}, nullptr);
  std::uint64_t sequence_ = 0;
  TraceCounts counts_;
};

TEST_F(Trace, KnownDirections) {
  add(Record::malloc(1, 512, 0x7000));
  add(Record::malloc(2, 100, 0x8000));
  add(Record::launch(0, {1 | kAccessWrites}));
  add(Record::launch(0, {2 | kAccessWrites, 1 | kAccessReads}));
  add(Record::launch(0, {1 | kAccessReads | kAccessWrites}));
  add(Record::free(1));
  EXPECT_EQ(text(),
            "Malloc 0x7000 512 1\nMalloc 0x8000 100 2\nMutable 0x7000 512 3\nRead 0x7000 512 4\nMutable 0x8000 100 4\n"
            "Read 0x7000 512 5\nMutable 0x7000 512 5\nFree 0x7000 512 6\n");
  EXPECT_EQ(counts_.lines, 8u);
}

TEST_F(Trace, UnknownDirectionsReadWhatWasWrittenThenWrite) {
  add(Record::malloc(1, 512, 0x7000));
  add(Record::malloc(2, 512, 0x8000));
  add(Record::launch(0, {1}));
  add(Record::launch(0, {1, 2}));
  EXPECT_EQ(text(),
            "Malloc 0x7000 512 1\nMalloc 0x8000 512 2\nMutable 0x7000 512 3\n"
            "Read 0x7000 512 4\nMutable 0x7000 512 4\nMutable 0x8000 512 4\n");
}

TEST_F(Trace, CopiesAndMemsets) {
  add(Record::malloc(1, 512, 0x7000));
  add(Record::malloc(2, 512, 0x8000));
  add(Record::make(shm::RecordKind::kMemset, shm::MemsetBody{0, 1, 512}));
  add(Record::make(shm::RecordKind::kCopy, shm::CopyBody{0, 2, 1, 512}, {}, 3));
  add(Record::make(shm::RecordKind::kCopy, shm::CopyBody{0, 0, 2, 512}, {}, 2));
  EXPECT_EQ(text(),
            "Malloc 0x7000 512 1\nMalloc 0x8000 512 2\nMutable 0x7000 512 3\nRead 0x7000 512 4\nMutable 0x8000 512 4\n"
            "Read 0x8000 512 5\n");
}

TEST_F(Trace, WhatIsNotKnownIsCounted) {
  add(Record::free(9));
  add(Record::launch(0, {8}).flags(shm::kBlindLaunch));
  EXPECT_EQ(text(), "");
  EXPECT_EQ(counts_.unknown_blocks, 3u);
  EXPECT_EQ(counts_.blind_launches, 1u);
}

// A block's contents are its own: an address that is used again begins unwritten.
TEST_F(Trace, AnAddressUsedAgainIsAnotherBlock) {
  add(Record::malloc(1, 512, 0x7000));
  add(Record::launch(0, {1}));
  add(Record::free(1));
  add(Record::malloc(2, 512, 0x7000));
  add(Record::launch(0, {2}));
  EXPECT_EQ(
      text(),
      "Malloc 0x7000 512 1\nMutable 0x7000 512 2\nFree 0x7000 512 3\nMalloc 0x7000 512 4\nMutable 0x7000 512 5\n");
}

}  // namespace
}  // namespace memopt::planner
