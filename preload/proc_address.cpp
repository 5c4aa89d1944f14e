// cuGetProcAddress: the runtime fetches every entry point through it, by base name, version and kind of default stream.
//
// The driver is asked first, and only what it returned is replaced. Which ABI it returned follows from its rule: the
// newest version of that base which is not newer than asked for, per-thread if asked for and existing. Where the
// returned address is that of an exported symbol the rule is not needed, and not trusted against it. What neither
// explains is passed through: a wrapper with another ABI than the caller expects is worse than none.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "agent/agent.h"
#include "preload/elf_object.h"
#include "preload/typed_hooks.h"

namespace memopt::preload::hooks {
namespace {

struct Version {
  std::string_view base;
  int version;
  bool per_thread;
  Hook hook;
};

// By base, then plain before per-thread, then version.
constexpr Version kVersions[] = {
#define MEMOPT_ABI(base, version, per_thread, index) {base, version, per_thread, static_cast<Hook>(index)},
#include "memopt_entry_points/hooks.inc"
};

// Bases whose newest version cuda.h sends to another base: the headers do not say which function such a request gets.
constexpr std::string_view kRedirected[] = {
#define MEMOPT_REDIRECTED(base) base,
#include "memopt_entry_points/hooks.inc"
    ""};

struct Choice {
  bool found = false;
  Hook hook{};
};

Choice choose(std::string_view base, const void* returned, int asked_version, bool per_thread) noexcept {
  const auto before = [](const Version& row, std::string_view name) { return row.base < name; };
  const auto* const first = std::lower_bound(std::begin(kVersions), std::end(kVersions), base, before);
  const auto* last = first;
  while (last != std::end(kVersions) && last->base == base) ++last;
  if (first == last) return {};

  const ElfObject driver = object_of(returned);
  const auto is_address_of = [&](const Version& row) { return driver.find_function(symbol_of(row.hook)) == returned; };
  const bool has_per_thread = std::any_of(first, last, [](const Version& row) { return row.per_thread; });
  const Version* by_rule = nullptr;
  for (const auto* row = first; row != last; ++row) {
    // An older driver than these headers lacks the newest versions, and answers with what it has.
    if (row->per_thread == (per_thread && has_per_thread) && row->version <= asked_version &&
        (driver.empty() || driver.find_function(symbol_of(row->hook)) != nullptr)) {
      by_rule = row;
    }
  }
  if (by_rule != nullptr && is_address_of(*by_rule)) return {true, by_rule->hook};
  for (const auto* row = first; row != last; ++row) {
    if (is_address_of(*row)) return {true, row->hook};
  }
  // The driver returned something that it does not export under a name of this base. The rule holds for versions that
  // the headers know.
  const bool is_redirected = std::find(std::begin(kRedirected), std::end(kRedirected), base) != std::end(kRedirected);
  if (by_rule != nullptr && asked_version <= kToolkitVersion && !is_redirected) return {true, by_rule->hook};
  return {};
}

void replace(const char* symbol, void** function, int version, cuuint64_t flags) noexcept {
  if (symbol == nullptr || function == nullptr || *function == nullptr || is_trampoline(*function)) return;
  const Choice choice =
      choose(symbol, *function, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0);
  if (!choice.found) {
    agent::log(agent::LogLevel::kDebug, "{} (version {}, flags {}) is passed through: not a known entry point", symbol,
               version, flags);
    return;
  }
  if (adopt(choice.hook, *function)) *function = trampoline_of(choice.hook);
}

}  // namespace

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) noexcept {
  const CUresult result = real<Hook::cuGetProcAddress>()(symbol, function, version, flags);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* found) noexcept {
  const CUresult result = real<Hook::cuGetProcAddress_v2>()(symbol, function, version, flags, found);
  if (result == CUDA_SUCCESS) replace(symbol, function, version, flags);
  return result;
}

}  // namespace memopt::preload::hooks
