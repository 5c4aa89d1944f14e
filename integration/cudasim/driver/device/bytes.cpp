#include "device/bytes.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <limits>
#include <utility>

#include "checker/checker.h"

namespace cudasim {
namespace {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014): the finaliser of SplitMix.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr std::uint64_t kMostCallsLate = 8;
constexpr std::uint64_t kLongestBurst = 4;  // pieces of one operation run in a row

bool all_run(std::span<const OperationPtr> targets) {
  return std::all_of(targets.begin(), targets.end(), [](const OperationPtr& target) { return target->run; });
}

std::vector<Operation*> pointers(std::span<const OperationPtr> targets) {
  std::vector<Operation*> out;
  for (const OperationPtr& target : targets) out.push_back(target.get());
  return out;
}

}  // namespace

ByteRunner::ByteRunner(std::optional<std::uint64_t> seed, Checker& checker, CallbackThread& callbacks, Hooks hooks)
    : seed_(seed),
      random_state_(mix(seed.value_or(0))),
      checker_(checker),
      callbacks_(callbacks),
      hooks_(std::move(hooks)) {}

std::uint64_t ByteRunner::random() { return mix(++random_state_); }

void ByteRunner::link(const OperationPtr& predecessor, Operation& operation) {
  if (predecessor->run) return;
  ++operation.unrun_predecessors;
  predecessor->run_successors.push_back(&operation);
  operation.predecessors.push_back(predecessor);
}

void ByteRunner::choose_haste(Operation& operation) {
  constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
  if (operation.pieces() == 0 && !operation.is_host_function()) {  // a marker: nothing to be early or late with
    operation.eager_pieces = kAll;
    return;
  }
  const std::uint64_t choice = mix(mix(*seed_) ^ operation.sequence);
  const std::uint64_t detail = mix(choice);
  switch (choice % 8) {
    case 0:
    case 1:
    case 2:
      operation.eager_pieces = kAll;
      break;
    case 3:
      operation.eager_pieces = operation.pieces() < 2 ? 0 : 1 + std::uint32_t(detail % (operation.pieces() - 1));
      break;
    case 4:
      operation.eager_pieces = kAll;
      operation.eager_from = calls_ + 1 + detail % kMostCallsLate;
      break;
    default:
      break;  // lazy
  }
}

void ByteRunner::add(Operation& operation) {
  if (operation.is_host_function()) {
    host_functions_.emplace(operation.sequence, &operation);
    callbacks_.expect(true);
  }
  if (!seed_) return;
  choose_haste(operation);
  if (operation.unrun_predecessors == 0) enabled(operation);
  run_eager();
}

void ByteRunner::timed(Operation& operation) {
  if (!seed_ && !operation.run) due_.insert(&operation);
}

void ByteRunner::advance(TimePoint now) {
  ++calls_;
  callbacks_.note_activity();
  if (seed_) {
    run_eager();
  } else {
    run_due(now);
  }
}

void ByteRunner::enabled(Operation& operation) {
  if (newly_enabled_ != nullptr) newly_enabled_->push_back(&operation);
  if (operation.next_piece < operation.eager_pieces)
    eager_.emplace(std::pair(operation.eager_from, operation.sequence), &operation);
}

// Stops at a host function that has not returned: the order of ends is kept, and a call that does not wait must not be
// held up by it.
void ByteRunner::run_due(TimePoint now) {
  while (!due_.empty() && (*due_.begin())->end <= now) {
    Operation& operation = **due_.begin();
    if (operation.unrun_predecessors != 0 || operation.posted) return;
    run_whole(operation);
  }
}

void ByteRunner::run_eager() {
  while (true) {
    const auto too_late = eager_.lower_bound({calls_ + 1, 0});
    const auto candidates = std::distance(eager_.begin(), too_late);
    if (candidates == 0) return;
    const auto chosen = std::next(eager_.begin(), std::int64_t(random() % std::uint64_t(candidates)));
    Operation& operation = *chosen->second;
    if (operation.is_host_function() || operation.pieces() == 0 || skipped(operation)) {
      eager_.erase(chosen);
      run_whole(operation);
      continue;
    }
    run_piece(operation);
    if (operation.next_piece == operation.pieces()) {
      complete(operation);
    } else if (operation.next_piece >= operation.eager_pieces) {
      eager_.erase(chosen);
    }
  }
}

std::vector<Operation*> ByteRunner::closure_of(std::vector<Operation*> todo) {
  std::vector<Operation*> closure;
  ++visit_;
  while (!todo.empty()) {
    Operation* const operation = todo.back();
    todo.pop_back();
    if (operation->run || operation->visited == visit_) continue;
    operation->visited = visit_;
    closure.push_back(operation);
    for (const OperationPtr& predecessor : operation->predecessors) todo.push_back(predecessor.get());
  }
  return closure;
}

void ByteRunner::run_closure(std::vector<Operation*> targets) {
  std::vector<Operation*> closure = closure_of(std::move(targets));
  if (seed_) {
    run_interleaved(closure);
  } else {
    run_in_order(std::move(closure));
  }
}

