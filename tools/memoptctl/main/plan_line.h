// The line of `memoptctl plan`: its options, and which of the two plans it asks for.
#pragma once

#include <string>

#include "tools/memoptctl/plan/plan_command.h"
#include "tools/memoptctl/swap/swap_options.h"

namespace CLI {
class App;
}

namespace memopt::tools {

class PlanLine {
 public:
  // To the subcommand. This must stay where it is until the line was parsed.
  void add_to(CLI::App& command);

  // After that. The exit code.
  int run();

 private:
  PlanOptions layout_;
  SwapPlanOptions swaps_;
  std::string strategy_;
  bool recompute_ = false;
  CLI::App* app_ = nullptr;
};

}  // namespace memopt::tools
