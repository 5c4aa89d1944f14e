#include "tools/memoptctl/fit/fit_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

#include "planner/recording/reader.h"
#include "tools/memoptctl/common/interruption.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/common/progress_line.h"
#include "tools/memoptctl/exchange/converted_file.h"
#include "tools/memoptctl/fit/dry_run.h"
#include "tools/memoptctl/fit/fit_device.h"
#include "tools/memoptctl/fit/fit_report.h"
#include "tools/memoptctl/fit/scale.h"

namespace memopt::tools {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitWrongUse = 2;
constexpr int kExitTooSmall = 3;
constexpr int kExitNoIteration = 4;

class Fitting {
 public:
  explicit Fitting(const FitOptions& options)
      : options_(options),
        device_(find_device(options.device, options.simulated)),
        progress_(std::in_place, "memoptctl fit") {
    report_.device = device_;
    end_at_interrupt();
  }

  int run() {
    if (options_.command.empty()) {
      report_.rows.push_back(look_at_file());
    } else if (options_.scale.empty()) {
      report_.source = device_.simulated + ", which gave the program as much memory as it asked for";
      report_.rows.push_back(try_command(options_.command, ""));
    } else {
      report_.source = device_.simulated + ", which gave the program as much memory as it asked for";
      try_scale();
    }
    progress_.reset();
    if (interrupted()) {
      fmt::print(stderr, "memoptctl: interrupted\n");
      return kExitFailed;
    }
    // One that could not be looked at has nothing to show.
    if (report_.rows.size() == 1 && !report_.rows.front().fault.empty()) {
      throw std::runtime_error(report_.rows.front().fault);
    }
    if (options_.json) {
      fmt::print("{}\n", to_json(report_).dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
      fmt::print("{}", to_text(report_));
    }
    return exit_code();
  }

 private:
  int exit_code() const {
    bool any = false, failed = true, iteration = false;
    for (const FitRow& row : report_.rows) {
      // Of a part of a recording nothing is known to fit: the rest may need more.
      if (!row.fault.empty() || !row.needs.damage.empty()) continue;
      failed = false;
      iteration = iteration || row.needs.layout.has_value();
      for (std::size_t way = 0; way < kWays; ++way) any = any || fits(row.needs, way, device_.capacity);
    }
    return failed ? kExitFailed : any ? 0 : iteration ? kExitTooSmall : kExitNoIteration;
  }

  Needs needs_of(input::File& file, const std::string& what) {
    const NeedsOptions options{.machine = device_.machine,
                               .swaps = options_.swaps,
                               .seconds = options_.seconds,
                               .threads = options_.threads,
                               .seed = options_.seed};
    return find_needs(file, options, [&](const std::string& stage) { progress_->say(what + stage); });
  }

  FitRow look_at_file() {
    input::File file = open_recording(options_.file);
    FitRow row;
    row.needs = needs_of(file, "");
    try {
      const std::string on = planner::RecordingReader(file.stream()).info().device;
      report_.source = fmt::format("nothing: {} is a recording{}; copies as of {}", printable(options_.file),
                                   on.empty() ? "" : " of a run on " + printable(on), device_.simulated);
    } catch (const planner::RecordingError& error) {
      throw std::runtime_error(printable(options_.file) + ": " + error.what());
    }
    return row;
  }

  FitRow try_command(const std::vector<std::string>& command, const std::string& value) {
    const std::string what = value.empty() ? ""
                                           : fmt::format("{} {}: ", options_.scale.substr(0, options_.scale.find('=')),
                                                         printable(value, 40));
    FitRow row;
    row.value = value;
    progress_->say(what + "running");
    const DryRun run =
        run_dry({.command = command,
                 .simulated = device_.simulated,
                 .limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_seconds))},
                folder_);
    row.fault = run.fault;
    row.note = run.note;
    if (!row.fault.empty() || interrupted()) return row;
    input::File file(run.recording);
    row.needs = needs_of(file, what);
    if (run.stopped) {
      row.note = fmt::format("it was ended after {:g} s: what comes later was not seen", options_.run_seconds);
      row.needs.damage.clear();
    }
    return row;
  }

  void try_scale() {
    const Scale scale = parse_scale(options_.scale);
    report_.scale = scale.name;
    report_.largest.resize(kWays);
    scaled_command(options_.command, scale.name, "");  // whether there is a place for it
    std::map<std::uint64_t, FitRow> tried;             // by index
    const auto row_of = [&](std::uint64_t index) -> const FitRow& {
      const auto known = tried.find(index);
      if (known != tried.end()) return known->second;
      const std::string value = scale.is_range() ? fmt::format("{}", scale.value(index)) : scale.values[index];
      return tried.emplace(index, try_command(scaled_command(options_.command, scale.name, value), value))
          .first->second;
    };
    if (scale.is_range()) {
      for (std::size_t way = 0; way < kWays && !interrupted(); ++way) {
        const auto largest = largest_that_fits(scale.count(), [&](std::uint64_t index) {
          const FitRow& row = row_of(index);
          return row.fault.empty() && fits(row.needs, way, device_.capacity);
        });
        if (largest) report_.largest[way] = fmt::format("{}", scale.value(*largest));
      }
    } else {
      for (std::size_t index = 0; index < scale.values.size() && !interrupted(); ++index) {
        const FitRow& row = row_of(index);
        for (std::size_t way = 0; way < kWays; ++way) {
          // The last of those that fit, as they are given from small to large.
          if (row.fault.empty() && fits(row.needs, way, device_.capacity)) report_.largest[way] = row.value;
        }
      }
    }
    for (auto& [index, row] : tried) report_.rows.push_back(std::move(row));
  }

  const FitOptions& options_;
  FitDevice device_;
  std::optional<ProgressLine> progress_;  // until there is a result
  ScratchFolder folder_;
  FitReport report_;
};

}  // namespace

int fit(const FitOptions& options) {
  try {
    return Fitting(options).run();
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "memoptctl: {}\n", error.what());
    return kExitWrongUse;
  }
}

}  // namespace memopt::tools
