// Text out of a file: line by line, or as a whole. Bounds are such that no real input comes near; what has no end, or
// is no text, is refused where that shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/input/file.h"

namespace memopt::input {

// The content of an input is not what it should be: "NAME: line 3: expected ..., found ...".
class TextError : public InputError {
 public:
  using InputError::InputError;
};

struct TextBounds {
  std::string_view expected;  // what the text should be, for messages: "CSV"
  std::size_t line_bytes = std::size_t{1} << 20;
  std::uint64_t lines = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();
};

// A NUL byte is in no text. Throws TextError.
class Lines {
 public:
  // Takes the file.
  Lines(File& file, const TextBounds& bounds);

  // The next line, without its LF; false at the end. It is valid until the next call.
  bool next(std::string_view& line);

  std::uint64_t number() const { return number_; }  // of that line, from 1
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;

 private:
  bool refill();

  std::unique_ptr<Bytes> bytes_;
  TextBounds bounds_;
  std::string name_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is ahead
  std::size_t searched_ = 0;         // from begin_: there is no LF in it
  std::uint64_t number_ = 0;
  std::uint64_t all_ = 0;
  bool ended_ = false;
};

// The whole text. Takes the file. Throws TextError as Lines does.
std::string read_text(File& file, const TextBounds& bounds);

}  // namespace memopt::input
