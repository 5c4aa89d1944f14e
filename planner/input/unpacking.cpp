#include "planner/input/unpacking.h"

#include <zlib.h>
#include <zstd.h>

#include <array>
#include <new>
#include <utility>

namespace memopt::input {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 16;

// What both have: packed bytes ahead.
class Unpacker : public Bytes {
 public:
  Unpacker(std::unique_ptr<Bytes> packed, const std::string& name) : packed_(std::move(packed)), name_(name) {}

 protected:
  // More of it; false at its end.
  bool refill() {
    at_ = 0;
    end_ = packed_->read(ahead_.data(), ahead_.size());
    return end_ != 0;
  }
  [[noreturn]] void fail(const std::string& why) const { throw InputError(name_ + ": cannot be read: " + why); }
  [[noreturn]] void fail_cut() const { fail("ends within its packed data"); }

  std::array<char, kStep> ahead_;
  std::size_t at_ = 0, end_ = 0;

 private:
  std::unique_ptr<Bytes> packed_;
  std::string name_;
};

class GzipBytes : public Unpacker {
 public:
  GzipBytes(std::unique_ptr<Bytes> packed, const std::string& name) : Unpacker(std::move(packed), name) {
    constexpr int kWithGzipHeader = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kWithGzipHeader) != Z_OK) throw std::bad_alloc();
  }
  ~GzipBytes() override { inflateEnd(&stream_); }

  std::size_t read(char* to, std::size_t size) override {
    for (;;) {
      if (at_ == end_ && !refill()) {
        if (!between_) fail_cut();
        return 0;
      }
      if (between_) {
        inflateReset(&stream_);
        between_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(ahead_.data() + at_);
      stream_.avail_in = static_cast<uInt>(end_ - at_);
      const auto room = static_cast<uInt>(std::min<std::size_t>(size, kMostAtOnce));
      stream_.next_out = reinterpret_cast<Bytef*>(to);
      stream_.avail_out = room;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      at_ = end_ - stream_.avail_in;
      if (result == Z_STREAM_END) {
        between_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(std::string("its packed data is damaged") + (stream_.msg ? std::string(": ") + stream_.msg : ""));
      }
      if (const std::size_t got = room - stream_.avail_out; got != 0) return got;
    }
  }

 private:
  static constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

  z_stream stream_{};
  bool between_ = false;  // one packed file has ended, and another may follow
};

class ZstdBytes : public Unpacker {
 public:
  ZstdBytes(std::unique_ptr<Bytes> packed, const std::string& name)
      : Unpacker(std::move(packed), name), stream_(ZSTD_createDStream(), ZSTD_freeDStream) {
    if (!stream_) throw std::bad_alloc();
  }

  std::size_t read(char* to, std::size_t size) override {
    for (;;) {
      // What is unpacked already may wait for room: it is asked for at the end of the file, too.
      const bool ended = at_ == end_ && !refill();
      ZSTD_inBuffer in{ahead_.data(), end_, at_};
      ZSTD_outBuffer out{to, size, 0};
      const std::size_t result = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(result) != 0) fail(std::string("its packed data is damaged: ") + ZSTD_getErrorName(result));
      at_ = in.pos;
      if (!ended) between_ = result == 0;
      if (out.pos != 0) return out.pos;
      if (!ended) continue;
      if (!between_) fail_cut();
      return 0;
    }
  }

 private:
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  bool between_ = false;  // one packed file has ended, and another may follow
};

}  // namespace

Packing packing_of(std::string_view first_bytes) {
  using namespace std::string_view_literals;
  if (first_bytes.starts_with("\x1f\x8b\x08"sv)) return Packing::kGzip;
  if (first_bytes.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::kZstd;
  return Packing::kNone;
}

std::unique_ptr<Bytes> unpack(Packing packing, std::unique_ptr<Bytes> packed, const std::string& name) {
  switch (packing) {
    case Packing::kGzip:
      return std::make_unique<GzipBytes>(std::move(packed), name);
    case Packing::kZstd:
      return std::make_unique<ZstdBytes>(std::move(packed), name);
    case Packing::kNone:
      break;
  }
  return packed;
}

}  // namespace memopt::input
