// A child process that ends when its time is over: what it does may crash or hang without harm to us.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace memopt::tools {

struct LimitedCommand {
  std::vector<std::string> command;                                               // looked for in PATH
  std::vector<std::pair<std::string, std::optional<std::string>>> environment{};  // set, or removed
  bool empty_environment = false;
  std::chrono::milliseconds limit{10'000};
};

class LimitedProcess {
 public:
  // Starts it: standard input is empty, output is kept (its end, where it is long).
  explicit LimitedProcess(const LimitedCommand& command);
  LimitedProcess(const LimitedProcess&) = delete;
  LimitedProcess& operator=(const LimitedProcess&) = delete;
  ~LimitedProcess();

  // Takes what it writes, for at most that time; false once it has ended, by itself or because its time was over.
  bool run_for(std::chrono::milliseconds time);
  // To its end.
  void finish();
  // Ends it, and its process group.
  void stop();

  pid_t pid() const { return pid_; }
  bool timed_out() const { return timed_out_; }
  // errno of a program that could not be started; 0: it was.
  int start_error() const { return start_error_; }
  // As a shell has it: 128 + signal for one that was killed.
  int exit_code() const { return exit_code_; }
  bool ok() const { return start_error_ == 0 && !timed_out_ && exit_code_ == 0; }
  const std::string& output() const { return output_; }
  const std::string& errors() const { return errors_; }
  // In a few words, for people: "exit code 3", "killed by signal 11", "no answer in 10 s".
  std::string how_it_ended() const;

 private:
  void read_all(std::chrono::milliseconds time);
  bool collect();

  std::chrono::steady_clock::time_point deadline_;
  std::chrono::milliseconds limit_;
  pid_t pid_ = -1;
  bool ended_ = false;
  bool timed_out_ = false;
  int start_error_ = 0;
  int exit_code_ = 0;
  int output_fd_ = -1;
  int errors_fd_ = -1;
  std::string output_;
  std::string errors_;
};

}  // namespace memopt::tools
