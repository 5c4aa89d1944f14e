#include "tools/memoptctl/top/top_page.h"

#include <fmt/format.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {
namespace {

struct Character {
  std::string text;
  std::size_t columns = 1;
};

// Takes the first character off valid UTF-8. One that the terminal can't show becomes '?'.
Character take_character(std::string_view& text, bool unicode) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = std::min<std::size_t>(text.size(), first < 0x80   ? 1
                                                                : first < 0xE0 ? 2
                                                                : first < 0xF0 ? 3
                                                                               : 4);
  Character character{std::string(text.substr(0, length)), 1};
  text.remove_prefix(length);
  if (length == 1) return character;
  std::uint32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(character.text[i]) & 0x3Fu);
  const int columns = unicode ? ::wcwidth(static_cast<wchar_t>(code)) : -1;
  if (columns < 0) return {"?", 1};
  character.columns = static_cast<std::size_t>(columns);
  // A mark on the character before: terminals differ in where they put it.
  if (columns == 0) character.text.clear();
  return character;
}

constexpr std::size_t kNarrow = 60, kWide = 100;
constexpr std::size_t kPercent = 5;  // " 100%"

std::string rate_text(const std::optional<double>& rate) {
  if (!rate) return "-";
  return precise_amount(static_cast<std::uint64_t>(std::llround(*rate))) + "/s";
}

std::string count_text(const std::optional<std::uint64_t>& count) { return count ? fmt::to_string(*count) : "-"; }

// Without the folder of the program: what follows it says more.
std::string short_command(const TopProcess& process) {
  const std::size_t end = std::min(process.command.find(' '), process.command.size());
  const std::size_t slash = process.command.substr(0, end).rfind('/');
  return slash == std::string::npos || slash + 1 == end ? process.command : process.command.substr(slash + 1);
}

Style style_of(const TopProcess& process) {
  if (process.ended) return Style::kDim;
  if (process.problem || process.state == "?") return Style::kProblem;
  if (process.state == "planned") return Style::kGood;
  if (process.state == "deviating" || process.state == "recording" || process.state == "bootstrap") return Style::kBusy;
  return Style::kPlain;
}

std::string bar(double part, std::size_t cells, bool unicode) {
  const double full = std::clamp(part, 0.0, 1.0) * static_cast<double>(cells);
  constexpr std::array<const char*, 8> kEighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto whole = static_cast<std::size_t>(full);
  std::string text;
  for (std::size_t i = 0; i < whole; ++i) text += unicode ? "█" : "#";
  std::size_t used = whole;
  if (const auto eighth = static_cast<std::size_t>((full - static_cast<double>(whole)) * 8);
      unicode && used < cells && eighth > 0) {
    text += kEighths.at(eighth);
    ++used;
  }
  for (; used < cells; ++used) text += unicode ? "·" : ".";
  return text;
}

// Held of the limit; without one, of the most that it held so far.
std::vector<Span> bar_spans(const TopProcess& process, std::size_t columns, bool unicode) {
  const std::size_t cells = columns > kPercent + 2 ? columns - kPercent : columns;
  const auto filled = process.filled();
  if (!filled) {
    const bool known = process.footprint && process.footprint_peak && *process.footprint_peak != 0;
    const double part =
        known ? static_cast<double>(*process.footprint) / static_cast<double>(*process.footprint_peak) : 0;
    return {{bar(part, cells, unicode), Style::kDim}, {fit("", columns - cells), Style::kPlain}};
  }
  const Style style = *filled > 1 ? Style::kProblem : *filled > 0.9 ? Style::kBusy : Style::kGood;
  const std::string percent = fmt::format("{:.0f}%", std::min(*filled * 100, 999.0));
  return {{bar(*filled, cells, unicode), process.ended ? Style::kDim : style},
          {columns > cells ? fmt::format("{:>{}}", percent, columns - cells) : "", Style::kPlain}};
}

struct Column {
  const char* title;
  std::size_t width;  // 0: what is left
  bool right;
  std::function<std::vector<Span>(const TopProcess&, std::size_t)> cell;
};

