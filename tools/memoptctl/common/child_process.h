// What is computed in a child process, so that it can be ended at any time: it may take minutes, or be a library's that
// looks at a clock only now and then. The child says what it has by a pipe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace memopt::tools {

class ChildProcess {
 public:
  // All of the bytes; false where the parent does not read them any more.
  using Write = std::function<bool(std::span<const std::byte>)>;
  enum class AtInterrupt : std::uint8_t { kEnds, kGoesOn };

  // `run` is called in the child, which ends when it returns; it must not return by an exception. The child is killed
  // by the caller's end, and its standard output is thrown away.
  ChildProcess(AtInterrupt at_interrupt, const std::function<void(const Write&)>& run);
  ~ChildProcess();  // kills it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Why there is none; empty if there is one.
  const std::string& failure() const { return failure_; }

  enum class Read : std::uint8_t {
    kWhole,
    kEnded,    // the child, before it had written them
    kGivenUp,  // `gives_up` said so; it is asked some twenty times a second
  };
  Read read(std::span<std::byte> bytes, const std::function<bool()>& gives_up = {});

 private:
  std::string failure_;
  pid_t pid_ = -1;
  int from_ = -1;
};

}  // namespace memopt::tools
