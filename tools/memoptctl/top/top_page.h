// The screen of `memoptctl top` as lines of styled text, drawn from the model alone: what a terminal is has no part in
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/memoptctl/top/top_model.h"

namespace memopt::tools {

enum class Style : std::uint8_t { kPlain, kTitle, kHeader, kDim, kGood, kBusy, kProblem };

struct Span {
  std::string text;  // printable
  Style style = Style::kPlain;
};

struct PageLine {
  std::vector<Span> spans;
  bool selected = false;
};

struct TopView {
  std::size_t width = 80, height = 24;
  bool unicode = true;   // what is not ASCII can be shown
  bool details = false;  // of the selected process, in the lower half
  bool help = false;     // the keys instead of the processes
  bool paused = false;
  bool sampled = false;  // false: no sample yet, rather than no process
  double interval = 2;   // seconds
  std::size_t unreadable = 0;
  std::size_t first = 0;  // process at the top of the list; draw() moves it so that the selected one is seen
};

// `height` lines at most, none wider than `width`, whatever the size: 1 column and 1 line are drawn, too.
std::vector<PageLine> draw(const TopModel& model, TopView& view);

// Columns of a terminal that printable text takes (a character may take none, one or two), by the locale's LC_CTYPE.
std::size_t columns_of(std::string_view printable_text, bool unicode = true);
// As many columns as asked for, filled with blanks or cut with a mark at the end.
std::string fit(std::string_view printable_text, std::size_t columns, bool unicode = true);

}  // namespace memopt::tools