// Those that fit, in the order in which they stand.
std::vector<Column> columns_for(const TopView& view) {
  const bool unicode = view.unicode;
  const auto text = [unicode](std::string (*of)(const TopProcess&), bool right) {
    return [=](const TopProcess& process, std::size_t columns) -> std::vector<Span> {
      const std::string shown = of(process);
      const std::size_t taken = columns_of(shown, unicode);
      const std::string gap(right && taken < columns ? columns - taken : 0, ' ');
      return {{gap + fit(shown, columns - gap.size(), unicode), process.ended ? Style::kDim : Style::kPlain}};
    };
  };
  const auto number = [&](const char* title, std::size_t width, std::string (*of)(const TopProcess&)) {
    return Column{title, width, true, text(of, true)};
  };
  std::vector<Column> all;
  all.push_back(number("PID", 7, [](const TopProcess& p) { return fmt::to_string(p.pid); }));
  all.push_back({"STATE", view.width >= kWide ? std::size_t{11} : std::size_t{9}, false,
                 [unicode](const TopProcess& p, std::size_t columns) -> std::vector<Span> {
                   return {{fit(p.state.empty() ? "-" : p.state, columns, unicode), style_of(p)}};
                 }});
  all.push_back(
      number("FOOTPRINT", 9, [](const TopProcess& p) { return precise_amount(p.footprint ? p.footprint : p.live); }));
  if (view.width >= kNarrow) {
    all.push_back(number("LIMIT", 8, [](const TopProcess& p) { return precise_amount(p.limit); }));
  }
  all.push_back({view.width >= kNarrow ? "OF LIMIT" : "LIMIT",
                 view.width < kNarrow ? 0
                 : view.width < kWide ? std::size_t{12}
                                      : std::clamp<std::size_t>(view.width / 6, 18, 32),
                 false,
                 [unicode](const TopProcess& p, std::size_t columns) { return bar_spans(p, columns, unicode); }});
  if (view.width >= kNarrow) {
    all.push_back(number("COPIES/S", 10, [](const TopProcess& p) { return rate_text(p.copy_rate()); }));
  }
  if (view.width >= kWide - 25) {
    all.push_back(number("DEVIATE", 7, [](const TopProcess& p) { return count_text(p.deviations); }));
  }
  if (view.width >= kWide) {
    all.push_back(number("PEAK LOAD", 9, [](const TopProcess& p) { return precise_amount(p.peak_load); }));
    all.push_back(number("IN HOST", 8, [](const TopProcess& p) { return precise_amount(p.host); }));
    all.push_back(number("ITERATION", 9, [](const TopProcess& p) { return count_text(p.iteration); }));
  }
  if (view.width >= kNarrow) {
    all.push_back({"COMMAND", 0, false, text(short_command, false)});
  }
  std::size_t taken = all.size() - 1;
  for (const Column& column : all) taken += column.width;
  for (Column& column : all) {
    if (column.width == 0) column.width = view.width > taken ? view.width - taken : 0;
  }
  return all;
}

PageLine header(const std::vector<Column>& columns, bool unicode) {
  PageLine line;
  for (const Column& column : columns) {
    const std::string title = column.title;
    line.spans.push_back({column.right && title.size() < column.width ? fmt::format("{:>{}}", title, column.width)
                                                                      : fit(title, column.width, unicode),
                          Style::kHeader});
    line.spans.push_back({" ", Style::kHeader});
  }
  line.spans.pop_back();
  return line;
}

PageLine row(const TopProcess& process, const std::vector<Column>& columns, bool selected) {
  PageLine line;
  line.selected = selected;
  for (const Column& column : columns) {
    if (!line.spans.empty()) line.spans.push_back({" ", Style::kPlain});
    for (Span& span : column.cell(process, column.width)) line.spans.push_back(std::move(span));
  }
  return line;
}

