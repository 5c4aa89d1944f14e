// A scope in which pthread_cancel does not end the calling thread, which is the program's: it is ended at its next
// cancellation point outside. What waits, reads, writes or opens is such a point, and an end in the middle of a call of
// ours would leave locks taken, or meet a function that lets nothing pass.
#pragma once

#include <pthread.h>

namespace memopt::agent {

class Uncancellable {
 public:
  Uncancellable() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &kept_); }
  ~Uncancellable() { pthread_setcancelstate(kept_, nullptr); }
  Uncancellable(const Uncancellable&) = delete;
  Uncancellable& operator=(const Uncancellable&) = delete;

 private:
  int kept_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace memopt::agent
