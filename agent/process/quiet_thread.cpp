#include "agent/process/quiet_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>
#include <cstddef>

namespace memopt::agent {

int start_quiet_thread(void* (*body)(void*), void* argument) noexcept {
  constexpr std::size_t kStackBytes = 512 * 1024;
  // A thread inherits the mask of its maker.
  sigset_t all;
  sigset_t kept;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &kept);
  pthread_attr_t attributes;
  int failure = pthread_attr_init(&attributes);
  if (failure == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    // EINVAL: the program's thread-local storage alone is larger than that. The default size then.
    failure = pthread_attr_setstacksize(&attributes, kStackBytes);
    if (failure == 0) failure = pthread_create(&thread, &attributes, body, argument);
    pthread_attr_destroy(&attributes);
    if (failure == EINVAL && (failure = pthread_attr_init(&attributes)) == 0) {
      pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
      failure = pthread_create(&thread, &attributes, body, argument);
      pthread_attr_destroy(&attributes);
    }
  }
  pthread_sigmask(SIG_SETMASK, &kept, nullptr);
  return failure;
}

}  // namespace memopt::agent
