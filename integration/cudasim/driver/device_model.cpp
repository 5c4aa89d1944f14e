// Devices as JSON: strict, so that a misspelt key is an error and not a device with other numbers.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "config.h"
#include "device_attributes.h"

namespace cudasim {
namespace {

using Json = nlohmann::json;

// One object of the file: hands out its members by key, remembers which were asked for, and refuses the rest.
class Object {
 public:
  Object(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json_.is_object()) fail("", "an object { … }");
  }

  const Json& need(const char* key, const char* expected) {
    const auto found = json_.find(key);
    if (found == json_.end())
      throw std::runtime_error(where_ + ": key \"" + key + "\" is missing; expected " + expected);
    seen_.push_back(key);
    return *found;
  }
  const Json* maybe(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    seen_.push_back(key);
    return &*found;
  }
  std::string text(const char* key) {
    const Json& value = need(key, "a string");
    if (!value.is_string() || value.get<std::string>().empty()) fail(key, "a string that is not empty");
    return value.get<std::string>();
  }
  double rate(const char* key) {
    const Json& value = need(key, "a number above 0");
    if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > 1e9)
      fail(key, "a number above 0 and at most 1e9");
    return value.get<double>();
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) {
    return integer_of(need(key, "an integer"), key, least, most);
  }
  Duration nanoseconds(const char* key) { return Duration(integer(key, 0, kMostNanoseconds)); }

  std::int64_t integer_of(const Json& value, const std::string& key, std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_unsigned()
                          ? value.get<std::uint64_t>() <= std::uint64_t(std::numeric_limits<std::int64_t>::max())
                          : value.is_number_integer();
    if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
      fail(key, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    }
    return value.get<std::int64_t>();
  }

  void done(const char* known) const {
    for (const auto& [key, value] : json_.items()) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        throw std::runtime_error(where_ + ": unknown key \"" + key + "\"; expected one of " + known);
      }
    }
  }
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const {
    const Json& value = key.empty() ? json_ : json_.contains(key) ? json_.at(key) : json_;
    throw std::runtime_error(where_ + ": " + (key.empty() ? "" : "\"" + key + "\" is " + value.dump() + ", ") +
                             "expected " + expected);
  }
  const std::string& where() const { return where_; }

  static constexpr std::int64_t kMostNanoseconds = 3'600'000'000'000;  // an hour

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> seen_;
};

void parse_copy(Object& device, const char* key, double& bytes_per_ns, Duration& latency) {
  Object copy(device.need(key, "an object {\"bytes_per_ns\": …, \"latency_ns\": …}"), device.where() + ": " + key);
  bytes_per_ns = copy.rate("bytes_per_ns");
  latency = copy.nanoseconds("latency_ns");
  copy.done("bytes_per_ns, latency_ns");
}

void parse_host_costs(Object& device, DeviceModel& model) {
  const Json& json = device.need("host_costs_ns", "an object of call: nanoseconds");
  Object costs(json, device.where() + ": host_costs_ns");
  for (const auto& [call, cost] : json.items()) {
    CallCost& parsed = model.host_costs[call];
    if (cost.is_object()) {
      Object pair(cost, costs.where() + ": " + call);
      parsed.fixed = pair.nanoseconds("fixed");
      parsed.per_unit = pair.nanoseconds("per_handle");
      pair.done("fixed, per_handle");
    } else {
      parsed.fixed = Duration(costs.integer_of(cost, call, 0, Object::kMostNanoseconds));
    }
    if (call != "default" && !call.starts_with("cu")) {
      throw std::runtime_error(costs.where() + ": unknown key \"" + call +
                               "\"; expected \"default\" or a driver call such as \"cuMemAlloc\"");
    }
  }
  if (!model.host_costs.contains("default"))
    throw std::runtime_error(costs.where() + ": key \"default\" is missing; expected nanoseconds");
}

