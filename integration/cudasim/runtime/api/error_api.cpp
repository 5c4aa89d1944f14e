// The last error, and what the codes are called.

#include "api.h"
#include "error.h"
#include "error_table.h"

using namespace cudart;

cudaError_t cudaGetLastError(void) { return take_last_error(); }

cudaError_t cudaPeekAtLastError(void) { return peek_last_error(); }

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorEntry* entry = find_error(error);
  return entry ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorEntry* entry = find_error(error);
  return entry ? entry->text : "unrecognized error code";
}
