// The line of `memoptctl fit`.
#pragma once

#include <string>
#include <vector>

#include "tools/memoptctl/fit/fit_command.h"

namespace CLI {
class App;
}

namespace memopt::tools {

class FitLine {
 public:
  // This must stay where it is until the line was parsed. Null in a program without it.
  CLI::App* add_to(CLI::App& app);

  // `files`: words of the line that are no options; `program`: those behind "--". The exit code.
  int run(std::vector<std::string> files, std::vector<std::string> program);

 private:
  FitOptions options_;
};

}  // namespace memopt::tools
