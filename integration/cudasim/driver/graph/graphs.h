// All graphs, executable graphs and user objects, by handle. One per driver; under its lock.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>

#include "graph/captures.h"
#include "graph/graph_exec.h"

namespace cudasim {

class Graphs {
 public:
  explicit Graphs(Driver& driver) : driver_(driver) {}

  CUgraph add(std::shared_ptr<Graph> graph);
  std::shared_ptr<Graph> find(CUgraph handle) const;  // one that is a node's too; null: none
  CUresult destroy(CUgraph handle);
  // The graph of a capture that goes on; it is dropped with one that fails.
  CUgraph known_while_captured(const Capture& capture);
  // Nodes are found in the graphs that live; null: none.
  GraphNode* find(CUgraphNode handle) const;

  CUgraphExec add(std::unique_ptr<GraphExec> exec);
  GraphExec* find(CUgraphExec handle) const;
  bool is_instantiated(CUgraph graph) const;
  CUresult destroy(CUgraphExec handle);

  // A program's object, destroyed by a function of its own when its last reference goes.
  CUresult create_object(void* pointer, CUhostFn destructor, unsigned count, CUuserObject* out);
  CUresult retain(CUuserObject object, unsigned count);
  CUresult release(CUuserObject object, unsigned count);
  CUresult retain(Graph& graph, CUuserObject object, unsigned count, bool move);
  CUresult release(Graph& graph, CUuserObject object, unsigned count);

  // Memory of an allocation node by its address; null: none.
  GraphMemoryPtr find_memory(CUdeviceptr base) const;
  // For a node of the graph behind these.
  CUresult allocate(ContextId context, const Graph& graph, std::span<GraphNode* const> behind, std::size_t size,
                    GraphMemoryPtr& out);

  Captures captures;

 private:
  struct UserObject {
    void* pointer;
    CUhostFn destructor;
    unsigned count;
  };
  void release_all(Graph& graph);

  Driver& driver_;
  std::map<CUgraph, std::shared_ptr<Graph>> graphs_;
  std::map<CUgraphExec, std::unique_ptr<GraphExec>> execs_;
  std::map<CUuserObject, UserObject> objects_;
  std::map<CUdeviceptr, std::weak_ptr<GraphMemory>> memory_;
};

}  // namespace cudasim