std::uint64_t parse_capacity(Object& device) {
  const char* const kExpected = "bytes or a string such as \"40536M\", a multiple of 2 MiB, 2 MiB to 65536 GiB";
  const Json& value = device.need("capacity", kExpected);
  std::optional<std::uint64_t> bytes;
  if (value.is_number_unsigned()) bytes = value.get<std::uint64_t>();
  if (value.is_string()) bytes = parse_bytes(value.get<std::string>());
  if (!bytes || *bytes == 0 || *bytes % kGranule != 0 || *bytes > (std::uint64_t{1} << 46))
    device.fail("capacity", kExpected);
  return *bytes;
}

}  // namespace

DeviceModel DeviceModel::parse(std::string_view text, const std::string& origin) {
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), nullptr, true, /*ignore_comments=*/true);
  } catch (const Json::parse_error& error) {
    throw std::runtime_error(origin + ": not JSON: " + error.what());
  }
  Object device(json, origin);
  DeviceModel model;
  model.preset = origin;
  model.name = device.text("name");
  const auto capability = device.text("compute_capability");
  int used = 0;
  if (std::sscanf(capability.c_str(), "%2d.%1d%n", &model.compute_major, &model.compute_minor, &used) != 2 ||
      std::size_t(used) != capability.size() || model.compute_major < 1) {
    device.fail("compute_capability", "a string such as \"8.0\"");
  }
  model.multiprocessors = int(device.integer("multiprocessors", 1, 10'000));
  model.capacity = parse_capacity(device);
  model.flops_per_ns = device.rate("fp32_flops_per_ns");
  model.memory_bytes_per_ns = device.rate("memory_bytes_per_ns");
  parse_copy(device, "copy_in", model.in_bytes_per_ns, model.in_latency);
  parse_copy(device, "copy_out", model.out_bytes_per_ns, model.out_latency);
  model.pageable_bytes_per_ns = device.rate("pageable_bytes_per_ns");
  model.kernel_latency = device.nanoseconds("kernel_latency_ns");
  model.unknown_kernel = device.nanoseconds("unknown_kernel_ns");
  model.launch_queue_depth = unsigned(device.integer("launch_queue_depth", 1, 1'000'000));
  parse_host_costs(device, model);
  if (const Json* attributes = device.maybe("attributes")) {
    Object values(*attributes, origin + ": attributes");
    for (const auto& [key, value] : attributes->items()) {
      if (!is_settable_attribute(key)) {
        throw std::runtime_error(
            values.where() + ": unknown key \"" + key +
            "\"; expected the name of a CU_DEVICE_ATTRIBUTE_… in lower case, for example \"l2_cache_size\"");
      }
      model.attributes[key] =
          int(values.integer_of(value, key, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()));
    }
  }
  device.done(
      "name, compute_capability, multiprocessors, capacity, fp32_flops_per_ns, memory_bytes_per_ns, copy_in, copy_out, "
      "pageable_bytes_per_ns, kernel_latency_ns, unknown_kernel_ns, launch_queue_depth, host_costs_ns, attributes");
  return model;
}

DeviceModel DeviceModel::preset_or_file(const std::string& name) {
  std::string known;
  for (const auto& [preset, json] : device_presets()) {
    if (preset == name) return parse(json, name);
    known += (known.empty() ? "" : ", ") + std::string(preset);
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "re"), &std::fclose);
  if (!file) {
    throw std::runtime_error("\"" + name + "\" is no preset (" + known +
                             ") and can't be read as a device file: " + std::strerror(errno));
  }
  std::string text(64 << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get()) != 0) throw std::runtime_error(name + ": can't be read: " + std::strerror(errno));
  if (std::feof(file.get()) == 0) throw std::runtime_error(name + ": longer than 64 KiB; expected a device file");
  return parse(text, name);
}

CallCost DeviceModel::host_cost(std::string_view symbol) const {
  if (symbol.ends_with("_ptsz") || symbol.ends_with("_ptds")) symbol.remove_suffix(5);
  auto found = host_costs.find(symbol);
  if (found == host_costs.end()) {
    const auto version = symbol.rfind("_v");
    const auto digits = version == std::string_view::npos ? std::string_view() : symbol.substr(version + 2);
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
      found = host_costs.find(symbol.substr(0, version));
  }
  if (found == host_costs.end()) found = host_costs.find("default");
  return found == host_costs.end() ? CallCost{} : found->second;
}

}  // namespace cudasim
