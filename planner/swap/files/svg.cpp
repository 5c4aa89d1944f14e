#include "planner/swap/files/svg.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace memopt::swap {
namespace {

// Seen on white and on black, and told apart by most who do not see all colours.
constexpr std::array<std::string_view, Drawing::kColours> kColourCodes = {"#e15759", "#4e79a7", "#f28e2b", "#59a14f",
                                                                          "#b07aa1", "#76b7b2", "#9c755f", "#c9a227"};

std::string attribute(const char* name, double pixels) {
  return std::string(" ") + name + "=\"" + coordinate(pixels) + '"';
}

std::string styled(std::string_view style) { return " class=\"" + std::string(style) + '"'; }

std::string style_sheet() {
  std::string sheet =
      "<style>\ntext{fill:#222}.paper{fill:#fff}.ink{fill:#222}.line{fill:none;stroke:#222}.faint{fill:none;stroke:#"
      "ddd}\n"
      ".dashed{stroke-dasharray:7 4}.dotted{stroke-dasharray:2 "
      "3}.thick{stroke-width:2}.edge{stroke:#fff;stroke-width:.3}\n";
  for (std::size_t i = 0; i < kColourCodes.size(); ++i) {
    const std::string colour(kColourCodes[i]), k = std::to_string(i);
    sheet += ".c" + k + "{fill:" + colour + "}.l" + k + "{fill:none;stroke:" + colour + "}\n";
  }
  return sheet +
         "@media "
         "(prefers-color-scheme:dark){text{fill:#e4e4e4}.paper{fill:#181818}.ink{fill:#e4e4e4}.line{stroke:#e4e4e4}"
         ".faint{stroke:#3c3c3c}.edge{stroke:#181818}}\n</style>\n";
}

}  // namespace

std::string number(double value) {
  std::array<char, 32> text{};
  // Sums of tenths are not tenths; twelve digits are.
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 12).ptr};
}

std::vector<double> marks(double from, double to) {
  if (!(to > from) || !std::isfinite(to - from)) return {};
  const double tenth = std::pow(10, std::floor(std::log10((to - from) / 5)));
  double step = tenth;
  for (const double factor : {2, 5, 10}) {
    if ((to - from) / step > 10) step = tenth * factor;
  }
  std::vector<double> values;
  for (double k = std::ceil(from / step - 1e-9); k * step <= to + 1e-9 * (to - from); ++k)
    values.push_back(k * step + 0.0);  // not -0
  return values;
}

Drawing::Drawing(double width, double height) {
  const std::string w = coordinate(width), h = coordinate(height);
  out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + w + ' ' + h +
         "\" font-family=\"sans-serif\" font-size=\"14\">\n" + style_sheet() + "<rect class=\"paper\" width=\"" + w +
         "\" height=\"" + h + "\"/>\n";
}

void Drawing::text(double x, double y, std::string_view text, std::string_view more) {
  out_ += "<text" + attribute("x", x) + attribute("y", y) + std::string(more.empty() ? "" : " ") + std::string(more) +
          '>' + escaped(text) + "</text>\n";
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view style) {
  out_ += "<line" + styled(style) + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
          attribute("y2", y2) + "/>\n";
}

void Drawing::rectangle(double left, double top, double right, double bottom, std::string_view style,
                        std::string_view title) {
  out_ += "<rect" + styled(style) + attribute("x", left) + attribute("y", top) + attribute("width", right - left) +
          attribute("height", bottom - top);
  out_ += title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n";
}

void Drawing::axes(const Axis& across, const Axis& up, std::string_view across_name, std::string_view up_name) {
  for (const double value : marks(up.from, up.to)) {
    line(across.begin, up.at(value), across.end, up.at(value), "faint");
    text(across.begin - 8, up.at(value) + 5, number(value), "text-anchor=\"end\"");
  }
  for (const double value : marks(across.from, across.to)) {
    line(across.at(value), up.begin, across.at(value), up.begin + 6, "line");
    text(across.at(value), up.begin + 22, number(value), "text-anchor=\"middle\"");
  }
  line(across.begin, up.begin, across.end, up.begin, "line");
  line(across.begin, up.begin, across.begin, up.end, "line");
  text((across.begin + across.end) / 2, up.begin + 44, across_name, "text-anchor=\"middle\"");
  const std::string x = coordinate(across.begin - 62), y = coordinate((up.begin + up.end) / 2);
  text(across.begin - 62, (up.begin + up.end) / 2, up_name,
       "text-anchor=\"middle\" transform=\"rotate(-90 " + x + ' ' + y + ")\"");
}

}  // namespace memopt::swap
