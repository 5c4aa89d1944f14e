#include "planner/recording/writer.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace memopt::planner {
namespace {

using recording::BlockHeader;
using recording::BlockKind;
using recording::EntryHeader;
using recording::EntryKind;

constexpr std::chrono::milliseconds kFlushInterval{500};
// The clock is read once in so many records: it costs as much as one of them.
constexpr std::uint32_t kAddsPerLook = 64;

std::uint64_t header_hash(const BlockHeader& header) { return XXH64(&header, offsetof(BlockHeader, header_hash), 0); }

}  // namespace

RecordingWriter::RecordingWriter(int fd, const RecordingInfo& info,
                                 std::function<void(const std::string& why)> complain, int level)
    : fd_(fd), level_(level), complain_(std::move(complain)), compressor_(ZSTD_createCCtx(), ZSTD_freeCCtx) {
  if (!compressor_) {
    ::close(fd_);
    throw std::bad_alloc();
  }
  raw_.reserve(recording::kMaxBlockBytes);
  packed_.resize(sizeof(BlockHeader) + ZSTD_compressBound(recording::kMaxBlockBytes));
  static_assert(ZSTD_COMPRESSBOUND(recording::kMaxBlockBytes) <= recording::kMaxPackedBytes);

  std::string json = to_json(info);
  if (json.size() > recording::kMaxInfoBytes) {
    // Only the arguments have no bound of their own.
    RecordingInfo shorter = info;
    shorter.arguments.resize(1);
    if (shorter.arguments[0].size() > 4096) shorter.arguments[0].resize(4096);
    json = to_json(shorter);
  }
  recording::FileHeader header{};
  header.magic = recording::kFileMagic;
  header.format = recording::kFormat;
  header.wire_version = shm::kWireVersion;
  header.info_bytes = static_cast<std::uint32_t>(json.size());
  header.info_hash = XXH64(json.data(), json.size(), 0);
  json.resize((json.size() + 7) / 8 * 8);
  json.insert(0, reinterpret_cast<const char*>(&header), sizeof header);
  write(json.data(), json.size());
  start_block();
}

RecordingWriter::~RecordingWriter() {
  flush();
  ::close(fd_);
}

void RecordingWriter::start_block() {
  raw_.clear();
  block_ = BlockHeader{};
  block_.magic = recording::kBlockMagic;
  block_.kind = static_cast<std::uint32_t>(BlockKind::kEntries);
  flushed_ = std::chrono::steady_clock::now();
}

void RecordingWriter::put(std::uint32_t lane, EntryKind kind, const void* first, std::size_t first_bytes,
                          const void* second, std::size_t second_bytes) {
  const EntryHeader header{lane, static_cast<std::uint32_t>(kind)};
  std::size_t at = raw_.size();
  raw_.resize(at + sizeof header + first_bytes + second_bytes);
  const auto append = [&](const void* data, std::size_t bytes) {
    if (bytes != 0) std::memcpy(raw_.data() + at, data, bytes);
    at += bytes;
  };
  append(&header, sizeof header);
  append(first, first_bytes);
  append(second, second_bytes);
  if (raw_.size() >= recording::kBlockBytes) {
    flush();
  } else if (++adds_ % kAddsPerLook == 0 && std::chrono::steady_clock::now() - flushed_ >= kFlushInterval) {
    flush();
  }
}

void RecordingWriter::add(std::uint32_t lane, const shm::RecordView& record) {
  if (!error_.empty()) {
    ++lost_;
    return;
  }
  ++records_;
  ++block_.records;
  if (block_.first_sequence == 0) block_.first_sequence = record.header.sequence;
  block_.last_sequence = record.header.sequence;
  put(lane, EntryKind::kRecord, &record.header, sizeof record.header, record.body.data(), record.body.size());
}

void RecordingWriter::add_gap() {
  if (error_.empty()) put(0, EntryKind::kGap, nullptr, 0);
}

void RecordingWriter::add_clock(const ClockPair& clock) {
  if (error_.empty()) put(0, EntryKind::kClock, &clock, sizeof clock);
}

void RecordingWriter::flush() {
  flushed_ = std::chrono::steady_clock::now();
  if (raw_.empty() || !error_.empty()) return;
  const std::size_t packed = ZSTD_compressCCtx(compressor_.get(), packed_.data() + sizeof(BlockHeader),
                                               packed_.size() - sizeof(BlockHeader), raw_.data(), raw_.size(), level_);
  if (ZSTD_isError(packed) != 0) {
    // The room suffices by zstd's own word: this is a shortage of memory.
    error_ = std::string("the recording could not be compressed: ") + ZSTD_getErrorName(packed);
    if (complain_) complain_(error_);
  } else {
    block_.raw_bytes = static_cast<std::uint32_t>(raw_.size());
    block_.packed_bytes = static_cast<std::uint32_t>(packed);
    block_.payload_hash = XXH64(packed_.data() + sizeof(BlockHeader), packed, 0);
    block_.header_hash = header_hash(block_);
    std::memcpy(packed_.data(), &block_, sizeof block_);
    write(packed_.data(), sizeof block_ + packed);
  }
  if (!error_.empty()) {
    records_ -= block_.records;
    lost_ += block_.records;
  }
  start_block();
}

bool RecordingWriter::finish() {
  flush();
  if (error_.empty() && !finished_) {
    BlockHeader end{};
    end.magic = recording::kBlockMagic;
    end.kind = static_cast<std::uint32_t>(BlockKind::kEnd);
    end.first_sequence = records_;
    end.payload_hash = XXH64(nullptr, 0, 0);
    end.header_hash = header_hash(end);
    finished_ = write(&end, sizeof end);
  }
  return error_.empty() && finished_;
}

bool RecordingWriter::write(const void* data, std::size_t bytes) {
  if (!error_.empty()) return false;
  const auto* next = static_cast<const char*>(data);
  for (std::size_t left = bytes; left != 0;) {
    const ssize_t done = ::write(fd_, next, left);
    if (done > 0) {
      next += done;
      left -= static_cast<std::size_t>(done);
      continue;
    }
    if (done < 0 && errno == EINTR) continue;
    error_ = std::string("the recording ends here, it can't be written: ") + std::strerror(done < 0 ? errno : ENOSPC);
    // A pipe can't be cut back: its reader will find half a block.
    if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) error_ += " (and its last block is cut)";
    if (complain_) complain_(error_);
    return false;
  }
  bytes_ += bytes;
  return true;
}

}  // namespace memopt::planner
