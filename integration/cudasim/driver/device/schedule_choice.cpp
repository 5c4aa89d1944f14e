#include "device/schedule_choice.h"

#include <algorithm>

namespace cudasim {
namespace {

constexpr std::uint64_t kSeedsOfFew = 8;
// How long a program is can't be known beforehand; the few preemptions are spread over so many steps, drawn by the
// seed.
constexpr unsigned kFewestStepsLog2 = 7, kMostStepsLog2 = 13;

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the finaliser of SplitMix.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

ScheduleChoice::ScheduleChoice(std::uint64_t seed, bool chosen_steps)
    : state_(mix(seed ^ 0x5c4ed0u)), mode_(Mode::kFewPreemptions) {
  if (chosen_steps) {
    mode_ = Mode::kManyPreemptions;
    rate_ = 2;
    return;
  }
  if (seed < kSeedsOfFew) {
    const std::uint64_t length = std::uint64_t{1}
                                 << (kFewestStepsLog2 + random() % (kMostStepsLog2 - kFewestStepsLog2 + 1));
    while (preempted_at_.size() < seed) preempted_at_.insert(1 + random() % length);
    return;
  }
  switch (random() % 4) {
    case 0:
    case 1:
      mode_ = Mode::kManyPreemptions;
      rate_ = std::uint64_t{16} << random() % 7;
      break;
    case 2:
      mode_ = Mode::kSometimes;
      rate_ = std::uint64_t{2} << random() % 4;
      break;
    default:
      mode_ = Mode::kAlways;
  }
}

std::uint64_t ScheduleChoice::random() { return mix(++state_); }

// Below all that step() gives away later there is always room.
std::int64_t ScheduleChoice::first_priority() { return std::int64_t(random() >> 2); }

std::int64_t ScheduleChoice::step(std::int64_t priority) {
  ++steps_;
  const bool falls = mode_ == Mode::kFewPreemptions    ? preempted_at_.contains(steps_)
                     : mode_ == Mode::kManyPreemptions ? random() % rate_ == 0
                                                       : false;
  if (!falls) return priority;
  ++preemptions_;
  return --lowest_;
}

std::size_t ScheduleChoice::choose(std::span<const Candidate> candidates) {
  if (candidates.size() == 1) return 0;
  if (mode_ == Mode::kFewPreemptions || mode_ == Mode::kManyPreemptions) {
    const auto best =
        std::max_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
          return a.priority != b.priority ? a.priority < b.priority : a.number > b.number;
        });
    return std::size_t(best - candidates.begin());
  }
  const auto running =
      std::find_if(candidates.begin(), candidates.end(), [](const Candidate& one) { return one.running; });
  if (mode_ == Mode::kSometimes && running != candidates.end() && random() % rate_ != 0)
    return std::size_t(running - candidates.begin());
  const std::size_t chosen = random() % candidates.size();
  if (running != candidates.end() && !candidates[chosen].running) ++preemptions_;
  return chosen;
}

}  // namespace cudasim
