// The requests that the status socket answers (docs/formats/status.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace memopt::agent {

// What answers them. They may throw std::bad_alloc.
struct Services {
  struct Limit {
    std::string error;  // why it was not accepted; empty: it was
    std::uint64_t limit = 0;
    std::uint64_t held = 0;
  };
  std::string (*status)();
  Limit (*set_limit)(std::string_view text);
};

// The answer to a request, which ends with its newline; one without is not known. May throw std::bad_alloc.
std::string answer_request(std::string_view request, const Services& services);

}  // namespace memopt::agent
