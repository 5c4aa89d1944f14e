// A recording of records one after the other, 1000 ticks apart, from number 1 on.
#pragma once

#include <cstdint>
#include <string>

#include "planner/recording/writer.h"
#include "tests/planner/recording/records.h"
#include "tests/planner/recording/scratch_file.h"

namespace memopt::planner::test {

class RecordedFile {
 public:
  void add(Record record) {
    ++sequence_;
    writer.add(0, record.at(sequence_, 1000 * sequence_).view());
  }
  const std::string& path() const { return file_.path(); }

 private:
  const ScratchFile file_;
  std::uint64_t sequence_ = 0;

 public:
  RecordingWriter writer{file_.fd(), {}, {}};  // for all that is no record, and to be finished
};

}  // namespace memopt::planner::test
