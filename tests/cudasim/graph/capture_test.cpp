// Stream capture: what becomes of calls on captured streams, forks and joins, and what spoils a capture.
#include <thread>

#include "graph_fixture.h"

namespace {

class CaptureTest : public GraphTest {
 protected:
  void begin(CUstream stream, CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
    ASSERT_EQ(cuStreamBeginCapture(stream, mode), CUDA_SUCCESS);
  }
  static CUgraph end(CUstream stream) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
    return graph;
  }
  static CUresult end_result(CUstream stream) {
    CUgraph graph = reinterpret_cast<CUgraph>(1);
    const CUresult result = cuStreamEndCapture(stream, &graph);
    EXPECT_EQ(graph, nullptr);
    return result;
  }
  static CUstreamCaptureStatus status(CUstream stream) {
    CUstreamCaptureStatus out{};
    EXPECT_EQ(cuStreamIsCapturing(stream, &out), CUDA_SUCCESS);
    return out;
  }
};

TEST_F(CaptureTest, WorkBecomesNodes) {
  begin(a);
  EXPECT_EQ(status(a), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemsetD8Async(x, 6, kSize, a));
  OK(cuMemcpyDtoDAsync(y, x, kSize, a));
  const CUgraph graph = end(a);
  EXPECT_EQ(status(a), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(value(y), 0);
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(edges_of(graph), 1u);
  CUDA_MEMCPY3D told{};
  OK(cuGraphMemcpyNodeGetParams(nodes[1], &told));
  EXPECT_EQ(told.srcDevice, x);
  EXPECT_EQ(told.WidthInBytes, kSize);
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) {
    OK(cuMemsetD8Async(y, 0, kSize, a));
    OK(cuGraphLaunch(exec, a));
    EXPECT_EQ(value(y), 6);
  }
}

TEST_F(CaptureTest, StreamsForkAndJoinByEvents) {
  begin(a);
  OK(cuMemsetD8Async(x, 4, kSize, a));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  EXPECT_EQ(status(b), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(cuMemcpyDtoDAsync(y, x, kSize, b));
  OK(cuMemcpyDtoDAsync(z, x, kSize, a));
  OK(cuEventRecord(joined, b));
  OK(cuStreamWaitEvent(a, joined, 0));
  OK(cuMemcpyDtoDAsync(x, y, kSize, a));
  const CUgraph graph = end(a);
  EXPECT_EQ(status(b), CU_STREAM_CAPTURE_STATUS_NONE);
  EXPECT_EQ(nodes_of(graph).size(), 4u);
  EXPECT_EQ(edges_of(graph), 4u);
  OK(cuGraphLaunch(instantiate(graph), b));
  EXPECT_EQ(value(z), 4);
  EXPECT_EQ(value(y), 4);
  // The event belongs to the capture until it is recorded again.
  EXPECT_EQ(cuEventQuery(joined), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuEventSynchronize(joined), CUDA_ERROR_CAPTURED_EVENT);
  EXPECT_EQ(cuStreamWaitEvent(a, joined, 0), CUDA_ERROR_CAPTURED_EVENT);
  OK(cuEventRecord(joined, a));
  OK(cuEventSynchronize(joined));
}

TEST_F(CaptureTest, AForkThatDoesNotJoin) {
  begin(a);
  OK(cuMemsetD8Async(x, 4, kSize, a));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuMemcpyDtoDAsync(y, x, kSize, b));
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(status(b), CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuMemsetD8Async(y, 1, kSize, b));
  EXPECT_EQ(value(y), 1) << "the streams are as before";
}

