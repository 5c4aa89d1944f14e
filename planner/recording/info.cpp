#include "planner/recording/info.h"

#include <limits>

#include "planner/json/tree.h"

namespace memopt::planner {
namespace {

constexpr int kDeepest = 16;

std::string text(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

}  // namespace

std::string to_json(const RecordingInfo& info) {
  nlohmann::json object = {{"program", info.program},
                           {"arguments", info.arguments},
                           {"memopt", info.version},
                           {"agent", info.agent_version},
                           {"pid", info.pid},
                           {"started", info.started},
                           {"clock", {{"ticks", "time stamp counter"}, {"nanoseconds", "CLOCK_MONOTONIC"}}}};
  if (!info.device.empty()) object["device"] = info.device;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool from_json(std::string_view json, RecordingInfo& info) {
  bool too_deep = false;
  const auto bounded = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kDeepest;
    return depth <= kDeepest;
  };
  const nlohmann::json object = nlohmann::json::parse(json, bounded, false);
  if (too_deep || !object.is_object()) return false;
  info = RecordingInfo();
  info.program = text(object, "program");
  info.version = text(object, "memopt");
  info.agent_version = text(object, "agent");
  info.device = text(object, "device");
  info.started = number(object, "started");
  const std::uint64_t pid = number(object, "pid");
  info.pid = pid <= static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max()) ? static_cast<pid_t>(pid) : 0;
  if (const auto found = object.find("arguments"); found != object.end() && found->is_array()) {
    for (const nlohmann::json& argument : *found) {
      if (argument.is_string()) info.arguments.push_back(argument.get<std::string>());
    }
  }
  return true;
}

}  // namespace memopt::planner
