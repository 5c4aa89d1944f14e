#include "agent/order/known_streams.h"

namespace memopt::agent {

CUresult KnownStreams::ask(CUstream stream) noexcept {
  unsigned int flags = 0;
  const CUresult result = driver_.stream_flags(stream, &flags);
  if (result == CUDA_SUCCESS) created(stream);
  // Without a current context it can't be asked; that says nothing about the stream.
  return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

}  // namespace memopt::agent
