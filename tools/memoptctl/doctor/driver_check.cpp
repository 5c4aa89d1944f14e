#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include "tools/memoptctl/common/install_paths.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/doctor/checks.h"
#include "tools/memoptctl/run/limited_process.h"

namespace memopt::tools {
namespace {

constexpr std::chrono::milliseconds kLimit{60'000};  // a driver that has to wake several devices takes seconds

class Facts {
 public:
  explicit Facts(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("step ")) step_ = line.substr(5);
      const std::size_t equals = line.find('=');
      if (equals != std::string::npos && !line.starts_with("step ")) {
        // An error belongs to its step; the first one counts.
        const std::string name = line.substr(0, equals);
        values_.emplace(name == "error" || name == "code" ? step_ + "." + name : name, line.substr(equals + 1));
      }
    }
  }
  const std::string& step() const { return step_; }
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string get(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? "" : found->second;
  }
  long long number(const std::string& name) const { return std::atoll(get(name).c_str()); }

 private:
  std::string step_ = "start";
  std::map<std::string, std::string> values_;
};

std::string remedy_for_init(long long code) {
  switch (code) {
    case 100:
      return "no device is visible: look at CUDA_VISIBLE_DEVICES, nvidia-smi, and in a container at --gpus";
    case 803:
    case 804:
      return "the driver library and the kernel module are of different versions: restart, or fix the container's "
             "driver files";
    case 34:
      return "this is the toolkit's stub of libcuda, which is for linking only: take it out of LD_LIBRARY_PATH";
    default:
      return ::access("/dev/nvidiactl", F_OK) == 0
                 ? "see whether nvidia-smi works, and what the kernel's log says"
                 : "there is no /dev/nvidiactl: load the kernel module (nvidia-modprobe), in a container use --gpus";
  }
}

void report_vmm(Report& report, const Facts& facts) {
  if (facts.number("vmm") != 1) {
    report.add("vmm", facts.has("vmm") ? Verdict::kProblem : Verdict::kUnknown,
               facts.has("vmm") ? "the device or its driver has no virtual memory management (cuMemCreate)"
                                : "it could not be asked: " + facts.get("devices.error"),
               "use a newer driver; vGPU profiles without unified memory lack it. memopt passes all calls through");
    return;
  }
  report.add("vmm", Verdict::kOk,
             "supported" + (facts.has("granularity")
                                ? ", chunks of " + bytes_text(static_cast<double>(facts.number("granularity")))
                                : std::string()));
}

void report_aliasing(Report& report, const Facts& facts) {
  if (facts.get("aliasing") == "same") {
    report.add("aliasing", Verdict::kOk, "one chunk at two addresses shows the same bytes");
  } else if (facts.number("vmm") == 1 || facts.has("granularity")) {
    const std::string why = facts.get("aliasing.error");
    const bool full = facts.get("aliasing.code") == "2";
    report.add("aliasing", full ? Verdict::kUnknown : Verdict::kProblem,
               "one chunk could not be used at two addresses: " + (why.empty() ? "no reason given" : why),
               full ? "the device is full: try again when it has a little room"
                    : "MEMOPT_PLAN=0 leaves allocation to this driver");
  } else {
    report.add("aliasing", Verdict::kUnknown, "not tried without virtual memory management");
  }
}

void report_device(Report& report, const Facts& facts) {
  if (facts.number("devices") < 1) {
    report.add("device", Verdict::kProblem,
               facts.has("devices") ? "the driver has no device" : "no device: " + facts.get("devices.error"),
               remedy_for_init(100));
    return;
  }
  report.add("device", Verdict::kOk,
             fmt::format("{}, {}{}", facts.get("name"), bytes_text(static_cast<double>(facts.number("memory"))),
                         facts.number("devices") > 1
                             ? fmt::format("; the first of {}: memopt serves one device", facts.number("devices"))
                             : ""));
  report_vmm(report, facts);
  report_aliasing(report, facts);
  if (facts.number("pools") == 1) {
    report.add("pools", Verdict::kOk, "stream-ordered allocation (cudaMallocAsync) is supported");
  } else {
    report.add("pools", Verdict::kWarning, "the device has no memory pools (cudaMallocAsync)",
               "MEMOPT_FRAMEWORK_ENV=plain keeps frameworks from asking for them");
  }
}

}  // namespace

void check_driver(Report& report, const std::optional<std::string>& simulator,
                  const std::optional<std::string>& device) {
  LimitedCommand command{{own_program(), "probe", "driver"}};
  command.limit = kLimit;
  // The driver itself, not what memopt makes of it.
  command.environment = {{"LD_PRELOAD", std::nullopt}};
  if (simulator) {
    const char* const existing = std::getenv("LD_LIBRARY_PATH");
    command.environment.emplace_back(
        "LD_LIBRARY_PATH", existing == nullptr || *existing == '\0' ? *simulator : *simulator + ":" + existing);
    command.environment.emplace_back("CUDASIM_DEVICE", device);
  }
  LimitedProcess child(command);
  child.finish();
  const Facts facts(child.output());
  if (facts.has("load_error")) {
    report.add("driver", Verdict::kProblem, "no CUDA driver: " + facts.get("load_error"),
               "install NVIDIA's driver (libcuda.so.1); in a container start it with --gpus; without a GPU use "
               "memoptctl run --sim");
    return;
  }
  if (!child.ok()) {
    report.add("driver", Verdict::kProblem,
               fmt::format("{} failed in the step {}: {}", facts.has("path") ? facts.get("path") : "the driver",
                           facts.step(), child.how_it_ended()),
               "see whether nvidia-smi and other CUDA programs work");
  }
  if (!facts.has("init")) {
    if (child.ok()) {
      report.add("driver", Verdict::kProblem,
                 (facts.has("path") ? facts.get("path") : "libcuda.so.1") + ": " + facts.get("cuInit.error"),
                 remedy_for_init(facts.number("cuInit.code")));
    }
    return;
  }
  const long long version = facts.number("version");
  if (child.ok()) {
    // Entry points are known from the headers of one toolkit; newer drivers have more, which pass through.
    report.add("driver", version >= 12000 ? Verdict::kOk : Verdict::kWarning,
               fmt::format("{}, CUDA {}.{}{}", facts.get("path"), version / 1000, version % 1000 / 10,
                           simulator ? ", simulated" : ""),
               version >= 12000 ? "" : "memopt is made for drivers of CUDA 12 and later");
  }
  if (facts.has("devices") || facts.has("devices.error")) report_device(report, facts);
}

}  // namespace memopt::tools
