#include "planner/recording/trace.h"

#include <cinttypes>
#include <cstdio>
#include <ostream>
#include <unordered_map>
#include <vector>

namespace memopt::planner {
namespace {

using shm::RecordKind;
using shm::RecordView;

constexpr std::size_t kMostBlocks = 8'000'000;

struct Block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  bool written = false;
};

class TraceWriter {
 public:
  TraceWriter(const ClockLine& clock, std::ostream& to) : clock_(clock), to_(to) {}

  void add(const RecordView& record) {
    time_ = clock_.nanoseconds(record.header.ticks);
    switch (record.kind()) {
      case RecordKind::kMalloc: {
        const auto body = record.as<shm::MallocBody>();
        if (blocks_.size() >= kMostBlocks) {
          ++counts_.unknown_blocks;
          return;
        }
        blocks_[body.block] = {body.address, body.bytes, false};
        return line("Malloc", blocks_[body.block]);
      }
      case RecordKind::kFree: {
        const auto block = blocks_.find(record.as<shm::FreeBody>().block);
        if (block == blocks_.end()) {
          ++counts_.unknown_blocks;
          return;
        }
        line("Free", block->second);
        blocks_.erase(block);
        return;
      }
      case RecordKind::kLaunch:
        return launch(record);
      case RecordKind::kCopy:
        read(record.as<shm::CopyBody>().from);
        return write(record.as<shm::CopyBody>().to);
      case RecordKind::kMemset:
        return write(record.as<shm::MemsetBody>().block);
      default:
        return;
    }
  }

  const TraceCounts& counts() const { return counts_; }

 private:
  // All reads before all writes: what a launch reads is what was there before it.
  void launch(const RecordView& record) {
    if ((record.header.flags & shm::kBlindLaunch) != 0) ++counts_.blind_launches;
    const std::uint32_t accesses = record.as<shm::LaunchBody>().accesses;
    const auto access = [&](std::uint32_t i) { return record.word_behind<shm::LaunchBody>(i); };
    for (std::uint32_t i = 0; i < accesses; ++i) {
      if (!only(access(i), shm::kAccessWrites)) read(access(i) & shm::kAccessBlock);
    }
    for (std::uint32_t i = 0; i < accesses; ++i) {
      if (!only(access(i), shm::kAccessReads)) write(access(i) & shm::kAccessBlock);
    }
  }
  static bool only(std::uint64_t access, std::uint64_t direction) {
    return (access & (shm::kAccessReads | shm::kAccessWrites)) == direction;
  }

  Block* find(std::uint64_t number) {
    if (number == 0) return nullptr;
    const auto block = blocks_.find(number);
    if (block != blocks_.end()) return &block->second;
    ++counts_.unknown_blocks;
    return nullptr;
  }
  // Bytes that nobody has written are not read by a program that is right: such an access only writes.
  void read(std::uint64_t number) {
    if (const Block* block = find(number); block != nullptr && block->written) line("Read", *block);
  }
  void write(std::uint64_t number) {
    if (Block* block = find(number)) {
      block->written = true;
      line("Mutable", *block);
    }
  }

  void line(const char* operation, const Block& block) {
    char text[96];
    const int length = std::snprintf(text, sizeof text, "%s 0x%" PRIx64 " %" PRIu64 " %" PRIu64 "\n", operation,
                                     block.address, block.bytes, time_);
    to_.write(text, length);
    ++counts_.lines;
  }

  const ClockLine& clock_;
  std::ostream& to_;
  std::uint64_t time_ = 0;
  std::unordered_map<std::uint64_t, Block> blocks_;
  TraceCounts counts_;
};

}  // namespace

TraceCounts write_trace(RecordingReader& reader, const ClockLine& clock, std::ostream& to) {
  TraceWriter writer(clock, to);
  while (const auto entry = reader.next()) {
    if (entry->kind == recording::EntryKind::kRecord) writer.add(entry->record);
  }
  return writer.counts();
}

}  // namespace memopt::planner
