// 32 threads that run together: their frames, and the paths on which they have parted.
//
// Paths form a tree. A path runs with a mask; where its lanes part, it waits at the branch's post-dominator, and each
// side becomes a path below it. What arrives there is collected; when the last path below has ended, the waiting one
// goes on with what has arrived. A call is a path below, too, in a frame of its own. Any path that does not wait may
// run, so lanes that spin on what another path must do are overtaken after a while.
#pragma once
#include <cstdint>
#include <exception>
#include <vector>

#include "ptx/execution/executable.h"
#include "ptx/execution/launch.h"
#include "ptx/execution/native.h"

namespace cudasim::ptx {

class BlockRun;

// The execution ends here; caught by Launch::run.
struct Stopped {
  Stop stop;
  std::uint64_t address = 0;
  const Instruction* at = nullptr;
  std::string text;
};

class Warp {
 public:
  enum class State : std::uint8_t { kFree, kRunnable, kWaiting, kAtBarrier, kAtWarpSync };

  explicit Warp(BlockRun& owner) : block(owner) {}
  // The first `lanes` of warp `index` of the block.
  void begin(std::uint32_t lanes);
  // Until no path can go on, as all have ended or wait for a barrier, or one has had its turn of jumps back.
  void run();
  bool is_done() const { return live == 0; }

  Row& row(Ref ref) { return bases_[ref >> 28][ref & 0xfffffff]; }
  const Row& source(Ref ref) const { return bases_[ref >> 28][ref & 0xfffffff]; }
  // Predicates: the lanes of `mask` get theirs of `value`.
  void set_mask(Ref ref, Mask mask, Mask value) {
    if (ref == kNoRef) return;
    Row& r = row(ref);
    r.lane[0] = (r.mask() & ~mask) | (value & mask);
  }
  const Code& code() const { return *code_; }
  // Where the lane's frame of the current function begins.
  std::uint64_t frame_address(int lane) const;

  BlockRun& block;
  Mask live = 0;
  Mask exists = 0;
  std::uint32_t index = 0;

 private:
  friend class BlockRun;
  struct Frame {
    const Code* code;
    std::uint32_t first_row;
    std::uint64_t local;  // offset of the frame in each lane's stack
    Mask returned;
    const CallSite* site;  // by which it was called
  };
  struct Path {
    State state = State::kFree;
    Mask mask = 0;
    Mask arrived = 0;
    Mask needed = 0;  // at a warp's barrier: the lanes that it waits for
    std::uint32_t pc = 0;
    std::uint32_t join = kNoIndex;
    std::uint32_t parent = kNoIndex;
    std::uint32_t children = 0;
    std::uint32_t frame = 0;
    bool frame_root = false;
    std::uint32_t barrier = 0;
  };

  std::uint32_t add_path(const Path& path);
  void run_path(std::uint32_t path);
  void enter(std::uint32_t path);
  void finish(std::uint32_t path);
  void release_arrived();
  // To `target`: false when the path ended there, at its join.
  bool go(std::uint32_t path, std::uint32_t target);
  bool branch(std::uint32_t path, const Step& step, Mask taken, std::uint32_t target);
  // Paths for each pair of lanes and target; the path itself waits at the step's join.
  bool part(std::uint32_t path, std::uint32_t join, const std::vector<std::pair<Mask, std::uint32_t>>& ways);
  bool switch_to(std::uint32_t path, const Step& step, Mask mask);
  bool call(std::uint32_t path, const Step& step, Mask mask);
  void call_function(std::uint32_t path, const CallSite& site, std::uint32_t callee, Mask mask);
  void copy_results(const Frame& frame, Mask lanes);
  bool leave(std::uint32_t path, Mask mask, bool exits);
  bool meet(std::uint32_t path, const Step& step, Mask mask);
  void run_operation(const Step& step, Mask mask);
  bool release_warp_waits();
  void fill_specials();
  void give_way(std::uint32_t path);
  bool run_native(std::uint32_t path, std::uint32_t entry);
  static std::uint32_t interpret_step(void* warp, std::uint32_t step, Mask mask) noexcept;

  Row* bases_[3] = {};
  const Code* code_ = nullptr;
  std::vector<Row> rows_;
  std::uint32_t filled_for_ = kNoIndex;
  std::vector<Row> specials_ = std::vector<Row>(kSpecialRows);
  std::vector<Frame> frames_;
  std::vector<Path> paths_;
  std::vector<std::uint32_t> free_paths_;
  std::vector<std::uint32_t> runnable_;
  std::uint64_t frame_local_ = 0;
  std::vector<Way> ways_;
  std::exception_ptr native_problem_;
  bool gave_way_ = false;
};

}  // namespace cudasim::ptx
