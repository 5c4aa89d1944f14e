#include "planner/json/writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "planner/json/tree.h"

namespace memopt::json {
namespace {

constexpr double kLargestExact = 0x1p53;
constexpr std::size_t kLongestNumber = 400;  // of a double with all its digits before the point

template <typename... Format>
std::string_view digits(std::array<char, kLongestNumber>& buffer, Format... format) {
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), format...);
  return {buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data())};
}

}  // namespace

void Writer::separate() {
  if (named_) {
    named_ = false;
    return;
  }
  if (open_.empty()) return;
  Open& open = open_.back();
  if (open.empty) {
    out_ << open.spacing.before;
  } else {
    out_ << ',' << open.spacing.between;
  }
  open.empty = false;
}

void Writer::text(std::string_view raw) {
  separate();
  out_ << raw;
}

void Writer::begin(char bracket, const Spacing& spacing) {
  separate();
  out_ << bracket;
  open_.push_back({spacing});
}

void Writer::end(char bracket) {
  out_ << open_.back().spacing.after << bracket;
  open_.pop_back();
}

void Writer::name(std::string_view name) {
  value(name);
  out_ << ':' << open_.back().spacing.colon;
  named_ = true;
}

void Writer::value(std::uint64_t value) {
  std::array<char, kLongestNumber> buffer;
  text(digits(buffer, value));
}

void Writer::value(std::int64_t value) {
  std::array<char, kLongestNumber> buffer;
  text(digits(buffer, value));
}

void Writer::value(double value) {
  if (!std::isfinite(value)) return null();
  std::array<char, kLongestNumber> buffer;
  const bool whole = value == std::floor(value) && std::abs(value) < kLargestExact;
  text(whole ? digits(buffer, static_cast<std::int64_t>(value)) : digits(buffer, value));
}

void Writer::value(bool value) { text(value ? "true" : "false"); }

void Writer::value(std::string_view value) {
  text(nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Writer::null() { text("null"); }

void Writer::fixed(double value, int digits_behind) {
  if (!std::isfinite(value)) return null();
  std::array<char, kLongestNumber> buffer;
  text(digits(buffer, value, std::chars_format::fixed, digits_behind));
}

}  // namespace memopt::json
