// One record as a line of text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "shm/record.h"

namespace memopt::tools {

// "malloc", "event record", ...
std::string_view kind_name(shm::RecordKind kind);

// What the record says, without sequence, lane and time. `kernels` names functions.
std::string describe(const shm::RecordView& record, const std::map<std::uint64_t, std::string>& kernels);

}  // namespace memopt::tools
