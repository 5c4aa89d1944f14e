// The lines that say what memoptctl's lines are: `completion`, and `manual`, which the build calls.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace memopt::tools {

class DescribingLine {
 public:
  // To memoptctl. This must stay where it is until the line was parsed.
  void add_to(CLI::App& app);

  // After that. Does the line name a command of this file? Its exit code; `app` is what is described.
  bool given() const;
  int run(const CLI::App& app);

 private:
  CLI::App* completion_app_ = nullptr;
  CLI::App* manual_app_ = nullptr;
  std::string shell_;
};

}  // namespace memopt::tools
