#include "tools/memoptctl/main/watching_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "shm/durations.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/main/number_option.h"
#include "tools/memoptctl/status/watch_command.h"

namespace memopt::tools {
namespace {

// What CLI11 gives for an option that may go without its value, and does.
constexpr const char* kNoValue = "true";

std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(seconds * static_cast<double>(shm::kOneSecond));
}

// In seconds.
std::optional<double> interval(const std::string& text) {
  const auto nanoseconds = shm::parse_duration(text, shm::kOneSecond);
  if (!nanoseconds) return std::nullopt;
  const double seconds = static_cast<double>(*nanoseconds) / static_cast<double>(shm::kOneSecond);
  return seconds >= kLeastInterval && seconds <= kMostInterval ? std::optional(seconds) : std::nullopt;
}

}  // namespace

void WatchingLine::add_watch(CLI::App& status) {
  status_ = &status;
  const std::string expected =
      duration_words(PlainUnit::kSeconds, nanoseconds(kLeastInterval), nanoseconds(kMostInterval));
  status.add_option("--watch", watch_, fmt::format("again and again, so far apart ({:g}s); {}", kUsualWatch, expected))
      ->expected(0, 1)
      ->type_name("[DURATION]")
      ->check(CLI::Validator(
          [expected](std::string& text) {
            if (text.empty() || text == kNoValue || interval(text)) return std::string();
            return fmt::format("expected {}, not '{}'", expected, printable(text));
          },
          ""));
}

void WatchingLine::add_to(CLI::App& app) {
  top_app_ = app.add_subcommand("top", "Watch the processes that run under memopt, on a full screen");
  accept_duration(top_app_->add_option("--interval", top_.interval, "between two looks"), PlainUnit::kSeconds,
                  shm::kOneSecond / 10, 3600 * shm::kOneSecond)
      ->capture_default_str();
  top_app_->footer(
      "Keys: q leave; s or f, l, c, d, p, t, n sort; r the other way about; up, down select; Enter details; space "
      "pause; + and - change the interval; h help. NO_COLOR=1: without colours.\n"
      "Exit code: 0; 1 where there is no terminal for it.");

  metrics_app_ = app.add_subcommand("metrics", "Say what status knows as OpenMetrics, once or to Prometheus");
  metrics_app_
      ->add_option(
          "--listen", metrics_.listen,
          "serve /metrics by HTTP at this address of this machine, until interrupted; port 0: one that is free")
      ->type_name("ADDRESS:PORT")
      ->check(CLI::Validator([](std::string& text) { return listen_fault(text); }, ""));
  metrics_app_->add_flag("--markdown", metrics_.markdown, "list what there is, as the table in docs/metrics.md");
  metrics_app_->footer("Exit code: 0; 1 where the address can't be listened at.");
}

std::optional<double> WatchingLine::watch() const {
  if (status_->count("--watch") == 0) return std::nullopt;
  return interval(watch_).value_or(kUsualWatch);
}

bool WatchingLine::given() const { return *top_app_ || *metrics_app_; }

int WatchingLine::run() { return *top_app_ ? top(top_) : metrics(metrics_); }

}  // namespace memopt::tools
