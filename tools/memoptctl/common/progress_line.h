// One line on standard error while something takes more than two seconds, where a person is looking: what is done now,
// and for how long. It is gone when that is over.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace memopt::tools {

// Nothing is shown where standard error is no terminal. A thread writes it; `say` may be called by any.
class ProgressLine {
 public:
  explicit ProgressLine(std::string command);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void say(const std::string& what);

 private:
  void show();

  const std::string command_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace memopt::tools
