// Writes a recording: collects entries, and writes them out as blocks that stand on their own. Whoever is killed, what
// was written up to the last whole block stays readable.
//
// A write that fails ends the recording: it is told once, the file is cut back to its last whole block, and what comes
// later is only counted. The process must not die of SIGXFSZ or SIGPIPE: ignore them. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/daemon/sink.h"
#include "planner/recording/format.h"
#include "planner/recording/info.h"
#include "shm/record.h"

struct ZSTD_CCtx_s;  // of zstd

namespace memopt::planner {

class RecordingWriter {
 public:
  // Most of what a higher level would win: records repeat.
  static constexpr int kFastLevel = 1;

  // Takes the descriptor, which is at the beginning of an empty file, and writes the header there.
  // `complain` gets the reason of a failed write, at most once. It may be empty.
  // `level` is zstd's: higher is smaller and slower.
  RecordingWriter(int fd, const RecordingInfo& info, std::function<void(const std::string& why)> complain,
                  int level = kFastLevel);
  ~RecordingWriter();  // what is buffered is written; without finish() the file counts as cut
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;

  // Entries, in the order in which they are to be read.
  void add(std::uint32_t lane, const shm::RecordView& record);
  void add_gap();
  void add_clock(const ClockPair& clock);

  // Writes out what is buffered. Also done when a block is full, and by add() half a second after the last time.
  void flush();

  // Writes out what is buffered and marks the end. False: the file is not whole.
  bool finish();

  const std::string& error() const { return error_; }  // empty: all well
  std::uint64_t records() const { return records_; }   // added and not lost, so far
  std::uint64_t lost() const { return lost_; }         // added after or by a failed write
  std::uint64_t bytes() const { return bytes_; }       // whole in the file

 private:
  void put(std::uint32_t lane, recording::EntryKind kind, const void* first, std::size_t first_bytes,
           const void* second = nullptr, std::size_t second_bytes = 0);
  void start_block();
  bool write(const void* data, std::size_t bytes);

  int fd_;
  int level_;
  std::function<void(const std::string&)> complain_;
  std::string error_;
  std::vector<std::byte> raw_;
  std::vector<std::byte> packed_;
  std::unique_ptr<ZSTD_CCtx_s, std::size_t (*)(ZSTD_CCtx_s*)> compressor_;
  recording::BlockHeader block_{};
  std::uint64_t records_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t adds_ = 0;
  std::chrono::steady_clock::time_point flushed_;
  bool finished_ = false;
};

}  // namespace memopt::planner
