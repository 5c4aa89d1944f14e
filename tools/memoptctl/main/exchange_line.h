// The lines of `memoptctl export` and `import`.
#pragma once

#include "tools/memoptctl/exchange/exchange_command.h"

namespace CLI {
class App;
}

namespace memopt::tools {

class ExchangeLine {
 public:
  // This must stay where it is until the line was parsed.
  void add_to(CLI::App& app);

  // Whether one of them was named.
  bool named() const;
  // The exit code.
  int run();

 private:
  ExportOptions export_;
  ImportOptions import_;
  CLI::App* export_app_ = nullptr;
  CLI::App* import_app_ = nullptr;
};

}  // namespace memopt::tools
