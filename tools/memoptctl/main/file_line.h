// The lines of commands that look at a file: `show`, `report`, `reduce` and `solve`.
#pragma once

#include <string>

#include "tools/memoptctl/plan/reduce_command.h"
#include "tools/memoptctl/recording/show_command.h"
#include "tools/memoptctl/report/report_command.h"
#include "tools/memoptctl/solve/solve_command.h"

namespace CLI {
class App;
}

namespace memopt::tools {

class FileLine {
 public:
  // Each by itself, as --help has others between them. This must stay where it is until the line was parsed.
  void add_show(CLI::App& app);
  void add_report(CLI::App& app);
  void add_reduce(CLI::App& app);
  void add_solve(CLI::App& app);

  // Whether one of them was named.
  bool named() const;
  // The exit code.
  int run();

 private:
  int run_show();

  CLI::App* show_app_ = nullptr;
  CLI::App* report_app_ = nullptr;
  CLI::App* reduce_app_ = nullptr;
  CLI::App* solve_app_ = nullptr;
  ShowOptions show_;
  ReportOptions report_;
  ReduceOptions reduce_;
  SolveOptions solve_;
  std::string operations_;
};

}  // namespace memopt::tools
