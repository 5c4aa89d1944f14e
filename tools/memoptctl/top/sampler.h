// Takes samples beside the screen: a process that is stopped keeps one waiting for its answer, and keys must not wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {

struct Sample {
  Snapshot snapshot;
  std::chrono::nanoseconds when{};  // of a clock that goes forward only
};

class Sampler {
 public:
  explicit Sampler(std::chrono::milliseconds interval);
  ~Sampler();  // waits for the sample that is being taken, which is bounded
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // The newest one that was not taken yet.
  std::optional<Sample> take();
  // From now on; the next sample comes at once.
  void set_interval(std::chrono::milliseconds interval);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::milliseconds interval_;
  bool at_once_ = false;
  bool ends_ = false;
  std::optional<Sample> newest_;
  std::thread thread_;
};

}  // namespace memopt::tools
