// What CUPTI tells of a program's work on the device, counted. Locking is the caller's.
#pragma once

#include <cupti.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace gpu_kit {

struct Amount {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class Activities {
 public:
  void add(const CUpti_Activity& record);
  void add_dropped(std::uint64_t records) { dropped_ += records; }
  void add_failure() { ++failures_; }
  nlohmann::json to_json() const;

 private:
  std::map<std::string, std::uint64_t> kernels_;  // launches by name, as the compiler spells it
  std::map<std::string, Amount> copies_;          // by direction, in memopt's words
  Amount sets_;
  std::uint64_t dropped_ = 0;   // that CUPTI had no room for
  std::uint64_t failures_ = 0;  // buffers that could not be had, or read to their end
  std::uint64_t others_ = 0;    // of kinds that were not asked for
};

}  // namespace gpu_kit
