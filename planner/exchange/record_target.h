// Records of a program that another tool saw, into a recording. Times are nanoseconds: the recording has no reading of
// a clock, so that a tick is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "planner/recording/writer.h"
#include "shm/record.h"

namespace memopt::exchange {

// What a record has beside its body.
struct RecordFrame {
  std::uint64_t number = 0;  // in the order over all threads; 0: the next one
  std::uint64_t time = 0;
  std::uint32_t thread = 0;
  std::uint8_t flags = 0;
  std::uint32_t aux = 0;
};

class RecordTarget {
 public:
  explicit RecordTarget(planner::RecordingWriter& writer) : writer_(writer) {}

  // `behind`: what follows the fixed body, a multiple of 8 bytes. False: it is larger than a record may be.
  template <typename Body>
  bool put(shm::RecordKind kind, const RecordFrame& frame, const Body& body, std::span<const std::byte> behind = {}) {
    const std::size_t size = sizeof(shm::RecordHeader) + sizeof(Body) + behind.size();
    if (size > shm::kMaxRecordBytes) return false;
    bytes_.resize(sizeof(Body) + behind.size());
    std::memcpy(bytes_.data(), &body, sizeof(Body));
    if (!behind.empty()) std::memcpy(bytes_.data() + sizeof(Body), behind.data(), behind.size());
    number_ = frame.number != 0 ? frame.number : number_ + 1;
    shm::RecordView view;
    view.header = {static_cast<std::uint8_t>(kind),
                   frame.flags,
                   static_cast<std::uint16_t>(size / 8),
                   frame.aux,
                   number_,
                   frame.time};
    view.body = bytes_;
    writer_.add(frame.thread, view);
    return true;
  }

  template <typename Body>
  bool put(shm::RecordKind kind, const RecordFrame& frame, const Body& body, std::span<const std::uint64_t> words) {
    return put(kind, frame, body, std::as_bytes(words));
  }

  // A function's or a file's name.
  bool name(shm::RecordKind kind, const RecordFrame& frame, std::uint64_t id, std::string_view text) {
    return with_text(kind, frame, shm::NameBody{id, text.size()}, text);
  }
  template <typename Body>
  bool with_text(shm::RecordKind kind, const RecordFrame& frame, const Body& body, std::string_view text) {
    if (text.size() > shm::kMaxRecordBytes) return false;
    std::vector<std::uint64_t> words((text.size() + 7) / 8);
    if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
    return put(kind, frame, body, std::span<const std::uint64_t>(words));
  }

  void gap() { writer_.add_gap(); }

  std::uint64_t number() const { return number_; }  // of the last record

 private:
  planner::RecordingWriter& writer_;
  std::vector<std::byte> bytes_;
  std::uint64_t number_ = 0;
};

}  // namespace memopt::exchange
