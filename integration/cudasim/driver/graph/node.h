// What a node of a graph does.
#pragma once
#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "device/engine_impl.h"

namespace cudasim {

struct Driver;
struct Graph;

// A launch, with its parameters as they were when it was said. Shared by a node and its clones, never changed.
struct KernelCall {
  CUfunction function{};  // or a CUkernel
  bool is_kernel = false;
  unsigned grid[3]{}, block[3]{};
  unsigned shared_bytes = 0;
  std::vector<std::byte> buffer;
  std::vector<void*> pointers;  // into buffer, one a parameter; what cuGraphKernelNodeGetParams tells
};

struct KernelNode {
  std::shared_ptr<const KernelCall> call;
  std::map<CUlaunchAttributeID, CUlaunchAttributeValue> attributes{};  // kept, without effect
};
struct CopyNode {
  CUDA_MEMCPY3D copy;
  CUcontext context;
};
struct FillNode {
  CUDA_MEMSET_NODE_PARAMS_v2 fill;
};
struct HostNode {
  CUhostFn function;
  void* argument;
};
struct ChildNode {
  std::shared_ptr<Graph> graph;
};
struct EmptyNode {};
struct RecordNode {
  EventPtr event;
};
struct WaitNode {
  EventPtr event;
};
// The memory of an allocation node, or of several, one after the other: it has its address, and here its bytes too,
// from when the first node is made until the last graph that has one is gone and what a launch has allocated is freed:
// the end of a graph frees nothing (CUDA Programming Guide, "Graph Memory Nodes", on the lifetime of allocations).
class GraphMemory : public std::enable_shared_from_this<GraphMemory> {
 public:
  GraphMemory(Driver& driver, CUdeviceptr at, std::size_t bytes) : base(at), size(bytes), driver_(driver) {}
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  // By a launch, and not freed yet.
  bool allocated() const { return kept_ != nullptr; }
  void begin_allocation() { kept_ = shared_from_this(); }
  // It may be gone behind this.
  void end_allocation() { kept_ = nullptr; }

  const CUdeviceptr base;
  const std::size_t size;
  OperationPtr last;  // of the launches that had it

 private:
  Driver& driver_;
  std::shared_ptr<GraphMemory> kept_;
};
using GraphMemoryPtr = std::shared_ptr<GraphMemory>;

struct AllocateNode {
  GraphMemoryPtr memory;
  CUmemPoolProps properties;
};
struct FreeNode {
  GraphMemoryPtr memory;  // null: the program's own stream-ordered block
  CUdeviceptr address;
};
using NodeWork = std::variant<KernelNode, CopyNode, FillNode, HostNode, ChildNode, EmptyNode, RecordNode, WaitNode,
                              AllocateNode, FreeNode>;

CUgraphNodeType type_of(const NodeWork& work);
// Of an executable graph: kernels, copies and fills.
inline bool can_be_disabled(const NodeWork& work) { return work.index() < 3; }

// The parameters are copied. `parameters` or `extra`, as for cuLaunchKernel. CUDA_ERROR_INVALID_HANDLE,
// CUDA_ERROR_INVALID_VALUE.
struct KernelRequest {
  CUfunction function;  // or a CUkernel
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  void** parameters;
  void** extra;
};
CUresult make_kernel(Driver& driver, ContextId context, const KernelRequest& request, KernelNode& out);

// Whether a copy, fill or the like has what it needs; what memory it names is looked at when it is launched.
CUresult check_copy(Driver& driver, const CUDA_MEMCPY3D& copy);
CUresult check_fill(const CUDA_MEMSET_NODE_PARAMS_v2& fill);

}  // namespace cudasim
