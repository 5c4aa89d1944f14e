// CUPTI, loaded by its path: a machine may have none, or one that is not ours. Only what counting activities needs.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gpu_kit {

// The records that are read keep their places from CUPTI 12.0 on (activities.cpp asserts it of the headers at hand).
inline constexpr std::uint32_t kOldestVersion = 19;   // CUPTI of CUDA 12.0; they were numbered one by one then
inline constexpr std::uint32_t kLastOldNumber = 999;  // from CUDA 13.0 on it is 130000 and so on
inline constexpr std::uint32_t kFirstNumber = 130000;
inline constexpr std::uint32_t kFirstUnknown = 140000;

constexpr bool is_usable(std::uint32_t version) {
  return version <= kLastOldNumber ? version >= kOldestVersion : version >= kFirstNumber && version < kFirstUnknown;
}

struct CuptiLibrary {
  // Says why not in `error`.
  bool load(const char* path, std::string& error);
  std::string text(CUptiResult result) const;

  std::uint32_t version = 0;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
};

}  // namespace gpu_kit
