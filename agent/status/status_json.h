// Status as the JSON text of docs/formats/status.md.
#pragma once

#include <string>
#include <string_view>

#include "shm/status.h"

namespace memopt::agent {

// One object and a newline. Whatever bytes a path contains, the result is valid UTF-8.
std::string to_json(const shm::Status& status);

// The answer to a request that is not understood.
std::string error_json(std::string_view message);

}  // namespace memopt::agent
