#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "fact.h"
#include "vmm.h"

namespace facts {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Load {
  explicit Load(const Settings& settings) : nanoseconds(settings.small ? 5'000'000 : 100'000'000), gaps(3) {}

  // The kernel is on the device when this returns, as far as the host can know.
  void begin(Device& device) {
    device.spin(stream, nanoseconds, gaps.address());
    CALL(cuEventRecord, behind, stream);
    if (!driver().simulated()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  bool running() const {
    const CUresult result = driver().cuEventQuery(behind);
    if (result != CUDA_ERROR_NOT_READY) check(result, "cuEventQuery");
    return result == CUDA_ERROR_NOT_READY;
  }
  // Ends when the kernel does.
  Json end() const {
    CALL(cuStreamSynchronize, stream);
    const std::vector<std::uint64_t> found = gaps.read();
    if (found[1] == 0) return nullptr;  // the simulator looks at no clock
    return {{"longest_gap_ns", found[0]}, {"looks", found[1]}, {"ran_ns", found[2]}};
  }

  std::uint64_t nanoseconds;
  CUstream stream = new_stream();
  CUevent behind = new_event();
  Words gaps;
};

// `call(i)` again and again while the kernel runs.
Json while_running(Device& device, Load& load, std::size_t most, const std::function<void(std::size_t)>& call) {
  load.begin(device);
  std::vector<double> times;
  bool running = true;
  while (running && times.size() < most) {
    times.push_back(timed([&] { call(times.size()); }));
    running = load.running();
  }
  Json result = {
      {"call_ns", spread(times)}, {"kernel_still_ran_after_the_last", running}, {"first_call_ns", times.front()}};
  result["kernel"] = load.end();
  return result;
}

}  // namespace

void vmm_under_load(const Settings& settings, Findings& findings) {
  Device device;
  Load load(settings);
  load.begin(device);
  findings.add("kernel_undisturbed", load.end());
  const std::size_t most = settings.small ? 4 : 20;
  for (const std::size_t mib : settings.small ? std::vector<std::size_t>{2} : std::vector<std::size_t>{2, 64, 512}) {
    const std::string of = "_" + std::to_string(mib) + "_mib";
    const std::size_t bytes = mib * kMiB;
    if (most * bytes > device.free_bytes() / 10 * 9) {
      findings.add("chunks" + of, Json{{"error", "not measured: no room for " + std::to_string(most) + " of them"}});
      continue;
    }
    std::vector<Chunk> chunks;
    Range range(most * bytes, bytes);
    Json create = while_running(device, load, most, [&](std::size_t) { chunks.emplace_back(device, bytes); });
    findings.add("cuMemCreate" + of, create);
    while (chunks.size() < most) chunks.emplace_back(device, bytes);
    findings.add("cuMemMap" + of, while_running(device, load, most, [&](std::size_t i) { range.map(i, chunks[i]); }));
    for (std::size_t i = 0; i < most; ++i) {
      if (!range.is_mapped(i)) range.map(i, chunks[i]);
    }
    findings.add("cuMemSetAccess" + of,
                 while_running(device, load, most, [&](std::size_t i) { range.allow(device, i); }));
    range.allow(device, 0, most);
    std::size_t unmapped = 0;
    findings.add("cuMemUnmap" + of, while_running(device, load, most, [&](std::size_t i) {
                   range.unmap(i);
                   unmapped = i + 1;
                 }));
    for (; unmapped < most; ++unmapped) range.unmap(unmapped);
    findings.add("cuMemRelease" + of, while_running(device, load, most, [&](std::size_t i) { chunks[i].release(); }));
  }
}

}  // namespace facts
