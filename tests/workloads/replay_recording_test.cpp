// What replay makes of recordings.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "planner/recording/writer.h"
#include "recording.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"
#include "trace.h"

namespace replay {
namespace {

using memopt::planner::RecordingInfo;
using memopt::planner::RecordingWriter;
using memopt::planner::test::Record;
using memopt::planner::test::ScratchFile;
using memopt::shm::kAccessReads;
using memopt::shm::kAccessWrites;

class ReplayRecording : public testing::Test {
 protected:
  void add(Record record) {
    ++sequence_;
    writer_->add(0, record.at(sequence_, sequence_).view());
  }
  std::string error() const {
    try {
      read_trace(file_.path());
    } catch (const TraceError& error) {
      return error.what();
    }
    return "no error";
  }

  ScratchFile file_;
  std::unique_ptr<RecordingWriter> writer_ = std::make_unique<RecordingWriter>(file_.fd(), RecordingInfo{}, nullptr);
  std::uint64_t sequence_ = 0;
};

TEST_F(ReplayRecording, IsReadLikeText) {
  add(Record::malloc(1, 512, 0x7000));
  add(Record::malloc(2, 100, 0x8000));
  add(Record::launch(0, {1 | kAccessWrites}));
  add(Record::launch(0, {2 | kAccessWrites, 1 | kAccessReads}));
  add(Record::free(1));
  ASSERT_TRUE(writer_->finish());
  EXPECT_TRUE(is_recording(file_.path()));
  const Trace trace = read_trace(file_.path());
  ASSERT_EQ(trace.operations.size(), 6u);
  EXPECT_EQ(trace.operations[2].verb, Verb::kWrite);
  EXPECT_EQ(trace.bytes(trace.operations[3]), 512u);
  EXPECT_EQ(trace.operations[5].verb, Verb::kFree);
  EXPECT_EQ(peak_load(trace), 612u);
}

TEST_F(ReplayRecording, ARecordingWithAHoleIsRefused) {
  add(Record::malloc(1, 512, 0x7000));
  sequence_ += 3;
  add(Record::free(1));
  ASSERT_TRUE(writer_->finish());
  EXPECT_NE(error().find("3 operations were lost"), std::string::npos) << error();
}

TEST_F(ReplayRecording, ACutOneIsReadUpToItsLastWholeBlock) {
  add(Record::malloc(1, 512, 0x7000));
  writer_->flush();
  add(Record::free(1));
  writer_->flush();
  ASSERT_EQ(ftruncate(file_.fd(), static_cast<off_t>(writer_->bytes() - 1)), 0);
  const Trace trace = read_trace(file_.path());
  EXPECT_EQ(trace.operations.size(), 1u);
  EXPECT_NE(trace.cut, "");
}

TEST_F(ReplayRecording, AnUnreadableOneIsRefused) {
  ASSERT_EQ(ftruncate(file_.fd(), 20), 0);
  EXPECT_NE(error().find(file_.path()), std::string::npos) << error();
}

TEST_F(ReplayRecording, AnEmptyOneIsRefused) {
  ASSERT_TRUE(writer_->finish());
  EXPECT_NE(error().find("without operations"), std::string::npos) << error();
}

}  // namespace
}  // namespace replay
