#include "tools/memoptctl/recompute/checkmate_process.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>

#include "tools/memoptctl/common/child_process.h"
#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
using recompute::CheckmateAnswer;
// In which the solver may come to its end; CBC looks at its clock between nodes.
constexpr std::chrono::seconds kGrace{3};

OptionalModule load_checkmate() {
#if MEMOPT_HAS_CHECKMATE
  return load_optional_module(recompute::kCheckmateFile, recompute::kCheckmateVersion, recompute::kCheckmateRun);
#else
  return {nullptr,
          "not in this build: CBC or CLP (coinor-libcbc-dev, coinor-libclp-dev) was not there when it was configured"};
#endif
}

const OptionalModule& checkmate_module() {
  static const OptionalModule module = load_checkmate();
  return module;
}

// Read by the child: the parent wants an end.
class SharedFlag {
 public:
  SharedFlag()
      : memory_(::mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error(std::string("checkmate: ") + std::strerror(errno));
    flag_ = new (memory_) std::atomic<bool>(false);
  }
  ~SharedFlag() { ::munmap(memory_, sizeof(std::atomic<bool>)); }
  SharedFlag(const SharedFlag&) = delete;
  SharedFlag& operator=(const SharedFlag&) = delete;

  void set() { flag_->store(true, std::memory_order_relaxed); }
  bool is_set() const { return flag_->load(std::memory_order_relaxed); }

 private:
  void* const memory_;
  std::atomic<bool>* flag_ = nullptr;
  static_assert(std::atomic<bool>::is_always_lock_free);
};

// What the module calls back with.
struct Context {
  const SharedFlag& end;
  const ChildProcess::Write& write;
};

}  // namespace

const std::string& checkmate_missing() { return checkmate_module().missing; }

CheckmateRun run_checkmate(const swap::Problem& problem, const recompute::CheckmateQuestion& question,
                           const std::function<bool()>& ends) {
  if (checkmate_module().run == nullptr) throw std::runtime_error("checkmate is " + checkmate_missing());
  SharedFlag end;
  // The parent says when it is interrupted: it reports what was found until then.
  ChildProcess child(ChildProcess::AtInterrupt::kGoesOn, [&](const ChildProcess::Write& write) {
    Context context{end, write};
    reinterpret_cast<recompute::CheckmateModuleRun>(checkmate_module().run)(
        problem, question, [](void* its) { return static_cast<Context*>(its)->end.is_set(); },
        [](void* its, const CheckmateAnswer& answer, const recompute::Step* steps) {
          const ChildProcess::Write& write_it = static_cast<Context*>(its)->write;
          if (write_it(std::as_bytes(std::span(&answer, 1)))) write_it(std::as_bytes(std::span(steps, answer.steps)));
        },
        &context);
  });
  if (!child.failure().empty()) throw std::runtime_error("checkmate: " + child.failure());
  auto deadline = Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(question.seconds)) + kGrace;
  const auto gives_up = [&] {
    if (!end.is_set() && ends && ends()) {
      end.set();
      deadline = std::min<Clock::time_point>(deadline, Clock::now() + kGrace);
    }
    return Clock::now() >= deadline;
  };
  CheckmateRun run;
  const auto read = [&](std::span<std::byte> bytes) {
    const ChildProcess::Read its = child.read(bytes, gives_up);
    if (its == ChildProcess::Read::kEnded) throw std::runtime_error("checkmate: its process ended without an answer");
    return its == ChildProcess::Read::kWhole;
  };
  if (!read(std::as_writable_bytes(std::span(&run.answer, 1)))) return {};
  if (run.answer.failure[0] != '\0') throw std::runtime_error(std::string("checkmate: ") + run.answer.failure);
  if (!run.answer.found) return run;
  run.steps.emplace(run.answer.steps);
  if (!read(std::as_writable_bytes(std::span(*run.steps)))) return {};
  return run;
}

}  // namespace memopt::tools
