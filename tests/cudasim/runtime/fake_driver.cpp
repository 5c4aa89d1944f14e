#include "fake_driver.h"

#include <cuda.h>

#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace fake {
namespace {

constexpr std::size_t kMostFunctions = 400;

struct Function {
  std::string name;
  uint64_t flags = 0;
};

thread_local void* t_current = nullptr;

class Recorder final : public Driver {
 public:
  std::vector<Request> requests() override {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<Call> calls() override {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  void forget_calls() override {
    std::lock_guard lock(mutex_);
    calls_.clear();
  }
  void answer(const std::string& name, int result) override {
    std::lock_guard lock(mutex_);
    answers_[name] = result;
  }
  void set_current(void* context) override { t_current = context; }
  void* current() override { return t_current; }
  void* primary() override { return &primary_; }

  int note_request(const char* name, int version, uint64_t flags) {
    std::lock_guard lock(mutex_);
    requests_.push_back({name, version, flags});
    for (const char* unknown : kUnknown) {
      if (std::strcmp(unknown, name) == 0) return -1;
    }
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      if (functions_[i].name == name && functions_[i].flags == flags) return static_cast<int>(i);
    }
    if (functions_.size() == kMostFunctions) return -1;
    functions_.push_back({name, flags});
    return static_cast<int>(functions_.size()) - 1;
  }

  int note_call(std::size_t index, const uint64_t (&arguments)[6]) {
    Function function;
    int answer = 0;
    {
      std::lock_guard lock(mutex_);
      function = functions_[index];
      calls_.push_back({function.name, function.flags, {}});
      std::memcpy(calls_.back().arguments, arguments, sizeof arguments);
      if (const auto found = answers_.find(function.name); found != answers_.end()) answer = found->second;
    }
    return answer ? answer : act(function.name, arguments);
  }

 private:
  template <typename T>
  static void put(uint64_t address, T value) {
    if (address) *reinterpret_cast<T*>(address) = value;
  }

  // The few functions whose results the runtime looks at.
  int act(const std::string& name, const uint64_t (&arguments)[6]) {
    if (name == "cuDriverGetVersion") put(arguments[0], kVersion);
    if (name == "cuDeviceGetCount") put(arguments[0], kDevices);
    if (name == "cuDeviceGet") put(arguments[0], static_cast<int>(arguments[1]));
    if (name == "cuDeviceGetName") std::strncpy(reinterpret_cast<char*>(arguments[0]), "fake", arguments[1]);
    if (name == "cuDeviceTotalMem") put(arguments[0], uint64_t{1} << 33);
    // Each attribute is told apart by its number; limits of launches have to make sense.
    if (name == "cuDeviceGetAttribute") put(arguments[0], 1000 + static_cast<int>(arguments[1]));
    if (name == "cuDevicePrimaryCtxRetain") put(arguments[0], primary());
    if (name == "cuCtxGetCurrent") put(arguments[0], t_current);
    if (name == "cuCtxSetCurrent") t_current = reinterpret_cast<void*>(arguments[0]);
    if (name == "cuCtxGetDevice") {
      if (!t_current) return CUDA_ERROR_INVALID_CONTEXT;
      put(arguments[0], 0);
    }
    if (name == "cuMemAlloc") {
      if (!t_current) return CUDA_ERROR_INVALID_CONTEXT;
      put(arguments[0], uint64_t{0x70000000});
    }
    if (name == "cuLibraryLoadData") put(arguments[0], uint64_t{0x1000});
    if (name == "cuLibraryGetKernel") {
      const char* kernel = reinterpret_cast<const char*>(arguments[2]);
      if (std::strcmp(kernel, "absent") == 0) return CUDA_ERROR_NOT_FOUND;
      put(arguments[0], uint64_t{0x2000});
    }
    if (name == "cuLibraryGetGlobal") {
      put(arguments[0], uint64_t{0x80000000});
      put(arguments[1], uint64_t{64});
    }
    return CUDA_SUCCESS;
  }

  std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<Function> functions_;
  std::vector<Call> calls_;
  std::map<std::string, int> answers_;
  char primary_ = 0;
};

Recorder& recorder() {
  static Recorder* const instance = new Recorder;
  return *instance;
}

// One C function for every entry point that is asked for: which one was called is known from the number.
template <std::size_t Index>
int stub(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
  return recorder().note_call(Index, {a, b, c, d, e, f});
}

using Stub = int (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

template <std::size_t... Indices>
constexpr std::array<Stub, sizeof...(Indices)> make_stubs(std::index_sequence<Indices...>) {
  return {stub<Indices>...};
}

constexpr auto kStubs = make_stubs(std::make_index_sequence<kMostFunctions>());

}  // namespace
}  // namespace fake

extern "C" __attribute__((visibility("default"))) fake::Driver* fake_driver() { return &fake::recorder(); }

extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(const char* name, void** function,
                                                                               int version, cuuint64_t flags,
                                                                               CUdriverProcAddressQueryResult* status) {
  const int index = fake::recorder().note_request(name, version, flags);
  *function = index < 0 ? nullptr : reinterpret_cast<void*>(fake::kStubs[static_cast<std::size_t>(index)]);
  if (status) *status = index < 0 ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return index < 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}
