#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <string>
#include <thread>

#include "device.h"
#include "fact.h"

namespace facts {
namespace {

double between(CUevent begin, CUevent end) {
  float milliseconds = 0;
  CALL(cuEventElapsedTime, &milliseconds, begin, end);
  return static_cast<double>(milliseconds) * 1e6;
}

}  // namespace

void event_clock(const Settings& settings, Findings& findings) {
  Device device;
  CUstream const stream = new_stream();
  CUevent const begin = new_event(CU_EVENT_DEFAULT), end = new_event(CU_EVENT_DEFAULT);
  const unsigned repeats = settings.small ? 5 : 500;

  findings.attempt("two_events_in_a_row", [&] {
    std::vector<double> times;
    std::set<long long> distinct;
    for (unsigned i = 0; i < repeats; ++i) {
      CALL(cuEventRecord, begin, stream);
      CALL(cuEventRecord, end, stream);
      CALL(cuEventSynchronize, end);
      times.push_back(between(begin, end));
      distinct.insert(std::llround(times.back()));
    }
    // The step of the clock: the smallest distance of two different readings.
    long long step = 0;
    for (auto next = distinct.begin(); next != distinct.end() && std::next(next) != distinct.end(); ++next) {
      const long long distance = *std::next(next) - *next;
      step = step == 0 ? distance : std::min(step, distance);
    }
    return Json{{"elapsed_ns", spread(times)}, {"different_readings", distinct.size()}, {"smallest_distance_ns", step}};
  });

  Words gaps(3);
  for (const std::uint64_t nanoseconds : {1'000ull, 10'000ull, 100'000ull, 1'000'000ull, 10'000'000ull}) {
    findings.attempt("kernel_of_" + std::to_string(nanoseconds) + "_ns", [&] {
      std::vector<double> elapsed, own;
      const unsigned some = settings.small ? 3 : nanoseconds > 1'000'000 ? 20 : 100;
      for (unsigned i = 0; i < some; ++i) {
        CALL(cuEventRecord, begin, stream);
        device.spin(stream, nanoseconds, gaps.address());
        CALL(cuEventRecord, end, stream);
        CALL(cuEventSynchronize, end);
        elapsed.push_back(between(begin, end));
        const double ran = static_cast<double>(gaps.read()[2]);
        if (ran > 0) own.push_back(ran);
      }
      return Json{{"by_events_ns", spread(elapsed)}, {"by_the_kernels_own_clock_ns", spread(own)}};
    });
  }

  findings.attempt("against_the_host_clock", [&] {
    const auto mark = [&](CUevent event) {
      CALL(cuEventRecord, event, stream);
      CALL(cuEventSynchronize, event);
      return now_ns();
    };
    mark(begin);
    const std::int64_t from = mark(begin);
    if (driver().simulated()) {
      device.spin(stream, 1'000'000);
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(2));
    }
    const std::int64_t to = mark(end);
    const double device_ns = between(begin, end);
    const auto host_ns = static_cast<double>(to - from);
    return Json{{"device_ns", std::round(device_ns)},
                {"host_ns", host_ns},
                {"device_to_host", std::round(1e6 * device_ns / host_ns) / 1e6}};
  });
}

}  // namespace facts
