#include <functional>
#include <string>

#include "device.h"
#include "fact.h"

namespace facts {
namespace {

// Fewer than any launch queue takes.
constexpr unsigned kBatch = 100;

Json cost(unsigned calls, const std::function<void()>& call) {
  std::vector<double> times;
  while (times.size() < calls) {
    for (unsigned i = 0; i < kBatch && times.size() < calls; ++i) times.push_back(timed(call));
    CALL(cuCtxSynchronize);
  }
  return spread(times);
}

}  // namespace

void host_call_costs(const Settings& settings, Findings& findings) {
  Device device;
  const unsigned calls = settings.small ? 10 : 2000;
  CUstream const one = new_stream(), two = new_stream();
  CUevent const plain = new_event(), timing = new_event(CU_EVENT_DEFAULT);
  CUdeviceptr block = 0;
  CALL(cuMemAlloc, &block, std::size_t{4} << 20);
  const auto ask = [&](const char* key, const std::function<void()>& call) {
    findings.attempt(key, [&] {
      call();  // the first one prepares what the others find
      return cost(calls, call);
    });
  };
  ask("clock", [] {});
  ask("cuLaunchKernel", [&] {
    const int nothing = 0;
    device.launch(device.empty(), 1, one, {&nothing});
  });
  ask("cuEventRecord", [&] { CALL(cuEventRecord, plain, one); });
  ask("cuEventRecord_with_timing", [&] { CALL(cuEventRecord, timing, one); });
  ask("cuEventQuery_done", [&] { CALL(cuEventQuery, plain); });
  ask("cuStreamWaitEvent_done", [&] { CALL(cuStreamWaitEvent, two, plain, 0); });
  ask("cuStreamQuery", [&] { CALL(cuStreamQuery, two); });
  ask("cuEventCreate_and_Destroy", [] { CALL(cuEventDestroy, new_event()); });
  ask("cuMemsetD32Async", [&] { CALL(cuMemsetD32Async, block, 0, 256, one); });
  ask("cuMemcpyDtoDAsync", [&] { CALL(cuMemcpyDtoDAsync, block, block + (std::size_t{2} << 20), 4096, one); });
  ask("cuMemGetInfo", [] {
    std::size_t free = 0, total = 0;
    CALL(cuMemGetInfo, &free, &total);
  });
  ask("cuPointerGetAttribute", [&] {
    CUdeviceptr base = 0;
    CALL(cuPointerGetAttribute, &base, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, block);
  });
  if (driver().cuFuncGetParamInfo != nullptr) {
    ask("cuFuncGetParamInfo", [&] {
      std::size_t offset = 0, bytes = 0;
      CALL(cuFuncGetParamInfo, device.empty(), 0, &offset, &bytes);
    });
  }
  // With the device busy: the event is not done.
  findings.attempt("while_a_kernel_runs", [&] {
    const std::uint64_t nanoseconds = settings.small ? 5'000'000 : 50'000'000;
    const unsigned some = settings.small ? 5 : 200;
    std::vector<double> query, wait, record, launch;
    device.spin(one, nanoseconds);
    CALL(cuEventRecord, plain, one);
    for (unsigned i = 0; i < some; ++i) {
      query.push_back(timed([&] { driver().cuEventQuery(plain); }));
      wait.push_back(timed([&] { CALL(cuStreamWaitEvent, two, plain, 0); }));
      record.push_back(timed([&] { CALL(cuEventRecord, timing, one); }));
      const int nothing = 0;
      launch.push_back(timed([&] { device.launch(device.empty(), 1, one, {&nothing}); }));
    }
    CALL(cuCtxSynchronize);
    return Json{{"cuEventQuery_ns", spread(query)},
                {"cuStreamWaitEvent_ns", spread(wait)},
                {"cuEventRecord_ns", spread(record)},
                {"cuLaunchKernel_ns", spread(launch)}};
  });
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{2} << 20, std::size_t{64} << 20}) {
    const std::string of = "_of_" + std::to_string(bytes) + "_bytes";
    const unsigned some = settings.small ? 3 : 200;
    findings.attempt("cuMemAlloc_and_Free" + of, [&] {
      std::vector<double> allocate, free;
      for (unsigned i = 0; i < some; ++i) {
        CUdeviceptr fresh = 0;
        allocate.push_back(timed([&] { CALL(cuMemAlloc, &fresh, bytes); }));
        free.push_back(timed([&] { CALL(cuMemFree, fresh); }));
      }
      return Json{{"cuMemAlloc_ns", spread(allocate)}, {"cuMemFree_ns", spread(free)}};
    });
    if (driver().cuMemAllocAsync == nullptr || driver().cuMemFreeAsync == nullptr) continue;
    findings.attempt("cuMemAllocAsync_and_FreeAsync" + of, [&] {
      std::vector<double> allocate, free;
      for (unsigned i = 0; i < some; ++i) {
        CUdeviceptr fresh = 0;
        allocate.push_back(timed([&] { CALL(cuMemAllocAsync, &fresh, bytes, one); }));
        free.push_back(timed([&] { CALL(cuMemFreeAsync, fresh, one); }));
      }
      CALL(cuCtxSynchronize);
      return Json{{"cuMemAllocAsync_ns", spread(allocate)}, {"cuMemFreeAsync_ns", spread(free)}};
    });
  }
}

}  // namespace facts
