#include "planner/layout/exact/restarted_search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "planner/layout/exact/strategies.h"

namespace memopt::layout {
namespace {

constexpr std::uint64_t kPermanent = 2;  // trees that are never abandoned
constexpr std::uint64_t kGroup = 4;      // slices, of which one is a permanent tree's

// The Luby sequence, 1 1 2 1 1 2 4 ...; `i` counts from 1.
std::uint64_t luby(std::uint64_t i) {
  for (;;) {
    const auto width = static_cast<unsigned>(std::bit_width(i));
    if (i == (std::uint64_t{1} << width) - 1) return std::uint64_t{1} << (width - 1);
    i -= (std::uint64_t{1} << (width - 1)) - 1;
  }
}

}  // namespace

// A sequence of slices, each of a counted number of nodes. Some resume one of the permanent trees, which alone can
// prove that there is no placement; each of the others runs a strategy of its own for its slice and abandons it. The
// first slice that ends with a verdict decides, by its place in the sequence and not by the clock; so the result does
// not depend on the number of threads.
class RestartedSearch::State {
 public:
  State(const PreparedProblem& prepared, std::int64_t capacity, std::uint64_t seed, const Pruning& pruning)
      : prepared_(prepared),
        capacity_(capacity),
        seed_(seed),
        pruning_(pruning),
        shortest_(std::max<std::uint64_t>(512, prepared.buffers() * prepared.buffers() / 128)) {}

  Verdict resume(const Limits& limits) {
    deadline_.emplace(limits);
    allowed_ += std::min(limits.work, std::numeric_limits<std::uint64_t>::max() - allowed_);
    std::vector<std::thread> others;
    for (unsigned i = 1; i < limits.threads; ++i) {
      try {
        others.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        break;  // fewer will do
      }
    }
    work();
    for (auto& other : others) other.join();
    return {progress_, offsets_, deciding_ == kNever ? granted_ : decided_after_};
  }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  struct Permanent {
    std::unique_ptr<PlacementTree> tree;
    bool taken = false;
    std::uint64_t slices = 0;
  };

  struct Slice {
    std::uint64_t number = 0;
    std::uint64_t nodes = 0;
    std::uint64_t total = 0;  // of nodes, of it and those before
    bool permanent = false;
    std::uint64_t which = 0;  // of the permanent trees, or the strategy
  };

  Slice next_slice() const {
    const std::uint64_t number = next_;
    const std::uint64_t group = number / kGroup;
    if (number % kGroup == kGroup - 1) {
      const std::uint64_t times = std::uint64_t{1} << std::min<std::uint64_t>(group / kPermanent, 4);
      return {number, shortest_ * times, granted_ + shortest_ * times, true, group % kPermanent};
    }
    const std::uint64_t strategy = number - group;
    const std::uint64_t nodes = shortest_ * luby(strategy / kStrategies + 1);
    return {number, nodes, granted_ + nodes, false, strategy};
  }

  void work() {
    while (const auto slice = begin_slice()) {
      std::unique_ptr<PlacementTree> own;
      PlacementTree* tree = nullptr;
      auto& slot = slice->permanent ? permanent_[slice->which].tree : own;
      if (!slot) {
        slot = make_placement_tree(prepared_, capacity_, strategy_of(prepared_, seed_, slice->which), pruning_);
      }
      tree = slot.get();
      const Progress progress = tree->run(
          slice->nodes, [&] { return deciding_.load(std::memory_order_relaxed) < slice->number || deadline_->over(); });
      end_slice(*slice, progress, *tree);
    }
  }

  std::optional<Slice> begin_slice() {
    std::unique_lock lock(mutex_);
    const Slice slice = next_slice();
    if (slice.total > allowed_ || deciding_ != kNever || deadline_->over()) return std::nullopt;
    ++next_;
    granted_ = slice.total;
    if (slice.permanent) {
      Permanent& permanent = permanent_[slice.which];
      const std::uint64_t order = slice.number / kGroup / kPermanent;
      returned_.wait(lock, [&] { return !permanent.taken && permanent.slices == order; });
      permanent.taken = true;
    }
    return slice;
  }

  void end_slice(const Slice& slice, Progress progress, const PlacementTree& tree) {
    const std::scoped_lock lock(mutex_);
    if (slice.permanent) {
      permanent_[slice.which].taken = false;
      ++permanent_[slice.which].slices;
      returned_.notify_all();
    }
    if (progress == Progress::kUnfinished || deciding_ <= slice.number) return;
    deciding_ = slice.number;
    decided_after_ = slice.total;
    progress_ = progress;
    if (progress == Progress::kSolved) offsets_ = tree.offsets();
  }

  const PreparedProblem& prepared_;
  const std::int64_t capacity_;
  const std::uint64_t seed_;
  const Pruning pruning_;
  const std::uint64_t shortest_;      // slice, in nodes: enough to get to the bottom of the tree
  std::optional<Deadline> deadline_;  // of the call

  std::mutex mutex_;
  std::condition_variable returned_;
  std::uint64_t next_ = 0;     // slice
  std::uint64_t granted_ = 0;  // nodes, to slices
  std::uint64_t allowed_ = 0;
  std::uint64_t decided_after_ = 0;
  std::array<Permanent, kPermanent> permanent_;
  std::atomic<std::uint64_t> deciding_ = kNever;  // slice
  Progress progress_ = Progress::kUnfinished;
  std::vector<std::int64_t> offsets_;
};

RestartedSearch::RestartedSearch(const PreparedProblem& prepared, std::int64_t capacity, std::uint64_t seed,
                                 const Pruning& pruning)
    : state_(std::make_unique<State>(prepared, capacity, seed, pruning)) {}

RestartedSearch::~RestartedSearch() = default;

Verdict RestartedSearch::resume(const Limits& limits) { return state_->resume(limits); }

}  // namespace memopt::layout
