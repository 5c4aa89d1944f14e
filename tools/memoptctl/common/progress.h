// One line on standard error about work that takes long.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace memopt::tools {

// Says nothing in the first two seconds. On a terminal the line is written again in place, and taken away at the end;
// else each stage is a line of its own. One thread.
class Progress {
 public:
  explicit Progress(std::string command) : command_(std::move(command)), begun_(std::chrono::steady_clock::now()) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // What is being done: text for a terminal.
  void stage(const std::string& what);
  // Still the same: so that it shows when its time has come, and how long it took.
  void look();
  // Before something else is written.
  void clear();

 private:
  void show();

  std::string command_;
  std::string what_;
  std::chrono::steady_clock::time_point begun_;
  std::optional<std::chrono::steady_clock::time_point> shown_at_;
  bool on_line_ = false;  // something stands there
};

}  // namespace memopt::tools
