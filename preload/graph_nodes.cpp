#include "preload/graph_nodes.h"

#include <new>
#include <vector>

#include "preload/copy_sides.h"

namespace memopt::preload {
namespace {

// Children within children; a driver has no cycles.
constexpr int kDeepest = 64;

// CUDA_KERNEL_NODE_PARAMS of any version, and CUDA_MEMSET_NODE_PARAMS.
template <typename Node>
agent::LaunchCall launch_of(const Node& node) noexcept {
  agent::LaunchCall call;
  call.function = node.func;
  call.grid[0] = node.gridDimX;
  call.grid[1] = node.gridDimY;
  call.grid[2] = node.gridDimZ;
  call.parameters = node.kernelParams;
  call.extra = node.extra;
  return call;
}
template <typename Node>
agent::LaunchCall launch_or_kernel_of(const Node& node) noexcept {
  agent::LaunchCall call = launch_of(node);
  if (call.function == nullptr) call.function = reinterpret_cast<CUfunction>(node.kern);
  return call;
}
template <typename Node>
agent::MemsetCall memset_of(const Node& node) noexcept {
  agent::MemsetCall call;
  const std::size_t row = node.width * node.elementSize;
  call.address = node.dst;
  call.bytes = row == 0 || node.height == 0 ? 0 : node.pitch * (node.height - 1) + row;
  if (node.width == 1 && node.elementSize == sizeof(call.value)) call.value = node.value;
  return call;
}
agent::CopyCall copy_of(const CUDA_MEMCPY3D& node) noexcept {
  const CopyShape shape = shape_of(node);
  return describe_copy(shape.to, shape.from, shape.bytes, {}, false);
}

// True, with what the driver tells of the node.
template <Hook hook, typename Parameters>
bool ask(CUgraphNode node, Parameters* parameters) noexcept {
  return real<hook>()(node, parameters) == CUDA_SUCCESS;
}

// A kernel may change it between launches.
bool may_change_itself(CUgraphNode node) noexcept {
  CUkernelNodeAttrValue value{};
  return real<Hook::cuGraphKernelNodeGetAttribute>()(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) ==
             CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

void add_graph(CUgraph graph, agent::GraphUses& uses, int depth);

// False: it can't be read.
bool add_node(CUgraphNode node, agent::GraphUses& uses, int depth) {
  CUgraphNodeType type;
  if (!ask<Hook::cuGraphNodeGetType>(node, &type)) return false;
  uses.count_node();
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
      if (ask<Hook::cuGraphKernelNodeGetParams_v2>(node, &parameters)) {
        uses.add_launch(launch_or_kernel_of(parameters));
      } else {  // a driver before 12.0
        CUDA_KERNEL_NODE_PARAMS_v1 former{};
        if (!ask<Hook::cuGraphKernelNodeGetParams>(node, &former)) return false;
        uses.add_launch(launch_of(former));
      }
      return !may_change_itself(node);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy{};
      if (!ask<Hook::cuGraphMemcpyNodeGetParams>(node, &copy)) return false;
      uses.add_copy(copy_of(copy));
      return true;
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS_v1 fill{};
      if (!ask<Hook::cuGraphMemsetNodeGetParams>(node, &fill)) return false;
      uses.add_memset(memset_of(fill));
      return true;
    }
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      if (depth == kDeepest || !ask<Hook::cuGraphChildGraphNodeGetGraph>(node, &child)) return false;
      add_graph(child, uses, depth + 1);
      return true;
    }
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
      uses.add_host_work();
      return true;
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:  // of the driver's memory
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return true;
    default:
      return false;
  }
}

void add_graph(CUgraph graph, agent::GraphUses& uses, int depth) {
  std::size_t count = 0;
  uses.known = uses.known && real<Hook::cuGraphGetNodes>()(graph, nullptr, &count) == CUDA_SUCCESS;
  std::vector<CUgraphNode> nodes(count);
  if (count == 0) return;
  uses.known = uses.known && real<Hook::cuGraphGetNodes>()(graph, nodes.data(), &count) == CUDA_SUCCESS;
  for (std::size_t i = 0; i < nodes.size() && uses.known; ++i) {
    const std::size_t before = uses.payloads.size();
    uses.known = add_node(nodes[i], uses, depth) && uses.known;
    // In the end it is the node of the outermost graph, by which the whole child is given something else.
    for (std::size_t k = before; k < uses.payloads.size(); ++k) uses.payloads[k].node = nodes[i];
  }
}

template <typename Add>
agent::GraphUses gathered(const Add& add) noexcept {
  agent::GraphUses uses;
  try {
    add(uses);
  } catch (const std::bad_alloc&) {
    uses.known = false;
  }
  return uses;
}

}  // namespace

agent::GraphUses uses_of_graph(CUgraph graph) noexcept {
  return gathered([&](agent::GraphUses& uses) { add_graph(graph, uses, 0); });
}

agent::GraphUses uses_of_node(const CUDA_KERNEL_NODE_PARAMS_v1& node) noexcept {
  return gathered([&](agent::GraphUses& uses) { uses.add_launch(launch_of(node)); });
}
agent::GraphUses uses_of_node(const CUDA_KERNEL_NODE_PARAMS_v2& node) noexcept {
  return gathered([&](agent::GraphUses& uses) { uses.add_launch(launch_or_kernel_of(node)); });
}
agent::GraphUses uses_of_node(const CUDA_MEMCPY3D& node) noexcept {
  return gathered([&](agent::GraphUses& uses) { uses.add_copy(copy_of(node)); });
}
agent::GraphUses uses_of_node(const CUDA_MEMSET_NODE_PARAMS_v1& node) noexcept {
  return gathered([&](agent::GraphUses& uses) { uses.add_memset(memset_of(node)); });
}

agent::GraphUses uses_of_node(const CUgraphNodeParams& node) noexcept {
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return gathered([&](agent::GraphUses& uses) { uses.add_launch(launch_or_kernel_of(node.kernel)); });
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return uses_of_node(node.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return gathered([&](agent::GraphUses& uses) { uses.add_memset(memset_of(node.memset)); });
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return uses_of_graph(node.graph.graph);
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
      return gathered([](agent::GraphUses& uses) { uses.add_host_work(); });
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
      return {};
    default: {
      agent::GraphUses unknown;
      unknown.known = false;
      return unknown;
    }
  }
}

}  // namespace memopt::preload
