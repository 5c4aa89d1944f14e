#include "planner/recording/reader.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <istream>
#include <new>
#include <span>
#include <utility>

namespace memopt::planner {
namespace {

using recording::BlockHeader;
using recording::BlockKind;
using recording::EntryHeader;
using recording::EntryKind;

std::string text(std::uint64_t number) { return std::to_string(number); }

}  // namespace

std::string to_string(const RecordingDamage& damage) {
  std::string all = damage.reason + " (at byte " + text(damage.offset);
  if (damage.bytes != 0) all += ", " + text(damage.bytes) + " bytes can't be read";
  all += "; ";
  return all + (damage.last_sequence == 0 ? "no record was read)"
                                          : "records up to number " + text(damage.last_sequence) + " are there)");
}

RecordingReader RecordingReader::open(const std::string& path) {
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file) throw RecordingError(std::strerror(errno));
  return RecordingReader(std::move(file));
}

RecordingReader::RecordingReader(std::unique_ptr<std::istream> file)
    : file_(std::move(file)), decompressor_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
  if (!decompressor_) throw std::bad_alloc();
  recording::FileHeader header{};
  // What a folder is opened as reads nothing, with an error.
  errno = 0;
  const std::size_t got = read(&header, sizeof header);
  if (got == 0 && file_->bad()) throw RecordingError(errno != 0 ? std::strerror(errno) : "it can't be read");
  if (got == 0) throw RecordingError("it is empty");
  if (got < sizeof header.magic || header.magic != recording::kFileMagic) {
    throw RecordingError("it is no recording of memopt");
  }
  if (got < sizeof header) throw RecordingError("it is cut within its header");
  if (header.info_bytes > recording::kMaxInfoBytes) {
    throw RecordingError("its header is damaged (" + text(header.info_bytes) + " bytes of description)");
  }
  std::string json((std::size_t{header.info_bytes} + 7) / 8 * 8, '\0');
  const bool whole = read(json.data(), json.size()) == json.size();
  json.resize(header.info_bytes);
  const bool good = whole && XXH64(json.data(), json.size(), 0) == header.info_hash && from_json(json, info_);
  // A newer format may have another header; what it needs comes first.
  if (header.format != recording::kFormat || header.wire_version != shm::kWireVersion) {
    std::string why = "it has format " + text(header.format) + " with records of version " + text(header.wire_version) +
                      "; this memoptctl reads format " + text(recording::kFormat) + " with records of version " +
                      text(shm::kWireVersion);
    why += good && !info_.version.empty() ? ": use the memoptctl of memopt " + info_.version + ", which wrote it"
                                          : ": use the memoptctl that wrote it";
    throw RecordingError(why);
  }
  if (!whole) throw RecordingError("it is cut within its header");
  if (!good) throw RecordingError("its header is damaged");
  offset_ = sizeof header + (std::uint64_t{header.info_bytes} + 7) / 8 * 8;
}

RecordingReader::~RecordingReader() = default;
RecordingReader::RecordingReader(RecordingReader&&) noexcept = default;
RecordingReader& RecordingReader::operator=(RecordingReader&&) noexcept = default;

