#include "planner/layout/files/plot.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "planner/layout/files/svg_text.h"

namespace memopt::layout {
namespace {

constexpr double kWidth = 1600;
constexpr double kHeight = 900;
constexpr double kLeft = 20;
constexpr double kTop = 40;
constexpr double kBottom = 40;
constexpr std::size_t kMostWithTitles = 5000;
constexpr std::array<std::string_view, 9> kColours = {"#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2",
                                                      "#edc948", "#b07aa1", "#9c755f", "#9d9d9d"};
constexpr std::size_t kFixedColour = kColours.size() - 1;

constexpr std::size_t kLongestName = 100;

class Drawing {
 public:
  Drawing(const Instance& instance, const Solution& solution, std::uint64_t lower_bound)
      : instance_(instance), solution_(solution), lower_bound_(lower_bound) {
    const auto& intervals = instance.problem.intervals;
    if (intervals.empty()) return;
    begin_ =
        std::min_element(intervals.begin(), intervals.end(), [](auto& a, auto& b) { return a.begin < b.begin; })->begin;
    end_ = std::max_element(intervals.begin(), intervals.end(), [](auto& a, auto& b) { return a.end < b.end; })->end;
    top_ = std::max({solution.height, lower_bound, std::uint64_t{1}});
  }

  std::string draw() {
    out_ =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1600 900\" font-family=\"sans-serif\" "
        "font-size=\"14\">\n<rect width=\"1600\" height=\"900\" fill=\"white\"/>\n";
    caption();
    if (instance_.problem.buffers.size() <= kMostWithTitles) {
      rectangles();
    } else {
      paths();
    }
    line(lower_bound_);
    return out_ + "</svg>\n";
  }

 private:
  double x(std::uint64_t time) const {
    const double range = static_cast<double>(end_ - begin_);
    return kLeft + static_cast<double>(time - begin_) / range * (kWidth - 2 * kLeft);
  }
  double y(std::uint64_t offset) const {
    return kHeight - kBottom - static_cast<double>(offset) / static_cast<double>(top_) * (kHeight - kTop - kBottom);
  }

  // Neighbours in the file mostly live side by side: they get different colours.
  std::size_t colour(std::size_t buffer) const {
    return instance_.problem.buffers[buffer].fixed != kAnywhere ? kFixedColour : buffer % kFixedColour;
  }

  void caption() {
    out_ += "<text x=\"20\" y=\"25\">" + std::to_string(instance_.problem.buffers.size()) + " buffers, height " +
            std::to_string(solution_.height) + ", lower bound " + std::to_string(lower_bound_) +
            "</text>\n<text x=\"20\" y=\"885\">time " + std::to_string(begin_) +
            "</text>\n<text x=\"1580\" y=\"885\" text-anchor=\"end\">" + std::to_string(end_) + "</text>\n";
  }

  void rectangles() {
    for (std::size_t i = 0; i < instance_.problem.buffers.size(); ++i) {
      const std::uint64_t offset = solution_.offsets[i];
      const std::uint64_t bytes = instance_.problem.buffers[i].bytes;
      out_ += "<g fill=\"" + std::string(kColours[colour(i)]) + "\" stroke=\"black\" stroke-width=\"0.3\"><title>" +
              escaped(std::string_view(instance_.ids[i]).substr(0, kLongestName)) + ": " + std::to_string(bytes) +
              " at " + std::to_string(offset);
      for (const Interval& interval : instance_.problem.intervals_of(i)) {
        out_ += ", " + std::to_string(interval.begin) + " to " + std::to_string(interval.end);
      }
      out_ += "</title>";
      for (const Interval& interval : instance_.problem.intervals_of(i)) {
        out_ += "<rect x=\"" + coordinate(x(interval.begin)) + "\" y=\"" + coordinate(y(offset + bytes)) +
                "\" width=\"" + coordinate(x(interval.end) - x(interval.begin)) + "\" height=\"" +
                coordinate(y(offset) - y(offset + bytes)) + "\"/>";
      }
      out_ += "</g>\n";
    }
  }

  void paths() {
    std::array<std::string, kColours.size()> paths;
    for (std::size_t i = 0; i < instance_.problem.buffers.size(); ++i) {
      std::string& path = paths[colour(i)];
      const double bottom = y(solution_.offsets[i]);
      const double top = y(solution_.offsets[i] + instance_.problem.buffers[i].bytes);
      for (const Interval& interval : instance_.problem.intervals_of(i)) {
        path += "M" + coordinate(x(interval.begin)) + " " + coordinate(top) + "H" + coordinate(x(interval.end)) + "V" +
                coordinate(bottom) + "H" + coordinate(x(interval.begin)) + "z";
      }
    }
    for (std::size_t colour = 0; colour < paths.size(); ++colour) {
      // The thin edge keeps what is smaller than a pixel visible.
      out_ += "<path fill=\"" + std::string(kColours[colour]) + "\" stroke=\"" + std::string(kColours[colour]) +
              "\" stroke-width=\"0.2\" d=\"" + paths[colour] + "\"/>\n";
    }
  }

  void line(std::uint64_t offset) {
    const std::string at = coordinate(y(offset));
    out_ +=
        "<line x1=\"20\" x2=\"1580\" y1=\"" + at + "\" y2=\"" + at + "\" stroke=\"black\" stroke-dasharray=\"6 4\"/>\n";
  }

  const Instance& instance_;
  const Solution& solution_;
  const std::uint64_t lower_bound_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 1;
  std::uint64_t top_ = 1;
  std::string out_;
};

}  // namespace

std::string draw_svg(const Instance& instance, const Solution& solution, std::uint64_t lower_bound) {
  return Drawing(instance, solution, lower_bound).draw();
}

}  // namespace memopt::layout
