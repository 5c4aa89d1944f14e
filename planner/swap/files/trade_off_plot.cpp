#include "planner/swap/files/trade_off_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "planner/swap/files/svg.h"

namespace memopt::swap {
namespace {

constexpr double kWidth = 1100, kHeight = 640;
constexpr double kLegend = 850;
constexpr double kMib = 1 << 20;
constexpr double kNone = std::numeric_limits<double>::infinity();

// In which units, and up to where.
struct Scale {
  double bytes = 1, ns = 1;  // that one of the axis's unit has
  const char *across_name = "", *up_name = "";
  const char* said = "";  // of a point's two numbers
  double most = kNone;    // of the axis that goes up; infinite: all points
};

double across_of(const TradeOff& point, const Scale& scale) { return static_cast<double>(point.bytes) / scale.bytes; }
double up_of(const TradeOff& point, const Scale& scale) { return point.added_ns / scale.ns; }

std::string said(const std::string& name, const TradeOff& point, const Scale& scale) {
  char text[100];
  std::snprintf(text, sizeof text, scale.said, across_of(point, scale), up_of(point, scale));
  return name + text;
}

// From the least to the most of all points, with some room around.
Axis across_axis(const std::vector<TradeOffLine>& lines, const Scale& scale) {
  double least = 0, most = 0;
  bool any = false;
  for (const TradeOffLine& line : lines) {
    for (const TradeOff& point : line.points) {
      const double value = across_of(point, scale);
      least = any ? std::min(least, value) : value;
      most = any ? std::max(most, value) : value;
      any = true;
    }
  }
  const double room = std::max((most - least) * 0.04, 1e-3);
  return {std::max(least - room, 0.0), most + room, 100, kLegend - 30};
}

Axis up_axis(const std::vector<TradeOffLine>& lines, const Scale& scale) {
  double most = 0;
  for (const TradeOffLine& line : lines) {
    for (const TradeOff& point : line.points) {
      if (std::isfinite(point.added_ns)) most = std::max(most, up_of(point, scale));
    }
  }
  most = most > 0 ? most * 1.05 : 1;
  return {0, std::min(most, scale.most), kHeight - 70, 60};
}

struct Place {
  double across = 0, up = 0;  // in units of the axes
};

// Where the straight line between two points, one of them above, meets the upper edge.
Place at_edge(const Place& a, const Place& b, double edge) {
  return {a.across + (b.across - a.across) * (edge - a.up) / (b.up - a.up), edge};
}

// The pieces of a line that lie within the drawing. Points are in order.
std::vector<std::vector<Place>> visible(const std::vector<Place>& points, double edge) {
  std::vector<std::vector<Place>> pieces;
  std::vector<Place> piece;
  const auto end = [&] {
    if (piece.size() > 1) pieces.push_back(piece);
    piece.clear();
  };
  for (std::size_t k = 0; k < points.size(); ++k) {
    const Place& point = points[k];
    const bool within = point.up <= edge;
    const bool joined = k > 0 && std::isfinite(point.up) && std::isfinite(points[k - 1].up);
    if (!joined) end();
    if (joined && within != (points[k - 1].up <= edge)) piece.push_back(at_edge(points[k - 1], point, edge));
    if (within) piece.push_back(point);
    if (!within) end();
  }
  end();
  return pieces;
}

std::string triangle(double x, double y, const std::string& fill, const std::string& title) {
  return "<path class=\"" + fill + "\" d=\"M" + coordinate(x - 5) + ' ' + coordinate(y + 8) + 'L' + coordinate(x) +
         ' ' + coordinate(y) + 'L' + coordinate(x + 5) + ' ' + coordinate(y + 8) + "Z\"><title>" + title +
         "</title></path>\n";
}

void draw_line(Drawing& drawing, const TradeOffLine& line, const Axis& across, const Axis& up, const Scale& scale,
               const std::string& stroke, const std::string& fill) {
  std::vector<TradeOff> points = line.points;
  std::sort(points.begin(), points.end(), [](const TradeOff& a, const TradeOff& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.added_ns < b.added_ns;
  });
  std::vector<Place> places;
  for (const TradeOff& point : points) places.push_back({across_of(point, scale), up_of(point, scale)});
  for (const std::vector<Place>& piece : visible(places, up.to)) {
    std::string path;
    for (const Place& place : piece) {
      path += (path.empty() ? "" : " ") + coordinate(across.at(place.across)) + ',' + coordinate(up.at(place.up));
    }
    drawing.add("<polyline class=\"" + stroke + "\" points=\"" + path + "\"/>\n");
  }
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (!std::isfinite(points[k].added_ns)) continue;
    const std::string title = escaped(said(line.name, points[k], scale));
    const double x = across.at(places[k].across);
    if (places[k].up > up.to) {
      drawing.add(triangle(x, up.end, fill, title));
      continue;
    }
    drawing.add("<circle class=\"" + fill + "\" cx=\"" + coordinate(x) + "\" cy=\"" + coordinate(up.at(places[k].up)) +
                "\" r=\"" + (line.bound ? "2.5" : "4") + "\"><title>" + title + "</title></circle>\n");
  }
}

std::string draw(const std::string& title, const std::vector<TradeOffLine>& lines, const Scale& scale) {
  Drawing drawing(kWidth, kHeight);
  const Axis across = across_axis(lines, scale), up = up_axis(lines, scale);
  drawing.text(100, 32, title, "font-size=\"17\"");
  drawing.axes(across, up, scale.across_name, scale.up_name);
  std::size_t colour = 0;
  double legend = 70;
  for (const TradeOffLine& line : lines) {
    const std::string k = std::to_string(colour % Drawing::kColours);
    // Colours come again, dotted.
    const std::string stroke =
        line.bound ? "line thick dashed" : "l" + k + " thick" + (colour < Drawing::kColours ? "" : " dotted");
    const std::string fill = line.bound ? "ink" : "c" + k;
    if (!line.bound) ++colour;
    draw_line(drawing, line, across, up, scale, stroke, fill);
    const bool none = std::none_of(line.points.begin(), line.points.end(),
                                   [](const TradeOff& point) { return std::isfinite(point.added_ns); });
    drawing.line(kLegend, legend, kLegend + 34, legend, stroke);
    drawing.text(kLegend + 44, legend + 5, line.name + (none ? " (no plan)" : ""));
    legend += 24;
  }
  return drawing.finish();
}

// The most that the best strategy adds at any of the limits; 0: there is no plan.
double most_needed(const std::vector<TradeOffLine>& lines) {
  std::map<std::uint64_t, double> best;  // by limit
  for (const TradeOffLine& line : lines) {
    if (line.bound) continue;
    for (const TradeOff& point : line.points) {
      if (!std::isfinite(point.added_ns)) continue;
      const auto [at, first] = best.emplace(point.bytes, point.added_ns);
      if (!first) at->second = std::min(at->second, point.added_ns);
    }
  }
  double most = 0;
  for (const auto& [limit, added] : best) most = std::max(most, added);
  return most;
}

}  // namespace

std::string draw_trade_offs(const std::string& title, const std::vector<TradeOffLine>& lines) {
  return draw(title, lines, {kMib, 1e6, "footprint, MiB", "added time, ms an iteration", ": %.2f MiB, %.3f ms added"});
}

std::string draw_trade_off_parts(const std::string& title, const std::vector<TradeOffLine>& lines, std::uint64_t peak,
                                 double period_ns) {
  Scale scale{static_cast<double>(peak) / 100, period_ns / 100, "limit, % of the peak load",
              "added time, % of an iteration", ": within %.1f %%, %.2f %% added"};
  if (const double most = most_needed(lines); most > 0) scale.most = 2 * most / scale.ns;
  return draw(title, lines, scale);
}

}  // namespace memopt::swap
