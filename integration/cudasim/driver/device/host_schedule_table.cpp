// The schedule's C interface (include/cudasim/schedule.h): each function asks the schedule of this process.
#include "device/callback_thread.h"
#include "device/host_schedule.h"

namespace cudasim {

const CudasimSchedule& HostSchedule::table() {
  static constexpr CudasimSchedule functions{
      .version = CUDASIM_SCHEDULE_VERSION,
      .is_scheduled = [] { return int(current()->is_scheduled()); },
      .expect_thread = []() -> std::uint64_t {
        return CallbackThread::makes_own_thread() ? 0 : current()->expect_thread();
      },
      .start_thread = [](std::uint64_t number) { current()->start_thread(number); },
      .cancel_thread = [](std::uint64_t number) { current()->cancel_thread(number); },
      .has_ended = [](std::uint64_t number) { return int(current()->has_ended(number)); },
      .point = [](const char* what) { current()->point(what); },
      .wait = [](const CudasimWait* wait) { return int(current()->wait(*wait)); },
      .notify = [](const void* object, int count) { return current()->notify(object, count); },
      .nap = [](const char* what, const void* caller,
                std::int64_t nanoseconds) { current()->nap(what, caller, std::chrono::nanoseconds(nanoseconds)); },
  };
  return functions;
}

}  // namespace cudasim
