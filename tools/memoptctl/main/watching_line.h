// The lines of commands that go on until they are ended: `top`, `metrics`, and `status --watch`.
#pragma once

#include <optional>
#include <string>

#include "tools/memoptctl/metrics/metrics_command.h"
#include "tools/memoptctl/top/top_command.h"

namespace CLI {
class App;
}

namespace memopt::tools {

class WatchingLine {
 public:
  // To memoptctl, and to its `status`. This must stay where it is until the line was parsed.
  void add_to(CLI::App& app);
  void add_watch(CLI::App& status);

  // After that. Seconds between two looks, where `status` is to go on.
  std::optional<double> watch() const;
  // Does the line name a command of this file? Its exit code.
  bool given() const;
  int run();

 private:
  CLI::App* status_ = nullptr;
  CLI::App* top_app_ = nullptr;
  CLI::App* metrics_app_ = nullptr;
  std::string watch_;
  TopOptions top_;
  MetricsOptions metrics_;
};

}  // namespace memopt::tools
