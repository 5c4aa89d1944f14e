#include "agent/stacks/stack_walker.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <atomic>
#include <string>

#include "agent/process/log.h"
#include "agent/process/made_once.h"
#include "agent/stacks/readable_memory.h"

namespace memopt::agent {
namespace {

constexpr const char* kLibrary = "libunwind.so.8";
constexpr const char* kFunction = "unw_backtrace";
// unw_local_addr_space, unw_set_caching_policy, unw_set_cache_size, unw_flush_cache as libunwind.h spells them here.
constexpr const char* kSpace = "_ULx86_64_local_addr_space";
constexpr const char* kSetPolicy = "_ULx86_64_set_caching_policy";
constexpr const char* kSetSize = "_ULx86_64_set_cache_size";
constexpr const char* kFlush = "_Ux86_64_flush_cache";
constexpr int kCachePerThread = 2;
constexpr std::size_t kCacheSize = 1024;

struct StackBounds {
  std::uintptr_t low = 0;
  std::uintptr_t high = 0;
};
[[gnu::tls_model("initial-exec")]] constinit thread_local StackBounds t_bounds;

// Once per thread: what libc does for it takes memory.
[[gnu::cold, gnu::noinline]] void find_bounds() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
    t_bounds.low = reinterpret_cast<std::uintptr_t>(low);
    t_bounds.high = t_bounds.low + bytes;
  }
  pthread_attr_destroy(&attributes);
}

// Along saved frame pointers, as far as they are some: each frame lies above the one before, within the thread's stack.
// Reads nothing outside it, whatever the program uses the register for.
[[gnu::noinline]] int walk_frame_pointers(void** frames, int size) noexcept {
  auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (t_bounds.high == 0) find_bounds();
  int count = 0;
  while (count < size && frame % alignof(void*) == 0 && frame >= t_bounds.low && frame < t_bounds.high &&
         t_bounds.high - frame >= 2 * sizeof(void*)) {
    const auto* const words = reinterpret_cast<const std::uintptr_t*>(frame);
    const std::uintptr_t caller = words[0];
    const std::uintptr_t return_address = words[1];
    if (return_address == 0) break;
    frames[count++] = reinterpret_cast<void*>(return_address);
    if (caller <= frame) break;
    frame = caller;
  }
  return count;
}

std::string folder_of_this_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&folder_of_this_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string path_of(void* handle) {
  const link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_name == nullptr) return kLibrary;
  return map->l_name;
}

}  // namespace

StackWalker::StackWalker() noexcept {
  try {
    status_ = {"frame-pointers", "libunwind is being loaded"};
  } catch (...) {
  }
}

StackWalker::StackWalker(const char* library_folder) noexcept {
#ifdef __SANITIZE_THREAD__
  // libunwind has a destructor for each thread, which calls into ThreadSanitizer after that has left the thread.
  library_folder = nullptr;
  try {
    status_ = {"frame-pointers", "libunwind does not go with ThreadSanitizer"};
  } catch (...) {
  }
  if (library_folder == nullptr) return;
#endif
  try {
    void* handle = nullptr;
    if (library_folder != nullptr && *library_folder != '\0') {
      handle = dlopen((std::string(library_folder) + "/" + kLibrary).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const reason = dlerror();
      status_ = {"frame-pointers", reason != nullptr ? reason : "libunwind.so.8 cannot be loaded"};
      return;
    }
    backtrace_ = reinterpret_cast<BacktraceFunction>(dlsym(handle, kFunction));
    if (backtrace_ == nullptr) {
      status_ = {"frame-pointers", path_of(handle) + " has no function " + kFunction};
      dlclose(handle);
      return;
    }
    // Before anything of it runs, which opens its pipe.
    if (!give_pipeless_validation(handle)) {
      log(LogLevel::kInfo, "{} takes two descriptors of the program", path_of(handle));
    }
    set_up_caches(handle);
    void* frames[4];
    if (backtrace_(frames, 4) <= 0) {
      backtrace_ = nullptr;
      flush_ = nullptr;
      status_ = {"frame-pointers", path_of(handle) + " does not walk a stack here"};
      return;
    }
    status_ = {"libunwind", path_of(handle)};
  } catch (...) {
    backtrace_ = nullptr;  // out of memory; an empty status is shown as unknown
  }
}

// A cache for each thread: without, threads wait for each other. A libunwind that lacks any of it works as it comes.
void StackWalker::set_up_caches(void* handle) noexcept {
  auto* const space = static_cast<void**>(dlsym(handle, kSpace));
  const auto set_policy = reinterpret_cast<int (*)(void*, int)>(dlsym(handle, kSetPolicy));
  const auto set_size = reinterpret_cast<int (*)(void*, std::size_t, int)>(dlsym(handle, kSetSize));
  flush_ = reinterpret_cast<FlushFunction>(dlsym(handle, kFlush));
  if (space == nullptr || *space == nullptr) return;
  space_ = *space;
  if (set_policy != nullptr) set_policy(space_, kCachePerThread);
  if (set_size != nullptr) set_size(space_, kCacheSize, 0);
}

int StackWalker::walk(void** frames, int size) const noexcept {
  if (size <= 0) return 0;
  const int count = backtrace_ != nullptr ? backtrace_(frames, size) : walk_frame_pointers(frames, size);
  return count < 0 ? 0 : count;
}

void StackWalker::forget_code() const noexcept {
  if (flush_ != nullptr && space_ != nullptr) flush_(space_, 0, 0);
}

constinit MadeOnce<const StackWalker> g_walker;
constinit MadeOnce<const StackWalker> g_meanwhile;
constinit std::atomic<bool> g_being_made{false};

const StackWalker& stack_walker() noexcept {
  if (const StackWalker* const made = g_walker.made()) return *made;
  // Who comes meanwhile does not wait, as it may hold the dynamic linker's lock, which loading waits for.
  if (g_being_made.exchange(true, std::memory_order_acq_rel)) {
    if (const StackWalker* const made = g_walker.made()) return *made;
    return *g_meanwhile.get([] { return new const StackWalker(); });
  }
  return *g_walker.get([] {
    std::string folder;
    try {
      folder = folder_of_this_library();
    } catch (...) {
      folder.clear();
    }
    return new const StackWalker(folder.c_str());
  });
}

void forget_stack_walker_after_fork() noexcept {
  if (g_walker.made() == nullptr) g_being_made.store(false, std::memory_order_release);
}

}  // namespace memopt::agent
