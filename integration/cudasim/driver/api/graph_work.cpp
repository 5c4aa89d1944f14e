// From what a program says of a node (CUgraphNodeParams) to what it does.
#define __CUDA_API_VERSION_INTERNAL
#include "api/graph_call.h"
#include "contexts.h"

namespace cudasim {
namespace {

CUresult make_event(Driver& driver, CUevent handle, EventPtr& out) {
  out = driver.engine.impl().find_event(handle);
  return out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult make_child(Driver& driver, const CUDA_CHILD_GRAPH_NODE_PARAMS& parameters, NodeWork& out) {
  const std::shared_ptr<Graph> graph = driver.graphs->find(parameters.graph);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (parameters.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE || graph->has_memory_nodes())
    return CUDA_ERROR_NOT_SUPPORTED;
  std::shared_ptr<Graph> copy = graph->clone();
  copy->is_child = true;
  out = ChildNode{std::move(copy)};
  return CUDA_SUCCESS;
}

CUresult make_allocation(Driver& driver, ContextId context, const CUDA_MEM_ALLOC_NODE_PARAMS_v2& parameters,
                         const NodePlace& place, NodeWork& out) {
  if (place.graph == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUmemPoolProps& wanted = parameters.poolProps;
  if (wanted.handleTypes != CU_MEM_HANDLE_TYPE_NONE || wanted.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (wanted.location.type != CU_MEM_LOCATION_TYPE_DEVICE || wanted.location.id != 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < parameters.accessDescCount; ++i) {
    if (parameters.accessDescs == nullptr || parameters.accessDescs[i].location.id != 0)
      return CUDA_ERROR_INVALID_VALUE;
  }
  GraphMemoryPtr memory;
  const CUresult bad = driver.graphs->allocate(context, *place.graph, place.behind, parameters.bytesize, memory);
  if (bad != CUDA_SUCCESS) return bad;
  out = AllocateNode{std::move(memory), wanted};
  return CUDA_SUCCESS;
}

ContextId context_or(Driver& driver, CUcontext handle, ContextId current) {
  const Context* const context = handle == nullptr ? nullptr : driver.contexts->find(handle);
  return context != nullptr && context->alive ? context->id : current;
}

}  // namespace

CUresult make_work(Driver& driver, ContextId context, const CUgraphNodeParams& parameters, NodeWork& out,
                   const NodePlace& place) {
  for (const int reserved : parameters.reserved0) {
    if (reserved != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& kernel = parameters.kernel;
      KernelNode node;
      const CUresult bad =
          make_kernel(driver, context_or(driver, kernel.ctx, context),
                      {kernel.func == nullptr ? reinterpret_cast<CUfunction>(kernel.kern) : kernel.func,
                       {kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ},
                       {kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ},
                       kernel.sharedMemBytes,
                       kernel.kernelParams,
                       kernel.extra},
                      node);
      if (bad != CUDA_SUCCESS) return bad;
      out = std::move(node);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      if (parameters.memcpy.flags != 0 || parameters.memcpy.reserved != 0) return CUDA_ERROR_INVALID_VALUE;
      out = CopyNode{parameters.memcpy.copyParams, parameters.memcpy.copyCtx};
      return check_copy(driver, parameters.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      out = FillNode{parameters.memset};
      return check_fill(parameters.memset);
    case CU_GRAPH_NODE_TYPE_HOST:
      out = HostNode{parameters.host.fn, parameters.host.userData};
      return parameters.host.fn == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return make_child(driver, parameters.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      out = EmptyNode{};
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: {
      RecordNode node;
      const CUresult result = make_event(driver, parameters.eventRecord.event, node.event);
      out = node;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: {
      WaitNode node;
      const CUresult result = make_event(driver, parameters.eventWait.event, node.event);
      out = node;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return make_allocation(driver, context, parameters.alloc, place, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: {
      FreeNode node{driver.graphs->find_memory(parameters.free.dptr), parameters.free.dptr};
      if (!node.memory) return CUDA_ERROR_INVALID_VALUE;
      out = std::move(node);
      return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace cudasim
