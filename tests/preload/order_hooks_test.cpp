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
      {"instantiate", [&] { hooks::cuGraphInstantiateWithFlags(&exec, graph, 0); }, {"graph made"}, {}},
      {"clone", [&] { hooks::cuGraphClone(&graph, graph); }, {"graph made"}, {}},
      {"child", [&] { hooks::cuGraphAddChildGraphNode(nullptr, graph, nullptr, 0, graph); }, {"graph added"}, {}},
      {"child as a node",
       [&] { hooks::cuGraphAddNode_v2(nullptr, graph, nullptr, nullptr, 0, &child); },
       {"graph added"},
       {}},
      {"another node", [&] { hooks::cuGraphAddNode_v2(nullptr, graph, nullptr, nullptr, 0, &kernel); }, {}, {}},
      {"child of a node", [&] { hooks::cuGraphNodeSetParams(nullptr, &child); }, {"graph beyond sight"}, {}},
      {"child of an executable", [&] { hooks::cuGraphExecNodeSetParams(exec, nullptr, &child); }, {"graph added"}, {}},
      {"child itself", [&] { hooks::cuGraphChildGraphNodeGetGraph(nullptr, &graph); }, {"graph beyond sight"}, {}},
      {"update", [&] { hooks::cuGraphExecUpdate_v2(exec, graph, nullptr); }, {"graph added"}, {}},
      {"graph destroy",
       [&] { hooks::cuGraphDestroy(graph); },
       {"graph goes", "graph has gone"},
       {"graph goes", "graph has gone"}},
      {"executable destroy",
       [&] { hooks::cuGraphExecDestroy(exec); },
       {"graph goes", "graph has gone"},
       {"graph goes", "graph has gone"}},
      {"host function",
       [&] { hooks::cuLaunchHostFunc(stream(), nullptr, nullptr); },
       {"host function"},
       {"host function"}},
      {"graph", [&] { hooks::cuGraphLaunch(nullptr, stream()); }, {"unknown work"}, {"unknown work"}},
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
