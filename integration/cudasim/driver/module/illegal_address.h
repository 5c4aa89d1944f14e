// What launches say of addresses that are not the program's.
#pragma once
#include <cuda.h>

#include <optional>
#include <string>
#include <vector>

#include "access_log.h"
#include "memory/memory.h"

namespace cudasim {

// Instrumented kernels: the first byte that belongs to nothing, but lies where a load does not fault (the rest of a
// granule, a neighbour's padding).
std::optional<std::uintptr_t> outside_of_memory(const Memory& memory, const std::vector<AddressRange>& ranges);

// Says so on stderr.
CUresult illegal_address(const std::string& launch, const char* what, std::uintptr_t address);

}  // namespace cudasim
