#include "fake_kernels.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "agent/process/driver.h"

namespace memopt::test {
namespace {

struct Function {
  std::string name;
  std::vector<FakeParameter> parameters;
  bool is_kernel;
};

std::mutex g_mutex;
std::map<const void*, Function>& functions() {
  static auto& all = *new std::map<const void*, Function>;
  return all;
}
std::set<CUstream> g_capturing;
std::atomic<bool> g_hide{false};
std::atomic<int> g_questions{0};
std::uintptr_t g_next = 0x1000;

CUfunction make(Function function) {
  const std::lock_guard lock(g_mutex);
  auto* const handle = reinterpret_cast<CUfunction>(g_next += 0x40);
  functions()[handle] = std::move(function);
  return handle;
}

const Function* find(const void* handle, bool as_kernel) {
  ++g_questions;
  const auto found = functions().find(handle);
  return found != functions().end() && found->second.is_kernel == as_kernel ? &found->second : nullptr;
}

CUresult parameter_of(const void* handle, bool as_kernel, size_t index, size_t* offset, size_t* bytes) {
  const std::lock_guard lock(g_mutex);
  const Function* const function = find(handle, as_kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (g_hide) return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
  if (index >= function->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = function->parameters[index].offset;
  *bytes = function->parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult name_of(const char** name, const void* handle, bool as_kernel) {
  const std::lock_guard lock(g_mutex);
  const Function* const function = find(handle, as_kernel);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

agent::Driver make_driver() {
  agent::Driver driver;
  driver.function_parameter = [](CUfunction f, size_t i, size_t* offset, size_t* bytes) {
    return parameter_of(f, false, i, offset, bytes);
  };
  driver.kernel_parameter = [](CUkernel k, size_t i, size_t* offset, size_t* bytes) {
    return parameter_of(k, true, i, offset, bytes);
  };
  driver.function_name = [](const char** name, CUfunction f) { return name_of(name, f, false); };
  driver.kernel_name = [](const char** name, CUkernel k) { return name_of(name, k, true); };
  driver.stream_is_capturing = [](CUstream stream, CUstreamCaptureStatus* status) {
    const std::lock_guard lock(g_mutex);
    *status = g_capturing.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  return driver;
}

}  // namespace

CUfunction make_function(std::string name, std::vector<FakeParameter> parameters) {
  return make({std::move(name), std::move(parameters), false});
}
CUfunction make_kernel(std::string name, std::vector<FakeParameter> parameters) {
  return make({std::move(name), std::move(parameters), true});
}
void change_function(CUfunction function, std::string name, std::vector<FakeParameter> parameters) {
  const std::lock_guard lock(g_mutex);
  functions()[function] = {std::move(name), std::move(parameters), false};
}
void hide_parameters(bool hide) { g_hide = hide; }
int driver_questions() { return g_questions; }
void set_capturing(CUstream stream, bool capturing) {
  const std::lock_guard lock(g_mutex);
  if (capturing) {
    g_capturing.insert(stream);
  } else {
    g_capturing.erase(stream);
  }
}

}  // namespace memopt::test

namespace memopt::agent {

const Driver& driver() noexcept {
  static const Driver instance = test::make_driver();
  return instance;
}

}  // namespace memopt::agent