PageLine title(const TopModel& model, const TopView& view) {
  std::size_t there = 0;
  std::uint64_t footprint = 0;
  double copies = 0;
  for (const TopProcess& process : model.processes()) {
    if (process.ended) continue;
    ++there;
    footprint += process.footprint ? *process.footprint : process.live.value_or(0);
    copies += process.copy_rate().value_or(0);
  }
  std::string text = fmt::format("memopt: {} process{}, {}", there, there == 1 ? "" : "es", precise_amount(footprint));
  if (copies > 0) text += ", copies " + rate_text(copies);
  if (view.paused) text += ", paused";
  if (view.width >= kNarrow) {
    text += fmt::format("; every {:g} s, by {}{}", view.interval, name_of(model.key()),
                        model.reversed() ? ", reversed" : "");
    if (view.unreadable != 0) text += fmt::format("; {} of other users", view.unreadable);
  }
  return {{{fit(text, view.width, view.unicode), Style::kTitle}}};
}

// At blanks where there are any.
void wrap(std::string_view text, std::size_t width, bool unicode, Style style, std::vector<PageLine>& lines) {
  const std::size_t indent = 2;
  if (width <= indent) return;
  std::string line;
  std::size_t taken = 0;
  const auto finish = [&] {
    lines.push_back({{{std::string(indent, ' ') + line, style}}});
    line.clear();
    taken = 0;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t needed = columns_of(word, unicode);
    if (taken != 0 && taken + 1 + needed > width - indent) finish();
    if (taken != 0) {
      line += ' ';
      ++taken;
    }
    for (std::string_view rest = word; !rest.empty();) {
      const Character next = take_character(rest, unicode);
      if (taken + next.columns > width - indent) finish();
      line += next.text;
      taken += next.columns;
    }
  }
  if (!line.empty()) finish();
}

std::vector<PageLine> details(const TopProcess& process, const TopView& view) {
  std::vector<PageLine> lines;
  const auto say = [&](const std::string& text, Style style = Style::kPlain) {
    wrap(text, view.width, view.unicode, style, lines);
  };
  lines.push_back({{{fit(fmt::format("process {}", process.pid), view.width, view.unicode), Style::kHeader}}});
  say(process.command);
  say(fmt::format("{}; held {}, at most {}; peak load {}; live {}", process.state.empty() ? "-" : process.state,
                  precise_amount(process.footprint), precise_amount(process.footprint_peak),
                  precise_amount(process.peak_load), precise_amount(process.live)),
      style_of(process));
  if (process.iteration) {
    say(fmt::format("iteration {}{}; {} deviations{}", *process.iteration,
                    process.iteration_rate ? fmt::format(" ({:.1f}/s)", *process.iteration_rate) : "",
                    count_text(process.deviations),
                    process.deviation_rate ? fmt::format(" ({:.1f}/s)", *process.deviation_rate) : ""));
  }
  if (process.limit) {
    say(fmt::format("{} {}: {} held, {} away, {} of host memory", process.device_full ? "device full at" : "limit",
                    precise_amount(process.limit), precise_amount(process.held), precise_amount(process.away),
                    precise_amount(process.host)));
  }
  if (process.copied_out || process.copied_in) {
    say(fmt::format("copies out {} ({}), in {} ({})", rate_text(process.out_rate), precise_amount(process.copied_out),
                    rate_text(process.in_rate), precise_amount(process.copied_in)));
  }
  for (const std::string& line : process.lines) {
    say(line, line.starts_with("problem: ") ? Style::kProblem : Style::kPlain);
  }
  return lines;
}

std::vector<PageLine> help(const TopView& view) {
  constexpr std::array<std::pair<const char*, const char*>, 11> kHelp = {{
      {"q", "leave"},
      {"up, down, k, j", "select a process (also page up and down, home, end)"},
      {"Enter", "details of it, and no details again"},
      {"s", "sort by the next column"},
      {"f l c d", "sort by footprint, part of the limit, copies, deviations"},
      {"p t n", "sort by pid, state, name"},
      {"r", "the other way about"},
      {"+, -", "look less often, more often"},
      {"space", "stop looking, and go on"},
      {"h, ?", "this, and back"},
      {"a bar", "what is held of the limit; without a limit, of the most that was held"},
  }};
  std::vector<PageLine> lines;
  for (const auto& [key, what] : kHelp) {
    wrap(fmt::format("{:<15}{}", key, what), view.width, view.unicode, Style::kPlain, lines);
  }
  return lines;
}

