// Which of the threads that could go on does, by a seed.
//
// Most order bugs need few preemptions at the right places: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A
// randomized scheduler with probabilistic guarantees of finding bugs" (ASPLOS 2010). So each thread has a random
// priority, the highest goes on, and at some steps the running thread falls behind all others. The seeds below 8 have
// as many such steps as their number says. From then on a seed draws one of: such steps again and again, with a
// distance of 16 to 1,024 steps; another thread with a probability of 1/2 to 1/16 at each step; any thread at each
// step.
//
// Where something else chooses the steps, those of one driver call (`chosen_steps`), each seed takes half of
// them, drawn: there are few, and what lies between that call's return and the thread's next one is what is looked for.
//
// Threads: not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

namespace cudasim {

class ScheduleChoice {
 public:
  struct Candidate {
    std::uint64_t number;
    std::int64_t priority;
    bool running;
  };

  explicit ScheduleChoice(std::uint64_t seed, bool chosen_steps = false);

  std::int64_t first_priority();  // of a new thread
  // The running thread has come to a step at which another one may go on; its priority from now on.
  std::int64_t step(std::int64_t priority);
  std::size_t choose(std::span<const Candidate> candidates);  // not empty

  std::uint64_t preemptions() const { return preemptions_; }

 private:
  enum class Mode { kFewPreemptions, kManyPreemptions, kSometimes, kAlways };

  std::uint64_t random();

  std::uint64_t state_;
  Mode mode_;
  std::uint64_t rate_ = 0;  // kManyPreemptions: mean distance; kSometimes: one in so many
  std::set<std::uint64_t> preempted_at_;
  std::uint64_t steps_ = 0;
  std::uint64_t preemptions_ = 0;
  std::int64_t lowest_ = 0;
};

}  // namespace cudasim
