// What a program is tried with: `--scale NAME=8,16,32` or `NAME=A..B[:STEP]`, NAME standing in its arguments in braces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace memopt::tools {

struct Scale {
  std::string name;
  std::vector<std::string> values;  // as given; empty for a range
  std::uint64_t from = 0, to = 0, step = 1;

  bool is_range() const { return values.empty(); }
  // Of a range: how many values there are.
  std::uint64_t count() const { return (to - from) / step + 1; }
  std::uint64_t value(std::uint64_t index) const { return from + index * step; }
};

// Throws std::invalid_argument that says what was expected.
Scale parse_scale(const std::string& text);

// `command` with `value` in the place of "{NAME}", wherever that stands in an argument. Throws std::invalid_argument
// where it stands nowhere.
std::vector<std::string> scaled_command(const std::vector<std::string>& command, const std::string& name,
                                        const std::string& value);

// The last index below `count` that fits, by bisection: as if all smaller ones fitted, too. Nothing where the first
// does not.
std::optional<std::uint64_t> largest_that_fits(std::uint64_t count, const std::function<bool(std::uint64_t)>& fits);

}  // namespace memopt::tools
