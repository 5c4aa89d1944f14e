#include "device.h"
#include "fact.h"

namespace facts {

void device_properties(const Settings&, Findings& findings) {
  const Device device;
  char name[256] = "";
  CALL(cuDeviceGetName, name, sizeof name, device.number());
  findings.add("name", name);
  findings.add("simulated", driver().simulated());
  int version = 0;
  CALL(cuDriverGetVersion, &version);
  findings.add("driver_version", version);
  findings.add("headers_version", CUDA_VERSION);
  std::size_t free = 0, total = 0;
  CALL(cuMemGetInfo, &free, &total);
  findings.add("memory_total", total);
  findings.add("memory_free", free);
  const CUmemAllocationProp properties = physical(device.number());
  for (const auto& [key, which] : {std::pair{"granularity_minimum", CU_MEM_ALLOC_GRANULARITY_MINIMUM},
                                   std::pair{"granularity_recommended", CU_MEM_ALLOC_GRANULARITY_RECOMMENDED}}) {
    findings.attempt(key, [&, which = which] {
      std::size_t bytes = 0;
      CALL(cuMemGetAllocationGranularity, &bytes, &properties, which);
      return Json(bytes);
    });
  }
#define FACTS_ATTRIBUTE(key, which) \
  findings.attempt(key, [&] { return Json(device.attribute(CU_DEVICE_ATTRIBUTE_##which)); });
  FACTS_ATTRIBUTE("compute_capability_major", COMPUTE_CAPABILITY_MAJOR)
  FACTS_ATTRIBUTE("compute_capability_minor", COMPUTE_CAPABILITY_MINOR)
  FACTS_ATTRIBUTE("multiprocessors", MULTIPROCESSOR_COUNT)
  FACTS_ATTRIBUTE("async_engines", ASYNC_ENGINE_COUNT)
  FACTS_ATTRIBUTE("virtual_memory_management", VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
  FACTS_ATTRIBUTE("posix_descriptor_handles", HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)
  FACTS_ATTRIBUTE("gpu_direct_rdma_with_vmm", GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED)
  FACTS_ATTRIBUTE("memory_pools", MEMORY_POOLS_SUPPORTED)
  FACTS_ATTRIBUTE("pageable_memory_access", PAGEABLE_MEMORY_ACCESS)
  FACTS_ATTRIBUTE("can_use_host_pointer_for_registered", CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
#undef FACTS_ATTRIBUTE
  findings.add("parameter_layout_known", driver().cuFuncGetParamInfo != nullptr);
}

}  // namespace facts
