#include "tools/memoptctl/recording/record_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "planner/daemon/server.h"
#include "planner/recording/sink.h"
#include "planner/recording/writer.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/recording/recording_files.h"
#include "tools/memoptctl/run/child_program.h"

namespace memopt::tools {
namespace {

using planner::ProgramInfo;
using planner::RecordingEnd;
using planner::RecordingInfo;
using planner::Server;

// One program that was recorded.
struct Recorded {
  pid_t pid = 0;
  std::string program;
  std::string file;
  RecordingEnd end;
  bool closed = false;
};

std::uint64_t now() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

// Not one that has ended and waits for its parent.
bool is_alive(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos || name + 2 >= text.size()) return false;
  return text[name + 2] != 'Z' && text[name + 2] != 'X';
}

class Recorder {
 public:
  explicit Recorder(const RecordOptions& options) : options_(options), files_(options.output, options.force) {}

  int run();

 private:
  std::unique_ptr<Server> listen(std::string& error);
  std::unique_ptr<planner::Sink> sink_for(const ProgramInfo& program, std::string* why);
  void say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    fmt::print(stderr, "memoptctl: {}\n", line);
  }
  // The coming and going of programs is in the report; everything else that the server says is trouble.
  void note(const std::string& line) {
    const bool ordinary = line.find(": connected: ") != std::string::npos || line.find(": gone ") != std::string::npos;
    if (chatty_ || !ordinary) say(line);
  }
  void drain(const Server& server);
  void report() const;

  const RecordOptions& options_;
  RecordingFiles files_;
  std::string instance_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Recorded>> recorded_;
  bool refused_ = false;
  const bool chatty_ = [] {
    const char* level = std::getenv("MEMOPT_LOG");
    return level != nullptr && (std::string_view(level) == "info" || std::string_view(level) == "debug");
  }();
};

// An instance of our own. The number is ours alone on this machine, unless another pid namespace shares the network.
std::unique_ptr<Server> Recorder::listen(std::string& error) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    instance_ = fmt::format("record-{}", ::getpid()) + (attempt == 0 ? "" : fmt::format("-{}", attempt));
    planner::ServerOptions options;
    options.instance = instance_;
    options.log = [this](std::string_view line) { note(printable(line)); };
    Server::Failure failure = Server::Failure::kNone;
    auto server = Server::listen(
        std::move(options), [this](const ProgramInfo& program, std::string* why) { return sink_for(program, why); },
        &failure, &error);
    if (server || failure != Server::Failure::kNameTaken) return server;
  }
  return nullptr;
}

std::unique_ptr<planner::Sink> Recorder::sink_for(const ProgramInfo& program, std::string* why) {
  std::string error;
  const auto file = files_.take(program.pid, error);
  if (!file) {
    say(fmt::format("process {} is not recorded: {}", program.pid, error));
    *why = error;
    const std::lock_guard lock(mutex_);
    refused_ = true;
    return nullptr;
  }
  RecordingInfo info;
  info.program = program.path;
  info.arguments = options_.run.command;
  info.version = options_.version;
  info.agent_version = program.version;
  if (options_.run.simulated_device) info.device = "simulated " + *options_.run.simulated_device;
  info.pid = program.pid;
  info.started = now();

  auto fresh = std::make_unique<Recorded>();
  Recorded* const entry = fresh.get();
  entry->pid = program.pid;
  entry->program = printable(program.path.substr(program.path.rfind('/') + 1), 64);
  entry->file = printable(file->path);
  {
    const std::lock_guard lock(mutex_);
    recorded_.push_back(std::move(fresh));
  }
  auto writer = std::make_unique<planner::RecordingWriter>(
      file->fd, info, [this, entry](const std::string& reason) { say(fmt::format("{}: {}", entry->file, reason)); });
  return std::make_unique<planner::RecordingSink>(std::move(writer), [this, entry](const RecordingEnd& end) {
    const std::lock_guard lock(mutex_);
    entry->end = end;
    entry->closed = true;
  });
}

// Waits until the programs that have ended are read to their end. Others may live on: not for them.
void Recorder::drain(const Server& server) {
  constexpr std::chrono::milliseconds kLook{2};
  constexpr std::chrono::milliseconds kForTheLiving{300};
  constexpr std::chrono::seconds kAtMost{30};
  const auto begun = std::chrono::steady_clock::now();
  while (server.programs() != 0) {
    const auto waited = std::chrono::steady_clock::now() - begun;
    bool ended = false;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& entry : recorded_) ended = ended || (!entry->closed && !is_alive(entry->pid));
    }
    if (waited >= kAtMost || (!ended && waited >= kForTheLiving)) return;
    std::this_thread::sleep_for(kLook);
  }
}

void Recorder::report() const {
  for (const auto& entry : recorded_) {
    const RecordingEnd& end = entry->end;
    std::string line = fmt::format("recorded {} records of {} ({}) in {}, {}", end.records, entry->program, entry->pid,
                                   entry->file, bytes_text(static_cast<double>(end.bytes)));
    if (end.missing != 0) {
      line += fmt::format("; {} were dropped (memory for events ran full: try a larger MEMOPT_RING)", end.missing);
    }
    if (!end.broken.empty()) line += fmt::format("; what follows makes no sense and was not read: {}", end.broken);
    if (end.lost != 0) line += fmt::format("; {} could not be written", end.lost);
    if (is_alive(entry->pid)) line += "; the process still runs, but its recording ends here";
    fmt::print(stderr, "memoptctl: {}\n", line);
  }
  if (recorded_.empty() && !refused_) {
    fmt::print(stderr,
               "memoptctl: nothing was recorded: no CUDA call was seen (no CUDA program, or one that goes past memopt: "
               "statically linked, set-uid, or started without the environment)\n");
  }
}

int Recorder::run() {
  const auto fail = [](const std::string& why) {
    fmt::print(stderr, "memoptctl: {}\n", why);
    return kExitSetup;
  };
  if (const int failed = prepare_environment(options_.run); failed != 0) return failed;
  std::string error;
  if (!files_.open(error)) return fail(error);
  ChildProgram program;
  const auto server = listen(error);
  if (!server) return fail("programs can't be listened to: " + error);
  // Whoever asks for a recording wants none of these to be in its way.
  ::unsetenv("MEMOPT_DISABLE");
  ::unsetenv("MEMOPT_PLAN");
  if (::setenv("MEMOPT_RECORD", "1", 1) != 0 || ::setenv("MEMOPT_PLANNER_NAME", instance_.c_str(), 1) != 0) {
    return fail("the environment could not be set");
  }
  // The socket listens already; its threads come after the fork.
  if (!program.start([this] { return execute(options_.run.command); })) return program.exit_code();
  std::thread serving([&] { server->run(); });
  program.wait();
  drain(*server);
  server->stop();
  serving.join();
  report();
  return program.exit_code();
}

}  // namespace

int record(const RecordOptions& options) { return Recorder(options).run(); }

}  // namespace memopt::tools
