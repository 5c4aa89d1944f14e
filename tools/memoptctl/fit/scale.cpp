#include "tools/memoptctl/fit/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

// Each is a run of the program.
constexpr std::size_t kMostValues = 100;

[[noreturn]] void fail(const std::string& text) {
  throw std::invalid_argument(
      fmt::format("--scale: expected NAME=V,V,... with at most {} values, or NAME=A..B or NAME=A..B:STEP with whole "
                  "numbers, A below B, "
                  "not {}",
                  kMostValues, printable(text)));
}

std::optional<std::uint64_t> whole(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number <= std::numeric_limits<std::uint64_t>::max() / 2 ? std::optional(number) : std::nullopt;
}

bool is_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '-';
  });
}

}  // namespace

Scale parse_scale(const std::string& text) {
  Scale scale;
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) fail(text);
  scale.name = text.substr(0, equals);
  if (!is_name(scale.name)) fail(text);
  std::string_view rest = std::string_view(text).substr(equals + 1);
  if (const std::size_t dots = rest.find(".."); dots != std::string_view::npos) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon < dots + 2) fail(text);
    const auto from = whole(rest.substr(0, dots)), to = whole(rest.substr(dots + 2, colon - dots - 2));
    const auto step = colon == rest.size() ? std::optional<std::uint64_t>(1) : whole(rest.substr(colon + 1));
    if (!from || !to || !step || *step == 0 || *from >= *to) fail(text);
    scale.from = *from;
    scale.to = *to;
    scale.step = *step;
    return scale;
  }
  for (;;) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (comma == 0 || scale.values.size() == kMostValues) fail(text);
    scale.values.emplace_back(rest.substr(0, comma));
    if (comma == rest.size()) return scale;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<std::string> scaled_command(const std::vector<std::string>& command, const std::string& name,
                                        const std::string& value) {
  const std::string place = "{" + name + "}";
  std::vector<std::string> result = command;
  bool found = false;
  for (std::string& argument : result) {
    for (std::size_t at = 0; (at = argument.find(place, at)) != std::string::npos; at += value.size()) {
      argument.replace(at, place.size(), value);
      found = true;
    }
  }
  if (!found) {
    throw std::invalid_argument(
        fmt::format("--scale: expected {0} in the command, for example --batch-size {0}", place));
  }
  return result;
}

std::optional<std::uint64_t> largest_that_fits(std::uint64_t count, const std::function<bool(std::uint64_t)>& fits) {
  if (count == 0 || !fits(0)) return std::nullopt;
  // The last one is what is hoped for.
  if (count == 1 || fits(count - 1)) return count - 1;
  std::uint64_t good = 0, bad = count - 1;
  while (bad > good + 1) {
    const std::uint64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace memopt::tools