std::size_t RecordingReader::read(void* to, std::size_t bytes) {
  file_->read(static_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return static_cast<std::size_t>(file_->gcount());
}

// Bytes from offset_ to the end of the file; 0 where that can't be asked (a pipe).
std::uint64_t RecordingReader::rest() const {
  file_->clear();
  file_->seekg(0, std::ios::end);
  const std::streamoff size = file_->tellg();
  return size > 0 && static_cast<std::uint64_t>(size) > offset_ ? static_cast<std::uint64_t>(size) - offset_ : 0;
}

bool RecordingReader::fail(std::string reason) {
  damage_ = RecordingDamage{offset_, rest(), last_sequence_, std::move(reason)};
  ended_ = true;
  at_ = 0;
  raw_.clear();
  return false;
}

bool RecordingReader::next_block() {
  std::uint64_t size = 0;
  if (block_.magic != 0) {
    if (block_records_ != block_.records) return fail("a block has other records than its header says");
    size = sizeof block_ + block_.packed_bytes;
  }
  offset_ += size;
  raw_.clear();
  at_ = 0;
  block_records_ = 0;
  block_ = BlockHeader{};
  const std::size_t got = read(&block_, sizeof block_);
  if (got == 0) {
    return fail("its end is missing: the recorder or the machine was stopped, or the disk was full");
  }
  if (got < sizeof block_) return fail("it is cut within a block");
  if (block_.magic != recording::kBlockMagic) return fail("a block does not begin as one");
  if (XXH64(&block_, offsetof(BlockHeader, header_hash), 0) != block_.header_hash) {
    return fail("a block's header is damaged");
  }
  if (block_.raw_bytes > recording::kMaxBlockBytes || block_.packed_bytes > recording::kMaxPackedBytes) {
    return fail("a block is larger than any may be");
  }
  switch (static_cast<BlockKind>(block_.kind)) {
    case BlockKind::kEnd:
      if (block_.raw_bytes != 0 || block_.packed_bytes != 0) return fail("its end mark is damaged");
      if (block_.first_sequence != records_) return fail("it has other records than its end mark says");
      offset_ += sizeof block_;
      if (file_->peek() != std::istream::traits_type::eof()) return fail("something follows its end mark");
      ended_ = true;
      return false;
    case BlockKind::kEntries:
      break;
    default:
      return fail("a block is of kind " + text(block_.kind) + ", which this memoptctl does not know");
  }
  packed_.resize(block_.packed_bytes);
  if (read(packed_.data(), packed_.size()) != packed_.size()) return fail("it is cut within a block");
  if (XXH64(packed_.data(), packed_.size(), 0) != block_.payload_hash) return fail("a block is damaged");
  // What zstd's own header says of the size is not believed: the room is ours, and more does not go in.
  raw_.resize(block_.raw_bytes);
  const std::size_t unpacked =
      ZSTD_decompressDCtx(decompressor_.get(), raw_.data(), raw_.size(), packed_.data(), packed_.size());
  if (ZSTD_isError(unpacked) != 0) {
    return fail(std::string("a block can't be decompressed: ") + ZSTD_getErrorName(unpacked));
  }
  if (unpacked != raw_.size()) return fail("a block has another size than its header says");
  return true;
}

std::optional<RecordingEntry> RecordingReader::next() {
  while (!ended_ && at_ == raw_.size()) next_block();
  if (ended_) return std::nullopt;

  const std::span<const std::byte> left = std::span<const std::byte>(raw_).subspan(at_);
  EntryHeader header{};
  const auto damaged = [&](const char* reason) {
    fail(reason);
    return std::nullopt;
  };
  if (left.size() < sizeof header) return damaged("a block ends within an entry");
  std::memcpy(&header, left.data(), sizeof header);
  const std::span<const std::byte> behind = left.subspan(sizeof header);
  RecordingEntry entry;
  entry.kind = static_cast<EntryKind>(header.kind);
  switch (entry.kind) {
    case EntryKind::kRecord: {
      const std::optional<shm::RecordView> record = shm::parse_record(behind);
      if (!record || record->kind() == shm::RecordKind::kPad)
        return damaged("a block holds something that is no record");
      entry.lane = header.lane;
      entry.record = *record;
      at_ += sizeof header + std::size_t{record->header.words} * 8;
      ++block_records_;
      ++records_;
      last_sequence_ = record->header.sequence;
      return entry;
    }
    case EntryKind::kGap:
      at_ += sizeof header;
      return entry;
    case EntryKind::kClock:
      if (behind.size() < sizeof entry.clock) return damaged("a block ends within an entry");
      std::memcpy(&entry.clock, behind.data(), sizeof entry.clock);
      at_ += sizeof header + sizeof entry.clock;
      return entry;
  }
  return damaged("a block holds an entry of a kind that this memoptctl does not know");
}

}  // namespace memopt::planner
