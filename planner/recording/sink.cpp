#include "planner/recording/sink.h"

#include <utility>

namespace memopt::planner {

RecordingSink::RecordingSink(std::unique_ptr<RecordingWriter> writer, std::function<void(const RecordingEnd&)> ended)
    : writer_(std::move(writer)), ended_(std::move(ended)) {}

RecordingSink::~RecordingSink() { closed(); }

void RecordingSink::record(std::uint32_t lane, const shm::RecordView& record) {
  const std::uint64_t sequence = record.header.sequence;
  if (sequence > last_sequence_) {
    missing_ += sequence - last_sequence_ - 1;
    last_sequence_ = sequence;
  }
  writer_->add(lane, record);
}

void RecordingSink::gap() { writer_->add_gap(); }

std::string RecordingSink::note() {
  return writer_->error().empty() ? "recording to a file: nothing is planned" : writer_->error();
}

void RecordingSink::clock(const ClockPair& clock) { writer_->add_clock(clock); }

void RecordingSink::idle() { writer_->flush(); }

void RecordingSink::closed() { end({}); }

void RecordingSink::broken(const std::string& why) { end(why); }

void RecordingSink::end(const std::string& broken) {
  if (!writer_) return;
  RecordingEnd end;
  end.broken = broken;
  if (broken.empty()) {
    end.whole = writer_->finish();
  } else {
    writer_->flush();
  }
  end.records = writer_->records();
  end.lost = writer_->lost();
  end.missing = missing_;
  end.bytes = writer_->bytes();
  writer_.reset();
  if (ended_) ended_(end);
}

}  // namespace memopt::planner
