#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "shm/memory_limit.h"
#include "shm/options.h"
#include "shm/sealed_memory.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/doctor/checks.h"

namespace memopt::tools {
namespace {

// Page-locked staging memory and what network libraries register; the usual default of 64 KiB to 8 MiB is too little.
constexpr std::uint64_t kEnoughLocked = std::uint64_t{64} << 20;
constexpr std::uint64_t kEnoughShared = std::uint64_t{64} << 20;
// Rings of a program with a few threads, and room for the planner.
constexpr std::uint64_t kEnoughInGroup = std::uint64_t{256} << 20;

std::string text(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

void check_locked(Report& report) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) {
    report.add("memlock", Verdict::kUnknown, std::strerror(errno));
  } else if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= kEnoughLocked) {
    report.add("memlock", Verdict::kOk,
               limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : text(limit.rlim_cur));
  } else {
    report.add("memlock", Verdict::kWarning,
               fmt::format("a process may lock {} only (RLIMIT_MEMLOCK): too small for page-locked host memory that "
                           "is registered (RDMA, NCCL over InfiniBand)",
                           text(limit.rlim_cur)),
               "ulimit -l unlimited, LimitMEMLOCK=infinity in a service, --ulimit memlock=-1 for a container");
  }
}

void check_shared(Report& report) {
  struct statvfs info {};
  const char* const remedy = "mount a tmpfs there; in a container use --shm-size or --ipc=host";
  if (::statvfs("/dev/shm", &info) != 0) {
    report.add("shm", Verdict::kWarning,
               std::string("/dev/shm: ") + std::strerror(errno) + "; memopt does not need it, frameworks do", remedy);
  } else {
    const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
    const std::string sizes =
        fmt::format("/dev/shm: {} free of {}", text(free), text(std::uint64_t{info.f_blocks} * info.f_frsize));
    if (free >= kEnoughShared) {
      report.add("shm", Verdict::kOk, sizes);
    } else {
      report.add("shm", Verdict::kWarning, sizes + "; memopt does not need it, frameworks do", remedy);
    }
  }
  // What memopt does need: one ring, as the agent makes it.
  const std::string_view wanted = shm::option(shm::OptionId::kRing).default_value;
  const shm::Descriptor memory = shm::create_memory("memopt-doctor", shm::ring_bytes(wanted));
  if (memory) {
    report.add("memfd", Verdict::kOk, fmt::format("shared memory for a ring ({}) can be had", wanted));
  } else {
    report.add(
        "memfd", Verdict::kProblem,
        fmt::format("no shared memory for a ring ({}): {}; nothing can be planned", wanted, std::strerror(errno)),
        "allow memfd_create and fallocate (seccomp profile), or give the control group more memory");
  }
}

void check_group(Report& report) {
  const shm::MemoryLeft left = shm::memory_left();
  if (left.file.empty()) {
    report.add("cgroup", Verdict::kOk, "no limit on host memory");
    return;
  }
  const std::string sizes =
      fmt::format("host memory is limited to {}, {} left ({})", text(left.limit), text(left.bytes), left.file);
  if (left.bytes >= kEnoughInGroup) {
    report.add("cgroup", Verdict::kOk, sizes);
  } else {
    report.add("cgroup", Verdict::kWarning, sizes,
               "raise the limit, or make rings smaller (MEMOPT_RING: so much for each thread)");
  }
}

}  // namespace

void check_limits(Report& report) {
  check_locked(report);
  check_shared(report);
  check_group(report);
}

}  // namespace memopt::tools
