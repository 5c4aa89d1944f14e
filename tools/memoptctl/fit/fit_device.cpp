#include "tools/memoptctl/fit/fit_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "planner/json/tree.h"
#include "planner/swap/model/machines.h"
#include "shm/sizes.h"
#include "tools/memoptctl/common/printable.h"
#include "tools/memoptctl/run/simulated_device.h"

namespace memopt::tools {
namespace {

constexpr const char* kUsual = "a100-40g";

// Of the simulator's presets: NAME=SIZE,... from the presets themselves (CMakeLists.txt).
std::optional<std::uint64_t> preset_capacity(const std::string& name) {
  std::istringstream list(MEMOPT_SIMULATED_CAPACITIES);
  for (std::string one; std::getline(list, one, ',');) {
    const std::size_t equals = one.find('=');
    if (one.substr(0, equals) == name) return shm::size_bytes(std::string_view(one).substr(equals + 1));
  }
  return std::nullopt;
}

struct Simulated {
  std::uint64_t capacity = 0;
  swap::Machine machine;
};

Simulated read_device_file(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false, true);
  Simulated device;
  const auto number = [&](const char* copies, const char* name) {
    const auto found = json.is_object() ? json.find(copies) : json.end();
    const bool there = json.is_object() && found != json.end() && found->is_object() && found->contains(name);
    return there && (*found)[name].is_number() ? (*found)[name].get<double>() : 0.0;
  };
  if (json.is_object() && json.contains("capacity") && json["capacity"].is_string()) {
    device.capacity = shm::size_bytes(json["capacity"].get<std::string>());
  }
  device.machine = {number("copy_out", "bytes_per_ns"), number("copy_in", "bytes_per_ns"),
                    number("copy_out", "latency_ns"), number("copy_in", "latency_ns")};
  if (device.capacity == 0 || device.machine.out_bytes_per_ns <= 0 || device.machine.in_bytes_per_ns <= 0) {
    throw std::invalid_argument(
        printable(path) +
        ": expected a device file with capacity, copy_in and copy_out (integration/cudasim/README.md)");
  }
  return device;
}

Simulated simulated_of(const std::string& name) {
  if (const auto capacity = preset_capacity(name)) return {*capacity, swap::parse_machine(name)};
  return read_device_file(name);
}

}  // namespace

FitDevice find_device(const std::string& device, const std::string& simulated) {
  FitDevice result;
  const std::uint64_t size = shm::size_bytes(device);
  result.given = size != 0;
  result.simulated = !simulated.empty() ? simulated : !result.given && !device.empty() ? device : kUsual;
  if (!result.given && !device.empty()) {
    if (const std::string fault = simulated_device_fault(device); !fault.empty()) {
      throw std::invalid_argument(
          fmt::format("--device: expected a size, such as 24GiB, or a simulated device: {}", fault));
    }
  }
  if (const std::string fault = simulated_device_fault(result.simulated); !fault.empty()) {
    throw std::invalid_argument("--sim: " + fault);
  }
  result.machine = simulated_of(result.simulated).machine;
  result.capacity = result.given ? size : simulated_of(device.empty() ? result.simulated : device).capacity;
  return result;
}

}  // namespace memopt::tools
