// What `memoptctl top` knows: the processes of the last samples, rates between two of them, an order, and a selection.
// It draws nothing, asks nothing and knows no clock: samples come with their time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/memoptctl/status/status_command.h"

namespace memopt::tools {

// One process. Bytes, and bytes a second.
struct TopProcess {
  pid_t pid = 0;
  std::string command, state;
  bool problem = false;
  bool ended = false;  // it was there in the sample before, or a few before that
  std::optional<std::uint64_t> footprint, footprint_peak, peak_load, live;
  // Of the limit; nothing where there is none.
  std::optional<std::uint64_t> limit, held, away, host;
  bool device_full = false;  // the limit is what the device had
  std::optional<std::uint64_t> copied_out, copied_in, deviations, iteration;
  // Nothing before there are two samples of the same process.
  std::optional<double> out_rate, in_rate, deviation_rate, iteration_rate;
  std::vector<std::string> lines;  // sentences for a person: why, frameworks, swaps, problems

  // Both ways together.
  std::optional<double> copy_rate() const;
  // What is held of the limit: 1 is all of it. Nothing without a limit.
  std::optional<double> filled() const;
};

enum class TopKey : std::uint8_t { kFootprint, kFilled, kCopies, kDeviations, kPid, kState, kCommand, kCount };
// For the line of keys: "footprint", "limit", "copies", ...
const char* name_of(TopKey key);

class TopModel {
 public:
  using Time = std::chrono::nanoseconds;  // since any moment, the same for all samples

  // A sample that is no later than the one before gives no rates.
  void add(const std::vector<StatusRow>& rows, Time now);

  const std::vector<TopProcess>& processes() const { return processes_; }  // in order

  // Numbers from the largest down and names from the first up; `reverse` is the other way about. Ties by pid.
  void sort_by(TopKey key);
  void reverse();
  TopKey key() const { return key_; }
  bool reversed() const { return reversed_; }

  // The selection stays with its process while the order changes, and goes to a neighbour when that is gone. Positions
  // are in processes(); nothing without any.
  std::optional<std::size_t> selected() const;
  void select(std::size_t position);  // the last where there are fewer
  void move_selection(std::ptrdiff_t by);

  // A process that has ended is shown for so many further samples.
  static constexpr int kShownAfterEnd = 3;

 private:
  struct Last {
    TopProcess process;
    std::optional<double> attached;
    Time when{};
    int missed = 0;
  };
  static TopProcess read(const StatusRow& row);
  void sort();

  std::map<pid_t, Last> last_;
  std::vector<TopProcess> processes_;
  TopKey key_ = TopKey::kFootprint;
  bool reversed_ = false;
  std::optional<pid_t> selected_;
  std::size_t selected_at_ = 0;
};

}  // namespace memopt::tools
