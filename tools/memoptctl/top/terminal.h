// A terminal with a full screen: the only place that knows the library that draws (ncurses). Without that library there
// is none to open (terminal_missing.cpp).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/memoptctl/top/top_page.h"

namespace memopt::tools {

enum class Key : std::uint8_t {
  kNone,  // the time is over, or the size has changed
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kHome,
  kEnd,
  kEnter,
  kEscape,
  kLetter,
  kClosed,  // nothing will come any more
};

struct Pressed {
  Key key = Key::kNone;
  char letter = 0;  // of kLetter, ASCII
};

class Terminal {
 public:
  virtual ~Terminal() = default;  // leaves the screen as it was

  // Changes only what differs from the page before.
  virtual void paint(const std::vector<PageLine>& page) = 0;
  virtual Pressed wait(std::chrono::milliseconds time) = 0;
  virtual std::size_t width() const = 0;
  virtual std::size_t height() const = 0;
  virtual bool unicode() const = 0;
};

// On standard input and output. nullptr with a sentence where these are no terminal, TERM names none that is known, or
// this build has no library for it. Colours unless NO_COLOR is set (https://no-color.org).
std::unique_ptr<Terminal> open_terminal(std::string* why);

}  // namespace memopt::tools
