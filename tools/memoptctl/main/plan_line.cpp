#include "tools/memoptctl/main/plan_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "planner/input/file.h"
#include "shm/durations.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/exchange/converted_file.h"
#include "tools/memoptctl/main/number_option.h"
#include "tools/memoptctl/recompute/recompute_command.h"
#include "tools/memoptctl/swap/swap_plan_command.h"
#include "tools/memoptctl/swap/swap_problem.h"

namespace memopt::tools {
namespace {

constexpr std::uint64_t kDay = 24 * 3600 * shm::kOneSecond;
constexpr int kExitWrongUse = 2;
constexpr const char* kSwaps = "Swaps (any of these asks for them)";
constexpr const char* kRecompute = "Computing again";
constexpr const char* kLayout = "layout";

bool same_file(const std::string& one, const std::string& other) {
  const auto whole = [](const std::string& path) {
    std::error_code none;
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, none), none);
  };
  return !one.empty() && !other.empty() && whole(one) == whole(other);
}

}  // namespace

void PlanLine::add_to(CLI::App& command) {
  app_ = &command;
  app_->add_option("file", layout_.file,
                   "written by memoptctl record, a text trace, a log for DTR's simulator, a kernel table of G10's, "
                   "an iteration (memopt-plan-1 or -2), or what memoptctl import reads; -: standard input; packed by "
                   "gzip or zstd or not")
      ->type_name("FILE")
      ->required();
  app_->add_option("--json", layout_.json, "write the plan with every operation here (memopt-plan-1 or -2)")
      ->type_name("OUT");
  app_->add_option("--buffers", layout_.buffers,
                   "write the layout problem here, for memoptctl solve (CSV); without swaps")
      ->type_name("OUT");
  const auto option = [&](const char* name, auto& value, const char* help, const char* type) {
    return app_->add_option(name, value, help)->type_name(type)->group(kSwaps);
  };
  option(
      "--strategy", strategy_,
      "memopt, none, autoswap:doa, autoswap:aoa, autoswap:wdoa, autoswap:swdoa, autoswap:tuned (memopt); or layout: no "
      "swaps, what a program under memopt gets today (a recording or a trace without any of these options)",
      "NAME");
  option(
      "--limit", swaps_.limit,
      "most bytes, a size from 0 to 2^62 bytes (300MiB, 8G), or with % for a part of the peak load (60%); else least "
      "footprint at no added time",
      "SIZE");
  option("--objective", swaps_.objective,
         "footprint: the least at no added time; time: the least added within the limit (if there is one)", "NAME");
  option(
      "--machine", swaps_.machine,
      "gtx1080ti, a100-40g, h200, or OUT:IN[:OUT_LATENCY:IN_LATENCY] of copies in GB/s and ns (the file's; gtx1080ti "
      "where it has none)",
      "NAME");
  option("--plot", swaps_.plot,
         "draw the plan, or the comparison; with --recompute the comparison, or a plan with --places: a page for a "
         "browser (HTML)",
         "OUT");
  app_->add_flag("--compare", swaps_.compare,
                 "the least added time by all strategies within several limits, as a table; with --json as JSON")
      ->group(kSwaps);
  option("--limits", swaps_.limits,
         "of the comparison, each as for --limit (100%,90%,80%,70%,60%,50%,40%; with --recompute 90%,80%,...,10%)",
         "A,B,...")
      ->delimiter(',');
  option("--strategies", swaps_.strategies,
         "of the comparison (all, autoswap:tuned included, which may take minutes; with --recompute all but checkmate, "
         "checkmate:lp, dqn and dqn:transfer)",
         "A,B,...")
      ->delimiter(',');
  accept_duration(option("--time-budget", swaps_.seconds,
                         "for the strategy memopt, and for autoswap:tuned (60s) and dqn (30s), under each limit", "N"),
                  PlainUnit::kSeconds, shm::kOneSecond / 20, kDay)
      ->capture_default_str();
  accept_whole(
      option("--attempts", swaps_.attempts,
             "of the strategy memopt, instead of --time-budget: so many plans are tried by each thread, at most, "
             "for each of several limits up to the one that is given. The same line then gives the same plan, "
             "and a wider limit or more attempts never a worse one; it takes as long as it takes",
             "N"),
      0, 1'000'000'000);
  accept_whole(option("--threads", swaps_.threads, "of the strategy memopt, 0: one for each processor", "N"), 0, 1024)
      ->capture_default_str();
  app_->add_flag("--clean-drops", swaps_.clean_drops,
                 "of the strategy memopt: a block that was only read since it was copied to the host leaves without "
                 "another copy; no program can carry that out yet")
      ->group(kSwaps);
  accept_duration(
      option("--remap-time", swaps_.remap_us,
             "of the strategy memopt: blocks may return to other places than those where they were, and the "
             "host takes so long to map the addresses of a chunk anew (74us by published figures); "
             "no program can carry that out yet",
             "N"),
      PlainUnit::kMicroseconds, 0, shm::kOneSecond);
  accept_whole(option("--seed", swaps_.seed, "of what is random in a strategy", "N"), 0,
               std::numeric_limits<std::uint64_t>::max())
      ->capture_default_str();
  accept_duration(option("--layout-time", swaps_.layout_seconds, "for each layout that the other strategies try", "N"),
                  PlainUnit::kSeconds, shm::kOneSecond / 1000, 3600 * shm::kOneSecond)
      ->capture_default_str();
  app_->add_flag("!--no-bound", swaps_.bound, "show no lower bounds")->group(kSwaps);
  accept_duration(option("--bound-time", swaps_.bound_seconds,
                         "for a lower bound, without it where that is not enough (where launches are computed "
                         "again 5s if not given, and the best until then)",
                         "N"),
                  PlainUnit::kSeconds, shm::kOneSecond / 20, kDay)
      ->capture_default_str();
  app_->add_flag(
          "--recompute", recompute_,
          "drop blocks and compute them again, instead of swapping: by --strategy memopt, dtr, dtr:eq, dtr:local, "
          "dtr:lru, dtr:size, dtr:msps, chen:sqrt, chen:budget, chen:recursive or chen:drop-cheap within --limit, or "
          "all of them with --compare; or, if they are named, by checkmate or checkmate:lp, which take up to a minute "
          "for "
          "each limit, dqn, a deep Q-network that learns on the iteration for --time-budget, or dqn:transfer, one that "
          "learns on generated iterations first; of recordings, text traces, logs for DTR's simulator, kernel tables "
          "of "
          "G10's, and iterations with launches (memopt-plan-2). No program can carry that out yet")
      ->group(kRecompute);
  app_->add_flag("--swap", swaps_.swap,
                 "with --recompute: swap as well; memopt then chooses among both, memopt:recompute and memopt:swap are "
                 "for one of them alone")
      ->group(kRecompute);
  app_->add_flag(
          "--places", swaps_.places,
          "with --recompute: plan where all lies as well, so that a layout is within the limit, and not the load "
          "alone. --layout-time is for the layouts of strategies other than memopt then")
      ->group(kRecompute);
  app_->add_option("--kernels", swaps_.kernels,
                   "of a recording: how kernels use the blocks that they name, a line PATTERN: USE each "
                   "(docs/formats/kernel-list.md); without it, launches may have changed all of them")
      ->type_name("FILE")
      ->group(kRecompute);
  app_->add_option(
          "--assume", swaps_.assume,
          "reads: of a recording, launches of kernels that are not in the list, and make a block, only read what "
          "else they name; writes: of a text trace, what is Mutable is not read. Neither is known")
      ->type_name("NAME")
      ->group(kRecompute);
  accept_whole(app_->add_option("--episodes", swaps_.episodes,
                                "of dqn: ends after so many, whatever time they take (unless --time-budget is given), "
                                "so that the same seed gives the same plan; of dqn:transfer: up to 6000")
                   ->type_name("N")
                   ->group(kRecompute),
               1, 1000000000);
  app_->add_option(
          "--training-curve", swaps_.training_curve,
          "of dqn and dqn:transfer: write the episodes in which it learned (CSV: episode, epsilon, return, added_ns, "
          "best_added_ns)")
      ->type_name("OUT")
      ->group(kRecompute);
  app_->footer(
      "Exit code: 0; 1 if FILE can't be read or has nothing to plan swaps for; 2 wrong use; 3 if no plan fits into the "
      "limit, the least that does being named (but by checkmate); 4 if no iteration was found in FILE.");
}

int PlanLine::run() {
  const auto wrong = [](const std::string& why) {
    fmt::print(stderr, "memoptctl plan: {}\n", why);
    return kExitWrongUse;
  };
  input::File file = open_recording(layout_.file);
  const bool iteration = is_iteration(file);
  for (const CLI::Option* const one : app_->get_options()) {
    if (one->get_group() == kSwaps && one->count() > 0) swaps_.given.push_back(one->get_name());
  }
  if (swaps_.swap && !recompute_) return wrong("--swap is for --recompute; without it, swaps are what is planned");
  if (swaps_.places && !recompute_)
    return wrong("--places is for --recompute; without it, problems say whether they have a layout");
  if ((swaps_.episodes != 0 || !swaps_.training_curve.empty()) && !recompute_)
    return wrong("--episodes and --training-curve are for --recompute by dqn");
  if ((!swaps_.kernels.empty() || !swaps_.assume.empty()) && !recompute_)
    return wrong("--kernels and --assume are for --recompute");
  const std::pair<const char*, const std::string*> outs[] = {{"--json", &layout_.json},
                                                             {"--buffers", &layout_.buffers},
                                                             {"--plot", &swaps_.plot},
                                                             {"--training-curve", &swaps_.training_curve}};
  for (const auto& [name, path] : outs) {
    if (path->empty()) continue;
    for (const auto& [other, its] : outs) {
      if (std::string_view(name) < other && same_file(*path, *its))
        return wrong(fmt::format("{} and {} name the same file", name, other));
    }
    if (swaps_.compare && same_file(*path, layout_.file))
      return wrong(fmt::format("{} names the file that is read, and would take its place", name));
  }
  if (recompute_) {
    if (!layout_.buffers.empty()) return wrong("--buffers is of the layout, and --recompute plans none");
    swaps_.file = layout_.file;
    swaps_.json = layout_.json;
    if (!strategy_.empty()) swaps_.strategy = strategy_;
    return recompute_plan(swaps_, file);
  }
  if (strategy_ == kLayout) {
    if (iteration) {
      return wrong(
          fmt::format("--strategy layout is for recordings and text traces, and {} is an iteration; "
                      "--strategy none plans it without swaps",
                      printable(layout_.file)));
    }
    for (const std::string& name : swaps_.given) {
      if (name != "--strategy") return wrong(name + " is for swaps, and --strategy layout plans none");
    }
  } else if (iteration || !swaps_.given.empty()) {
    if (!layout_.buffers.empty()) {
      return wrong(iteration ? fmt::format("--buffers is for recordings and text traces, and {} is an iteration",
                                           printable(layout_.file))
                             : fmt::format("--buffers is of the layout without swaps, and {} asks for swaps",
                                           swaps_.given.front()));
    }
    swaps_.file = layout_.file;
    swaps_.json = layout_.json;
    if (!strategy_.empty()) swaps_.strategy = strategy_;
    return swap_plan(swaps_, file);
  }
  return plan(layout_, file);
}

}  // namespace memopt::tools
