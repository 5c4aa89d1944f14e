#include <algorithm>
#include <charconv>
#include <string_view>

#include "planner/layout/files/csv.h"

namespace memopt::layout {
namespace {

class Line {
 public:
  explicit Line(std::string& out) : out_(out) {}
  ~Line() { out_ += '\n'; }

  Line& text(std::string_view text) {
    separate();
    out_ += text;
    return *this;
  }

  Line& number(std::uint64_t value) {
    separate();
    digits(value);
    return *this;
  }

  Line& gaps(std::span<const Interval> intervals) {
    separate();
    for (std::size_t i = 1; i < intervals.size(); ++i) {
      if (i > 1) out_ += ' ';
      digits(intervals[i - 1].end);
      out_ += '-';
      digits(intervals[i].begin);
    }
    return *this;
  }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }

  void digits(std::uint64_t value) {
    char buffer[20];
    out_.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  }

  std::string& out_;
  bool first_ = true;
};

}  // namespace

std::string write_csv(const Instance& instance, std::span<const std::uint64_t> offsets) {
  const auto& buffers = instance.problem.buffers;
  const bool alignment = std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.alignment != 1; });
  const bool gaps = std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.count > 1; });
  const bool fixed = std::any_of(buffers.begin(), buffers.end(), [](const Buffer& b) { return b.fixed != kAnywhere; });
  std::string out;
  out.reserve(64 * (buffers.size() + 1));
  {
    Line header(out);
    header.text("id").text("lower").text("upper").text("size");
    if (alignment) header.text("alignment");
    if (gaps) header.text("gaps");
    if (fixed) header.text("fixed");
    if (!offsets.empty()) header.text("offset");
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& buffer = buffers[i];
    const Interval hull = instance.problem.hull(i);
    Line line(out);
    line.text(instance.ids[i]).number(hull.begin).number(hull.end).number(buffer.bytes);
    if (alignment) line.number(buffer.alignment);
    if (gaps) line.gaps(instance.problem.intervals_of(i));
    if (fixed) buffer.fixed == kAnywhere ? line.text("") : line.number(buffer.fixed);
    if (!offsets.empty()) line.number(offsets[i]);
  }
  return out;
}

}  // namespace memopt::layout
