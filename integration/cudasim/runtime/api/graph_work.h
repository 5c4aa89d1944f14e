#pragma once

// What a node of a graph does, as the runtime's structures say it, in the driver's.

#include <cuda.h>
#include <driver_types.h>

namespace cudart {

// CUgraphNodeParams of one kind each. A null pointer or what can't be resolved: an error, and `out` is not to be used.
cudaError_t work_of(const cudaKernelNodeParams* kernel, CUgraphNodeParams* out);
cudaError_t work_of(const cudaMemcpy3DParms* copy, CUgraphNodeParams* out);
cudaError_t work_of(const cudaMemsetParams* fill, CUgraphNodeParams* out);
cudaError_t work_of(const cudaHostNodeParams* host, CUgraphNodeParams* out);
cudaError_t work_of(const cudaGraphNodeParams* any, CUgraphNodeParams* out);
cudaError_t copy_work(void* to, const void* from, size_t count, cudaMemcpyKind kind, CUgraphNodeParams* out);
CUgraphNodeParams child_work(cudaGraph_t child);
CUgraphNodeParams event_work(CUgraphNodeType type, cudaEvent_t event);

}  // namespace cudart
