#include "activities.h"

#include <cstddef>

namespace gpu_kit {
namespace {

// New fields are added behind: the places of these are the same since CUDA 12.0.
static_assert(offsetof(CUpti_ActivityKernel10, name) == offsetof(CUpti_ActivityKernel8, name));
static_assert(offsetof(CUpti_ActivityMemcpy6, copyKind) == offsetof(CUpti_ActivityMemcpy5, copyKind));
static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == offsetof(CUpti_ActivityMemcpy5, bytes));
static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, bytes) == offsetof(CUpti_ActivityMemcpyPtoP3, bytes));
static_assert(offsetof(CUpti_ActivityMemset4, bytes) == offsetof(CUpti_ActivityMemset3, bytes));

const char* direction(std::uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
      return "to_device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
      return "to_host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "on_device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "on_host";
    default:
      return "unknown";
  }
}

template <typename Record>
const Record& as(const CUpti_Activity& record) {
  return reinterpret_cast<const Record&>(record);
}

void count(Amount& amount, std::uint64_t bytes) {
  ++amount.count;
  amount.bytes += bytes;
}

nlohmann::json to_json(const Amount& amount) { return {{"count", amount.count}, {"bytes", amount.bytes}}; }

}  // namespace

void Activities::add(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const char* const name = as<CUpti_ActivityKernel10>(record).name;
      ++kernels_[name == nullptr ? "" : name];
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = as<CUpti_ActivityMemcpy6>(record);
      return count(copies_[direction(copy.copyKind)], copy.bytes);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return count(copies_["on_device"], as<CUpti_ActivityMemcpyPtoP4>(record).bytes);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return count(sets_, as<CUpti_ActivityMemset4>(record).bytes);
    default:
      ++others_;
  }
}

nlohmann::json Activities::to_json() const {
  nlohmann::json copies = nlohmann::json::object();
  for (const auto& [name, amount] : copies_) copies[name] = gpu_kit::to_json(amount);
  return {{"kernels", kernels_}, {"copies", copies},      {"sets", gpu_kit::to_json(sets_)},
          {"dropped", dropped_}, {"failures", failures_}, {"others", others_}};
}

}  // namespace gpu_kit
