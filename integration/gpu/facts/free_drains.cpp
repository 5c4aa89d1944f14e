#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "device.h"
#include "fact.h"

namespace facts {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// The call while a kernel runs on a stream that has nothing to do with it.
Json under_a_kernel(Device& device, CUstream stream, CUevent behind, std::uint64_t nanoseconds, unsigned repeats,
                    const std::function<std::function<void()>()>& prepare) {
  std::vector<double> times;
  unsigned waited = 0;
  for (unsigned i = 0; i < repeats; ++i) {
    const std::function<void()> call = prepare();
    CALL(cuCtxSynchronize);
    device.spin(stream, nanoseconds);
    CALL(cuEventRecord, behind, stream);
    if (!driver().simulated()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    times.push_back(timed(call));
    const CUresult result = driver().cuEventQuery(behind);
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuEventQuery");
    waited += result == CUDA_SUCCESS;
    CALL(cuCtxSynchronize);
  }
  return {{"repeats", repeats},
          {"kernel_ns", nanoseconds},
          {"call_ns", spread(times)},
          {"kernel_was_over_after_the_call", waited}};
}

}  // namespace

void free_drains(const Settings& settings, Findings& findings) {
  Device device;
  CUstream const stream = new_stream();
  CUstream const other = new_stream();
  CUevent const behind = new_event();
  const std::uint64_t nanoseconds = settings.small ? 2'000'000 : 50'000'000;
  const unsigned repeats = settings.small ? 2 : 7;
  const auto ask = [&](const std::string& key, const std::function<std::function<void()>()>& prepare) {
    findings.attempt(key, [&] { return under_a_kernel(device, stream, behind, nanoseconds, repeats, prepare); });
  };
  ask("nothing", [] { return [] {}; });
  for (const std::size_t bytes : {std::size_t{4096}, kMiB, 64 * kMiB, settings.small ? 65 * kMiB : 1024 * kMiB}) {
    const std::string of = "_of_" + std::to_string(bytes) + "_bytes";
    ask("cuMemFree" + of, [bytes] {
      CUdeviceptr block = 0;
      CALL(cuMemAlloc, &block, bytes);
      return [block] { CALL(cuMemFree, block); };
    });
    ask("cuMemAlloc" + of, [bytes, kept = std::make_shared<CUdeviceptr>(0)] {
      if (*kept != 0) CALL(cuMemFree, *kept);
      return [bytes, kept] { CALL(cuMemAlloc, kept.get(), bytes); };
    });
  }
  ask("cuMemHostAlloc_of_64_mib", [] {
    return [] {
      void* block = nullptr;
      CALL(cuMemHostAlloc, &block, 64 * kMiB, 0);
    };
  });
  ask("cuMemFreeHost_of_64_mib", [] {
    void* block = nullptr;
    CALL(cuMemHostAlloc, &block, 64 * kMiB, 0);
    return [block] { CALL(cuMemFreeHost, block); };
  });
  ask("cuMemGetInfo", [] {
    return [] {
      std::size_t free = 0, total = 0;
      CALL(cuMemGetInfo, &free, &total);
    };
  });
  if (driver().cuMemAllocAsync == nullptr || driver().cuMemFreeAsync == nullptr) {
    findings.add("cuMemFreeAsync_of_64_mib", Json{{"error", "not asked: the driver has no stream-ordered allocation"}});
    return;
  }
  ask("cuMemFreeAsync_of_64_mib", [other] {
    CUdeviceptr block = 0;
    CALL(cuMemAllocAsync, &block, 64 * kMiB, other);
    return [block, other] { CALL(cuMemFreeAsync, block, other); };
  });
}

}  // namespace facts
