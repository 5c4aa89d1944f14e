// `memoptctl show`: what a recording holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace memopt::tools {

// From FROM to TO, both included.
struct SequenceRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};
// "10:20", "10:" or ":20". Nothing for anything else.
std::optional<SequenceRange> parse_range(const std::string& text);

struct ShowOptions {
  std::string file;
  bool json = false;
  std::size_t stacks = 5;                   // largest blocks to show
  std::optional<SequenceRange> operations;  // list these instead of the summary
  std::string trace;                        // write a plain trace there instead
};

// 0; 1 if the file can't be read, or not to its end: what can be read is shown, and the reason said on standard error.
int show(const ShowOptions& options);

}  // namespace memopt::tools
