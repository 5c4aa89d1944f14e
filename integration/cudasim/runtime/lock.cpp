#include "lock.h"

#include <pthread.h>

namespace cudart {
namespace {

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;

void free_in_child() {
  const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  __builtin_memcpy(&g_mutex, &fresh, sizeof fresh);
}

// No prepare handler: taking the lock there could wait for a thread that waits for a lock of the driver's, taken by its
// own handler.
__attribute__((constructor)) void watch_forks() { pthread_atfork(nullptr, nullptr, free_in_child); }

}  // namespace

Guard::Guard() { pthread_mutex_lock(&g_mutex); }
Guard::~Guard() { pthread_mutex_unlock(&g_mutex); }

}  // namespace cudart
