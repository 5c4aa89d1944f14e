#include "planner/input/text.h"

#include <algorithm>
#include <cstring>

namespace memopt::input {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 16;

std::string size_text(std::uint64_t bytes) {
  return bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes";
}

[[noreturn]] void fail_at(const std::string& name, std::uint64_t line, const std::string& expected,
                          const std::string& found) {
  throw TextError(name + ": line " + std::to_string(line) + ": expected " + expected + ", found " + found);
}

[[noreturn]] void fail_too_long(const std::string& name, std::uint64_t line, const TextBounds& bounds) {
  fail_at(name, line, std::string(bounds.expected) + " in lines of at most " + size_text(bounds.line_bytes),
          "a longer one");
}

[[noreturn]] void fail_nul(const std::string& name, std::uint64_t line, const TextBounds& bounds) {
  fail_at(name, line, std::string(bounds.expected), "a NUL byte, which is in no text");
}

[[noreturn]] void fail_too_many(const std::string& name, std::uint64_t line, const TextBounds& bounds) {
  fail_at(name, line, std::string(bounds.expected) + " of at most " + std::to_string(bounds.lines) + " lines", "more");
}

[[noreturn]] void fail_too_large(const std::string& name, std::uint64_t line, const TextBounds& bounds) {
  fail_at(name, line, std::string(bounds.expected) + " of at most " + size_text(bounds.bytes), "more");
}

}  // namespace

Lines::Lines(File& file, const TextBounds& bounds) : bytes_(file.take()), bounds_(bounds), name_(file.name()) {}

void Lines::fail(const std::string& expected, const std::string& found) const {
  fail_at(name_, number_, expected, found);
}

bool Lines::refill() {
  if (ended_) return false;
  if (begin_ != 0) {
    std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<std::ptrdiff_t>(end_), buffer_.begin());
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ > bounds_.line_bytes) fail_too_long(name_, number_ + 1, bounds_);
  if (buffer_.size() < end_ + kStep) buffer_.resize(end_ + kStep);
  const std::size_t got = bytes_->read(buffer_.data() + end_, buffer_.size() - end_);
  ended_ = got == 0;
  all_ += got;
  if (all_ > bounds_.bytes) fail_too_large(name_, number_ + 1, bounds_);
  if (got != 0 && std::memchr(buffer_.data() + end_, 0, got) != nullptr) {
    const char* const from = buffer_.data();
    const auto* const nul = static_cast<const char*>(std::memchr(from + end_, 0, got));
    fail_nul(name_, number_ + 1 + static_cast<std::uint64_t>(std::count(from, nul, '\n')), bounds_);
  }
  end_ += got;
  return got != 0;
}

bool Lines::next(std::string_view& line) {
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const std::size_t ahead = end_ - begin_;
    const void* const found = ahead > searched_ ? std::memchr(from + searched_, '\n', ahead - searched_) : nullptr;
    if (found == nullptr) {
      searched_ = ahead;
      if (refill()) continue;
      if (ahead == 0) return false;
    }
    const std::size_t length =
        found == nullptr ? ahead : static_cast<std::size_t>(static_cast<const char*>(found) - from);
    if (length > bounds_.line_bytes) fail_too_long(name_, number_ + 1, bounds_);
    ++number_;
    if (number_ > bounds_.lines) fail_too_many(name_, number_, bounds_);
    line = {buffer_.data() + begin_, length};
    begin_ += length + (found == nullptr ? 0 : 1);
    searched_ = 0;
    return true;
  }
}

std::string read_text(File& file, const TextBounds& bounds) {
  const std::unique_ptr<Bytes> bytes = file.take();
  std::string text;
  std::uint64_t lines = 0;     // that have ended
  std::size_t line_begin = 0;  // of the one that has not
  for (;;) {
    const std::size_t before = text.size();
    if (text.capacity() < before + kStep) text.reserve(std::max(2 * text.capacity(), 4 * kStep));
    text.resize(before + kStep);
    const std::size_t got = bytes->read(text.data() + before, kStep);
    text.resize(before + got);
    if (got == 0) return text;
    for (std::size_t at = before; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (std::memchr(text.data() + at, 0, end - at) != nullptr) fail_nul(file.name(), lines + 1, bounds);
      if (end - line_begin > bounds.line_bytes) fail_too_long(file.name(), lines + 1, bounds);
      if (end < text.size()) {
        ++lines;
        line_begin = end + 1;
      }
      at = end + 1;
    }
    if (lines > bounds.lines || (lines == bounds.lines && line_begin < text.size())) {
      fail_too_many(file.name(), bounds.lines + 1, bounds);
    }
    if (text.size() > bounds.bytes) fail_too_large(file.name(), lines + 1, bounds);
  }
}

}  // namespace memopt::input