TEST_F(CaptureTest, AForkMayEndBeforeTheCapture) {
  CUstream joins = nullptr, stays = nullptr;
  OK(cuStreamCreate(&joins, CU_STREAM_NON_BLOCKING));
  OK(cuStreamCreate(&stays, CU_STREAM_NON_BLOCKING));
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(joins, event, 0));
  OK(cuMemsetD8Async(x, 4, kSize, joins));
  OK(cuEventRecord(joined, joins));
  OK(cuStreamDestroy(joins));
  OK(cuStreamWaitEvent(a, joined, 0));  // by the event, as the stream has gone
  OK(cuMemcpyDtoDAsync(y, x, kSize, a));
  OK(cuGraphLaunch(instantiate(end(a)), a));
  EXPECT_EQ(value(y), 4);
  begin(a);
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(stays, event, 0));
  OK(cuMemsetD8Async(x, 5, kSize, stays));
  OK(cuStreamDestroy(stays));
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_F(CaptureTest, WaitsSpoil) {
  for (int way = 0; way < 4; ++way) {
    begin(a);
    OK(cuMemsetD8Async(x, 4, kSize, a));
    OK(cuEventRecord(event, a));
    const CUresult results[] = {way == 0   ? cuStreamSynchronize(a)
                                : way == 1 ? cuStreamQuery(a)
                                           : CUDA_SUCCESS,
                                way == 2   ? cuCtxSynchronize()
                                : way == 3 ? cuEventSynchronize(event)
                                           : CUDA_SUCCESS};
    EXPECT_EQ(results[way / 2], way == 3 ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(status(a), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_EQ(cuMemsetD8Async(x, 4, kSize, a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    EXPECT_EQ(status(a), CU_STREAM_CAPTURE_STATUS_NONE);
  }
  EXPECT_EQ(value(x), 0);
}

TEST_F(CaptureTest, TheLegacyStreamBesideABlockingOne) {
  CUstream blocking = nullptr;
  OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(cuMemsetD8Async(y, 1, kSize, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(end_result(blocking), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  begin(a, CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuMemsetD8Async(y, 1, kSize, nullptr));
  end(a);
  EXPECT_EQ(value(y), 1);
  EXPECT_EQ(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

TEST_F(CaptureTest, UnsafeCallsByTheModes) {
  CUdeviceptr block = 0;
  begin(a, CU_STREAM_CAPTURE_MODE_RELAXED);
  OK(cuMemAlloc(&block, kSize));
  end(a);
  begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(cuMemFree(block), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // A thread that says so may, though it captures.
  begin(a, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  OK(cuMemFree(block));
  OK(cuThreadExchangeStreamCaptureMode(&mode));
  end(a);
  // Another thread: forbidden by GLOBAL alone.
  for (const bool global : {false, true}) {
    begin(a, global ? CU_STREAM_CAPTURE_MODE_GLOBAL : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    std::thread([&] {
      EXPECT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
      EXPECT_EQ(cuMemAlloc(&block, kSize), global ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
      EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }).join();
    CUgraph graph = nullptr;
    EXPECT_EQ(cuStreamEndCapture(a, &graph), global ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
  }
}

TEST_F(CaptureTest, EdgesAcrossTheBoundary) {
  OK(cuEventRecord(event, b));
  begin(a);
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // Two captures don't meet.
  begin(a);
  begin(b);
  OK(cuEventRecord(event, b));
  EXPECT_EQ(cuStreamWaitEvent(a, event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end_result(b), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(end_result(b), CUDA_ERROR_ILLEGAL_STATE);
  // But nodes may record and wait.
  begin(a);
  OK(cuStreamWaitEvent(a, joined, CU_EVENT_WAIT_EXTERNAL));
  OK(cuEventRecordWithFlags(event, a, CU_EVENT_RECORD_EXTERNAL));
  const CUgraph graph = end(a);
  EXPECT_EQ(type_of(nodes_of(graph)[0]), CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  EXPECT_EQ(type_of(nodes_of(graph)[1]), CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  EXPECT_EQ(cuEventRecordWithFlags(event, a, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CaptureTest, InfoAndDependencies) {
  begin(a);
  EXPECT_EQ(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE);
  OK(cuMemsetD8Async(x, 4, kSize, a));
  CUstreamCaptureStatus state{};
  cuuint64_t id = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* behind = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  OK(cuStreamGetCaptureInfo(a, &state, &id, &graph, &behind, &edges, &count));
  EXPECT_EQ(state, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_NE(id, 0u);
  ASSERT_EQ(count, 1u);
  // A node of the program's own, which the rest comes behind.
  CUgraphNode node = add_fill(graph, y, 8, {behind[0]});
  OK(cuStreamUpdateCaptureDependencies(a, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  OK(cuMemcpyDtoDAsync(z, y, kSize, a));
  EXPECT_EQ(end(a), graph);
  OK(cuGraphLaunch(instantiate(graph), a));
  EXPECT_EQ(value(z), 8);
  EXPECT_EQ(cuStreamUpdateCaptureDependencies(a, &node, nullptr, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
}

void CUDA_CB add_one(void* number) { ++*static_cast<int*>(number); }

TEST_F(CaptureTest, HostFunctionsAndLaunchesOfGraphs) {
  int called = 0;
  begin(a);
  OK(cuMemsetD8Async(x, 2, kSize, a));
  OK(cuLaunchHostFunc(a, add_one, &called));
  const CUgraphExec inner = instantiate(end(a));
  begin(b);
  OK(cuGraphLaunch(inner, b));
  OK(cuMemcpyDtoDAsync(y, x, kSize, b));
  const CUgraph outer = end(b);
  EXPECT_EQ(type_of(nodes_of(outer)[0]), CU_GRAPH_NODE_TYPE_GRAPH);
  OK(cuGraphExecDestroy(inner));
  OK(cuGraphLaunch(instantiate(outer), a));
  EXPECT_EQ(value(y), 2);
  EXPECT_EQ(called, 1);
  begin(a);
  EXPECT_EQ(cuStreamAddCallback(
                a, [](CUstream, CUresult, void*) {}, nullptr, 0),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(CaptureTest, CapturedCopiesOfPageableMemoryReadItAtTheLaunch) {
  std::vector<unsigned char> host(kSize, 1), back(kSize, 0);
  begin(a);
  OK(cuMemcpyHtoDAsync(x, host.data(), kSize, a));
  OK(cuMemcpyDtoHAsync(back.data(), x, kSize, a));
  const CUgraphExec exec = instantiate(end(a));
  for (unsigned char v = 5; v < 8; ++v) {
    std::fill(host.begin(), host.end(), v);
    OK(cuGraphLaunch(exec, a));
    OK(cuStreamSynchronize(a));
    EXPECT_EQ(back[kSize - 1], v);
  }
  begin(a);
  EXPECT_EQ(cuMemcpyHtoD(x, host.data(), kSize), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) << "it would wait";
  EXPECT_EQ(end_result(a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

// --- memory

TEST_F(CaptureTest, AllocationsOfACaptureLiveFromLaunchToFree) {
  begin(a);
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kSize, a));
  OK(cuMemsetD8Async(block, 3, kSize, a));
  OK(cuMemcpyDtoDAsync(y, block, kSize, a));
  OK(cuMemFreeAsync(block, a));
  const CUgraph graph = end(a);
  EXPECT_EQ(type_of(nodes_of(graph)[0]), CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  EXPECT_EQ(type_of(nodes_of(graph)[3]), CU_GRAPH_NODE_TYPE_MEM_FREE);
  const CUgraphExec exec = instantiate(graph);
  CUgraphExec second = nullptr;
  EXPECT_EQ(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED) << "its memory has one place";
  for (int i = 0; i < 3; ++i) {
    OK(cuMemsetD8Async(y, 0, kSize, a));
    OK(cuGraphLaunch(exec, a));
    EXPECT_EQ(value(y), 3);
  }
  cuuint64_t used = 1, reserved = 0;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_EQ(used, 0u);
  EXPECT_GT(reserved, 0u);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuDeviceGraphMemTrim(0));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_EQ(reserved, 0u);
}

// The program has to free it, whatever has become of the graph.
TEST_F(CaptureTest, AllocationsThatAGraphLeavesOutliveIt) {
  begin(a);
  CUdeviceptr block = 0;
  OK(cuMemAllocAsync(&block, kSize, a));
  OK(cuMemsetD8Async(block, 7, kSize, a));
  const CUgraph graph = end(a);
  const CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, a));
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  EXPECT_EQ(value(block), 7);
  cuuint64_t used = 0, reserved = 0;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_GE(used, kSize);
  OK(cuMemFreeAsync(block, a));
  OK(cuStreamSynchronize(a));
  EXPECT_EQ(cuMemFreeAsync(block, a), CUDA_ERROR_INVALID_VALUE);
  OK(cuDeviceGraphMemTrim(0));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  EXPECT_EQ(used, 0u);
  EXPECT_EQ(reserved, 0u);
}

TEST_F(CaptureTest, AllocationsThatAGraphLeavesEndWithTheDevicesReset) {
  CUcontext primary = nullptr;
  OK(cuDevicePrimaryCtxRetain(&primary, 0));
  OK(cuCtxSetCurrent(primary));
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (const bool graph_lives : {false, true}) {
    begin(stream);
    CUdeviceptr block = 0;
    OK(cuMemAllocAsync(&block, kSize, stream));
    const CUgraph graph = end(stream);
    const CUgraphExec exec = instantiate(graph);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuGraphExecDestroy(exec));
    if (!graph_lives) {
      OK(cuGraphDestroy(graph));
    }
    OK(cuDevicePrimaryCtxReset(0));
    cuuint64_t used = 1;
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    EXPECT_EQ(used, 0u);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_EQ(cuMemFreeAsync(block, stream), CUDA_ERROR_INVALID_VALUE);
    if (graph_lives) {
      OK(cuGraphDestroy(graph));
    }
    cuuint64_t reserved = 1;
    OK(cuDeviceGraphMemTrim(0));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
    EXPECT_EQ(reserved, 0u);
  }
  OK(cuDevicePrimaryCtxReset(0));
  OK(cuCtxSetCurrent(context));
}

// Where the free of the one is in front of the other, and only there.
TEST_F(CaptureTest, AllocationsOfACaptureShareAddressesOneAfterTheOther) {
  const auto held = [] {
    cuuint64_t bytes = 0;
    EXPECT_EQ(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes), CUDA_SUCCESS);
    return bytes;
  };
  constexpr std::size_t kLarge = std::size_t{8} << 20;
  begin(a);
  CUdeviceptr first = 0, second = 0, larger = 0, beside = 0, last = 0;
  OK(cuMemAllocAsync(&first, kLarge, a));
  OK(cuEventRecord(event, a));
  OK(cuStreamWaitEvent(b, event, 0));
  OK(cuMemsetD8Async(first, 3, kLarge, a));
  OK(cuMemcpyDtoDAsync(x, first, kSize, a));
  OK(cuMemFreeAsync(first, a));
  const cuuint64_t of_one = held();
  OK(cuMemAllocAsync(&second, kLarge, a));
  EXPECT_EQ(second, first);
  EXPECT_EQ(held(), of_one);
  OK(cuMemAllocAsync(&larger, kLarge + 512, a));
  EXPECT_NE(larger, first);
  OK(cuMemAllocAsync(&beside, kLarge, b)) << "nothing is in front of it but the first allocation";
  EXPECT_NE(beside, first);
  OK(cuMemsetD8Async(second, 4, kLarge, a));
  OK(cuMemsetD8Async(beside, 5, kLarge, b));
  OK(cuMemFreeAsync(beside, b));
  OK(cuEventRecord(event, b));
  OK(cuStreamWaitEvent(a, event, 0));
  OK(cuMemAllocAsync(&last, kLarge, a));
  EXPECT_EQ(last, beside) << "the second lives";
  OK(cuMemcpyDtoDAsync(y, second, kSize, a));
  for (const CUdeviceptr block : {second, larger, last}) OK(cuMemFreeAsync(block, a));
  const CUgraph graph = end(a);
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) {
    OK(cuMemsetD8Async(x, 0, kSize, a));
    OK(cuMemsetD8Async(y, 0, kSize, a));
    OK(cuGraphLaunch(exec, a));
    EXPECT_EQ(value(x), 3);
    EXPECT_EQ(value(y), 4);
  }
  OK(cuStreamSynchronize(a));
  cuuint64_t used = 1;
  OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
  EXPECT_EQ(used, 0u);
  OK(cuGraphExecDestroy(exec));
  OK(cuGraphDestroy(graph));
  OK(cuDeviceGraphMemTrim(0));
  EXPECT_EQ(held(), 0u);
}

TEST_F(CaptureTest, AllocationsThatTheProgramFrees) {
  CUgraph graph = nullptr;
  OK(cuGraphCreate(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = kSize;
  CUgraphNode made = nullptr;
  OK(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &wanted));
  add_fill(graph, wanted.dptr, 9, {made});
  CUgraphExec exec = instantiate(graph);
  OK(cuGraphLaunch(exec, a));
  EXPECT_EQ(cuGraphLaunch(exec, a), CUDA_ERROR_INVALID_VALUE) << "it is allocated still";
  OK(cuMemcpyDtoDAsync(y, wanted.dptr, kSize, a));
  OK(cuMemFreeAsync(wanted.dptr, a));
  EXPECT_EQ(value(y), 9);
  EXPECT_EQ(cuMemFreeAsync(wanted.dptr, a), CUDA_ERROR_INVALID_VALUE);
  OK(cuGraphExecDestroy(exec));
  exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(exec, a));
  OK(cuStreamSynchronize(a));
  OK(cuMemFree(wanted.dptr));
  CUgraph clone = nullptr;
  EXPECT_EQ(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuGraphDestroyNode(made), CUDA_ERROR_NOT_SUPPORTED);
  const std::vector<CUgraphNode> nodes = nodes_of(graph);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(cuGraphDestroyNode(nodes[1]), CUDA_ERROR_NOT_SUPPORTED) << "addresses go by the order of all";
  EXPECT_EQ(cuGraphRemoveDependencies(graph, &nodes[0], &nodes[1], nullptr, 1), CUDA_ERROR_NOT_SUPPORTED);
  // A block of the program's own is not a graph's to free.
  CUgraphNode node = nullptr;
  EXPECT_EQ(cuGraphAddMemFreeNode(&node, graph, nullptr, 0, x), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
