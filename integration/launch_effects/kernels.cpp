#include "kernels.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "parameter_types.h"

namespace launch_effects {
namespace {

template <typename Function>
Function driver_function_as(const char* symbol) {
  return reinterpret_cast<Function>(driver_function(symbol));
}

Kernel read(CUfunction function) {
  static const auto function_name = driver_function_as<decltype(&cuFuncGetName)>("cuFuncGetName");
  static const auto kernel_name = driver_function_as<decltype(&cuKernelGetName)>("cuKernelGetName");
  static const auto function_parameter = driver_function_as<decltype(&cuFuncGetParamInfo)>("cuFuncGetParamInfo");
  static const auto kernel_parameter = driver_function_as<decltype(&cuKernelGetParamInfo)>("cuKernelGetParamInfo");
  Kernel kernel;
  // The runtime gives kernels where functions are expected.
  const auto as_kernel = reinterpret_cast<CUkernel>(function);
  const char* name = nullptr;
  bool is_kernel = false;
  if (function_name == nullptr || function_name(&name, function) != CUDA_SUCCESS) {
    is_kernel = kernel_name != nullptr && kernel_name(&name, as_kernel) == CUDA_SUCCESS;
  }
  kernel.name = name != nullptr ? name : "?";
  for (std::size_t i = 0;; ++i) {
    Parameter parameter;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (!is_kernel && function_parameter != nullptr)
      result = function_parameter(function, i, &parameter.offset, &parameter.size);
    if (is_kernel && kernel_parameter != nullptr)
      result = kernel_parameter(as_kernel, i, &parameter.offset, &parameter.size);
    if (result != CUDA_SUCCESS) break;
    kernel.parameters.push_back(parameter);
    kernel.bytes = std::max(kernel.bytes, parameter.offset + parameter.size);
  }
  const std::vector<std::string> types = parameter_types(kernel.name);
  for (std::size_t i = 0; i < types.size() && types.size() == kernel.parameters.size(); ++i)
    kernel.parameters[i].is_read_only = is_pointer_to_const(types[i]);
  if (!types.empty() && !kernel.parameters.empty() && kernel.parameters[0].offset == 0)
    kernel.lists = TensorLists::of(types[0], kernel.parameters[0].size);
  if (types.size() > 1 && kernel.parameters.size() > 1)
    kernel.inputs = CatInputs::of(types[1], kernel.parameters[1].size);
  return kernel;
}

}  // namespace

std::vector<std::byte> Kernel::pack(void* const* values, void* const* extra) const {
  std::vector<std::byte> packed(bytes);
  if (values != nullptr) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (values[i] == nullptr) return {};
      std::memcpy(packed.data() + parameters[i].offset, values[i], parameters[i].size);
    }
    return packed;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return {};
    }
  }
  if (buffer == nullptr || size < bytes) return {};
  std::memcpy(packed.data(), buffer, bytes);
  return packed;
}

const Parameter* Kernel::at(std::size_t offset) const {
  const auto found = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& parameter) {
    return offset >= parameter.offset && offset - parameter.offset < parameter.size;
  });
  return found != parameters.end() ? &*found : nullptr;
}

std::shared_ptr<const Kernel> Kernels::of(CUfunction function) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(function); found != known_.end()) return found->second;
  }
  auto kernel = std::make_shared<const Kernel>(read(function));
  const std::lock_guard lock(mutex_);
  return known_.emplace(function, std::move(kernel)).first->second;
}

void Kernels::forget() {
  const std::lock_guard lock(mutex_);
  known_.clear();
}

}  // namespace launch_effects
