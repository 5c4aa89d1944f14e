#include <algorithm>
#include <cmath>
#include <string>

#include "device.h"
#include "fact.h"

namespace facts {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Way {
 public:
  Way(std::size_t bytes, bool in) : in_(in) {
    CALL(cuMemHostAlloc, &host_, bytes, 0);
    CALL(cuMemAlloc, &device_, bytes);
  }
  ~Way() {
    driver().cuMemFreeHost(host_);
    driver().cuMemFree(device_);
  }
  Way(const Way&) = delete;
  Way& operator=(const Way&) = delete;

  void issue(std::size_t bytes, unsigned copies) {
    CALL(cuEventRecord, begin_, stream_);
    for (unsigned i = 0; i < copies; ++i) {
      if (in_) {
        CALL(cuMemcpyHtoDAsync, device_, host_, bytes, stream_);
      } else {
        CALL(cuMemcpyDtoHAsync, host_, device_, bytes, stream_);
      }
    }
    CALL(cuEventRecord, end_, stream_);
  }
  // Of what was issued last, when it is done; bytes per nanosecond.
  double rate(std::size_t bytes, unsigned copies) const {
    CALL(cuEventSynchronize, end_);
    float milliseconds = 0;
    CALL(cuEventElapsedTime, &milliseconds, begin_, end_);
    return milliseconds > 0 ? static_cast<double>(bytes) * copies / (static_cast<double>(milliseconds) * 1e6) : 0;
  }

 private:
  bool in_;
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
  CUstream stream_ = new_stream();
  CUevent begin_ = new_event(CU_EVENT_DEFAULT);
  CUevent end_ = new_event(CU_EVENT_DEFAULT);
};

Json rates(std::vector<double> found) {
  std::sort(found.begin(), found.end());
  const auto round = [](double x) { return std::round(x * 100) / 100; };
  return {{"best_gb_per_s", round(found.back())}, {"median_gb_per_s", round(found[found.size() / 2])}};
}

}  // namespace

void pinned_bandwidth(const Settings& settings, Findings& findings) {
  Device device;
  const std::vector<std::size_t> sizes = settings.small
                                             ? std::vector<std::size_t>{kMiB / 16, 2 * kMiB}
                                             : std::vector<std::size_t>{kMiB / 16, kMiB, 16 * kMiB, 256 * kMiB};
  Way in(sizes.back(), true), out(sizes.back(), false);
  CUstream const busy = new_stream();
  const unsigned repeats = settings.small ? 2 : 7;
  for (const std::size_t bytes : sizes) {
    // Long enough for the clock of events, and for both ways to overlap.
    const auto copies = static_cast<unsigned>(settings.small ? 2 : std::clamp<std::size_t>(256 * kMiB / bytes, 2, 64));
    std::vector<double> in_alone, out_alone, in_both, out_both, in_with_kernel;
    for (unsigned i = 0; i < repeats; ++i) {
      in.issue(bytes, copies);
      in_alone.push_back(in.rate(bytes, copies));
      out.issue(bytes, copies);
      out_alone.push_back(out.rate(bytes, copies));
      in.issue(bytes, copies);
      out.issue(bytes, copies);
      in_both.push_back(in.rate(bytes, copies));
      out_both.push_back(out.rate(bytes, copies));
      device.spin(busy, settings.small ? 100'000 : 50'000'000);
      in.issue(bytes, copies);
      in_with_kernel.push_back(in.rate(bytes, copies));
      CALL(cuStreamSynchronize, busy);
    }
    findings.add("copies_of_" + std::to_string(bytes) + "_bytes", {{"copies_in_a_row", copies},
                                                                   {"repeats", repeats},
                                                                   {"in_alone", rates(in_alone)},
                                                                   {"out_alone", rates(out_alone)},
                                                                   {"in_with_out", rates(in_both)},
                                                                   {"out_with_in", rates(out_both)},
                                                                   {"in_beside_a_kernel", rates(in_with_kernel)}});
  }
}

}  // namespace facts
