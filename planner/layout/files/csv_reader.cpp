#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

#include "planner/input/shown.h"
#include "planner/layout/files/csv.h"
#include "planner/layout/problem/validation.h"

namespace memopt::layout {
namespace {

using input::shown;

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;

enum Column : std::uint8_t { kId, kLower, kUpper, kSize, kAlignment, kGaps, kFixed, kOffset, kHint, kColumns };
constexpr std::array<std::string_view, kColumns> kNames = {"id",   "lower", "upper",  "size", "alignment",
                                                           "gaps", "fixed", "offset", "hint"};
constexpr std::size_t kRequired = 4;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  Instance read() {
    if (!next_line() || trimmed(line_).empty()) throw CsvError("line 1: empty; expected a header: id,lower,upper,size");
    read_header();
    const auto rows = static_cast<std::size_t>(std::count(rest_.begin(), rest_.end(), '\n')) + 1;
    instance_.problem.buffers.reserve(rows);
    instance_.problem.intervals.reserve(rows);
    instance_.ids.reserve(rows);
    instance_.lines.reserve(rows);
    line_of_id_.reserve(rows);
    std::optional<std::uint32_t> blank;
    while (next_line()) {
      if (trimmed(line_).empty()) {
        if (!blank) blank = line_number_;
        continue;
      }
      if (blank) throw CsvError("line " + std::to_string(*blank) + ": empty, but rows follow");
      read_row();
    }
    if (auto fault = find_fault(instance_.problem, [&](std::size_t i) { return instance_.name(i); })) {
      throw CsvError(*fault);
    }
    return std::move(instance_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw CsvError("line " + std::to_string(line_number_) + ": " + what);
  }

  bool next_line() {
    if (rest_.empty()) return false;
    const std::size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++line_number_;
    return true;
  }

  void split() {
    fields_.clear();
    std::size_t begin = 0;
    for (std::size_t end; (end = line_.find(',', begin)) != std::string_view::npos; begin = end + 1) {
      fields_.push_back(trimmed(line_.substr(begin, end - begin)));
    }
    fields_.push_back(trimmed(line_.substr(begin)));
  }

  // Also by the names of older files, in which the upper time is part of the lifetime.
  std::optional<std::size_t> column_of(std::string_view name) {
    if (name == "buffer" || name == "buffer_id") return kId;
    if (name == "begin" || name == "start") return kLower;
    if (name == "end") {
      beyond_end_ = 1;
      return kUpper;
    }
    const auto found = std::find(kNames.begin(), kNames.end(), name);
    if (found == kNames.end()) return {};
    return static_cast<std::size_t>(found - kNames.begin());
  }

  void read_header() {
    split();
    positions_.fill(kMissing);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      const auto column = column_of(fields_[i]);
      if (!column) {
        fail("unknown column '" + shown(fields_[i]) +
             "'; there are id, lower, upper, size, alignment, gaps, fixed, offset and hint");
      }
      if (positions_[*column] != kMissing) fail("the column '" + std::string(kNames[*column]) + "' is there twice");
      positions_[*column] = i;
    }
    for (std::size_t column = 0; column < kRequired; ++column) {
      if (positions_[column] == kMissing) fail("the column '" + std::string(kNames[column]) + "' is missing");
    }
    columns_ = fields_.size();
  }

  bool has(Column column) const { return positions_[column] != kMissing; }
  std::string_view field(Column column) const { return fields_[positions_[column]]; }

