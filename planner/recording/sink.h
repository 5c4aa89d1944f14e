// One program's operations, from its connection into a recording.
#pragma once

#include <string>

#include "planner/daemon/sink.h"
#include "planner/recording/writer.h"

namespace memopt::planner {

// How a program's recording ended; filled in when its sink is closed.
struct RecordingEnd {
  std::uint64_t records = 0;  // in the file
  std::uint64_t lost = 0;     // could not be written
  std::uint64_t missing = 0;  // never arrived: dropped by a full ring, or before the recorder was there
  std::uint64_t bytes = 0;    // of the file
  bool whole = false;         // the end mark is there
  std::string broken;         // why the program's records could not be read further; empty: they could
};

class RecordingSink : public Sink {
 public:
  // `ended` is called once, by the sink's thread; it may be empty.
  RecordingSink(std::unique_ptr<RecordingWriter> writer, std::function<void(const RecordingEnd&)> ended);
  ~RecordingSink() override;

  void record(std::uint32_t lane, const shm::RecordView& record) override;
  void gap() override;
  std::string note() override;
  void clock(const ClockPair& clock) override;
  void idle() override;
  void closed() override;
  void broken(const std::string& why) override;  // without an end mark: the file reads as cut

 private:
  void end(const std::string& broken);

  std::unique_ptr<RecordingWriter> writer_;
  std::function<void(const RecordingEnd&)> ended_;
  std::uint64_t last_sequence_ = 0;
  std::uint64_t missing_ = 0;
};

}  // namespace memopt::planner
