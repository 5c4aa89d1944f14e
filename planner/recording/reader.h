// Reads a recording, entry by entry, whatever the file contains: memory stays bounded, sizes are checked before
// anything is allocated, and the first thing that is not right ends the reading with a reason. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/daemon/sink.h"
#include "planner/recording/format.h"
#include "planner/recording/info.h"
#include "shm/record.h"

struct ZSTD_DCtx_s;  // of zstd

namespace memopt::planner {

// There is no recording to read: why, for people.
class RecordingError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RecordingEntry {
  recording::EntryKind kind = recording::EntryKind::kGap;
  std::uint32_t lane = 0;  // kRecord
  shm::RecordView record;  // kRecord; valid until the next call
  ClockPair clock;         // kClock
};

// Where and why reading ended before the end mark.
struct RecordingDamage {
  std::uint64_t offset = 0;         // of the block that can't be read
  std::uint64_t bytes = 0;          // from there to the end of the file
  std::uint64_t last_sequence = 0;  // records up to this one were read
  std::string reason;
};
// As a sentence.
std::string to_string(const RecordingDamage& damage);

class RecordingReader {
 public:
  // Reads the header. Throws RecordingError where there is none that is understood.
  explicit RecordingReader(std::unique_ptr<std::istream> file);
  static RecordingReader open(const std::string& path);
  ~RecordingReader();
  RecordingReader(RecordingReader&&) noexcept;
  RecordingReader& operator=(RecordingReader&&) noexcept;

  const RecordingInfo& info() const { return info_; }

  // The next entry; nothing at the end, or where the file can't be read further (damage()).
  std::optional<RecordingEntry> next();

  // After next() gave nothing: empty if the file is whole.
  const std::optional<RecordingDamage>& damage() const { return damage_; }

  std::uint64_t offset() const { return offset_; }  // read so far, up to the last whole block

 private:
  bool next_block();
  bool fail(std::string reason);
  std::uint64_t rest() const;
  std::size_t read(void* to, std::size_t bytes);

  std::unique_ptr<std::istream> file_;
  std::unique_ptr<ZSTD_DCtx_s, std::size_t (*)(ZSTD_DCtx_s*)> decompressor_;
  RecordingInfo info_;
  std::optional<RecordingDamage> damage_;
  std::vector<std::byte> packed_;
  std::vector<std::byte> raw_;
  recording::BlockHeader block_{};
  std::size_t at_ = 0;               // in raw_
  std::uint32_t block_records_ = 0;  // of this block, so far
  std::uint64_t offset_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t last_sequence_ = 0;
  bool ended_ = false;
};

}  // namespace memopt::planner
