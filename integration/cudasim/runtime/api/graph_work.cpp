#include "api/graph_work.h"

#include "../copy_shape.h"
#include "../registry.h"

namespace cudart {
namespace {

CUgraphNodeParams of_type(CUgraphNodeType type) {
  CUgraphNodeParams work{};
  work.type = type;
  return work;
}

template <class Kernel>
cudaError_t kernel_work(const Kernel& from, CUgraphNodeParams* out) {
  *out = of_type(CU_GRAPH_NODE_TYPE_KERNEL);
  CUDA_KERNEL_NODE_PARAMS_v3& to = out->kernel;
  if (const cudaError_t error = resolve_symbol(from.func, &to.kern); error != cudaSuccess) return error;
  to.gridDimX = from.gridDim.x, to.gridDimY = from.gridDim.y, to.gridDimZ = from.gridDim.z;
  to.blockDimX = from.blockDim.x, to.blockDimY = from.blockDim.y, to.blockDimZ = from.blockDim.z;
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
  return cudaSuccess;
}

template <class Fill>
CUgraphNodeParams fill_work(const Fill& from) {
  CUgraphNodeParams work = of_type(CU_GRAPH_NODE_TYPE_MEMSET);
  work.memset.dst = device_pointer(from.dst);
  work.memset.pitch = from.pitch;
  work.memset.value = from.value;
  work.memset.elementSize = from.elementSize;
  work.memset.width = from.width;
  work.memset.height = from.height;
  return work;
}

}  // namespace

cudaError_t work_of(const cudaKernelNodeParams* kernel, CUgraphNodeParams* out) {
  return kernel == nullptr ? cudaErrorInvalidValue : kernel_work(*kernel, out);
}

cudaError_t work_of(const cudaMemcpy3DParms* copy, CUgraphNodeParams* out) {
  *out = of_type(CU_GRAPH_NODE_TYPE_MEMCPY);
  return describe(&out->memcpy.copyParams, copy);
}

cudaError_t work_of(const cudaMemsetParams* fill, CUgraphNodeParams* out) {
  if (fill == nullptr) return cudaErrorInvalidValue;
  *out = fill_work(*fill);
  return cudaSuccess;
}

cudaError_t work_of(const cudaHostNodeParams* host, CUgraphNodeParams* out) {
  if (host == nullptr) return cudaErrorInvalidValue;
  *out = of_type(CU_GRAPH_NODE_TYPE_HOST);
  out->host.fn = host->fn;
  out->host.userData = host->userData;
  return cudaSuccess;
}

cudaError_t work_of(const cudaGraphNodeParams* any, CUgraphNodeParams* out) {
  if (any == nullptr) return cudaErrorInvalidValue;
  static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) == sizeof(cudaMemAllocNodeParamsV2));
  switch (any->type) {
    case cudaGraphNodeTypeKernel:
      return kernel_work(any->kernel, out);
    case cudaGraphNodeTypeMemcpy:
      return work_of(&any->memcpy.copyParams, out);
    case cudaGraphNodeTypeMemset:
      *out = fill_work(any->memset);
      return cudaSuccess;
    case cudaGraphNodeTypeHost:
      *out = of_type(CU_GRAPH_NODE_TYPE_HOST);
      out->host.fn = any->host.fn;
      out->host.userData = any->host.userData;
      return cudaSuccess;
    case cudaGraphNodeTypeGraph:
      *out = child_work(any->graph.graph);
      out->graph.ownership = static_cast<CUgraphChildGraphNodeOwnership>(any->graph.ownership);
      return cudaSuccess;
    case cudaGraphNodeTypeEmpty:
      *out = of_type(CU_GRAPH_NODE_TYPE_EMPTY);
      return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
      *out = event_work(CU_GRAPH_NODE_TYPE_WAIT_EVENT, any->eventWait.event);
      return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
      *out = event_work(CU_GRAPH_NODE_TYPE_EVENT_RECORD, any->eventRecord.event);
      return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
      *out = of_type(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
      out->alloc = *reinterpret_cast<const CUDA_MEM_ALLOC_NODE_PARAMS_v2*>(&any->alloc);
      return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
      *out = of_type(CU_GRAPH_NODE_TYPE_MEM_FREE);
      out->free.dptr = device_pointer(any->free.dptr);
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

cudaError_t copy_work(void* to, const void* from, size_t count, cudaMemcpyKind kind, CUgraphNodeParams* out) {
  cudaMemcpy3DParms copy{};
  copy.srcPtr = {const_cast<void*>(from), count, count, 1};
  copy.dstPtr = {to, count, count, 1};
  copy.extent = {count, 1, 1};
  copy.kind = kind;
  return work_of(&copy, out);
}

CUgraphNodeParams child_work(cudaGraph_t child) {
  CUgraphNodeParams work = of_type(CU_GRAPH_NODE_TYPE_GRAPH);
  work.graph.graph = child;
  return work;
}

CUgraphNodeParams event_work(CUgraphNodeType type, cudaEvent_t event) {
  CUgraphNodeParams work = of_type(type);
  if (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) {
    work.eventWait.event = event;
  } else {
    work.eventRecord.event = event;
  }
  return work;
}

}  // namespace cudart
