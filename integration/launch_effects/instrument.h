// What the wrappers tell, put together: the program's blocks and launches, and what each launch does. Thread-safe; no
// lock is held while the driver is called.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "blocks.h"
#include "cudasim/launch_effect.h"
#include "decisions.h"
#include "effect.h"
#include "kernels.h"

namespace launch_effects {

struct LaunchCall {
  CUfunction function;
  unsigned grid[3];
  unsigned block[3];
  void* const* parameters;
  void* const* extra;
};

class Instrument {
 public:
  // Null in a child that was forked. Never destroyed: programs free until the very end.
  static Instrument* get();

  void allocated(CUdeviceptr address, std::size_t size);
  void freed(CUdeviceptr address);  // before the driver is told
  void freed_range(CUdeviceptr address, std::size_t size);
  void wrote(CUdeviceptr address, std::size_t size);
  void copied(CUdeviceptr to, CUdeviceptr from, std::size_t size);
  void context_is_gone();
  void forget_functions();

  // Says what the launch does, then makes it.
  CUresult launch(const LaunchCall& call, const std::function<CUresult()>& forward);

  // At exit: waits for the device, reads the blocks that are left, writes what was asked for.
  void finish();

 private:
  // What a launch has read; 0 while it has not.
  struct Use {
    LaunchId id;
    std::string kernel;
    std::atomic<std::uint64_t> hash{0};
  };
  struct Totals {
    std::uint64_t launches = 0;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t nanoseconds = 0;
  };
  // A launch's words, as they stand in this run.
  struct Reading {
    Decision decision;
    std::vector<Block*> blocks;  // one for each of decision.named
  };

  Instrument();
  void note_context();
  Reading read(const Kernel& kernel, const LaunchCall& call);
  void apply(const Decision& decided, Reading& reading);
  std::unique_ptr<Effect> effect_of(LaunchId id, const Kernel& kernel, const Reading& reading);
  CUresult forward_with(const LaunchCall& call, const Decision& decision, std::unique_ptr<Effect> effect,
                        const std::function<CUresult()>& forward);
  void read_live_blocks(const std::vector<Block>& live);
  std::uint64_t checksum_of(const std::vector<Block>& live);
  void write_uses();
  std::string report_json() const;
  std::string report_text() const;

  std::mutex mutex_;
  Blocks blocks_;
  Kernels kernels_;
  Decisions decided_;  // by an earlier run
  Decisions deciding_;
  std::map<std::string, Totals> totals_;  // by kernel
  Sums sums_;
  std::deque<Use> uses_;  // only where they are asked for; launches keep pointers into it
  std::atomic<CUcontext> context_{nullptr};
  decltype(&cudasim_next_launch_does) next_launch_does_ = nullptr;
  decltype(&cudasim_last_launch_took) last_launch_took_ = nullptr;

  std::uint64_t undecided_ = 0;             // launches that the earlier run has not made
  std::uint64_t disagreed_ = 0;             // words that name another block than they did there, or none
  std::uint64_t host_end_nanoseconds_ = 0;  // of the simulated device, before this library's own reading
  std::uint64_t live_checksum_ = 0, live_unreadable_ = 0;
  bool finished_ = false;
};

}  // namespace launch_effects