PageLine key_line(const TopView& view) {
  const char* const keys = view.help ? "h back  q leave"
                           : view.width < kNarrow
                               ? "q leave  s sort  Enter details  h help"
                               : "q leave  s sort  r reverse  up/down select  Enter details  space pause  h help";
  return {{{fit(keys, view.width, view.unicode), Style::kTitle}}};
}

std::vector<PageLine> nothing_there(const TopView& view) {
  std::vector<PageLine> lines;
  if (view.sampled) {
    wrap("no process under memopt has loaded the CUDA driver; start one by: memoptctl run -- COMMAND", view.width,
         view.unicode, Style::kPlain, lines);
  } else {
    wrap("looking", view.width, view.unicode, Style::kDim, lines);
  }
  return lines;
}

// The list, with the selected process in it, in so many lines.
std::vector<PageLine> list(const TopModel& model, TopView& view, std::size_t height) {
  std::vector<PageLine> lines;
  if (height == 0) return lines;
  const std::vector<Column> columns = columns_for(view);
  lines.push_back(header(columns, view.unicode));
  const std::size_t shown = height - 1, total = model.processes().size();
  const std::size_t at = model.selected().value_or(0);
  if (shown == 0) return lines;
  if (at < view.first) view.first = at;
  if (at >= view.first + shown) view.first = at - shown + 1;
  view.first = std::min(view.first, total > shown ? total - shown : 0);
  for (std::size_t i = view.first; i < std::min(view.first + shown, total); ++i) {
    lines.push_back(row(model.processes()[i], columns, i == at));
  }
  return lines;
}

// What is wider than the view, as columns of one line are in a terminal of ten columns, is cut.
void cut(PageLine& line, std::size_t width, bool unicode) {
  std::size_t taken = 0;
  for (Span& span : line.spans) {
    const std::size_t needed = columns_of(span.text, unicode);
    if (taken + needed > width) span.text = fit(span.text, width - taken, unicode);
    taken = std::min(width, taken + needed);
  }
}

}  // namespace

std::size_t columns_of(std::string_view printable_text, bool unicode) {
  std::size_t columns = 0;
  while (!printable_text.empty()) columns += take_character(printable_text, unicode).columns;
  return columns;
}

std::string fit(std::string_view printable_text, std::size_t columns, bool unicode) {
  const bool cut = columns_of(printable_text, unicode) > columns;
  const std::size_t room = cut && columns > 0 ? columns - 1 : columns;
  std::string text;
  std::size_t taken = 0;
  while (!printable_text.empty()) {
    const Character next = take_character(printable_text, unicode);
    if (taken + next.columns > room) break;
    text += next.text;
    taken += next.columns;
  }
  if (cut && columns > 0) {
    text += unicode ? "…" : "~";
    ++taken;
  }
  return text + std::string(columns - taken, ' ');
}

std::vector<PageLine> draw(const TopModel& model, TopView& view) {
  std::vector<PageLine> page;
  if (view.height == 0 || view.width == 0) return page;
  page.push_back(title(model, view));
  const std::size_t keys = view.height >= 5 ? 1 : 0;
  const std::size_t body = view.height - 1 - keys;
  std::vector<PageLine> lines;
  if (view.help) {
    lines = help(view);
  } else if (model.processes().empty()) {
    lines = nothing_there(view);
  } else {
    std::vector<PageLine> below;
    if (view.details) below = details(model.processes()[*model.selected()], view);
    // Details get what the list leaves, and half of the lines at least.
    const std::size_t wanted = model.processes().size() + 1;
    const std::size_t upper =
        view.details ? std::min(wanted, std::max<std::size_t>(body / 2, std::min<std::size_t>(body, 2))) : body;
    lines = list(model, view, upper);
    lines.insert(lines.end(), below.begin(), below.end());
  }
  if (lines.size() > body) lines.resize(body);
  lines.resize(body);
  page.insert(page.end(), lines.begin(), lines.end());
  if (keys != 0) page.push_back(key_line(view));
  for (PageLine& line : page) cut(line, view.width, view.unicode);
  return page;
}

}  // namespace memopt::tools
