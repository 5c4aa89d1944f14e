#include "agent/process/frameworks.h"

#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "agent/process/loaded_path.h"
#include "shm/frameworks.h"

namespace memopt::agent {
namespace {

// The environment with which memopt began, for status: programs change theirs later, when frameworks have read it.
constinit std::atomic<const char* const*> g_environment{nullptr};

bool names(const char* entry, std::string_view variable) {
  return std::strncmp(entry, variable.data(), variable.size()) == 0 && entry[variable.size()] == '=';
}

// Array and strings, in one piece; kept, so that nothing is lost when the program takes entries out.
constinit std::atomic<char**> g_made{nullptr};

// A new array with the old entries and the settings. Not by setenv: programs have one of their own (bash does), which
// is not ready before main. As with setenv's own arrays, nothing of it is ever freed.
char** merged_environment(char* const* old, const std::vector<shm::FrameworkSetting>& settings) {
  std::size_t count = 0;
  while (old != nullptr && old[count] != nullptr) ++count;
  const std::size_t array_bytes = (count + settings.size() + 1) * sizeof(char*);
  std::size_t bytes = array_bytes;
  for (const shm::FrameworkSetting& setting : settings) bytes += setting.variable.size() + setting.value.size() + 2;
  char* const piece = new char[bytes];
  char** const entries = reinterpret_cast<char**>(piece);
  char* text = piece + array_bytes;
  std::copy_n(old, count, entries);
  for (const shm::FrameworkSetting& setting : settings) {
    char** const end = entries + count;
    char** const place = std::find_if(entries, end, [&](const char* entry) { return names(entry, setting.variable); });
    if (place == end) ++count;
    *place = text;
    std::memcpy(text, setting.variable.data(), setting.variable.size());
    text += setting.variable.size();
    *text++ = '=';
    std::memcpy(text, setting.value.c_str(), setting.value.size() + 1);
    text += setting.value.size() + 1;
  }
  entries[count] = nullptr;
  return entries;
}

using Loaded = std::array<bool, shm::kFrameworks.size()>;

// The loader's lock is held meanwhile: only reads.
int note_loaded(dl_phdr_info* info, std::size_t, void* data) noexcept {
  auto& loaded = *static_cast<Loaded*>(data);
  const std::string_view path = path_of(*info);
  for (std::size_t i = 0; i < shm::kFrameworks.size(); ++i) {
    const std::string_view library = shm::kFrameworks[i].library;
    if (!library.empty() && path.find(library) != std::string_view::npos) loaded[i] = true;
  }
  return 0;
}

shm::FrameworkStatus describe(shm::FrameworkId id, const char* const* environment) {
  const shm::Framework& framework = shm::framework(id);
  const shm::FrameworkOutcome outcome = shm::framework_outcome(id, shm::Route::kNone, environment);
  shm::FrameworkStatus status;
  status.name = framework.name;
  status.set_by = "nobody";
  if (outcome.choice != nullptr) {
    status.setting = outcome.chosen;
    status.set_by = outcome.by_memopt ? "memopt" : "user";
    status.visible = outcome.choice->visible();
    status.route = shm::to_string(outcome.choice->route);
    status.text = outcome.chosen + " (" + (outcome.by_memopt ? "set by memopt" : "not set by memopt") + ": " +
                  std::string(outcome.choice->meaning) + ")";
  } else if (!framework.pools) {
    status.visible = true;
    status.text = "allocates directly";
  } else if (outcome.has_recipe) {
    status.visible = false;
    status.text = "its pool is on: nothing was set";
  } else {
    status.text = framework.by_hand;
  }
  return status;
}

}  // namespace

void set_framework_environment() noexcept {
  const int kept = errno;
  try {
    const std::vector<shm::FrameworkSetting> settings =
        shm::framework_settings(shm::framework_route_of(environ), environ);
    if (!settings.empty()) {
      environ = merged_environment(environ, settings);
      g_made.store(environ, std::memory_order_relaxed);
    }
    // A copy: programs overwrite the strings of their environment too (process titles).
    std::vector<std::string_view> wanted{shm::kFrameworkMark};
    for (const shm::FrameworkChoice& choice : shm::kFrameworkChoices) wanted.push_back(choice.variable);
    std::vector<shm::FrameworkSetting> seen;
    for (const std::string_view variable : wanted) {
      if (const auto value = shm::environment_value(environ, variable)) seen.push_back({variable, std::string(*value)});
    }
    g_environment.store(merged_environment(nullptr, seen), std::memory_order_release);
  } catch (const std::bad_alloc&) {
  }
  errno = kept;
}

std::vector<shm::FrameworkStatus> loaded_frameworks() {
  std::vector<shm::FrameworkStatus> found;
  const char* const* const environment = g_environment.load(std::memory_order_acquire);
  if (environment == nullptr) return found;
  Loaded loaded{};
  dl_iterate_phdr(note_loaded, &loaded);
  for (std::size_t i = 0; i < loaded.size(); ++i) {
    if (loaded[i]) found.push_back(describe(static_cast<shm::FrameworkId>(i), environment));
  }
  return found;
}

bool asks_again(const shm::FrameworkStatus& framework) {
  const bool is_cupy = framework.name == shm::framework(shm::FrameworkId::kCuPy).name;
  return framework.visible ? !*framework.visible : is_cupy;
}

bool is_pytorch_without_caching(const shm::FrameworkStatus& framework) {
  return framework.name == shm::framework(shm::FrameworkId::kPyTorch).name && !framework.route.empty();
}

}  // namespace memopt::agent
