#include "tools/memoptctl/main/describing_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/description/command_tree.h"
#include "tools/memoptctl/description/completion.h"
#include "tools/memoptctl/description/manual.h"
#include "tools/memoptctl/run/simulated_device.h"

namespace memopt::tools {

void DescribingLine::add_to(CLI::App& app) {
  completion_app_ = app.add_subcommand("completion", "Print what a shell needs to complete memoptctl's line");
  completion_app_->add_option("shell", shell_, kShells)
      ->required()
      ->type_name("SHELL")
      ->check(CLI::Validator(
          [](std::string& shell) {
            return shell == "bash" || shell == "zsh" || shell == "fish"
                       ? std::string()
                       : fmt::format("expected {}, not '{}'", kShells, printable(shell));
          },
          ""));
  completion_app_->footer(
      "Packages install it. By hand: eval \"$(memoptctl completion bash)\" in bash or zsh (after compinit), memoptctl "
      "completion fish | source in fish.");
  manual_app_ = app.add_subcommand("manual", "")->group("");
}

bool DescribingLine::given() const { return *completion_app_ || *manual_app_; }

int DescribingLine::run(const CLI::App& app) {
  const CommandTree tree = tree_of(app, MEMOPT_VERSION);
  if (*manual_app_) {
    fmt::print("{}", manual(tree));
    return 0;
  }
  const std::optional<std::string> text = completion(tree, shell_, simulated_devices());
  if (!text) return 2;
  fmt::print("{}", *text);
  return 0;
}

}  // namespace memopt::tools
