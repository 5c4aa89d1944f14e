// An engine with what it needs, without the rest of the driver.
#pragma once
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <utility>

#include "checker/checker.h"
#include "config.h"
#include "counters.h"
#include "device/engine.h"
#include "device/engine_impl.h"
#include "memory/memory.h"

namespace cudasim::test {

inline Config small_config(std::optional<std::uint64_t> seed = std::nullopt) {
  Config config;
  config.device.name = "test device";
  config.device.capacity = 64u << 20;
  config.device.launch_queue_depth = 1024;
  config.seed = seed;
  return config;
}

inline TimePoint at(std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); }

inline constexpr ContextId kContext{7};

// The test's body holds the driver's lock, as an API call would.
struct Simulation {
  explicit Simulation(Config the_config = small_config()) : config(std::move(the_config)) {
    engine.add_context(kContext);
  }

  Stream& stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
    CUstream handle = nullptr;
    EXPECT_EQ(engine.create_stream(kContext, flags, 0, &handle), CUDA_SUCCESS);
    Stream* const found = engine.find_stream(kContext, handle, StreamMode::kLegacy);
    EXPECT_NE(found, nullptr);
    return *found;
  }
  Stream& legacy() { return *engine.find_stream(kContext, nullptr, StreamMode::kLegacy); }
  Stream& per_thread() { return *engine.find_stream(kContext, nullptr, StreamMode::kPerThread); }

  EventPtr event(unsigned flags = CU_EVENT_DEFAULT) {
    CUevent handle = nullptr;
    EXPECT_EQ(engine.impl().create_event(kContext, flags, &handle), CUDA_SUCCESS);
    return engine.impl().find_event(handle);
  }

  OperationPtr work(Stream& stream, Resource resource, std::int64_t nanoseconds, std::string name = "work") {
    Work work;
    work.name = std::move(name);
    work.resource = resource;
    work.duration = Duration(nanoseconds);
    engine.enqueue(stream, std::move(work));
    return stream.tail;
  }

  OperationPtr pieces(Stream& stream, std::uint32_t count, std::function<void(std::uint32_t, AccessLog&)> run,
                      std::string name = "work", Resource resource = Resource::kCompute,
                      std::int64_t nanoseconds = 100) {
    Work work;
    work.name = std::move(name);
    work.resource = resource;
    work.duration = Duration(nanoseconds);
    work.pieces = count;
    work.run = [run = std::move(run)](std::uint32_t piece, AccessLog& log) {
      run(piece, log);
      return CUDA_SUCCESS;
    };
    engine.enqueue(stream, std::move(work));
    return stream.tail;
  }

  OperationPtr host_function(Stream& stream, std::function<void()> function, std::int64_t nanoseconds = 100) {
    Work work;
    work.name = "host function";
    work.resource = Resource::kHostFunction;
    work.duration = Duration(nanoseconds);
    work.host_function = std::move(function);
    engine.enqueue(stream, std::move(work));
    return stream.tail;
  }

  std::mutex mutex;
  Config config;
  Counters counters;
  Memory memory{config, counters};
  Checker checker{config.check, memory, counters};
  Engine engine{config, counters, checker, mutex};
  std::unique_lock<std::mutex> lock_{mutex};  // released before the engine goes: its callback thread needs it to end
};

}  // namespace cudasim::test
