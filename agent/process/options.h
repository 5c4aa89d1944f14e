// The options as this process sees them: the environment, checked against the table in shm/options.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shm/options.h"

namespace memopt::agent {

class Options {
 public:
  // Checks `environment` (an array of "NAME=value", null-terminated, or nullptr). A bad value is replaced by the
  // default and complained of.
  explicit Options(const char* const* environment);

  std::string_view value(shm::OptionId id) const { return values_[static_cast<std::size_t>(id)]; }
  bool is_on(shm::OptionId id) const { return value(id) == "1"; }

  // Sentences about unknown names and bad values, to be logged once.
  const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  std::array<std::string, shm::kOptions.size()> values_;
  std::vector<std::string> complaints_;
};

// The process's options, read at the first call and never again; the object is never destroyed. Safe from any thread.
const Options& options();

// MEMOPT_DISABLE=1. Costs one load after the first call.
bool disabled() noexcept;

}  // namespace memopt::agent
