#include "tools/memoptctl/main/fit_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "shm/durations.h"
#include "tools/memoptctl/main/number_option.h"
#include "tools/memoptctl/run/simulated_device.h"

namespace memopt::tools {
namespace {

constexpr std::uint64_t kDay = 24 * 3600 * shm::kOneSecond;
constexpr int kExitWrongUse = 2;

}  // namespace

CLI::App* FitLine::add_to(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("fit", "Say whether a program fits on a device, before it runs there");
  command
      ->add_option(
          "--device", options_.device,
          "the device that is asked about: its memory (24GiB), or a simulated device by name or file (a100-40g)")
      ->type_name("SIZE|PRESET");
  command
      ->add_option("--sim", options_.simulated,
                   "the simulated device that the program runs on (that of --device if it is one, else a100-40g)")
      ->type_name("PRESET");
  command
      ->add_option(
          "--scale", options_.scale,
          "try several values in the place of {NAME} in the command: batch_size=8,16,32, or 8..512 or 8..512:8 "
          "to look for the largest that fits")
      ->type_name("NAME=VALUES");
  accept_duration(command->add_option("--time-budget", options_.seconds, "for planning, for each value"),
                  PlainUnit::kSeconds, shm::kOneSecond / 10, kDay)
      ->capture_default_str();
  accept_duration(command->add_option("--run-time", options_.run_seconds,
                                      "let the program run so long at most, for each value, and use what was seen"),
                  PlainUnit::kSeconds, shm::kOneSecond / 10, kDay)
      ->capture_default_str();
  accept_whole(command->add_option("--threads", options_.threads, "of planning (0, one for each processor)"), 0, 1024);
  accept_whole(command->add_option("--seed", options_.seed, "of what is random in planning"), 0, ~std::uint64_t{0})
      ->capture_default_str();
  command->add_flag("!--no-swaps", options_.swaps, "do not look for swaps, which takes most of the time");
  command->add_flag("--json", options_.json, "machine-readable, one object");
  command->allow_extras();
  command->footer(
      "Form: memoptctl fit [OPTION...] -- COMMAND [ARGUMENT...]\n"
      "      memoptctl fit [OPTION...] FILE   (a recording, or what memoptctl import reads)\n"
      "Exit code: 0 it fits in some way; 1 it can't be run or read, or not to its end; 2 wrong use; 3 it does not fit "
      "in "
      "any; 4 it does not fit as it is, and no iteration was found.");
  return command;
}

int FitLine::run(std::vector<std::string> files, std::vector<std::string> program) {
  const auto wrong = [](const char* why) {
    fmt::print(stderr, "memoptctl: {}\n", why);
    return kExitWrongUse;
  };
  if (files.empty() && program.empty()) {
    return wrong("fit needs a command or a recording: memoptctl fit -- COMMAND [ARGUMENT...]");
  }
  if (files.size() > 1 || (!files.empty() && !program.empty())) {
    return wrong("fit takes one recording, or a command behind --");
  }
  if (!files.empty() && !options_.scale.empty()) {
    return wrong("--scale is for a command, which is run with each value");
  }
  options_.command = std::move(program);
  if (!files.empty()) options_.file = files.front();
  return fit(options_);
}

}  // namespace memopt::tools
