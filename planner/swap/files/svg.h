// Pieces of drawings (SVG): self-contained documents that any browser shows, on light and on dark backgrounds.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "planner/layout/files/svg_text.h"

namespace memopt::swap {

using layout::coordinate;
using layout::escaped;

// The shortest text that reads as this number.
std::string number(double value);

// Values for the marks of an axis from `from` to `to`: some ten at most, multiples of 1, 2 or 5 times a power of ten.
std::vector<double> marks(double from, double to);

// One axis of a diagram: values, and where they lie.
struct Axis {
  double from = 0, to = 1;    // values
  double begin = 0, end = 1;  // pixels
  double at(double value) const { return begin + (value - from) / (to - from) * (end - begin); }
};

// A document of that size. Classes of its style: paper, ink (filled), line and faint (drawn), and c0, c1, … (see
// colours) as fill, l0, l1, … as lines.
class Drawing {
 public:
  static constexpr std::size_t kColours = 8;

  Drawing(double width, double height);

  void add(const std::string& element) { out_ += element; }
  void text(double x, double y, std::string_view text, std::string_view more = "");
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  // A rectangle with what is said when it is pointed at; nothing is said where `title` is empty.
  void rectangle(double left, double top, double right, double bottom, std::string_view style, std::string_view title);
  // The frame, marks and names of two axes; lines across at the marks of the second.
  void axes(const Axis& across, const Axis& up, std::string_view across_name, std::string_view up_name);

  std::string finish() const { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace memopt::swap
