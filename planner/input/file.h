// What a person named on a line: a file, a device, a pipe, or standard input ("-"). It is opened once, and its first
// bytes say what it is; then it is read from its beginning, as often as it takes. What can't be read twice is read
// once, and what has been read of it is kept.
//
// gzip's and zstd's files are unpacked, by content, not by name; a byte order mark (UTF-8) in front is left out. One
// thread.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "planner/input/unpacking.h"

namespace memopt::input {

class File {
 public:
  // Throws InputError: it can't be opened, is a folder, or its first bytes can't be read or unpacked.
  explicit File(const std::string& path);
  // A file that lies in memory.
  static File holding(std::string bytes, const std::string& name);
  ~File();
  File(File&&) noexcept;
  File& operator=(File&&) noexcept;

  const std::string& path() const;  // as it was given
  const std::string& name() const;  // the same for people

  // The first bytes, some thousand; all of them where there are no more.
  std::string_view head() const;
  // Whether the first of them that is no blank is this one.
  bool begins_with(char letter) const;

  // From the beginning, any number of times. Of what can't be read twice, kMostKept bytes are kept at most: beyond
  // that, reading throws InputError. The stream throws it, too, not only sets a flag.
  std::unique_ptr<std::istream> stream();

  // From the beginning, for the last time: nothing is kept.
  std::unique_ptr<Bytes> take();

  static constexpr std::size_t kMostKept = std::size_t{512} << 20;

 private:
  struct State;
  explicit File(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace memopt::input
