#include "supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

namespace facts {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// What a process that was killed is given to be gone; one that the driver holds may never be.
constexpr std::chrono::seconds kBurial{10};
constexpr std::size_t kMostErrorText = 2000;
// What the device's own question says where there is none to ask: see device_properties().
constexpr const char* kPresent = "name";

double since(Clock::time_point begin) { return Seconds(Clock::now() - begin).count(); }

struct Ended {
  Json values = Json::object();
  std::string errors;  // the last of what it wrote to standard error
  int status = 0;
  bool killed = false;
  double seconds = 0;
};

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
  }
  ~Pipe() {
    ::close(ends_[0]);
    close_writing();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

pid_t start(const std::vector<std::string>& arguments, const Pipe& output, const Pipe& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.writing(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.writing(), 2);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::runtime_error(std::string("facts can't start itself: ") + std::strerror(failed));
  return pid;
}

// A line is {"key": value}; whatever else a driver prints is left out.
void take_lines(std::string& text, Json& values) {
  std::size_t end;
  while ((end = text.find('\n')) != std::string::npos) {
    const Json line = Json::parse(text.substr(0, end), nullptr, false);
    text.erase(0, end + 1);
    if (line.is_object()) values.update(line);
  }
}

Ended run(const Fact& fact, double seconds, double deadline, bool small) {
  Pipe output, errors;
  std::vector<std::string> arguments = {"facts", "--fact", fact.name, "--seconds", std::to_string(seconds)};
  if (small) arguments.emplace_back("--small");
  const Clock::time_point begin = Clock::now();
  const pid_t pid = start(arguments, output, errors);
  output.close_writing();
  errors.close_writing();

  Ended ended;
  std::string text;
  pollfd watched[2] = {{output.reading(), POLLIN, 0}, {errors.reading(), POLLIN, 0}};
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    const double left = deadline - since(begin);
    if (left <= 0) {
      ended.killed = true;
      ::kill(pid, SIGKILL);
      break;
    }
    if (::poll(watched, 2, static_cast<int>(std::min(left, 1.0) * 1000) + 1) < 0 && errno != EINTR) break;
    for (pollfd& one : watched) {
      if (one.fd < 0 || one.revents == 0) continue;
      char buffer[16384];
      const ssize_t got = ::read(one.fd, buffer, sizeof buffer);
      if (got > 0) {
        (&one == watched ? text : ended.errors).append(buffer, static_cast<std::size_t>(got));
      } else if (got == 0 || errno != EINTR) {
        one.fd = -1;
      }
    }
    take_lines(text, ended.values);
    if (ended.errors.size() > kMostErrorText) ended.errors.erase(0, ended.errors.size() - kMostErrorText);
  }
  const Clock::time_point burial = Clock::now() + kBurial;
  pid_t gone;
  while ((gone = ::waitpid(pid, &ended.status, WNOHANG)) == 0) {
    if (!ended.killed && since(begin) > deadline) {
      ended.killed = true;
      ::kill(pid, SIGKILL);
    }
    if (ended.killed && Clock::now() > burial) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (gone == 0) ended.errors += "\nits process can't be ended: the driver holds it";
  ended.seconds = since(begin);
  return ended;
}

std::string error_of(const Ended& ended, double deadline) {
  std::string text = ended.errors;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::string behind = text.empty() ? "" : ": " + text;
  if (ended.killed) return "ended after " + std::to_string(static_cast<int>(deadline)) + " s" + behind;
  if (WIFSIGNALED(ended.status)) return std::string("died of signal ") + strsignal(WTERMSIG(ended.status)) + behind;
  if (WIFEXITED(ended.status) && WEXITSTATUS(ended.status) != 0) return text.empty() ? "failed without a word" : text;
  return {};
}

bool write(const std::string& path, const Json& all) {
  const std::string beside = path + ".new";
  {
    std::ofstream file(beside, std::ios::binary);
    file << all.dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) return false;
  }
  std::error_code failed;
  std::filesystem::rename(beside, path, failed);
  return !failed;
}

}  // namespace

Outcome supervise(const Supervision& supervision) {
  const Clock::time_point begin = Clock::now();
  Json all = {{"format", 1}, {"small", supervision.small}, {"facts", Json::object()}};
  // The device first: where there is none, nothing else need be asked.
  const Fact& device = all_facts().front();
  std::vector<const Fact*> order = {&device};
  for (const Fact* fact : supervision.chosen) {
    if (fact != &device) order.push_back(fact);
  }
  for (const Fact* fact : order) {
    const double left = supervision.limit - since(begin);
    Json entry = {{"question", fact->question}, {"how", fact->how}};
    std::string error;
    if (left < 1) {
      error = "not asked: the time for facts is over";
      entry["seconds"] = 0;
      entry["values"] = Json::object();
    } else {
      const double seconds = std::min(fact->seconds, left);
      const double deadline = std::min(2 * seconds, left);
      const Ended ended = run(*fact, seconds, deadline, supervision.small);
      error = error_of(ended, deadline);
      entry["seconds"] = std::round(ended.seconds * 1000) / 1000;
      entry["values"] = ended.values;
      if (fact == &device && !ended.values.contains(kPresent)) {
        std::fprintf(stderr, "facts: no device to ask: %s\n", error.c_str());
        return Outcome::kNoDevice;
      }
    }
    if (!error.empty()) entry["error"] = error;
    std::printf("%-20s %6.1f s  %s\n", fact->name, entry["seconds"].get<double>(),
                error.empty() ? "ok" : error.c_str());
    std::fflush(stdout);
    all["facts"][fact->name] = std::move(entry);
    if (!write(supervision.output, all)) {
      std::fprintf(stderr, "facts: %s can't be written: %s\n", supervision.output.c_str(), std::strerror(errno));
      return Outcome::kNotWritten;
    }
  }
  return Outcome::kDone;
}

}  // namespace facts
