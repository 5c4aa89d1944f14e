#include "preload/driver_functions.h"

namespace memopt::preload {

agent::Driver real_driver() noexcept {
  agent::Driver driver;
  driver.mem_alloc = real<Hook::cuMemAlloc_v2>();
  driver.mem_free = real<Hook::cuMemFree_v2>();
  driver.mem_get_info = real<Hook::cuMemGetInfo_v2>();
  driver.address_reserve = real<Hook::cuMemAddressReserve>();
  driver.address_free = real<Hook::cuMemAddressFree>();
  driver.create = real<Hook::cuMemCreate>();
  driver.release = real<Hook::cuMemRelease>();
  driver.map = real<Hook::cuMemMap>();
  driver.unmap = real<Hook::cuMemUnmap>();
  driver.set_access = real<Hook::cuMemSetAccess>();
  driver.granularity = real<Hook::cuMemGetAllocationGranularity>();
  driver.default_pool = real<Hook::cuDeviceGetDefaultMemPool>();
  driver.current_pool = real<Hook::cuDeviceGetMemPool>();
  driver.device_attribute = real<Hook::cuDeviceGetAttribute>();
  driver.current_context = real<Hook::cuCtxGetCurrent>();
  driver.current_device = real<Hook::cuCtxGetDevice>();
  driver.push_context = real<Hook::cuCtxPushCurrent_v2>();
  driver.pop_context = real<Hook::cuCtxPopCurrent_v2>();
  driver.synchronize_context = real<Hook::cuCtxSynchronize>();
  driver.event_create = real<Hook::cuEventCreate>();
  driver.event_destroy = real<Hook::cuEventDestroy_v2>();
  driver.event_record = real<Hook::cuEventRecord>();
  driver.event_query = real<Hook::cuEventQuery>();
  driver.event_elapsed = real<Hook::cuEventElapsedTime>();
  driver.event_synchronize = real<Hook::cuEventSynchronize>();
  driver.stream_wait_event = real<Hook::cuStreamWaitEvent>();
  driver.stream_synchronize = real<Hook::cuStreamSynchronize>();
  driver.stream_is_capturing = real<Hook::cuStreamIsCapturing>();
  driver.stream_flags = real<Hook::cuStreamGetFlags>();
  driver.function_parameter = real<Hook::cuFuncGetParamInfo>();
  driver.kernel_parameter = real<Hook::cuKernelGetParamInfo>();
  driver.function_name = real<Hook::cuFuncGetName>();
  driver.kernel_name = real<Hook::cuKernelGetName>();
  return driver;
}

}  // namespace memopt::preload
