#include "tools/memoptctl/fit/fit_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

constexpr std::size_t kPlain = 0, kCaching = 1, kLayout = 2, kSwapped = 3;
constexpr const char* kFormat = "memopt-fit-1";

std::string size_cell(const std::optional<std::uint64_t>& bytes) {
  return bytes ? bytes_text(static_cast<double>(*bytes)) : "-";
}

// Columns side by side, the first to the left, the others to the right.
std::string table(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string blanks(widths[i] - width(line[i]), ' ');
      row += i == 0 ? line[i] + blanks : "  " + blanks + line[i];
    }
    while (row.ends_with(' ')) row.pop_back();
    text += row + "\n";
  }
  return text;
}

// The same of several rows is said once.
void add_note(std::vector<std::string>& notes, const std::string& value, const std::string& note) {
  if (note.empty()) return;
  const std::string whole = value.empty() ? note : value + ": " + note;
  if (std::find(notes.begin(), notes.end(), whole) == notes.end()) notes.push_back(whole);
}

std::string one_row(const FitReport& report) {
  const FitRow& row = report.rows.front();
  std::vector<std::vector<std::string>> lines = {{"", "needs", "fits"}};
  for (std::size_t way = 0; way < kWays; ++way) {
    const auto bytes = needed(row.needs, way);
    lines.push_back({way_name(way), size_cell(bytes), !bytes ? "-" : *bytes <= report.device.capacity ? "yes" : "no"});
  }
  return table(lines);
}

std::string many_rows(const FitReport& report) {
  std::vector<std::vector<std::string>> lines(1);
  lines.front().push_back(report.scale);
  for (std::size_t way = 0; way < kWays; ++way) lines.front().push_back(way_name(way));
  for (const FitRow& row : report.rows) {
    std::vector<std::string> line = {printable(row.value, 40)};
    for (std::size_t way = 0; way < kWays && row.fault.empty(); ++way) {
      const auto bytes = needed(row.needs, way);
      line.push_back(size_cell(bytes) + (!bytes || *bytes <= report.device.capacity ? " " : "*"));
    }
    if (!row.fault.empty()) line.push_back("failed");
    lines.push_back(std::move(line));
  }
  std::vector<std::string> largest = {"largest that fits"};
  for (const auto& value : report.largest) largest.push_back((value ? printable(*value, 40) : "none") + " ");
  lines.push_back(std::move(largest));
  return table(lines) + fmt::format("* more than {}\n", bytes_text(static_cast<double>(report.device.capacity)));
}

}  // namespace

std::string way_name(std::size_t way) {
  if (way == kPlain) return "plain allocation";
  if (way == kCaching) return "caching allocator";
  if (way == kLayout) return "memopt, layout";
  const int added = kAdded[way - kSwapped];
  return added == 0 ? "memopt, no added time" : fmt::format("memopt, +{} % time", added);
}

std::string way_key(std::size_t way) {
  if (way == kPlain) return "plain";
  if (way == kCaching) return "caching_allocator";
  if (way == kLayout) return "layout";
  return fmt::format("swaps_{}_percent", kAdded[way - kSwapped]);
}

std::optional<std::uint64_t> needed(const Needs& needs, std::size_t way) {
  if (way == kPlain) {
    const bool unread = needs.peak_load == 0 && !needs.damage.empty();
    return unread ? std::nullopt : std::optional(needs.peak_load);
  }
  if (way == kCaching) return needs.caching == 0 ? std::nullopt : std::optional(needs.caching);
  if (way == kLayout) return needs.layout;
  return needs.swapped[way - kSwapped];
}

std::string to_text(const FitReport& report) {
  std::string text = fmt::format("device     {}{}\n", bytes_text(static_cast<double>(report.device.capacity)),
                                 report.device.given ? ", as given" : "");
  text += fmt::format("simulated  {}\n", report.source);
  std::vector<std::string> notes;
  for (const FitRow& row : report.rows) {
    if (report.scale.empty() && row.needs.period_ns > 0) {
      text += fmt::format("iteration  {:.3f} ms; times: {}\n", row.needs.period_ns / 1e6, row.needs.times);
    }
    add_note(notes, row.value, row.fault);
    add_note(notes, row.value, row.note);
    add_note(notes, row.value, row.needs.note);
    add_note(notes, row.value, row.needs.damage.empty() ? "" : "damaged: " + row.needs.damage);
  }
  text += "\n" + (report.scale.empty() ? one_row(report) : many_rows(report));
  if (!notes.empty()) text += "\n";
  for (const std::string& note : notes) text += note + "\n";
  return text;
}

nlohmann::json to_json(const FitReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const FitRow& row : report.rows) {
    nlohmann::json one = nlohmann::json::object();
    if (!report.scale.empty()) one["value"] = row.value;
    if (!row.fault.empty()) {
      one["fault"] = row.fault;
    } else {
      nlohmann::json ways = nlohmann::json::object();
      for (std::size_t way = 0; way < kWays; ++way) {
        const auto bytes = needed(row.needs, way);
        ways[way_key(way)] = {{"bytes", bytes ? nlohmann::json(*bytes) : nlohmann::json()},
                              {"fits", bytes ? nlohmann::json(*bytes <= report.device.capacity) : nlohmann::json()}};
      }
      one["ways"] = ways;
      one["iteration_load"] = row.needs.iteration_load;
      one["period_ns"] = row.needs.period_ns;
      one["times"] = row.needs.times;
    }
    std::vector<std::string> notes;
    for (const std::string& note : {row.note, row.needs.note, row.needs.damage}) add_note(notes, "", note);
    one["notes"] = notes;
    rows.push_back(one);
  }
  nlohmann::json json = {
      {"format", kFormat}, {"capacity", report.device.capacity}, {"simulated", report.source}, {"rows", rows}};
  if (!report.scale.empty()) {
    json["scale"] = report.scale;
    nlohmann::json largest = nlohmann::json::object();
    for (std::size_t way = 0; way < kWays; ++way) {
      largest[way_key(way)] = report.largest[way] ? nlohmann::json(*report.largest[way]) : nlohmann::json();
    }
    json["largest"] = largest;
  }
  return json;
}

}  // namespace memopt::tools
