#include "tools/memoptctl/main/number_option.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "shm/durations.h"
#include "shm/sizes.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/quantity.h"

namespace memopt::tools {
namespace {

template <typename Number>
std::optional<Number> number(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <typename Number, typename Parse>
CLI::Option* accept(CLI::Option* option, Parse parse, Number least, Number most, const std::string& expected,
                    const char* type) {
  option->description(fmt::format("{}; {}", option->get_description(), expected));
  return option->type_name(type)->check(CLI::Validator(
      [=](std::string& text) {
        const std::optional<Number> value = parse(text);
        return value && *value >= least && *value <= most
                   ? std::string()
                   : fmt::format("expected {}, not '{}'", expected, printable(text));
      },
      ""));
}

}  // namespace

std::optional<std::uint64_t> whole_number(std::string_view text) { return number<std::uint64_t>(text); }

std::optional<double> finite_number(std::string_view text) {
  const std::optional<double> value = number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

CLI::Option* accept_whole(CLI::Option* option, std::uint64_t least, std::uint64_t most, const char* type) {
  const std::string last = most == std::numeric_limits<std::uint64_t>::max() ? "2^64 - 1"
                           : most == std::uint64_t{1} << 62                  ? "2^62"
                                                                             : fmt::format("{}", most);
  return accept<std::uint64_t>(option, whole_number, least, most,
                               fmt::format("a whole number from {} to {}", least, last), type);
}

CLI::Option* accept_number(CLI::Option* option, double least, double most, const char* type) {
  return accept<double>(option, finite_number, least, most, fmt::format("a number from {:g} to {:g}", least, most),
                        type);
}

std::string duration_words(PlainUnit plain, std::uint64_t least, std::uint64_t most) {
  return fmt::format("a duration from {} to {} (a plain number is {})", exact_duration(least), exact_duration(most),
                     plain == PlainUnit::kSeconds ? "seconds" : "microseconds");
}

CLI::Option* accept_duration(CLI::Option* option, PlainUnit plain, std::uint64_t least, std::uint64_t most) {
  const std::uint64_t unit = plain == PlainUnit::kSeconds ? shm::kOneSecond : 1000;
  const std::string expected = duration_words(plain, least, most);
  option->description(fmt::format("{}; {}", option->get_description(), expected));
  return option->type_name("DURATION")
      ->transform(CLI::Validator(
          [=](std::string& text) {
            const std::optional<std::uint64_t> value = shm::parse_duration(text, unit);
            if (!value || *value < least || *value > most)
              return fmt::format("expected {}, not '{}'", expected, printable(text));
            text = fmt::format("{}", static_cast<double>(*value) / static_cast<double>(unit));
            return std::string();
          },
          ""));
}

CLI::Option* accept_size(CLI::Option* option) {
  static constexpr const char* kExpected = "a size from 0 to 2^62 bytes (8GiB, 512M)";
  option->description(fmt::format("{}; {}", option->get_description(), kExpected));
  return option->type_name("SIZE")->transform(CLI::Validator(
      [](std::string& text) {
        const std::optional<std::uint64_t> value = shm::parse_bytes(text);
        if (!value) return fmt::format("expected {}, not '{}'", kExpected, printable(text));
        text = fmt::format("{}", *value);
        return std::string();
      },
      ""));
}

}  // namespace memopt::tools