  std::uint64_t number(std::string_view text, std::string_view what) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value < kLimit) return value;
    const bool negative = text.starts_with('-');
    const std::string_view digits = text.substr(negative ? 1 : 0);
    const bool integer =
        !digits.empty() && std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!integer) fail(std::string(what) + " is not an integer: '" + shown(text) + "'");
    if (negative) fail(std::string(what) + " is negative: " + shown(text));
    fail(std::string(what) + " is 2^63 or more: " + shown(text));
  }
  std::uint64_t number(Column column) const { return number(field(column), kNames[column]); }

  std::uint64_t upper(std::string_view text, std::string_view what) const {
    const std::uint64_t value = number(text, what) + beyond_end_;
    if (value >= kLimit) fail(std::string(what) + " is 2^63 or more");
    return value;
  }

  Interval interval(std::string_view from, std::string_view to, const std::string& of) const {
    const Interval interval{number(from, of + "lower"), upper(to, of + "upper")};
    if (interval.begin >= interval.end) {
      fail(of + "lower must be below " + of + "upper, but there is " + shown(from) + " and " + shown(to));
    }
    return interval;
  }

  // What gaps leave of the lifetime.
  void read_gaps(Interval life) {
    gaps_.clear();
    std::string_view rest = has(kGaps) ? field(kGaps) : std::string_view();
    while (!rest.empty()) {
      const std::size_t length = std::min(rest.find(' '), rest.size());
      const std::string_view gap = rest.substr(0, length);
      rest = trimmed(rest.substr(length));
      if (gap.find('@') != std::string_view::npos) {
        fail("gap '" + shown(gap) + "': gaps with a window (@) in which part of the buffer stays are not supported");
      }
      const std::size_t dash = gap.find('-');
      if (dash == std::string_view::npos) fail("gap '" + shown(gap) + "' is not of the form LOWER-UPPER");
      gaps_.push_back(interval(gap.substr(0, dash), gap.substr(dash + 1), "a gap's "));
      if (gaps_.back().begin < life.begin || gaps_.back().end > life.end) {
        fail("the gap '" + shown(gap) + "' is not within the lifetime");
      }
    }
    std::sort(gaps_.begin(), gaps_.end(), [](Interval a, Interval b) { return a.begin < b.begin; });
    intervals_.clear();
    std::uint64_t begin = life.begin;
    for (const Interval& gap : gaps_) {
      if (gap.begin > begin) intervals_.push_back({begin, gap.begin});
      begin = std::max(begin, gap.end);
    }
    if (begin < life.end) intervals_.push_back({begin, life.end});
    if (intervals_.empty()) fail("nothing is left of the lifetime between the gaps");
  }

  void add_up(std::uint64_t size, std::uint64_t alignment, std::uint64_t fixed) {
    const std::uint64_t room = size + (alignment - 1);
    if (room >= kLimit || sum_ + room >= kLimit) fail("the sizes up to here, aligned, add up to 2^63 or more");
    sum_ += room;
    if (fixed == kAnywhere) return;
    if (fixed + size >= kLimit) fail("it is fixed beyond 2^63");
  }

  void read_row() {
    split();
    if (fields_.size() != columns_) {
      fail("it has " + std::to_string(fields_.size()) + " columns, the header " + std::to_string(columns_));
    }
    if (instance_.ids.size() == std::numeric_limits<std::uint32_t>::max() / 2) fail("too many rows");
    if (field(kId).empty()) fail("the id is empty");
    const auto [other, is_new] = line_of_id_.emplace(field(kId), line_number_);
    if (!is_new) fail("the id '" + shown(field(kId)) + "' was already in line " + std::to_string(other->second));
    const Interval life = interval(field(kLower), field(kUpper), "");
    const std::uint64_t size = number(kSize);
    if (size == 0) fail("size is 0");
    const std::uint64_t alignment = has(kAlignment) ? number(kAlignment) : 1;
    if (alignment == 0) fail("alignment is 0");
    const std::uint64_t fixed = has(kFixed) && !field(kFixed).empty() ? number(kFixed) : kAnywhere;
    add_up(size, alignment, fixed);
    read_gaps(life);
    instance_.problem.add(size, intervals_, alignment, fixed);
    instance_.ids.emplace_back(field(kId));
    instance_.lines.push_back(line_number_);
    if (has(kOffset)) instance_.offsets.push_back(number(kOffset));
  }

  static constexpr std::size_t kMissing = ~std::size_t{0};

  std::string_view rest_;
  std::string_view line_;
  std::uint32_t line_number_ = 0;
  std::vector<std::string_view> fields_;
  std::array<std::size_t, kColumns> positions_{};
  std::size_t columns_ = 0;
  std::uint64_t beyond_end_ = 0;
  std::uint64_t sum_ = 0;
  std::vector<Interval> gaps_;
  std::vector<Interval> intervals_;
  std::unordered_map<std::string_view, std::uint32_t> line_of_id_;
  Instance instance_;
};

}  // namespace

Instance read_csv(std::string_view text) { return Reader(text).read(); }

Instance read_csv(input::File& file) { return read_csv(input::read_text(file, kCsvBounds)); }

}  // namespace memopt::layout
