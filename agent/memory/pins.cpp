#include "agent/memory/pins.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <string>
#include <unordered_map>

#include "agent/process/log.h"
#include "agent/process/options.h"
#include "agent/process/spin_lock.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/call_stacks.h"
#include "agent/recording/stack_walker.h"
#include "shm/options.h"
#include "shm/pin_terms.h"

namespace memopt::agent {
namespace {

struct Pins {
  std::uint64_t least_bytes = shm::PinTerms::kNone;
  std::optional<std::regex> frame;
  bool any() const { return least_bytes != shm::PinTerms::kNone || frame.has_value(); }
};

// Of stacks that were looked at, by hash. Never destroyed. Guarded by the lock.
using Known = std::unordered_map<std::uint64_t, bool>;
constexpr std::size_t kMostKnown = std::size_t{1} << 16;
constinit int g_lock = 0;
constinit Known* g_known = nullptr;
constinit thread_local bool t_looking = false;

std::unique_ptr<const Pins> read_pins() {
  auto pins = std::make_unique<Pins>();
  const std::optional<shm::PinTerms> terms = shm::pin_terms(options().value(shm::OptionId::kPin));
  if (!terms) return pins;
  pins->least_bytes = terms->least_bytes;
  try {
    if (!terms->frame.empty()) {
      pins->frame.emplace(terms->frame.data(), terms->frame.size(),
                          std::regex::ECMAScript | std::regex::nosubs | std::regex::optimize);
    }
  } catch (const std::regex_error& error) {
    log(LogLevel::kWarn, "MEMOPT_PIN: 'frame={}' is no regular expression ({}): it is ignored", terms->frame,
        error.what());
  }
  return pins;
}

const Pins* pins() noexcept {
  static const Pins* const read = [] {
    try {
      std::unique_ptr<const Pins> made = read_pins();
      return made->any() ? made.release() : nullptr;
    } catch (const std::bad_alloc&) {
      return static_cast<const Pins*>(nullptr);
    }
  }();
  return read;
}

std::string name_of(const void* address) {
  Dl_info info{};
  // The address is behind the call, and perhaps behind the function.
  if (dladdr(static_cast<const char*>(address) - 1, &info) == 0 || info.dli_fname == nullptr) return {};
  const char* const folder = std::strrchr(info.dli_fname, '/');
  std::string name = std::string(folder != nullptr ? folder + 1 : info.dli_fname) + ":";
  if (info.dli_sname == nullptr) return name;
  int status = 0;
  char* const demangled = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  name += status == 0 && demangled != nullptr ? demangled : info.dli_sname;
  std::free(demangled);
  return name;
}

bool any_frame_matches(const Pins& pins, const void* return_address) {
  void* frames[2 * kMaxStackFrames];
  const int count = stack_walker().walk(frames, static_cast<int>(std::size(frames)));
  int first = 0;
  while (first < count && frames[first] != return_address) ++first;
  if (first == count) return std::regex_search(name_of(return_address), *pins.frame);
  for (int i = first; i < count; ++i) {
    if (std::regex_search(name_of(frames[i]), *pins.frame)) return true;
  }
  return false;
}

bool matches(const Pins& pins, const void* return_address) {
  const std::uint64_t stack = call_stack(return_address);
  {
    const LockGuard guard(g_lock);
    if (g_known != nullptr && stack != 0) {
      if (const auto found = g_known->find(stack); found != g_known->end()) return found->second;
    }
  }
  const bool result = any_frame_matches(pins, return_address);
  const LockGuard guard(g_lock);
  if (g_known == nullptr) g_known = new Known();
  if (stack != 0 && g_known->size() < kMostKnown) g_known->emplace(stack, result);
  return result;
}

}  // namespace

bool is_to_stay(std::size_t bytes, const void* return_address) noexcept {
  const Pins* const all = pins();
  if (all == nullptr) [[likely]]
    return false;
  if (bytes >= all->least_bytes) return true;
  // What looking allocates is not looked at.
  if (!all->frame || t_looking) return false;
  const Uncancellable scope;
  const int kept = errno;
  t_looking = true;
  bool result = false;
  try {
    result = matches(*all, return_address);
  } catch (const std::bad_alloc&) {
  } catch (const std::regex_error&) {  // it is too complex for the name
  }
  t_looking = false;
  errno = kept;
  return result;
}

void forget_pins_after_fork() noexcept {
  g_lock = 0;
  t_looking = false;
}

}  // namespace memopt::agent
