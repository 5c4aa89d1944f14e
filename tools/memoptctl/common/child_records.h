// What is computed in a child process, so that it can be ended at any time: it may take minutes, or be a library's that
// looks at a clock only now and then.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace memopt::tools {

struct ChildOutcome {
  bool answered = false;  // there is a record, the last one that was written
  bool in_time = true;    // the child has ended by itself
  std::string failure;    // why there is no child; empty if there was one
};

// At most so many bytes are written as a whole, and fit a pipe.
inline constexpr std::size_t kMostRecordBytes = 512;

// `run` is called in the child, with a function that takes a record of that size; it must not return to the caller by
// an exception. The child is killed after `seconds`, and by the caller's end; an interrupt ends it, too. Its output is
// thrown away. To be called by programs without other threads.
using WriteRecord = std::function<void(std::span<const std::byte>)>;
ChildOutcome last_record_of_child(std::span<std::byte> record, double seconds,
                                  const std::function<void(const WriteRecord&)>& run);

}  // namespace memopt::tools
