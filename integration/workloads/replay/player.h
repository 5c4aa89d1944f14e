// One thread's replay of the trace: which block is meant by which operation, in which order.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "contents.h"
#include "driver.h"
#include "options.h"
#include "simulator.h"
#include "steady.h"
#include "trace.h"

namespace replay {

// Bytes of live blocks, over all threads.
class Load {
 public:
  void add(std::uint64_t bytes) {
    const std::uint64_t now = now_.fetch_add(bytes) + bytes;
    std::uint64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void remove(std::uint64_t bytes) { now_.fetch_sub(bytes); }
  std::uint64_t peak() const { return peak_.load(); }

 private:
  std::atomic<std::uint64_t> now_{0};
  std::atomic<std::uint64_t> peak_{0};
};

// What all players share; outlives them.
struct Stage {
  const Trace& trace;
  const Steady* steady;  // null: the whole trace counts as one iteration
  const Options& options;
  const Device& device;
  const Simulator& simulator;
  Load& load;
  std::size_t iterations;
  // Called by every player with how many iterations it has played; 0 before the first.
  std::function<void(std::size_t done, unsigned thread)> iteration_done;
};

class Player {
 public:
  Player(const Stage& stage, unsigned thread);
  ~Player();  // frees what is left
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;

  void play();

  const Verified& verified() const { return contents_.verified(); }
  std::uint64_t operations() const { return operations_; }
  // Reads of blocks that nothing had written; they were written instead.
  std::uint64_t first_reads() const { return first_reads_; }
  // False: --corrupt-at found no block that is read later.
  bool corrupted() const { return corrupted_; }

 private:
  using Slot = std::unique_ptr<LiveBlock>;

  // `place`: index of an operation in the trace, of an iteration's in its first. The same place in each iteration makes
  // the same choices.
  void play_trace(std::size_t begin, std::size_t end, std::size_t place);
  void enter_loop();
  void play_loop();
  void finish_iteration(std::size_t done);

  // `step(i)` is the i-th of `count` operations.
  template <class Step>
  void play_steps(std::size_t place, std::size_t count, Step step);
  void play_step(const LoopOperation& step, std::size_t place);
  template <class Step>
  void try_corrupt(std::size_t from, std::size_t count, Step step);

  Slot& slot(const LoopOperation& step);
  Slot allocate(std::uint64_t bytes);
  void release(Slot& block);
  std::uint64_t choose(std::size_t place, unsigned purpose) const;
  std::uint64_t time_after(std::size_t place) const;
  void think(std::uint64_t ns) const;

  const Stage& stage_;
  unsigned thread_;
  Contents contents_;
  std::vector<Slot> blocks_;             // by index of the trace
  std::vector<std::vector<Slot>> ring_;  // of the loop: by offset of birth, then by round modulo deepest age + 1
  std::size_t round_ = 0;                // of the loop; the trace's last iteration is round 0
  unsigned blocks_made_ = 0;
  bool corrupted_ = false;
  std::uint64_t operations_ = 0;
  std::uint64_t first_reads_ = 0;
};

}  // namespace replay
