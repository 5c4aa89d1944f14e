// Starting, joining and numbering threads.
#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "client.h"

namespace cudasim::client {
namespace {

Real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> real_create{"pthread_create"};
Real<int(pthread_t, void**)> real_join{"pthread_join"};

thread_local bool t_service = false;

struct Start {
  void* (*body)(void*);
  void* argument;
  std::uint64_t number;  // in the schedule; 0: not scheduled
  bool service;
};

// Newest first: the C library uses the names of threads that have ended again. Never freed, a few bytes a thread.
struct Started {
  pthread_t thread;
  std::uint64_t number;
  Started* next;
};
constinit std::atomic<Started*> g_started{nullptr};

void remember(pthread_t thread, std::uint64_t number) {
  auto* const entry = new (std::nothrow) Started{thread, number, g_started.load(std::memory_order_relaxed)};
  if (entry == nullptr) return;
  while (!g_started.compare_exchange_weak(entry->next, entry, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

std::uint64_t number_of(pthread_t thread) {
  for (const Started* entry = g_started.load(std::memory_order_acquire); entry != nullptr; entry = entry->next) {
    if (pthread_equal(entry->thread, thread) != 0) return entry->number;
  }
  return 0;
}

const char* name_in_path(const char* path) {
  const char* const slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// LD_PRELOAD is a list of files, separated by colons or blanks.
bool is_preloaded(const char* file) {
  const char* list = std::getenv("LD_PRELOAD");
  if (list == nullptr) return false;
  const char* const name = name_in_path(file);
  const std::size_t length = std::strlen(name);
  for (const char* at = std::strstr(list, name); at != nullptr; at = std::strstr(at + 1, name)) {
    const bool begins = at == list || std::strchr("/: ", at[-1]) != nullptr;
    if (begins && std::strchr(": ", at[length]) != nullptr) return true;  // the end of the text counts, too
  }
  return false;
}

bool starts_a_service(void* (*body)(void*)) {
  if (t_service) return true;
  Dl_info info{};
  return dladdr(reinterpret_cast<const void*>(body), &info) != 0 && info.dli_fname != nullptr &&
         is_preloaded(info.dli_fname);
}

void* run(void* argument) {
  const Start start = *static_cast<const Start*>(argument);
  delete static_cast<const Start*>(argument);
  t_service = start.service;
  if (start.number != 0) {
    if (const CudasimSchedule* const schedule = attached()) schedule->start_thread(start.number);
  }
  return start.body(start.argument);
}

struct Joined {
  const CudasimSchedule* schedule;
  std::uint64_t number;
};

int has_ended(void* argument) {
  const auto* const joined = static_cast<const Joined*>(argument);
  return joined->schedule->has_ended(joined->number);
}

}  // namespace
}  // namespace cudasim::client

using namespace cudasim::client;

SCHEDULE_EXPORT int cudasim_schedule_is_service(void) { return t_service ? 1 : 0; }

SCHEDULE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                                   void* argument) {
  const bool service = starts_a_service(body);
  const CudasimSchedule* const schedule = service ? nullptr : scheduled();
  const std::uint64_t number = schedule != nullptr ? schedule->expect_thread() : 0;
  if (number == 0 && !service) return real_create(thread, attributes, body, argument);
  auto* const start = new (std::nothrow) Start{body, argument, number, service};
  const int failure = start == nullptr ? EAGAIN : real_create(thread, attributes, run, start);
  if (failure != 0) delete start;
  if (number == 0) return failure;
  if (failure != 0) {
    schedule->cancel_thread(number);
    return failure;
  }
  remember(*thread, number);
  schedule->point("pthread_create");
  return 0;
}

SCHEDULE_EXPORT int pthread_join(pthread_t thread, void** result) {
  const CudasimSchedule* const schedule = scheduled();
  Joined joined{schedule, schedule != nullptr ? number_of(thread) : 0};
  if (joined.number != 0) {
    const CudasimWait wait{"the end of a thread", nullptr, has_ended, &joined, nullptr, nullptr, -1};
    schedule->wait(&wait);
  }
  return real_join(thread, result);
}
