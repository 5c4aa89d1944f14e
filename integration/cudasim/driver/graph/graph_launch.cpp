// A launch of an executable graph: what its nodes do is queued as the stream call of their kind would queue it.
#define __CUDA_API_VERSION_INTERNAL
#include <algorithm>

#include "api/copy_request.h"
#include "contexts.h"
#include "driver.h"
#include "graph/graph_exec.h"
#include "module/launch.h"
#include "pools.h"

namespace cudasim {
namespace {

constexpr std::uintptr_t kLaneHandles = 0x0640'0000'0000, kLaneStep = 0x100;
constexpr Duration kHostFunctionTime{10'000};  // as in api/stream.cpp

class Launch {
 public:
  Launch(Driver& driver, GraphExec& exec)
      : driver_(driver), engine_(driver.engine.impl()), exec_(exec), context_(exec.context) {}

  // Behind `begin`; what comes last is added to `ends`. After a failure no further node is queued.
  void queue_all(const Graph& graph, const std::vector<GraphNode*>& order, const OperationPtr& begin,
                 std::vector<OperationPtr>& ends) {
    for (const GraphNode* node : order) {
      if (result_ != CUDA_SUCCESS) break;
      queue(*node, begin);
    }
    for (const auto& node : graph.nodes) {
      const auto done = ends_.find(node.get());
      if (node->before.empty() && done != ends_.end()) ends.push_back(done->second);
    }
    if (result_ != CUDA_SUCCESS) {  // of what was queued, all
      for (const auto& [node, end] : ends_) ends.push_back(end);
    }
  }

  CUresult result() const { return result_; }
  const std::vector<GraphMemoryPtr>& memory() const { return memory_; }  // that its nodes have allocated

 private:
  void queue(const GraphNode& node, const OperationPtr& begin) {
    Stream& lane = *exec_.lanes[exec_.lane_of.at(&node)];
    std::vector<OperationPtr> behind;
    for (const GraphEdge& edge : node.behind) behind.push_back(ends_.at(edge.from));
    if (behind.empty()) behind.push_back(begin);
    // One operation more, unless stream order says it all.
    const bool in_line = behind.size() == 1 && lane.tail == behind.front();
    const bool does_nothing = !node.enabled || std::holds_alternative<EmptyNode>(node.work);
    if (!in_line || does_nothing) marker(lane, "graph node", behind);
    if (!does_nothing) std::visit([&](const auto& work) { run(lane, work); }, node.work);
    lane.queue.clear();  // the depth of queues is the launching stream's
    ends_[&node] = lane.tail;
  }

  OperationPtr marker(Stream& lane, const char* name, const std::vector<OperationPtr>& behind) {
    const OperationPtr made = engine_.make_operation(lane, Work{.name = name}, engine_.enter());
    engine_.submit(lane, made, behind);
    return made;
  }

  void run(Stream& lane, const KernelNode& node) {
    const KernelCall& call = *node.call;
    LaunchRequest request{};
    request.function = call.function;
    std::copy(std::begin(call.grid), std::end(call.grid), request.grid);
    std::copy(std::begin(call.block), std::end(call.block), request.block);
    request.dynamic_shared_bytes = call.shared_bytes;
    request.stream = lane.handle;
    request.parameters = const_cast<void**>(call.pointers.data());  // read only
    result_ = launch(driver_, context_, request);
  }

  void run(Stream& lane, const CopyNode& node) {
    CopyRequest request{};
    result_ = request_of(driver_, node.copy, request);
    if (result_ != CUDA_SUCCESS) return;
    request.symbol = "graph memcpy node";
    request.stream = lane.handle;
    request.in_graph = true;
    result_ = queue_copy(driver_, context_, request);
  }

  void run(Stream& lane, const FillNode& node) {
    SetRequest request{};
    request.symbol = "graph memset node";
    request.shape = {node.fill.width * node.fill.elementSize, node.fill.height, 1};
    request.to = {node.fill.dst, node.fill.pitch, 0};
    request.pattern = node.fill.value;
    request.pattern_size = node.fill.elementSize;
    request.stream = lane.handle;
    result_ = queue_set(driver_, context_, request);
  }

  void run(Stream& lane, const HostNode& node) {
    Work work;
    work.name = "graph host node";
    work.resource = Resource::kHostFunction;
    work.duration = kHostFunctionTime;
    work.host_function = [node] { node.function(node.argument); };
    driver_.engine.enqueue(lane, std::move(work));
  }

  // Its nodes lie on lanes of their own.
  void run(Stream& lane, const ChildNode& node) {
    const OperationPtr begin = marker(lane, "graph begin", {});
    std::vector<OperationPtr> ends{begin};
    queue_all(*node.graph, node.graph->in_order(), begin, ends);
    marker(lane, "graph end", ends);
  }

  void run(Stream&, const EmptyNode&) {}
  void run(Stream& lane, const RecordNode& node) { engine_.record(*node.event, lane); }
  void run(Stream& lane, const WaitNode& node) { engine_.wait_event(lane, *node.event); }
  void run(Stream& lane, const AllocateNode& node) {
    driver_.pools->allocate_in_graph(lane, *node.memory);
    memory_.push_back(node.memory);
  }
  void run(Stream& lane, const FreeNode& node) {
    result_ = node.memory ? driver_.pools->free_in_graph(lane, *node.memory)
                          : driver_.pools->free(lane, "graph free node", node.address);
  }

  Driver& driver_;
  Engine::Impl& engine_;
  GraphExec& exec_;
  const ContextId context_;
  std::unordered_map<const GraphNode*, OperationPtr> ends_;
  CUresult result_ = CUDA_SUCCESS;
  std::vector<GraphMemoryPtr> memory_;
};

void make_lanes(Engine::Impl& engine, GraphExec& exec, ContextId context) {
  exec.context = context;
  while (exec.lanes.size() < exec.lane_count) {
    const auto handle = reinterpret_cast<CUstream>(kLaneHandles + engine.next_stream * kLaneStep);
    StreamPtr lane = engine.make_stream(context, StreamKind::kCreated, handle, CU_STREAM_NON_BLOCKING, 0);
    engine.checker.rename_actor(lane->actor, "a lane of a graph");
    engine.streams.emplace(handle, lane);
    exec.lanes.push_back(std::move(lane));
  }
}

// What an earlier launch allocated and the program has not freed.
CUresult free_left_over(Driver& driver, const Graph& graph, bool may_free, Stream& stream) {
  for (const auto& node : graph.nodes) {
    if (const auto* child = std::get_if<ChildNode>(&node->work)) {
      if (const CUresult bad = free_left_over(driver, *child->graph, may_free, stream); bad != CUDA_SUCCESS) return bad;
    }
    const auto* allocation = std::get_if<AllocateNode>(&node->work);
    if (allocation == nullptr || !allocation->memory->allocated()) continue;
    if (!may_free) return CUDA_ERROR_INVALID_VALUE;
    driver.pools->free_in_graph(stream, *allocation->memory);
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult launch_graph(Driver& driver, GraphExec& exec, Stream& stream) {
  Engine::Impl& engine = driver.engine.impl();
  const bool may_free = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (const CUresult left = free_left_over(driver, *exec.graph, may_free, stream); left != CUDA_SUCCESS) return left;
  if (exec.context != stream.context) release_lanes(driver, exec);
  make_lanes(engine, exec, stream.context);

  HostThread& thread = engine.enter();
  engine.wait_for_room(stream, thread);
  const OperationPtr begin = engine.make_operation(stream, Work{.name = "graph launch"}, thread);
  std::vector<OperationPtr> behind;
  if (exec.last) behind.push_back(exec.last);
  engine.submit(stream, begin, behind);
  Launch launch(driver, exec);
  std::vector<OperationPtr> ends;
  launch.queue_all(*exec.graph, exec.order, begin, ends);
  exec.last = engine.make_operation(stream, Work{.name = "graph end"}, thread);
  stream.queue.push_back(exec.last);
  engine.submit(stream, exec.last, ends);
  for (const GraphMemoryPtr& memory : launch.memory()) memory->last = exec.last;
  return launch.result();
}

void release_lanes(Driver& driver, GraphExec& exec) {
  Engine::Impl& engine = driver.engine.impl();
  for (const StreamPtr& lane : exec.lanes) {
    if (engine.streams.contains(lane->handle)) driver.engine.destroy_stream(lane->handle);
  }
  exec.lanes.clear();
  exec.context = ContextId::kNone;
}

}  // namespace cudasim
