#define __CUDA_API_VERSION_INTERNAL
#include "graph/node.h"

#include "api/copy_request.h"
#include "driver.h"
#include "module/launch.h"
#include "pools.h"

namespace cudasim {

CUgraphNodeType type_of(const NodeWork& work) {
  static constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
                                               CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_HOST,
                                               CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_EMPTY,
                                               CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                               CU_GRAPH_NODE_TYPE_MEM_ALLOC,    CU_GRAPH_NODE_TYPE_MEM_FREE};
  static_assert(std::size(kTypes) == std::variant_size_v<NodeWork>);
  return kTypes[work.index()];
}

GraphMemory::~GraphMemory() { driver_.pools->take_back_from_graph(*this); }

CUresult make_kernel(Driver& driver, ContextId context, const KernelRequest& request, KernelNode& out) {
  if (request.function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchRequest launch{};
  launch.function = request.function;
  std::copy(std::begin(request.grid), std::end(request.grid), launch.grid);
  std::copy(std::begin(request.block), std::end(request.block), launch.block);
  launch.dynamic_shared_bytes = request.shared_bytes;
  launch.parameters = request.parameters;
  launch.extra = request.extra;
  const auto call = std::make_shared<KernelCall>();
  std::vector<std::size_t> offsets;
  if (const CUresult bad = check_launch(driver, context, launch, call->buffer, offsets); bad != CUDA_SUCCESS)
    return bad;
  call->function = request.function;
  call->is_kernel = driver.modules.impl().kernels.find(reinterpret_cast<CUkernel>(request.function)) != nullptr;
  std::copy(std::begin(request.grid), std::end(request.grid), call->grid);
  std::copy(std::begin(request.block), std::end(request.block), call->block);
  call->shared_bytes = request.shared_bytes;
  for (const std::size_t offset : offsets) call->pointers.push_back(call->buffer.data() + offset);
  out.call = call;
  return CUDA_SUCCESS;
}

CUresult check_copy(Driver& driver, const CUDA_MEMCPY3D& copy) {
  CopyRequest request{};
  return request_of(driver, copy, request);
}

CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS_v2& fill) {
  if (fill.elementSize != 1 && fill.elementSize != 2 && fill.elementSize != 4) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(std::uint64_t{fill.width}, fill.elementSize, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (fill.dst == 0 || fill.dst % fill.elementSize != 0 || bytes == 0 || fill.height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return fill.height > 1 && fill.pitch < bytes ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace cudasim
