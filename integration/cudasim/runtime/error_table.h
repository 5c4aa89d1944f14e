#pragma once

// Names and texts of all runtime errors, derived from the toolkit's driver_types.h when the project is built.

#include <driver_types.h>

namespace cudart {

struct ErrorEntry {
  cudaError_t code;
  const char* name;
  const char* text;
};

// Null for a number that is no error code.
const ErrorEntry* find_error(cudaError_t code);

}  // namespace cudart
