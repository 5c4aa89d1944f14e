// While one lives, the thread's errno may change; afterwards it is what it was. Calls of ours are none of the
// program's.
#pragma once

#include <cerrno>

namespace memopt::agent {

class KeptErrno {
 public:
  KeptErrno() noexcept : kept_(errno) {}
  ~KeptErrno() { errno = kept_; }
  KeptErrno(const KeptErrno&) = delete;
  KeptErrno& operator=(const KeptErrno&) = delete;

 private:
  int kept_;
};

}  // namespace memopt::agent
