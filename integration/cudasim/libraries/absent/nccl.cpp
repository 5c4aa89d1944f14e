// NCCL for a group of one: collectives are copies. A group of several is refused, as NCCL refuses what it can't reach.
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "common/answer.h"
#include "common/types.h"

using namespace cudasim::libraries;

namespace {

enum Status : int { kSuccess = 0, kUnhandledCudaError = 1, kSystemError = 2, kInvalidArgument = 4, kInvalidUsage = 5 };
constexpr int kVersion = 23007;

struct Communicator {
  int device;
};

struct Identifier {
  char bytes[128];
};

// int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, two of eight bits.
constexpr size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr int kTypes = sizeof(kBytes) / sizeof(kBytes[0]);

Status make(Communicator** out, int ranks, int rank) {
  if (!out) return kInvalidArgument;
  *out = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) return kInvalidArgument;
  if (ranks > 1) {
    static char said;
    return static_cast<Status>(refuse("a group of several ranks", kSystemError, said));
  }
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return kUnhandledCudaError;
  *out = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
  if (!*out) return kSystemError;
  (*out)->device = device;
  return kSuccess;
}

Status copy(const void* from, void* to, size_t count, int type, const Communicator* communicator, cudaStream_t stream) {
  if (!communicator || type < 0 || type >= kTypes) return kInvalidArgument;
  if (from == to || !count) return kSuccess;
  if (!from || !to) return kInvalidArgument;
  return cudaMemcpyAsync(to, from, count * kBytes[type], cudaMemcpyDeviceToDevice, stream) == cudaSuccess
             ? kSuccess
             : kUnhandledCudaError;
}

}  // namespace

extern "C" {

CUDASIM_EXPORT int ncclGetVersion(int* version) {
  if (!version) return kInvalidArgument;
  *version = kVersion;
  return kSuccess;
}

CUDASIM_EXPORT const char* ncclGetErrorString(int status) {
  constexpr const char* kTexts[] = {"no error",
                                    "unhandled cuda error",
                                    "unhandled system error",
                                    "internal error",
                                    "invalid argument",
                                    "invalid usage",
                                    "remote process exited or there was a network error",
                                    "operation in progress"};
  return status >= 0 && status < 8 ? kTexts[status] : "unknown result code";
}
CUDASIM_EXPORT const char* ncclGetLastError(Communicator*) { return ""; }

CUDASIM_EXPORT int ncclGetUniqueId(Identifier* out) {
  if (!out) return kInvalidArgument;
  memset(out, 0, sizeof(*out));
  strcpy(out->bytes, "cudasim");
  return kSuccess;
}

CUDASIM_EXPORT int ncclCommInitRank(Communicator** out, int ranks, Identifier, int rank) {
  return make(out, ranks, rank);
}
CUDASIM_EXPORT int ncclCommInitRankConfig(Communicator** out, int ranks, Identifier, int rank, void*) {
  return make(out, ranks, rank);
}
CUDASIM_EXPORT int ncclCommInitRankScalable(Communicator** out, int ranks, int rank, int, Identifier*, void*) {
  return make(out, ranks, rank);
}
CUDASIM_EXPORT int ncclCommInitAll(Communicator** out, int devices, const int*) { return make(out, devices, 0); }

CUDASIM_EXPORT int ncclCommDestroy(Communicator* communicator) {
  free(communicator);
  return kSuccess;
}
CUDASIM_EXPORT int ncclCommAbort(Communicator* communicator) { return ncclCommDestroy(communicator); }
CUDASIM_EXPORT int ncclCommFinalize(Communicator* communicator) { return communicator ? kSuccess : kInvalidArgument; }
CUDASIM_EXPORT int ncclCommGetAsyncError(Communicator* communicator, int* status) {
  if (!communicator || !status) return kInvalidArgument;
  *status = kSuccess;
  return kSuccess;
}
CUDASIM_EXPORT int ncclCommCount(const Communicator* communicator, int* count) {
  if (!communicator || !count) return kInvalidArgument;
  *count = 1;
  return kSuccess;
}
CUDASIM_EXPORT int ncclCommUserRank(const Communicator* communicator, int* rank) {
  if (!communicator || !rank) return kInvalidArgument;
  *rank = 0;
  return kSuccess;
}
CUDASIM_EXPORT int ncclCommCuDevice(const Communicator* communicator, int* device) {
  if (!communicator || !device) return kInvalidArgument;
  *device = communicator->device;
  return kSuccess;
}

CUDASIM_EXPORT int ncclGroupStart() { return kSuccess; }
CUDASIM_EXPORT int ncclGroupEnd() { return kSuccess; }

CUDASIM_EXPORT int ncclAllReduce(const void* from, void* to, size_t count, int type, int, Communicator* communicator,
                                 cudaStream_t stream) {
  return copy(from, to, count, type, communicator, stream);
}
CUDASIM_EXPORT int ncclReduce(const void* from, void* to, size_t count, int type, int, int, Communicator* communicator,
                              cudaStream_t stream) {
  return copy(from, to, count, type, communicator, stream);
}
CUDASIM_EXPORT int ncclBroadcast(const void* from, void* to, size_t count, int type, int, Communicator* communicator,
                                 cudaStream_t stream) {
  return copy(from, to, count, type, communicator, stream);
}
CUDASIM_EXPORT int ncclBcast(void* data, size_t count, int type, int, Communicator* communicator, cudaStream_t stream) {
  return copy(data, data, count, type, communicator, stream);
}
CUDASIM_EXPORT int ncclReduceScatter(const void* from, void* to, size_t count, int type, int,
                                     Communicator* communicator, cudaStream_t stream) {
  return copy(from, to, count, type, communicator, stream);
}
CUDASIM_EXPORT int ncclAllGather(const void* from, void* to, size_t count, int type, Communicator* communicator,
                                 cudaStream_t stream) {
  return copy(from, to, count, type, communicator, stream);
}
}
