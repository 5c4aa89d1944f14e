// A program that runs as our child, as if it had been started in our place: same terminal, same descriptors, the
// signals that are sent to us, and an exit code to end with.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

namespace memopt::tools {

class ChildProgram {
 public:
  // Blocks the signals that are to be passed on, for the whole process: to be made before any thread.
  ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  // Runs `become` in the child; it returns an exit code only when the program could not be started. False: it did, or
  // there is no child (errno, a message was given); exit_code() says which.
  bool start(const std::function<int()>& become);

  // Passes signals on until the program has ended.
  void wait();

  // As a shell has it: 128 + signal for one that was killed.
  int exit_code() const { return exit_code_; }

 private:
  void ended(int status);

  pid_t pid_ = -1;
  int exit_code_ = 0;
};

}  // namespace memopt::tools
