// Records made up for tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shm/record.h"

namespace memopt::planner::test {

// A record with its bytes, ready to be parsed.
class Record {
 public:
  template <typename Body>
  static Record make(shm::RecordKind kind, const Body& body, std::span<const std::uint64_t> behind = {},
                     std::uint32_t aux = 0) {
    Record record;
    record.bytes_.resize(sizeof(shm::RecordHeader) + sizeof body + behind.size_bytes());
    record.header_.kind = static_cast<std::uint8_t>(kind);
    record.header_.words = static_cast<std::uint16_t>(record.bytes_.size() / 8);
    record.header_.aux = aux;
    std::memcpy(record.bytes_.data() + sizeof(shm::RecordHeader), &body, sizeof body);
    if (!behind.empty()) {
      std::memcpy(record.bytes_.data() + sizeof(shm::RecordHeader) + sizeof body, behind.data(), behind.size_bytes());
    }
    return record;
  }
  static Record malloc(std::uint64_t block, std::uint64_t bytes, std::uint64_t address = 0, std::uint64_t stack = 0) {
    return make(shm::RecordKind::kMalloc, shm::MallocBody{block, bytes, stack, 0x1000 + stack, 0, address});
  }
  static Record free(std::uint64_t block) { return make(shm::RecordKind::kFree, shm::FreeBody{block, 0}); }
  static Record launch(std::uint32_t function, std::vector<std::uint64_t> accesses) {
    shm::LaunchBody body{};
    body.accesses = static_cast<std::uint32_t>(accesses.size());
    return make(shm::RecordKind::kLaunch, body, accesses, function);
  }
  static Record name(shm::RecordKind kind, std::uint64_t id, std::string_view text) {
    std::vector<std::uint64_t> words((text.size() + 7) / 8);
    if (!text.empty()) std::memcpy(words.data(), text.data(), text.size());
    return make(kind, shm::NameBody{id, text.size()}, words);
  }
  static Record stack(std::uint64_t hash, std::vector<std::uint64_t> frames) {
    return make(shm::RecordKind::kStack, shm::StackBody{hash, frames.size()}, frames);
  }

  // Any kind, any contents, any size that is allowed.
  static Record random(std::mt19937_64& random);

  Record& at(std::uint64_t sequence, std::uint64_t ticks) {
    header_.sequence = sequence;
    header_.ticks = ticks;
    return *this;
  }
  Record& flags(std::uint8_t flags) {
    header_.flags = flags;
    return *this;
  }
  shm::RecordView view() {
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return shm::parse_record(bytes_).value();
  }
  const std::vector<std::byte>& bytes() {
    view();
    return bytes_;
  }

 private:
  shm::RecordHeader header_{};
  std::vector<std::byte> bytes_;
};

inline Record Record::random(std::mt19937_64& random) {
  const auto words = [&](std::size_t count) {
    std::vector<std::uint64_t> made(count);
    for (std::uint64_t& word : made) word = random() % 3 == 0 ? random() : random() % 1000;
    return made;
  };
  // Mostly small, at times as large as records may be.
  const std::size_t behind = random() % 50 == 0 ? random() % 8180 : random() % 12;
  switch (random() % 9) {
    case 0:
      return malloc(random() % 100, random() % 100000, random(), random());
    case 1:
      return free(random() % 100);
    case 2:
      return launch(static_cast<std::uint32_t>(random() % 10), words(behind));
    case 3:
      return stack(random() % 20, words(behind));
    case 4:
      return name(
          std::array{shm::RecordKind::kFunction, shm::RecordKind::kModule, shm::RecordKind::kPythonFrame}[random() % 3],
          random() % 20, std::string(random() % (behind * 8 + 1), 'x'));
    case 5: {
      const std::vector<std::uint64_t> bytes = words(behind);
      return make(shm::RecordKind::kParameters, shm::ParametersBody{random(), bytes.size() * 8}, bytes);
    }
    case 6:
      return make(shm::RecordKind::kCopy, shm::CopyBody{random() % 4, random() % 100, random() % 100, random()}, {}, 2);
    case 7: {
      const std::vector<std::uint64_t> frames = words(behind);
      return make(shm::RecordKind::kPythonStack, shm::StackBody{random() % 20, frames.size()}, frames);
    }
    default:
      return make(shm::RecordKind::kClock, shm::ClockBody{random()});
  }
}

}  // namespace memopt::planner::test
