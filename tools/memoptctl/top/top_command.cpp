#include "tools/memoptctl/top/top_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "tools/memoptctl/top/sampler.h"
#include "tools/memoptctl/top/terminal.h"
#include "tools/memoptctl/top/top_model.h"
#include "tools/memoptctl/top/top_page.h"

namespace memopt::tools {
namespace {

// New samples are looked for so often; keys are taken as they come.
constexpr std::chrono::milliseconds kLook{50};

std::chrono::milliseconds in_milliseconds(double seconds) {
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

class Top {
 public:
  Top(Terminal& terminal, double interval) : terminal_(terminal), sampler_(in_milliseconds(interval)) {
    view_.interval = interval;
    view_.unicode = terminal.unicode();
  }

  void run() {
    for (bool changed = true, left = false; !left;) {
      changed = take_sample() || changed;
      changed = take_size() || changed;
      if (changed) terminal_.paint(draw(model_, view_));
      const Pressed pressed = terminal_.wait(kLook);
      changed = pressed.key != Key::kNone;
      left = pressed.key == Key::kClosed || (changed && !handle(pressed));
    }
  }

 private:
  bool take_sample() {
    std::optional<Sample> sample = sampler_.take();
    if (!sample || (view_.paused && view_.sampled)) return false;
    model_.add(sample->snapshot.rows, sample->when);
    view_.unreadable = sample->snapshot.unreadable;
    view_.sampled = true;
    return true;
  }

  bool take_size() {
    const std::size_t width = terminal_.width(), height = terminal_.height();
    if (width == view_.width && height == view_.height) return false;
    view_.width = width;
    view_.height = height;
    return true;
  }

  void set_interval(double seconds) {
    view_.interval = std::clamp(seconds, kLeastInterval, kMostInterval);
    sampler_.set_interval(in_milliseconds(view_.interval));
  }

  static std::optional<TopKey> sort_key(char letter) {
    switch (letter) {
      case 'f':
        return TopKey::kFootprint;
      case 'l':
        return TopKey::kFilled;
      case 'c':
        return TopKey::kCopies;
      case 'd':
        return TopKey::kDeviations;
      case 'p':
        return TopKey::kPid;
      case 't':
        return TopKey::kState;
      case 'n':
        return TopKey::kCommand;
      default:
        return std::nullopt;
    }
  }

  // False: it is left.
  bool handle_letter(char letter) {
    if (letter == 'q') return false;
    if (const auto key = sort_key(letter)) model_.sort_by(*key);
    if (letter == 'k') model_.move_selection(-1);
    if (letter == 'j') model_.move_selection(1);
    if (letter == 's') {
      constexpr int kKeys = static_cast<int>(TopKey::kCount);
      model_.sort_by(static_cast<TopKey>((static_cast<int>(model_.key()) + 1) % kKeys));
    }
    if (letter == 'r') model_.reverse();
    if (letter == 'h' || letter == '?') view_.help = !view_.help;
    if (letter == ' ') view_.paused = !view_.paused;
    if (letter == '+') set_interval(view_.interval * 2);
    if (letter == '-') set_interval(view_.interval / 2);
    return true;
  }

  bool handle(const Pressed& pressed) {
    const auto page = static_cast<std::ptrdiff_t>(std::max<std::size_t>(view_.height / 2, 1));
    switch (pressed.key) {
      case Key::kUp:
        model_.move_selection(-1);
        break;
      case Key::kDown:
        model_.move_selection(1);
        break;
      case Key::kPageUp:
        model_.move_selection(-page);
        break;
      case Key::kPageDown:
        model_.move_selection(page);
        break;
      case Key::kHome:
        model_.select(0);
        break;
      case Key::kEnd:
        model_.select(model_.processes().size());
        break;
      case Key::kEnter:
        view_.details = !view_.details;
        break;
      case Key::kEscape:
        // It does not leave: keys that are not known begin with it, too.
        view_.help = view_.details = false;
        break;
      case Key::kLetter:
        return handle_letter(static_cast<char>(std::tolower(static_cast<unsigned char>(pressed.letter))));
      case Key::kNone:
      case Key::kClosed:
        break;
    }
    return true;
  }

  Terminal& terminal_;
  Sampler sampler_;
  TopModel model_;
  TopView view_;
};

}  // namespace

int top(const TopOptions& options) {
  std::string why;
  const std::unique_ptr<Terminal> terminal = open_terminal(&why);
  if (terminal == nullptr) {
    fmt::print(stderr, "memoptctl: top: {}\n", why);
    return 1;
  }
  Top(*terminal, options.interval).run();
  return 0;
}

}  // namespace memopt::tools
