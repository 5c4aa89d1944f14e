#include "tools/memoptctl/recompute/checkmate_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <stdexcept>

#include "tools/memoptctl/common/optional_module.h"

namespace memopt::tools {
namespace {

using Clock = std::chrono::steady_clock;
using recompute::CheckmateAnswer;
// In which the solver may come to its end; CBC looks at its clock between nodes.
constexpr std::chrono::seconds kGrace{3};
constexpr std::chrono::milliseconds kPoll{50};

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

struct Child {
  const SharedFlag& end;
  int out;
};

bool write_whole(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

[[noreturn]] void run_checkmate_in_child(const swap::Problem& problem, const recompute::CheckmateQuestion& question,
                                         Child child) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent says when: it reports what was found until then.
  std::signal(SIGINT, SIG_IGN);
  if (const int null = ::open("/dev/null", O_WRONLY); null >= 0) ::dup2(null, STDOUT_FILENO);
  const auto ends = [](void* context) { return static_cast<Child*>(context)->end.is_set(); };
  const auto take = [](void* context, const CheckmateAnswer& answer, const recompute::Step* steps) {
    const int out = static_cast<Child*>(context)->out;
    if (write_whole(out, std::as_bytes(std::span(&answer, 1))))
      write_whole(out, std::as_bytes(std::span(steps, answer.steps)));
  };
  reinterpret_cast<recompute::CheckmateModuleRun>(checkmate_module().run)(problem, question, ends, take, &child);
  ::_exit(0);
}

// What the child says, up to a deadline that begins when `ends` does.
class Reader {
 public:
  Reader(int fd, Clock::time_point deadline, const std::function<bool()>& ends, SharedFlag& end)
      : fd_(fd), deadline_(deadline), ends_(ends), end_(end) {}

  // False: end of file, an error, or the time was over.
  bool read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      if (!end_.is_set() && ends_ && ends_()) {
        end_.set();
        deadline_ = std::min<Clock::time_point>(deadline_, Clock::now() + kGrace);
      }
      if (Clock::now() >= deadline_) return false;
      pollfd ready{fd_, POLLIN, 0};
      const int polled = ::poll(&ready, 1, static_cast<int>(kPoll.count()));
      if (polled < 0 && errno != EINTR) return false;
      if (polled <= 0) continue;
      const ssize_t got = ::read(fd_, bytes.data(), bytes.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
  }

 private:
  const int fd_;
  Clock::time_point deadline_;
  const std::function<bool()>& ends_;
  SharedFlag& end_;
};

}  // namespace

const std::string& checkmate_missing() { return checkmate_module().missing; }

CheckmateRun run_checkmate(const swap::Problem& problem, const recompute::CheckmateQuestion& question,
                           const std::function<bool()>& ends) {
  if (checkmate_module().run == nullptr) throw std::runtime_error("checkmate is " + checkmate_missing());
  const auto deadline = Clock::now() +
                        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(question.seconds)) +
                        kGrace;
  SharedFlag end;
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error(std::string("checkmate: ") + std::strerror(errno));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) run_checkmate_in_child(problem, question, {end, pipe[1]});
  const int error = errno;
  ::close(pipe[1]);
  if (child < 0) {
    ::close(pipe[0]);
    throw std::runtime_error(std::string("checkmate: ") + std::strerror(error));
  }
  CheckmateRun run;
  Reader reader(pipe[0], deadline, ends, end);
  bool complete = reader.read(std::as_writable_bytes(std::span(&run.answer, 1)));
  if (complete && run.answer.found) {
    run.steps.emplace(run.answer.steps);
    complete = reader.read(std::as_writable_bytes(std::span(*run.steps)));
  }
  ::close(pipe[0]);
  ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!complete) return {};
  if (run.answer.failure[0] != '\0') throw std::runtime_error(std::string("checkmate: ") + run.answer.failure);
  return run;
}

}  // namespace memopt::tools
