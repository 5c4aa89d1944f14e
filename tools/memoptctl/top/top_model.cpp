#include "tools/memoptctl/top/top_model.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "tools/memoptctl/status/status_member.h"

namespace memopt::tools {
namespace {

// Of a counter that only grows. One that is smaller than before is another's, or began anew.
std::optional<double> rate(const std::optional<std::uint64_t>& before, const std::optional<std::uint64_t>& now,
                           double seconds) {
  if (!before || !now || *now < *before || seconds <= 0) return std::nullopt;
  return static_cast<double>(*now - *before) / seconds;
}

// What is not known comes behind all that is.
template <typename Value>
double rank(const std::optional<Value>& value) {
  return value ? static_cast<double>(*value) : -1;
}

// Processes in the order of a key: a number that falls, or a text that grows.
std::tuple<double, std::string> place(const TopProcess& process, TopKey key) {
  switch (key) {
    case TopKey::kFootprint:
      return {-rank(process.footprint ? process.footprint : process.live), ""};
    case TopKey::kFilled:
      return {-rank(process.filled()), ""};
    case TopKey::kCopies:
      return {-rank(process.copy_rate()), ""};
    case TopKey::kDeviations:
      return {-rank(process.deviations), ""};
    case TopKey::kState:
      return {0, process.state};
    case TopKey::kCommand:
      return {0, process.command};
    case TopKey::kPid:
    case TopKey::kCount:
      break;
  }
  return {static_cast<double>(process.pid), ""};
}

}  // namespace

const char* name_of(TopKey key) {
  constexpr std::array<const char*, static_cast<std::size_t>(TopKey::kCount)> kNames = {
      "footprint", "limit", "copies", "deviations", "pid", "state", "command"};
  return kNames.at(static_cast<std::size_t>(key));
}

std::optional<double> TopProcess::copy_rate() const {
  if (!out_rate && !in_rate) return std::nullopt;
  return out_rate.value_or(0) + in_rate.value_or(0);
}

std::optional<double> TopProcess::filled() const {
  if (!limit || *limit == 0 || !held) return std::nullopt;
  return static_cast<double>(*held) / static_cast<double>(*limit);
}

TopProcess TopModel::read(const StatusRow& row) {
  TopProcess process;
  process.pid = row.pid;
  process.command = row.command;
  process.state = row.state;
  process.problem = !row.problems.empty();
  process.footprint = row.footprint;
  process.peak_load = row.peak_load;
  process.live = row.bytes_live;
  process.deviations = row.deviations;
  process.iteration = row.iteration;
  process.footprint_peak = count_member(row.raw, {"plan", "footprint_peak"});
  if (const auto limit = count_member(row.raw, {"swaps", "limit"}); limit && *limit != 0) process.limit = limit;
  process.held = count_member(row.raw, {"swaps", "held"});
  process.away = count_member(row.raw, {"swaps", "away"});
  process.host = count_member(row.raw, {"swaps", "host"});
  process.copied_out = count_member(row.raw, {"swaps", "copied_out"});
  process.copied_in = count_member(row.raw, {"swaps", "copied_in"});
  const nlohmann::json* full = member(row.raw, {"swaps", "device_full"});
  process.device_full = full != nullptr && full->is_boolean() && full->get<bool>();
  if (!row.why.empty()) process.lines.push_back(row.why);
  process.lines.insert(process.lines.end(), row.frameworks.begin(), row.frameworks.end());
  process.lines.insert(process.lines.end(), row.swaps.begin(), row.swaps.end());
  for (const std::string& why : row.why_not) process.lines.push_back("why: " + why);
  for (const std::string& problem : row.problems) process.lines.push_back("problem: " + problem);
  return process;
}

void TopModel::add(const std::vector<StatusRow>& rows, Time now) {
  for (auto& [pid, last] : last_) ++last.missed;
  for (const StatusRow& row : rows) {
    TopProcess process = read(row);
    const std::optional<double> attached = number_member(row.raw, {"attached_seconds"});
    Last& last = last_[row.pid];
    // A process that is younger than the one before is another one with the same number.
    const bool same = last.process.pid == row.pid && !last.process.ended &&
                      !(last.attached && attached && *attached < *last.attached);
    if (same) {
      const double seconds = std::chrono::duration<double>(now - last.when).count();
      process.out_rate = rate(last.process.copied_out, process.copied_out, seconds);
      process.in_rate = rate(last.process.copied_in, process.copied_in, seconds);
      process.deviation_rate = rate(last.process.deviations, process.deviations, seconds);
      process.iteration_rate = rate(last.process.iteration, process.iteration, seconds);
    }
    last = {std::move(process), attached, now, 0};
  }
  std::erase_if(last_, [](const auto& entry) { return entry.second.missed > kShownAfterEnd; });
  processes_.clear();
  for (auto& [pid, last] : last_) {
    if (last.missed > 0) {
      last.process.ended = true;
      last.process.state = "ended";
      last.process.out_rate = last.process.in_rate = last.process.deviation_rate = last.process.iteration_rate = {};
    }
    processes_.push_back(last.process);
  }
  sort();
}

void TopModel::sort() {
  std::stable_sort(processes_.begin(), processes_.end(), [&](const TopProcess& a, const TopProcess& b) {
    const auto first = place(a, key_), second = place(b, key_);
    if (first != second) return reversed_ ? second < first : first < second;
    return a.pid < b.pid;
  });
  const auto at = std::find_if(processes_.begin(), processes_.end(),
                               [&](const TopProcess& process) { return selected_ == process.pid; });
  if (at != processes_.end()) {
    selected_at_ = static_cast<std::size_t>(at - processes_.begin());
  } else {
    select(selected_at_);
  }
}

void TopModel::sort_by(TopKey key) {
  key_ = key;
  sort();
}

void TopModel::reverse() {
  reversed_ = !reversed_;
  sort();
}

std::optional<std::size_t> TopModel::selected() const {
  if (processes_.empty()) return std::nullopt;
  return selected_at_;
}

void TopModel::select(std::size_t position) {
  selected_at_ = processes_.empty() ? 0 : std::min(position, processes_.size() - 1);
  selected_ = processes_.empty() ? std::nullopt : std::optional(processes_[selected_at_].pid);
}

void TopModel::move_selection(std::ptrdiff_t by) {
  const auto last = static_cast<std::ptrdiff_t>(processes_.size()) - 1;
  if (last < 0) return;
  select(static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(selected_at_) + by, 0, last)));
}

}  // namespace memopt::tools
