// Preloaded into tests that are registered as ONE_THREAD, which ThreadSanitizer's build leaves out: starting a thread
// ends them.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

extern "C" {
#pragma GCC visibility push(default)
// The test's children may be anything.
__attribute__((constructor)) void one_thread_start() { unsetenv("LD_PRELOAD"); }

int pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
  std::fputs(
      "This test starts a thread, but is registered as ONE_THREAD (memopt_add_test): ThreadSanitizer would not see "
      "it.\n",
      stderr);
  std::_Exit(1);
}
#pragma GCC visibility pop
}
