#include "agent/memory/pins.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <span>
#include <string>
#include <unordered_map>

#include "agent/process/log.h"
#include "agent/process/options.h"
#include "agent/process/spin_lock.h"
#include "agent/process/uncancellable.h"
#include "agent/recording/call_stacks.h"
#include "shm/options.h"
#include "shm/pin_terms.h"

namespace memopt::agent {
namespace {

struct Pins {
  std::uint64_t least_bytes = shm::PinTerms::kNone;
  std::optional<std::regex> frame;
  bool any() const { return least_bytes != shm::PinTerms::kNone || frame.has_value(); }
};

// Of stacks that were looked at, by a hash of their addresses. Never destroyed. Guarded by the lock.
using Known = std::unordered_map<std::uint64_t, bool>;
constexpr std::size_t kMostKnown = std::size_t{1} << 16;
constinit int g_lock = 0;
constinit Known* g_known = nullptr;

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

bool any_matches(const Pins& pins, std::span<void* const> frames) {
  // FNV-1a.
  std::uint64_t stack = 0xcbf29ce484222325u;
  for (void* const frame : frames) stack = (stack ^ reinterpret_cast<std::uint64_t>(frame)) * 0x100000001b3u;
  {
    const LockGuard guard(g_lock);
    if (g_known != nullptr) {
      if (const auto found = g_known->find(stack); found != g_known->end()) return found->second;
    }
  }
  const bool result = std::any_of(frames.begin(), frames.end(),
                                  [&](const void* frame) { return std::regex_search(name_of(frame), *pins.frame); });
  const LockGuard guard(g_lock);
  if (g_known == nullptr) g_known = new Known();
  if (g_known->size() < kMostKnown) g_known->emplace(stack, result);
  return result;
}

}  // namespace

bool is_to_stay(std::size_t bytes, const void* return_address) noexcept {
  const Pins* const all = pins();
  if (all == nullptr) [[likely]]
    return false;
  if (bytes >= all->least_bytes) return true;
  if (!all->frame) return false;
  // Names are looked for in what the dynamic linker locks.
  const Uncancellable scope;
  const int kept = errno;
  std::array<void*, kMaxStackFrames> frames{};
  const std::size_t count = program_frames(return_address, frames);
  bool result = false;
  try {
    result = any_matches(*all, std::span(frames).first(count));
  } catch (const std::bad_alloc&) {
  } catch (const std::regex_error&) {  // it is too complex for the name
  }
  errno = kept;
  return result;
}

void forget_pins_after_fork() noexcept { g_lock = 0; }

}  // namespace memopt::agent
