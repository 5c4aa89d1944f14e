#include "planner/swap/files/trade_off_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "planner/swap/files/svg.h"

namespace memopt::swap {
namespace {

constexpr double kWidth = 1100, kHeight = 640;
constexpr double kLegend = 850;
constexpr double kMib = 1 << 20;

double mib(const TradeOff& point) { return static_cast<double>(point.footprint) / kMib; }
double milliseconds(const TradeOff& point) { return point.added_ns / 1e6; }

std::string said(const std::string& name, const TradeOff& point) {
  char text[100];
  std::snprintf(text, sizeof text, ": %.2f MiB, %.3f ms added", mib(point), milliseconds(point));
  return name + text;
}

// From the least to the most of all points, with some room around.
Axis across_axis(const std::vector<TradeOffLine>& lines) {
  double least = 0, most = 0;
  bool any = false;
  for (const TradeOffLine& line : lines) {
    for (const TradeOff& point : line.points) {
      least = any ? std::min(least, mib(point)) : mib(point);
      most = any ? std::max(most, mib(point)) : mib(point);
      any = true;
    }
  }
  const double room = std::max((most - least) * 0.04, 1e-3);
  return {std::max(least - room, 0.0), most + room, 100, kLegend - 30};
}

Axis up_axis(const std::vector<TradeOffLine>& lines) {
  double most = 0;
  for (const TradeOffLine& line : lines) {
    for (const TradeOff& point : line.points) most = std::max(most, milliseconds(point));
  }
  return {0, most > 0 ? most * 1.05 : 1, kHeight - 70, 60};
}

}  // namespace

std::string draw_trade_offs(const std::string& title, const std::vector<TradeOffLine>& lines) {
  Drawing drawing(kWidth, kHeight);
  const Axis across = across_axis(lines), up = up_axis(lines);
  drawing.text(100, 32, title, "font-size=\"17\"");
  drawing.axes(across, up, "footprint, MiB", "added time, ms an iteration");
  std::size_t colour = 0;
  double legend = 70;
  for (const TradeOffLine& line : lines) {
    const std::string k = std::to_string(colour % Drawing::kColours);
    const std::string stroke = line.bound ? "line thick dashed" : "l" + k + " thick";
    const std::string fill = line.bound ? "ink" : "c" + k;
    if (!line.bound) ++colour;
    std::vector<TradeOff> points = line.points;
    std::sort(points.begin(), points.end(), [](const TradeOff& a, const TradeOff& b) {
      return a.footprint != b.footprint ? a.footprint < b.footprint : a.added_ns < b.added_ns;
    });
    std::string path;
    for (const TradeOff& point : points) {
      path +=
          (path.empty() ? "" : " ") + coordinate(across.at(mib(point))) + ',' + coordinate(up.at(milliseconds(point)));
    }
    if (points.size() > 1) drawing.add("<polyline class=\"" + stroke + "\" points=\"" + path + "\"/>\n");
    for (const TradeOff& point : points) {
      drawing.add("<circle class=\"" + fill + "\" cx=\"" + coordinate(across.at(mib(point))) + "\" cy=\"" +
                  coordinate(up.at(milliseconds(point))) + "\" r=\"" + (line.bound ? "2.5" : "4") + "\"><title>" +
                  escaped(said(line.name, point)) + "</title></circle>\n");
    }
    drawing.line(kLegend, legend, kLegend + 34, legend, stroke);
    drawing.text(kLegend + 44, legend + 5, line.name + (points.empty() ? " (no plan)" : ""));
    legend += 24;
  }
  return drawing.finish();
}

}  // namespace memopt::swap
