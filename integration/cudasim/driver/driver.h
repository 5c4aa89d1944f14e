// The whole simulated driver: one per process, made at the first API call (or by the C interface), leaked on purpose so
// that exit order never matters.
#pragma once
#include <memory>
#include <mutex>

#include "checker/checker.h"
#include "config.h"
#include "counters.h"
#include "device/engine.h"
#include "device/host_schedule.h"
#include "device/serialize_gate.h"
#include "memory/memory.h"
#include "module/modules.h"

namespace cudasim {

class Arrays;          // texture/arrays.h
class Contexts;        // contexts.h
class Graphs;          // graph/graphs.h
class Pools;           // pools.h
class TextureObjects;  // texture/texture_objects.h

struct Driver {
  std::mutex mutex;  // held in every API call; see device/engine.h for who releases it while waiting
  Config config;
  std::unique_ptr<HostSchedule> schedule;  // null without CUDASIM_SCHEDULE; a point of it before the gate and after it
  SerializeGate gate;                      // entered before the mutex, left after it
  Counters counters;
  Memory memory;
  Checker checker;
  Engine engine;
  Modules modules;
  std::unique_ptr<Contexts> contexts;
  std::unique_ptr<Pools> pools;
  std::unique_ptr<Graphs> graphs;
  std::unique_ptr<Arrays> arrays;
  std::unique_ptr<TextureObjects> textures;
  bool initialized = false;  // cuInit was called

  static Driver& get();      // thread-safe; aborts with a message when memory can't be reserved
  static Driver* if_made();  // null before the first get(); for the instrumented access path

  // True in a child forked after cuInit: the device belongs to the parent, no lock may be touched. A child forked
  // before cuInit makes its own.
  static bool in_forked_child();

  // A preloaded library's own thread, which the schedule lets alone.
  bool is_service_thread() const { return is_service_thread_ != nullptr && is_service_thread_() != 0; }

 private:
  Driver();
  void attach_schedule();

  int (*is_service_thread_)() = nullptr;
};

}  // namespace cudasim
