#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/top/terminal.h"

// Its macros have names such as `timeout` and `move`.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

namespace memopt::tools {
namespace {

constexpr int kEscapeWaitMs = 25;  // for the rest of a key's sequence

class Ncurses final : public Terminal {
 public:
  Ncurses(SCREEN* screen, bool unicode) : screen_(screen), unicode_(unicode) {
    ::cbreak();
    ::noecho();
    ::nonl();
    ::keypad(::stdscr, TRUE);
    ::nodelay(::stdscr, TRUE);
    ::set_escdelay(kEscapeWaitMs);
    ::curs_set(0);
    end_at_interrupt();  // in the place of ncurses' own handler, which ends with an error
    const char* const none = std::getenv("NO_COLOR");
    colours_ = (none == nullptr || *none == '\0') && ::has_colors() == TRUE && ::start_color() == OK;
    if (!colours_) return;
    const bool own_background = ::use_default_colors() == OK;
    const short background = own_background ? -1 : COLOR_BLACK;
    ::init_pair(kGreen, COLOR_GREEN, background);
    ::init_pair(kYellow, COLOR_YELLOW, background);
    ::init_pair(kRed, COLOR_RED, background);
    ::init_pair(kBlue, COLOR_CYAN, background);
  }
  ~Ncurses() override {
    ::endwin();
    ::delscreen(screen_);
  }
  Ncurses(const Ncurses&) = delete;
  Ncurses& operator=(const Ncurses&) = delete;

  void paint(const std::vector<PageLine>& page) override {
    ::werase(::stdscr);
    int y = 0;
    for (const PageLine& line : page) {
      ::wmove(::stdscr, y++, 0);
      for (const Span& span : line.spans) {
        ::wattrset(::stdscr, static_cast<int>(attribute(span.style) | (line.selected ? A_REVERSE : A_NORMAL)));
        ::waddstr(::stdscr, span.text.c_str());
      }
      ::wattrset(::stdscr, A_NORMAL);
    }
    ::wrefresh(::stdscr);
  }

  Pressed wait(std::chrono::milliseconds time) override {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(time.count()));
    if (interrupted()) return {Key::kClosed};
    const bool resized = ready < 0 && errno == EINTR;
    const int code = ::wgetch(::stdscr);
    // Readable, and nothing in it: the other side is gone.
    if (code == ERR) return {!resized && ready > 0 ? Key::kClosed : Key::kNone};
    const Pressed key = pressed(code);
    // More right behind it: a key that terminfo does not have for this terminal. Its letters are no commands.
    if (key.key == Key::kEscape && ::wgetch(::stdscr) != ERR) {
      while (::wgetch(::stdscr) != ERR) {
      }
      return {};
    }
    return key;
  }

  std::size_t width() const override { return static_cast<std::size_t>(std::max(::getmaxx(::stdscr), 0)); }
  std::size_t height() const override { return static_cast<std::size_t>(std::max(::getmaxy(::stdscr), 0)); }
  bool unicode() const override { return unicode_; }

 private:
  enum Pair : short { kGreen = 1, kYellow, kRed, kBlue };

  static Pressed pressed(int code) {
    constexpr int kEscapeCode = 27;
    switch (code) {
      case KEY_UP:
        return {Key::kUp};
      case KEY_DOWN:
        return {Key::kDown};
      case KEY_PPAGE:
        return {Key::kPageUp};
      case KEY_NPAGE:
        return {Key::kPageDown};
      case KEY_HOME:
        return {Key::kHome};
      case KEY_END:
        return {Key::kEnd};
      case KEY_ENTER:
      case '\n':
      case '\r':
        return {Key::kEnter};
      case kEscapeCode:
        return {Key::kEscape};
      default:
        if (code >= ' ' && code < 0x7F) return {Key::kLetter, static_cast<char>(code)};
        return {};
    }
  }

  attr_t attribute(Style style) const {
    const auto colour = [&](Pair pair, attr_t otherwise) {
      return colours_ ? static_cast<attr_t>(COLOR_PAIR(pair)) : otherwise;
    };
    switch (style) {
      case Style::kTitle:
        return A_BOLD;
      case Style::kHeader:
        return colour(kBlue, A_NORMAL) | A_UNDERLINE;
      case Style::kDim:
        return A_DIM;
      case Style::kGood:
        return colour(kGreen, A_NORMAL);
      case Style::kBusy:
        return colour(kYellow, A_NORMAL);
      case Style::kProblem:
        return colour(kRed, A_NORMAL) | A_BOLD;
      case Style::kPlain:
        break;
    }
    return A_NORMAL;
  }

  SCREEN* screen_;
  bool unicode_;
  bool colours_ = false;
};

}  // namespace

std::unique_ptr<Terminal> open_terminal(std::string* why) {
  for (const auto& [fd, name] :
       {std::pair(STDOUT_FILENO, "standard output"), std::pair(STDIN_FILENO, "standard input")}) {
    if (::isatty(fd) != 0) continue;
    *why = fmt::format("{} is no terminal; memoptctl status --watch says the same line by line", name);
    return nullptr;
  }
  std::setlocale(LC_CTYPE, "");
  const char* const term = std::getenv("TERM");
  if (term == nullptr || *term == '\0') {
    *why = "TERM is not set: expected the name of this terminal, such as xterm-256color";
    return nullptr;
  }
  int error = 0;
  const bool known = ::setupterm(nullptr, STDOUT_FILENO, &error) == OK;
  // Without a way to move the cursor, such as TERM=dumb.
  const bool moves = known && cursor_address != nullptr;
  SCREEN* const screen = moves ? ::newterm(nullptr, stdout, stdin) : nullptr;
  if (screen == nullptr) {
    *why = fmt::format("TERM={}: {}; memoptctl status --watch needs no such terminal", printable(term, 60),
                       known ? "such a terminal has no full screen" : "no such terminal is known here (terminfo)");
    return nullptr;
  }
  return std::make_unique<Ncurses>(screen, MB_CUR_MAX > 1);
}

}  // namespace memopt::tools
