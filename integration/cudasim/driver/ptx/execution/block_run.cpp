#include "ptx/execution/block_run.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "ptx/execution/barrier.h"

namespace cudasim::ptx {
namespace {

constexpr std::size_t kPage = 4096;
// Where nothing else lies on Linux: shared and local addresses repeat from run to run where the kernel can give them.
constexpr std::uintptr_t kWindow = 0x5d0000000000;

}  // namespace

Region::~Region() {
  if (base_ != nullptr) munmap(base_, size_ + kPage);
}

std::byte* Region::at_least(std::size_t bytes) {
  if (bytes <= size_) return base_;
  if (base_ != nullptr) munmap(base_, size_ + kPage);
  base_ = nullptr;
  size_ = (bytes + kPage - 1) / kPage * kPage;
  void* const got = mmap(reinterpret_cast<void*>(kWindow), size_ + kPage, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) {
    size_ = 0;
    throw std::bad_alloc();
  }
  base_ = static_cast<std::byte*>(got);
  mprotect(base_ + size_, kPage, PROT_NONE);
  return base_;
}

BlockRun::BlockRun(const Executable& executable_, const Shape& shape_, const std::byte* parameters_, Observer observer_)
    : executable(executable_), shape(shape_), parameters(parameters_), observer(observer_) {
  threads = shape.block[0] * shape.block[1] * shape.block[2];
  shared_bytes = executable.kernel->dynamic_shared_offset + shape.dynamic_shared_bytes;
  shared.at_least(std::max<std::size_t>(shared_bytes, 16));
  stack_bytes = executable.stack_bytes;
  const std::uint32_t warps = (threads + kLanes - 1) / kLanes;
  local_bytes = std::uint64_t{warps} * kLanes * stack_bytes;
  local.at_least(std::max<std::size_t>(local_bytes, 16));
  for (std::uint32_t w = 0; w < warps; ++w) warps_.push_back(std::make_unique<Warp>(*this));
}

void BlockRun::prepare(std::uint64_t block) {
  index[0] = static_cast<std::uint32_t>(block % shape.grid[0]);
  index[1] = static_cast<std::uint32_t>(block / shape.grid[0] % shape.grid[1]);
  index[2] = static_cast<std::uint32_t>(block / shape.grid[0] / shape.grid[1]);
  barriers_ = {};
  living_ = threads;
}

void BlockRun::run(std::uint64_t block) {
  begin(block);
  while (go()) {
  }
}

void BlockRun::begin(std::uint64_t block) {
  prepare(block);
  for (std::uint32_t w = 0; w < warps_.size(); ++w) {
    warps_[w]->index = w;
    warps_[w]->begin(std::min<std::uint32_t>(kLanes, threads - w * kLanes));
  }
}

bool BlockRun::go() {
  for (const auto& warp : warps_) {
    if (!warp->is_done()) warp->run();
  }
  if (living_ == 0) return false;
  bool any = false;
  for (std::uint32_t b = 0; b < barriers_.size(); ++b) any |= complete(b);
  const auto none_runs = [&] {
    return std::ranges::none_of(warps_, [](const auto& w) { return !w->runnable_.empty(); });
  };
  if (any || !none_runs()) return true;
  // Lanes that wait at a join for others of their warp, which wait at a barrier for them.
  for (const auto& warp : warps_) {
    if (!warp->is_done()) warp->release_arrived();
  }
  if (none_runs()) throw Stopped{Stop::kDeadlock, 0, nullptr, "its threads wait at barriers for each other"};
  return true;
}

Counts BlockRun::sample(std::uint64_t block, std::uint64_t most) {
  prepare(block);
  counts = {};
  sampling = true;
  most_instructions = most;
  Warp& warp = *warps_[0];
  warp.index = 0;
  warp.begin(std::min<std::uint32_t>(kLanes, threads));
  while (!warp.is_done() && counts.instructions < most_instructions) {
    warp.run();
    for (std::uint32_t b = 0; b < barriers_.size(); ++b) {
      if (barriers_[b].arrived != 0) barriers_[b].wanted = 1;
      complete(b);
    }
  }
  sampling = false;
  most_instructions = UINT64_MAX;
  return counts;
}

void BlockRun::arrive(std::uint32_t barrier, std::uint32_t wanted, std::uint32_t lanes, const Step& step, Mask mask,
                      const Row* predicate) {
  Barrier& b = barriers_[barrier % barriers_.size()];
  b.arrived += lanes;
  b.wanted = wanted;
  if (predicate == nullptr) return;
  const Mask value = (step.value & 1) != 0 ? ~predicate->mask() : predicate->mask();
  b.true_count += static_cast<std::uint32_t>(std::popcount(value & mask));
  b.predicates += static_cast<std::uint32_t>(std::popcount(mask));
}

void BlockRun::thread_ended(std::uint32_t lanes) { living_ -= lanes; }

// Lets those go that wait at it, where all have come.
bool BlockRun::complete(std::uint32_t number) {
  Barrier& b = barriers_[number];
  if (b.arrived == 0 || b.arrived < (b.wanted == 0 ? living_ : b.wanted)) return false;
  for (const auto& warp : warps_) {
    if (warp->is_done()) continue;
    for (std::uint32_t p = 0; p < warp->paths_.size(); ++p) {
      Warp::Path& path = warp->paths_[p];
      if (path.state != Warp::State::kAtBarrier || path.barrier != number) continue;
      const Warp::Frame& frame = warp->frames_[path.frame];
      const Step& step = frame.code->steps[path.pc];
      if (step.d != kNoRef) {
        warp->enter(p);
        store_reduction(*warp, step, path.mask, b.true_count, b.predicates);
      }
      ++path.pc;
      path.state = Warp::State::kRunnable;
      warp->runnable_.push_back(p);
    }
  }
  b = {};
  return true;
}

}  // namespace cudasim::ptx
