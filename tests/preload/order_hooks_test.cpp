// What the hooks of streams and events tell, and when.
#include "tests/preload/fake_agent.h"

namespace memopt::preload {
namespace {

using namespace test;

struct NoteRow {
  const char* name;
  std::function<void()> call;
  std::vector<std::string> told;    // after success
  std::vector<std::string> failed;  // after a refusal
};

TEST_F(Hooks, OrderIsToldWhereItIsKnown) {
  CUstream made = nullptr;
  const auto event = reinterpret_cast<CUevent>(0x60);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNodeParams child{}, kernel{};
  const CUDA_KERNEL_NODE_PARAMS_v2 kernel_node{};
  child.type = CU_GRAPH_NODE_TYPE_GRAPH;
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  const NoteRow table[] = {
      {"create", [&] { hooks::cuStreamCreate(&made, 0); }, {"stream created"}, {}},
      {"destroy", [&] { hooks::cuStreamDestroy_v2(stream()); }, {"stream destroyed"}, {"stream destroyed"}},
      {"synchronize", [&] { hooks::cuStreamSynchronize(stream()); }, {"host waited"}, {}},
      {"query", [&] { hooks::cuStreamQuery(stream()); }, {"host waited"}, {}},
      {"wait",
       [&] { hooks::cuStreamWaitEvent(stream(), event, 0); },
       {"event is waited for", "event waited"},
       {"event is waited for"}},
      {"wait for a value",
       [&] { hooks::cuStreamWaitValue32_v2(stream(), kOurs, 1, 0); },
       {"escape", "may be held up"},
       {"escape", "may be held up"}},
      {"record",
       [&] { hooks::cuEventRecord(event, stream()); },
       {"event is recorded", "event recorded"},
       {"event is recorded", "event not recorded"}},
      {"record node",
       [&] { hooks::cuGraphAddEventRecordNode(nullptr, nullptr, nullptr, 0, event); },
       {"event of a graph"},
       {"event of a graph"}},
      {"event destroy", [&] { hooks::cuEventDestroy_v2(event); }, {"event destroyed"}, {"event destroyed"}},
      {"event synchronize", [&] { hooks::cuEventSynchronize(event); }, {"host waited"}, {}},
      {"event query", [&] { hooks::cuEventQuery(event); }, {"host waited"}, {}},
      {"context synchronize", [&] { hooks::cuCtxSynchronize(); }, {"host waited"}, {}},
      {"capture",
       [&] { hooks::cuStreamBeginCapture_v2(stream(), CU_STREAM_CAPTURE_MODE_GLOBAL); },
       {"capture begins"},
       {"capture begins", "capture ended"}},
      {"end capture", [&] { hooks::cuStreamEndCapture(stream(), nullptr); }, {"capture ended"}, {}},
      {"end capture with a graph",
       [&] { hooks::cuStreamEndCapture(stream(), &graph); },
       {"captured", "capture ended"},
       {}},
      {"instantiate", [&] { hooks::cuGraphInstantiateWithFlags(&exec, graph, 0); }, {"graph made", "uses"}, {}},
      {"instantiate for kernels",
       [&] { hooks::cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH); },
       {"graph made", "uses lost", "uses"},
       {}},
      {"clone", [&] { hooks::cuGraphClone(&graph, graph); }, {"graph made"}, {}},
      {"child", [&] { hooks::cuGraphAddChildGraphNode(nullptr, graph, nullptr, 0, graph); }, {"graph added"}, {}},
      {"child as a node",
       [&] { hooks::cuGraphAddNode_v2(nullptr, graph, nullptr, nullptr, 0, &child); },
       {"graph added"},
       {}},
      {"another node", [&] { hooks::cuGraphAddNode_v2(nullptr, graph, nullptr, nullptr, 0, &kernel); }, {}, {}},
      {"child of a node", [&] { hooks::cuGraphNodeSetParams(nullptr, &child); }, {"graph beyond sight"}, {}},
      {"child of an executable",
       [&] { hooks::cuGraphExecNodeSetParams(exec, nullptr, &child); },
       {"more uses", "graph added"},
       {"uses unknown", "uses forgotten"}},
      {"child of an executable by its own call",
       [&] { hooks::cuGraphExecChildGraphNodeSetParams(exec, nullptr, graph); },
       {"more uses", "graph added"},
       {"uses unknown", "uses forgotten"}},
      {"kernel of an executable",
       [&] { hooks::cuGraphExecKernelNodeSetParams_v2(exec, nullptr, &kernel_node); },
       {"more uses"},
       {"more uses", "uses forgotten"}},
      {"batch of an executable",
       [&] { hooks::cuGraphExecBatchMemOpNodeSetParams(exec, nullptr, nullptr); },
       {"uses forgotten"},
       {"uses forgotten"}},
      {"node off", [&] { hooks::cuGraphNodeSetEnabled(exec, nullptr, 0); }, {"uses forgotten"}, {"uses forgotten"}},
      {"child itself", [&] { hooks::cuGraphChildGraphNodeGetGraph(nullptr, &graph); }, {"graph beyond sight"}, {}},
      {"update",
       [&] { hooks::cuGraphExecUpdate_v2(exec, graph, nullptr); },
       {"graph added", "uses"},
       {"uses forgotten"}},
      {"graph destroy",
       [&] { hooks::cuGraphDestroy(graph); },
       {"graph goes", "graph has gone"},
       {"graph goes", "graph has gone"}},
      {"executable destroy",
       [&] { hooks::cuGraphExecDestroy(exec); },
       {"uses forgotten", "graph goes", "graph has gone"},
       {"uses forgotten", "graph goes", "graph has gone"}},
      {"host function",
       [&] { hooks::cuLaunchHostFunc(stream(), nullptr, nullptr); },
       {"host function"},
       {"host function"}},
      {"graph", [&] { hooks::cuGraphLaunch(nullptr, stream()); }, {"graph launched"}, {"graph launched"}},
      {"shared with another process",
       [&] { hooks::cuIpcGetMemHandle(nullptr, kOurs); },
       {"escape"},
       {"escape", "not shared"}},
      {"a handle of a range",
       [&] { hooks::cuMemGetHandleForAddressRange(nullptr, kOurs, 1, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0); },
       {"escape"},
       {"escape"}},
      {"decompress",
       [&] { hooks::cuMemBatchDecompressAsync(nullptr, 1, 0, nullptr, stream()); },
       {"unknown work"},
       {"unknown work"}},
      {"set current", [&] { hooks::cuCtxSetCurrent(nullptr); }, {"own context change"}, {"own context change"}},
      {"unload", [&] { hooks::cuModuleUnload(nullptr); }, {"unloaded"}, {"unloaded"}},
      {"tensor map",
       [&] { hooks::cuTensorMapReplaceAddress(nullptr, reinterpret_cast<void*>(kOurs)); },
       {"escape"},
       {"escape"}},
  };
  for (const NoteRow& row : table) {
    SCOPED_TRACE(row.name);
    g_agent = Agent();
    g_driver.clear();
    g_result = CUDA_SUCCESS;
    row.call();
    EXPECT_EQ(g_agent.notes, row.told);
    g_agent = Agent();
    g_driver.clear();
    g_result = CUDA_ERROR_NOT_READY;
    row.call();
    EXPECT_EQ(g_agent.notes, row.failed);
  }
}

TEST_F(Hooks, EventsOfACaptureAreNoOrder) {
  g_agent.captured.insert(stream());
  hooks::cuEventRecord(nullptr, stream());
  hooks::cuStreamWaitEvent(stream(), nullptr, 0);
  hooks::cuEventRecordWithFlags(nullptr, stream(), CU_EVENT_RECORD_EXTERNAL);
  EXPECT_EQ(g_agent.notes, (std::vector<std::string>{"event captured", "event of a graph"}));
}

// What is read of nodes that are given other parameters.
TEST_F(Hooks, NodesOfExecutableGraphsAreRead) {
  CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
  void* parameters[] = {nullptr};
  kernel.kern = reinterpret_cast<CUkernel>(0x70);
  kernel.gridDimX = 2;
  kernel.kernelParams = parameters;
  hooks::cuGraphExecKernelNodeSetParams_v2(nullptr, nullptr, &kernel);
  ASSERT_EQ(g_agent.launches.size(), 1u);
  EXPECT_EQ(g_agent.launches[0].function, reinterpret_cast<CUfunction>(0x70));
  EXPECT_EQ(g_agent.launches[0].parameters, parameters);
  EXPECT_EQ(g_agent.launches[0].grid[0], 2u);

  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = kOurs;
  copy.dstPitch = 100;
  copy.dstXInBytes = 8;
  copy.dstY = 1;
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.WidthInBytes = 10;
  copy.Height = 3;
  copy.Depth = 1;
  hooks::cuGraphExecMemcpyNodeSetParams(nullptr, nullptr, &copy, nullptr);
  ASSERT_EQ(g_agent.copies.size(), 1u);
  EXPECT_EQ(g_agent.copies[0].to, kOurs + 108);
  EXPECT_EQ(g_agent.copies[0].to_extent, 210u);
  EXPECT_EQ(g_agent.copies[0].from, 0u);

  CUDA_MEMSET_NODE_PARAMS_v1 fill{};
  fill.dst = kOurs;
  fill.pitch = 64;
  fill.elementSize = 4;
  fill.width = 1;
  fill.height = 2;
  fill.value = 0x7000;
  hooks::cuGraphExecMemsetNodeSetParams(nullptr, nullptr, &fill, nullptr);
  fill.width = 2;
  hooks::cuGraphExecMemsetNodeSetParams(nullptr, nullptr, &fill, nullptr);
  ASSERT_EQ(g_agent.memsets.size(), 2u);
  EXPECT_EQ(g_agent.memsets[0].bytes, 68u);
  EXPECT_EQ(g_agent.memsets[0].value, 0x7000u);
  EXPECT_EQ(g_agent.memsets[1].bytes, 72u);
  EXPECT_EQ(g_agent.memsets[1].value, 0u);
}

// A plain free of ours does not wait, but the program is told what would be so if it had.
TEST_F(Hooks, WhatWasQueuedBeforeAFreeIsWaitedForWhenItIsAskedFor) {
  const auto event = reinterpret_cast<CUevent>(0x60);
  const auto calls = [&](const std::function<void()>& call) {
    g_driver.clear();
    call();
    std::vector<memopt::preload::Hook> hooks;
    for (const DriverCall& made : g_driver) hooks.push_back(made.hook);
    return hooks;
  };
  using memopt::preload::Hook;
  using Made = std::vector<Hook>;
  float milliseconds = 0;
  g_result = CUDA_ERROR_NOT_READY;
  EXPECT_EQ(calls([&] { hooks::cuEventQuery(event); }), Made{Hook::cuEventQuery});
  g_agent.behind_free = true;
  EXPECT_EQ(calls([&] { hooks::cuEventQuery(event); }), (Made{Hook::cuEventQuery, Hook::cuEventSynchronize}));
  EXPECT_EQ(calls([&] { hooks::cuStreamQuery(stream()); }), (Made{Hook::cuStreamQuery, Hook::cuStreamSynchronize}));
  EXPECT_EQ(calls([&] { hooks::cuEventElapsedTime_v2(&milliseconds, event, event); }),
            (Made{Hook::cuEventElapsedTime_v2, Hook::cuEventSynchronize, Hook::cuEventSynchronize,
                  Hook::cuEventElapsedTime_v2}));
}

}  // namespace
}  // namespace memopt::preload