// Issue order respects every edge.
void ByteRunner::run_in_order(std::vector<Operation*> closure) {
  std::sort(closure.begin(), closure.end(),
            [](const Operation* a, const Operation* b) { return a->sequence < b->sequence; });
  for (Operation* const operation : closure) {
    if (operation->unrun_predecessors == 0 && !operation->posted) run_whole(*operation);
  }
}

void ByteRunner::run_interleaved(const std::vector<Operation*>& closure) {
  const std::uint64_t visit = visit_;
  std::vector<Operation*> runnable;
  for (Operation* const operation : closure) {
    if (operation->unrun_predecessors == 0 && !operation->posted) runnable.push_back(operation);
  }
  // The search found them in an order that depends on the edges only; sorted, so that it does not matter.
  std::sort(runnable.begin(), runnable.end(),
            [](const Operation* a, const Operation* b) { return a->sequence < b->sequence; });
  std::vector<Operation*> fresh;
  while (!runnable.empty()) {
    const std::size_t index = random() % runnable.size();
    Operation& operation = *runnable[index];
    fresh.clear();
    newly_enabled_ = &fresh;
    bool over = true;
    if (operation.is_host_function() || operation.pieces() == 0 || skipped(operation)) {
      run_whole(operation);
    } else {
      for (std::uint64_t burst = 1 + random() % kLongestBurst; burst != 0 && operation.next_piece != operation.pieces();
           --burst) {
        run_piece(operation);
      }
      over = operation.next_piece == operation.pieces();
      if (over) complete(operation);
    }
    newly_enabled_ = nullptr;
    if (over) runnable.erase(runnable.begin() + std::int64_t(index));
    for (Operation* const next : fresh) {
      if (next->visited == visit) runnable.push_back(next);
    }
  }
}

bool ByteRunner::require(std::span<const OperationPtr> targets) {
  while (true) {
    run_closure(pointers(targets));
    if (all_run(targets)) break;
    if (CallbackThread::is_this_thread()) return false;
    callbacks_.wait_for_a_job();
  }
  if (seed_) run_eager();
  return true;
}

bool ByteRunner::try_require(std::span<const OperationPtr> targets, std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (true) {
    run_closure(pointers(targets));
    if (all_run(targets)) break;
    if (CallbackThread::is_this_thread() || !callbacks_.wait_for_a_job(until)) return false;
  }
  if (seed_) run_eager();
  return true;
}

void ByteRunner::hurry_host_functions() {
  if (!host_functions_.empty()) run_closure({host_functions_.begin()->second});
}

bool ByteRunner::skipped(const Operation& operation) const {
  return !operation.work.runs_after_error && hooks_.in_error(operation);
}

void ByteRunner::run_piece(Operation& operation) {
  log_.clear();
  CUresult result = CUDA_ERROR_LAUNCH_FAILED;
  running_ = &operation;
  try {
    const CurrentAccessLog scope(log_);
    result = operation.work.run(operation.next_piece, log_);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "cudasim: %s: %s\n", operation.work.name.c_str(), problem.what());
  } catch (...) {
    std::fprintf(stderr, "cudasim: %s: ended by an exception\n", operation.work.name.c_str());
  }
  running_ = nullptr;
  ++operation.next_piece;
  if (checker_.enabled()) checker_.check(operation.actor, operation.clock, operation.work.name, log_);
  if (result != CUDA_SUCCESS) hooks_.failed(operation, result);
}

void ByteRunner::run_whole(Operation& operation) {
  if (operation.is_host_function() && !skipped(operation)) {
    post(operation);
    return;
  }
  while (operation.next_piece < operation.pieces() && !skipped(operation)) run_piece(operation);
  complete(operation);
}

void ByteRunner::post(Operation& operation) {
  operation.posted = true;
  eager_.erase({operation.eager_from, operation.sequence});  // somebody asked for it before its time came
  host_functions_.erase(operation.sequence);
  callbacks_.expect(!host_functions_.empty());
  auto log = std::make_shared<AccessLog>();
  callbacks_.post(
      [function = operation.work.host_function, log] {
        const CurrentAccessLog scope(*log);
        function();
      },
      [this, &operation, log] {
        hooks_.host_function_ran(operation);
        if (checker_.enabled()) checker_.check(operation.actor, operation.clock, operation.work.name, *log);
        complete(operation);
      });
}

void ByteRunner::complete(Operation& operation) {
  operation.run = true;
  due_.erase(&operation);
  eager_.erase({operation.eager_from, operation.sequence});
  if (operation.is_host_function() && host_functions_.erase(operation.sequence) != 0)
    callbacks_.expect(!host_functions_.empty());
  operation.predecessors.clear();
  operation.work.run = nullptr;
  operation.work.host_function = nullptr;
  const std::vector<Operation*> successors = std::move(operation.run_successors);
  operation.run_successors.clear();
  for (Operation* const successor : successors) {
    if (--successor->unrun_predecessors == 0) enabled(*successor);
  }
  hooks_.finished(operation);  // may destroy it
}

}  // namespace cudasim
