#include "preload/driver_functions.h"

#include <atomic>

#include "agent/process/uncancellable.h"
#include "preload/hook_table.h"

namespace memopt::preload {
namespace {

// The driver may wait or ask the kernel: a thread of the program is not to end there while it works for us, with a lock
// taken perhaps. A call of the program's own goes on to the driver as it is.
template <Hook hook, typename Pointer = typename Signature<hook>::Pointer>
struct Shielded;
template <Hook hook, typename Result, typename... Parameters>
struct Shielded<hook, Result (*)(Parameters...)> {
  static Result call(Parameters... parameters) noexcept {
    const agent::Uncancellable scope;
    return target.load(std::memory_order_relaxed)(parameters...);
  }
  // Looked up once: later the dynamic linker is not to be asked, with a lock of ours taken.
  static inline constinit std::atomic<Result (*)(Parameters...)> target{nullptr};
};

template <Hook hook>
typename Signature<hook>::Pointer uncancellable() noexcept {
  Shielded<hook>::target.store(real<hook>(), std::memory_order_relaxed);
  return &Shielded<hook>::call;
}

}  // namespace

agent::Driver real_driver() noexcept {
  agent::Driver driver;
  driver.mem_alloc = uncancellable<Hook::cuMemAlloc_v2>();
  driver.mem_free = uncancellable<Hook::cuMemFree_v2>();
  driver.mem_get_info = uncancellable<Hook::cuMemGetInfo_v2>();
  driver.address_reserve = uncancellable<Hook::cuMemAddressReserve>();
  driver.address_free = uncancellable<Hook::cuMemAddressFree>();
  driver.create = uncancellable<Hook::cuMemCreate>();
  driver.release = uncancellable<Hook::cuMemRelease>();
  driver.map = uncancellable<Hook::cuMemMap>();
  driver.unmap = uncancellable<Hook::cuMemUnmap>();
  driver.set_access = uncancellable<Hook::cuMemSetAccess>();
  driver.granularity = uncancellable<Hook::cuMemGetAllocationGranularity>();
  driver.host_register = uncancellable<Hook::cuMemHostRegister_v2>();
  driver.host_unregister = uncancellable<Hook::cuMemHostUnregister>();
  driver.host_device_pointer = uncancellable<Hook::cuMemHostGetDevicePointer_v2>();
  driver.copy_to_host_async = uncancellable<Hook::cuMemcpyDtoHAsync_v2>();
  driver.copy_to_device_async = uncancellable<Hook::cuMemcpyHtoDAsync_v2>();
  driver.default_pool = uncancellable<Hook::cuDeviceGetDefaultMemPool>();
  driver.current_pool = uncancellable<Hook::cuDeviceGetMemPool>();
  driver.device_attribute = uncancellable<Hook::cuDeviceGetAttribute>();
  driver.current_context = uncancellable<Hook::cuCtxGetCurrent>();
  driver.current_device = uncancellable<Hook::cuCtxGetDevice>();
  driver.context_push = uncancellable<Hook::cuCtxPushCurrent_v2>();
  driver.context_pop = uncancellable<Hook::cuCtxPopCurrent_v2>();
  driver.synchronize_context = uncancellable<Hook::cuCtxSynchronize>();
  driver.event_create = uncancellable<Hook::cuEventCreate>();
  driver.event_destroy = uncancellable<Hook::cuEventDestroy_v2>();
  driver.event_record = uncancellable<Hook::cuEventRecord>();
  driver.event_query = uncancellable<Hook::cuEventQuery>();
  driver.event_elapsed = uncancellable<Hook::cuEventElapsedTime>();
  driver.event_synchronize = uncancellable<Hook::cuEventSynchronize>();
  driver.stream_create = uncancellable<Hook::cuStreamCreate>();
  driver.stream_wait_event = uncancellable<Hook::cuStreamWaitEvent>();
  driver.stream_synchronize = uncancellable<Hook::cuStreamSynchronize>();
  driver.stream_is_capturing = uncancellable<Hook::cuStreamIsCapturing>();
  driver.stream_flags = uncancellable<Hook::cuStreamGetFlags>();
  driver.exchange_capture_mode = uncancellable<Hook::cuThreadExchangeStreamCaptureMode>();
  driver.function_parameter = uncancellable<Hook::cuFuncGetParamInfo>();
  driver.kernel_parameter = uncancellable<Hook::cuKernelGetParamInfo>();
  driver.function_name = uncancellable<Hook::cuFuncGetName>();
  driver.kernel_name = uncancellable<Hook::cuKernelGetName>();
  driver.module_load = uncancellable<Hook::cuModuleLoadData>();
  driver.module_function = uncancellable<Hook::cuModuleGetFunction>();
  driver.launch_kernel = uncancellable<Hook::cuLaunchKernel>();
  return driver;
}

}  // namespace memopt::preload
