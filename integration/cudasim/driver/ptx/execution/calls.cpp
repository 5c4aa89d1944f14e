// Calls of the module's functions, by name or through pointers.
#include <algorithm>
#include <cstring>

#include "ptx/execution/block_run.h"
#include "ptx/execution/warp.h"

namespace cudasim::ptx {
namespace {

constexpr std::size_t kMostFrames = 1 << 12;

}  // namespace

bool Warp::call(std::uint32_t path, const Step& step, Mask mask) {
  const CallSite& site = code_->calls[step.list];
  if (site.callee != kNoIndex) {
    call_function(path, site, site.callee, mask);
    return false;
  }
  const int lane = std::countr_zero(mask);
  const std::uint64_t address = source(step.a).lane[lane];
  const std::uint64_t number = address & ~kFunctionTag;
  const auto& codes = block.executable.codes;
  if ((address & kFunctionTag) != kFunctionTag || number >= codes.size() || codes[number].steps.empty())
    throw Stopped{Stop::kInstruction, address, step.source, "a call through a pointer to no function"};
  Mask same = 0;
  for_lanes(mask, [&](int l) { same |= Mask{source(step.a).lane[l] == address} << l; });
  // Lanes with another function, or that the guard leaves out, get paths that come to this step, or past it.
  if (same != paths_[path].mask) {
    const std::uint32_t pc = paths_[path].pc;
    std::vector<std::pair<Mask, std::uint32_t>> ways{{same, pc}};
    if (mask != same) ways.emplace_back(mask & ~same, pc);
    if (paths_[path].mask != mask) ways.emplace_back(paths_[path].mask & ~mask, pc + 1);
    return part(path, pc + 1, ways);
  }
  call_function(path, site, static_cast<std::uint32_t>(number), mask);
  return false;
}

void Warp::call_function(std::uint32_t path, const CallSite& site, std::uint32_t callee, Mask mask) {
  if (frames_.size() > kMostFrames) throw Stopped{Stop::kAddress, 0, nullptr, "calls are nested too deeply"};
  const Program& program = *block.executable.program;
  const Code& code = block.executable.codes[callee];
  const std::uint32_t caller = paths_[path].frame;
  Frame frame{&code, 0, 0, 0, &site};
  frame.first_row = frames_[caller].first_row + frames_[caller].code->rows;
  // Other paths may be in calls of their own, behind the caller's rows too.
  for (const Frame& other : frames_) {
    if (other.code != nullptr) frame.first_row = std::max(frame.first_row, other.first_row + other.code->rows);
  }
  frame.local = frames_[caller].local + frames_[caller].code->frame_bytes;
  if (frame.local + code.frame_bytes > block.stack_bytes)
    throw Stopped{Stop::kAddress, 0, nullptr, "the stack of a thread is used up by nested calls"};
  if (rows_.size() < frame.first_row + code.rows) rows_.resize(frame.first_row + code.rows);
  const Function& f = *code.function;
  const std::size_t count = std::min(site.arguments.size(), f.parameters.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& from = program.variables[site.arguments[i].index];
    const Variable& to = program.variables[f.parameters[i]];
    for_lanes(mask, [&](int lane) {
      const std::uint64_t stack = block.stack_of(index, lane);
      std::memcpy(reinterpret_cast<void*>(stack + frame.local + to.offset),
                  reinterpret_cast<const void*>(stack + frames_[caller].local + from.offset),
                  std::min(from.size, to.size));
    });
  }
  std::uint32_t slot = 0;
  while (slot < frames_.size() && frames_[slot].code != nullptr) ++slot;
  if (slot == frames_.size()) {
    frames_.push_back(frame);
  } else {
    frames_[slot] = frame;
  }
  Path& p = paths_[path];
  p.state = State::kWaiting;
  p.arrived = p.mask & ~mask;  // those that the guard leaves out
  p.children = 1;
  ++p.pc;
  Path child;
  child.state = State::kRunnable;
  child.mask = mask;
  child.parent = path;
  child.frame = slot;
  child.frame_root = true;
  runnable_.push_back(add_path(child));
}

void Warp::copy_results(const Frame& frame, Mask lanes) {
  const Program& program = *block.executable.program;
  const Function& f = *frame.code->function;
  const std::size_t count = std::min(frame.site->results.size(), f.results.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Variable& to = program.variables[frame.site->results[i].index];
    const Variable& from = program.variables[f.results[i]];
    for_lanes(lanes, [&](int lane) {
      const std::uint64_t stack = block.stack_of(index, lane);
      std::memcpy(reinterpret_cast<void*>(stack + frame_local_ + to.offset),
                  reinterpret_cast<const void*>(stack + frame.local + from.offset), std::min(from.size, to.size));
    });
  }
}

}  // namespace cudasim::ptx
