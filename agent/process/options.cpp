#include "agent/process/options.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "agent/process/made_once.h"

namespace memopt::agent {

Options::Options(const char* const* environment) {
  for (std::size_t i = 0; i < shm::kOptions.size(); ++i) values_[i] = shm::kOptions[i].default_value;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    if (!variable.starts_with(shm::kOptionPrefix)) continue;
    const std::size_t equals = variable.find('=');
    const std::string_view name = variable.substr(0, equals);
    const std::string_view text = equals == std::string_view::npos ? std::string_view() : variable.substr(equals + 1);
    if (std::string fault = shm::option_fault(name, text); !fault.empty()) {
      complaints_.push_back(std::move(fault));
    } else {
      values_[static_cast<std::size_t>(shm::find_option(name) - shm::kOptions.data())] = text;
    }
  }
}

constinit MadeOnce<const Options> g_options;

const Options& options() {
  // Never destroyed: threads may ask while the process exits.
  return *g_options.get([] { return new const Options(environ); });
}

namespace {

enum class Switch : int { kUnread, kOff, kOn };
constinit std::atomic<Switch> g_disable{Switch::kUnread};

[[gnu::cold, gnu::noinline]] bool read_disable() noexcept {
  bool on = false;
  try {
    on = options().is_on(shm::OptionId::kDisable);
  } catch (...) {
    on = true;  // no memory to read the options: stay out of the way
  }
  g_disable.store(on ? Switch::kOn : Switch::kOff, std::memory_order_relaxed);
  return on;
}

}  // namespace

bool disabled() noexcept {
  const Switch state = g_disable.load(std::memory_order_relaxed);
  if (state == Switch::kUnread) [[unlikely]]
    return read_disable();
  return state == Switch::kOn;
}

}  // namespace memopt::agent
