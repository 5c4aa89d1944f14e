// What the runtime asks of the driver, seen from the driver's side.

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fatbinary_section.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/device_properties_12.h"
#include "fake_driver.h"

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaUnregisterFatBinary(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*);
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*);
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaGetDeviceProperties_v2(void*, int);
cudaError_t cudaMemcpyAsync_ptsz(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t);
cudaError_t cudaMemset_ptds(void*, int, size_t);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t);
}

namespace {

using Accessor = fake::Driver* (*)();

// Before anything has been called: the library alone must not have touched the driver. Runs before main.
const bool g_loaded_early = [] {
  (void)cudaGetErrorName(cudaSuccess);
  (void)cudaGetLastError();
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr;
}();

fake::Driver& driver() {
  static fake::Driver* const instance = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
      ADD_FAILURE() << dlerror();
      abort();
    }
    return reinterpret_cast<Accessor>(dlsym(library, fake::kAccessor))();
  }();
  return *instance;
}

std::vector<fake::Call> calls_of(const std::string& name) {
  std::vector<fake::Call> found;
  for (const fake::Call& call : driver().calls()) {
    if (call.name == name) found.push_back(call);
  }
  return found;
}

class Runtime : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaSuccess, cudaFree(nullptr));
    driver().set_current(driver().primary());
    (void)cudaGetLastError();
    driver().forget_calls();
  }
};

// A fat binary as nvcc leaves it in the program.
struct Program {
  explicit Program(const char* kernel) {
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, &stub, nullptr, kernel, -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterVar(handle, &shadow, nullptr, "variable", 0, 64, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
  }
  ~Program() { __cudaUnregisterFatBinary(handle); }

  unsigned long long image = 0xBA55ED50;
  __fatBinC_Wrapper_t wrapper{FATBINC_MAGIC, FATBINC_VERSION, &image, nullptr};
  char stub = 0;
  char shadow = 0;
  void** handle = nullptr;
};

TEST(Loading, DriverIsOpenedAtFirstUse) { EXPECT_FALSE(g_loaded_early); }

TEST_F(Runtime, AsksForEveryEntryPointByNameVersionAndStream) {
  const std::vector<fake::Request> requests = driver().requests();
  const auto asked = [&](const char* name, int version, uint64_t flags) {
    return std::any_of(requests.begin(), requests.end(), [&](const fake::Request& request) {
      return request.name == name && request.version == version && request.flags == flags;
    });
  };
  EXPECT_TRUE(asked("cuInit", 2000, 1));
  EXPECT_TRUE(asked("cuMemAlloc", 3020, 1));
  EXPECT_TRUE(asked("cuMemFree", 3020, 1));
  EXPECT_TRUE(asked("cuCtxSynchronize", 2000, 1));
  EXPECT_TRUE(asked("cuMemcpyHtoD", 3020, 1));
  EXPECT_TRUE(asked("cuMemcpyHtoD", 7000, 2));
  EXPECT_TRUE(asked("cuMemcpyHtoDAsync", 3020, 1));
  EXPECT_TRUE(asked("cuMemcpyHtoDAsync", 7000, 2));
  EXPECT_TRUE(asked("cuLaunchKernel", 4000, 1));
  EXPECT_TRUE(asked("cuLaunchKernel", 7000, 2));
  EXPECT_TRUE(asked("cuMemAllocAsync", 11020, 1));
  EXPECT_TRUE(asked("cuMemAllocAsync", 11020, 2));
  EXPECT_TRUE(asked("cuLibraryLoadData", 12000, 1));
  for (const fake::Request& request : requests) {
    EXPECT_TRUE(request.flags == 1 || request.flags == 2) << request.name;
    EXPECT_EQ(std::string::npos, request.name.find("_v")) << request.name << ": a version belongs into the number";
  }
}

TEST_F(Runtime, DriverErrorsKeepTheirNumbers) {
  void* address = nullptr;
  driver().answer("cuMemAlloc", 2);
  EXPECT_EQ(cudaErrorMemoryAllocation, cudaMalloc(&address, 8));
  driver().answer("cuMemAlloc", 801);
  EXPECT_EQ(cudaErrorNotSupported, cudaMalloc(&address, 8));
  driver().answer("cuMemAlloc", 12345);
  EXPECT_EQ(cudaErrorUnknown, cudaMalloc(&address, 8));
  driver().answer("cuMemAlloc", 0);
  EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
  EXPECT_EQ(reinterpret_cast<void*>(0x70000000), address);
}

TEST_F(Runtime, LastErrorIsKeptUntilTaken) {
  driver().answer("cuMemFree", 1);
  EXPECT_EQ(cudaErrorInvalidValue, cudaFree(&driver()));
  driver().answer("cuMemFree", 0);
  EXPECT_EQ(cudaSuccess, cudaFree(&driver()));
  EXPECT_EQ(cudaErrorInvalidValue, cudaPeekAtLastError()) << "success must not hide an earlier failure";
  std::thread([] { EXPECT_EQ(cudaSuccess, cudaPeekAtLastError()) << "each thread has its own"; }).join();
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
  EXPECT_EQ(cudaSuccess, cudaGetLastError());
}

TEST_F(Runtime, NotReadyIsAnErrorToTake) {
  driver().answer("cuStreamQuery", 600);
  EXPECT_EQ(cudaErrorNotReady, cudaStreamQuery(nullptr));
  driver().answer("cuStreamQuery", 0);
  EXPECT_EQ(cudaErrorNotReady, cudaGetLastError());
}

TEST_F(Runtime, ErrorOfTheDeviceCannotBeTakenAway) {
  std::thread([] {
    driver().answer("cuCtxSynchronize", 700);
    EXPECT_EQ(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    driver().answer("cuCtxSynchronize", 0);
    EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
    EXPECT_EQ(cudaErrorIllegalAddress, cudaGetLastError());
    EXPECT_EQ(cudaErrorInvalidValue, cudaMalloc(nullptr, 1));
    EXPECT_EQ(cudaErrorIllegalAddress, cudaPeekAtLastError()) << "a later, lesser error must not cover it";
  }).join();
}

TEST_F(Runtime, ThreadGetsThePrimaryContextOnce) {
  std::thread([] {
    void* address = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
    EXPECT_EQ(driver().primary(), driver().current());
    EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
  }).join();
  EXPECT_EQ(1u, calls_of("cuCtxGetCurrent").size());
  EXPECT_EQ(1u, calls_of("cuCtxSetCurrent").size());
  EXPECT_EQ(2u, calls_of("cuMemAlloc").size()) << "no failing attempt before the context is there";
  EXPECT_TRUE(calls_of("cuDevicePrimaryCtxRetain").empty()) << "retained by the main thread already";
}

TEST_F(Runtime, ContextOfTheProgramIsUsed) {
  char own = 0;
  std::thread([&] {
    driver().set_current(&own);
    void* address = nullptr;
    EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
    EXPECT_EQ(&own, driver().current());
  }).join();
  EXPECT_TRUE(calls_of("cuCtxSetCurrent").empty());
}

TEST_F(Runtime, PoppedContextIsReplaced) {
  void* address = nullptr;
  EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
  driver().set_current(nullptr);
  EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 8));
  EXPECT_EQ(driver().primary(), driver().current());
  EXPECT_EQ(cudaSuccess, cudaPeekAtLastError());
}

TEST_F(Runtime, ResetMakesEveryThreadBindAnew) {
  EXPECT_EQ(cudaSuccess, cudaDeviceReset());
  driver().forget_calls();
  EXPECT_EQ(cudaSuccess, cudaDeviceSynchronize());
  EXPECT_EQ(1u, calls_of("cuDevicePrimaryCtxRetain").size());
  EXPECT_EQ(1u, calls_of("cuCtxSetCurrent").size());
}

TEST_F(Runtime, NothingAskedNothingDone) {
  void* address = &address;
  EXPECT_EQ(cudaSuccess, cudaMalloc(&address, 0));
  EXPECT_EQ(nullptr, address);
  EXPECT_EQ(cudaSuccess, cudaFree(nullptr));
  EXPECT_EQ(cudaSuccess, cudaFreeHost(nullptr));
  EXPECT_EQ(cudaSuccess, cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaSuccess, cudaMemset(nullptr, 0, 0));
  EXPECT_TRUE(driver().calls().empty());
}

TEST_F(Runtime, BadDevicesAreRefused) {
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(fake::kDevices));
  EXPECT_EQ(cudaErrorInvalidDevice, cudaSetDevice(-1));
  int count = -1;
  EXPECT_EQ(cudaSuccess, cudaGetDeviceCount(&count));
  EXPECT_EQ(fake::kDevices, count);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
}

TEST_F(Runtime, CopiesGoTheWayTheirKindSays) {
  char from[4] = {};
  char to[4] = {};
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to, from, 4, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to, from, 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to, from, 4, cudaMemcpyDeviceToDevice));
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to, from, 4, cudaMemcpyDefault));
  EXPECT_EQ(cudaSuccess, cudaMemcpy(to, from, 4, cudaMemcpyHostToHost));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection, cudaMemcpy(to, from, 4, static_cast<cudaMemcpyKind>(7)));
  std::vector<std::string> names;
  for (const fake::Call& call : driver().calls()) {
    names.push_back(call.name);
    EXPECT_EQ(reinterpret_cast<uint64_t>(to), call.arguments[0]);
    EXPECT_EQ(reinterpret_cast<uint64_t>(from), call.arguments[1]);
    EXPECT_EQ(4u, call.arguments[2]);
    EXPECT_EQ(1u, call.flags);
  }
  EXPECT_EQ((std::vector<std::string>{"cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD", "cuMemcpy", "cuMemcpy"}), names);
}

TEST_F(Runtime, PitchIsChecked) {
  char bytes[64] = {};
  EXPECT_EQ(cudaErrorInvalidPitchValue, cudaMemcpy2D(bytes, 8, bytes, 16, 9, 2, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidPitchValue, cudaMemset2D(bytes, 8, 0, 9, 2));
  EXPECT_TRUE(driver().calls().empty());
  EXPECT_EQ(cudaSuccess, (cudaMemset3D(cudaPitchedPtr{bytes, 16, 16, 4}, 1, cudaExtent{8, 2, 3})));
  EXPECT_EQ(3u, calls_of("cuMemsetD2D8").size()) << "slices with a gap between them are filled one by one";
  EXPECT_EQ(cudaSuccess, (cudaMemset3D(cudaPitchedPtr{bytes, 16, 16, 4}, 1, cudaExtent{8, 4, 3})));
  EXPECT_EQ(4u, calls_of("cuMemsetD2D8").size()) << "slices without a gap at once";
}

TEST_F(Runtime, SpecialStreamsReachTheDriverUnchanged) {
  char byte = 0;
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(&byte, &byte, 1, cudaMemcpyDeviceToDevice, nullptr));
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(&byte, &byte, 1, cudaMemcpyDeviceToDevice, cudaStreamLegacy));
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(&byte, &byte, 1, cudaMemcpyDeviceToDevice, cudaStreamPerThread));
  EXPECT_EQ(cudaSuccess, cudaMemcpyAsync_ptsz(&byte, &byte, 1, cudaMemcpyDeviceToDevice, nullptr));
  const std::vector<fake::Call> calls = calls_of("cuMemcpyDtoDAsync");
  ASSERT_EQ(4u, calls.size());
  const uint64_t streams[] = {0, 1, 2, 0};
  const uint64_t flags[] = {1, 1, 1, 2};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(streams[i], calls[i].arguments[3]) << i;
    EXPECT_EQ(flags[i], calls[i].flags) << i;
  }
  EXPECT_EQ(cudaSuccess, cudaMemset_ptds(&byte, 0, 1));
  EXPECT_EQ(2u, calls_of("cuMemsetD8").at(0).flags);
  EXPECT_EQ(cudaSuccess, cudaStreamSynchronize_ptsz(nullptr));
  EXPECT_EQ(2u, calls_of("cuStreamSynchronize").at(0).flags);
  for (cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaErrorInvalidResourceHandle, cudaStreamDestroy(stream));
  }
}

TEST_F(Runtime, CodeIsLoadedOnceAndAtItsFirstLaunch) {
  Program program("kernel");
  EXPECT_TRUE(driver().calls().empty());
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(cudaSuccess, __cudaGetKernel(&kernel, &program.stub));
  EXPECT_TRUE(driver().calls().empty());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(cudaSuccess, __cudaLaunchKernel(kernel, 1, 1, nullptr, 0, nullptr)); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cudaSuccess, cudaLaunchKernel(&program.stub, 2, dim3(3, 4, 5), nullptr, 7, nullptr));
  const std::vector<fake::Call> loads = calls_of("cuLibraryLoadData");
  ASSERT_EQ(1u, loads.size());
  EXPECT_EQ(reinterpret_cast<uint64_t>(&program.image), loads[0].arguments[1]) << "the image, not the wrapper";
  EXPECT_EQ(1u, calls_of("cuLibraryGetKernel").size());
  const std::vector<fake::Call> launches = calls_of("cuLaunchKernel");
  ASSERT_EQ(5u, launches.size());
  EXPECT_EQ(0x2000u, launches[4].arguments[0]);
  EXPECT_EQ(2u, launches[4].arguments[1] & 0xFFFFFFFF);
  EXPECT_EQ(3u, launches[4].arguments[4] & 0xFFFFFFFF);
  EXPECT_EQ(4u, launches[4].arguments[5] & 0xFFFFFFFF);
}

TEST_F(Runtime, UnregisteredCodeIsForgotten) {
  char* stub = nullptr;
  {
    Program program("kernel");
    stub = &program.stub;
    EXPECT_EQ(cudaSuccess, cudaLaunchKernel(stub, 1, 1, nullptr, 0, nullptr));
  }
  EXPECT_EQ(1u, calls_of("cuLibraryUnload").size());
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(stub, 1, 1, nullptr, 0, nullptr));
}

TEST_F(Runtime, ManyProgramsComeAndGo) {
  // Grows the tables and closes gaps in them.
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 300; ++i) programs.push_back(std::make_unique<Program>("kernel"));
  for (std::size_t i = 0; i < programs.size(); i += 2) programs[i].reset();
  for (std::size_t i = 1; i < programs.size(); i += 2) {
    cudaKernel_t kernel = nullptr;
    EXPECT_EQ(cudaSuccess, __cudaGetKernel(&kernel, &programs[i]->stub)) << i;
    size_t size = 0;
    EXPECT_EQ(cudaSuccess, cudaGetSymbolSize(&size, &programs[i]->shadow)) << i;
    EXPECT_EQ(64u, size);
  }
}

TEST_F(Runtime, ErrorsOfCode) {
  Program absent("absent");
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, cudaLaunchKernel(&absent.stub, 1, 1, nullptr, 0, nullptr));
  char unknown = 0;
  cudaKernel_t kernel = nullptr;
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, __cudaGetKernel(&kernel, &unknown));
  EXPECT_EQ(cudaErrorInvalidDeviceFunction, __cudaLaunchKernel(nullptr, 1, 1, nullptr, 0, nullptr));
  size_t size = 0;
  EXPECT_EQ(cudaErrorInvalidSymbol, cudaGetSymbolSize(&size, &unknown));

  Program refused("kernel");
  ASSERT_EQ(cudaSuccess, __cudaGetKernel(&kernel, &refused.stub))
      << "the compiler's handle does not depend on the driver";
  driver().answer("cuLibraryLoadData", 209);
  EXPECT_EQ(cudaErrorNoKernelImageForDevice, __cudaLaunchKernel(kernel, 1, 1, nullptr, 0, nullptr));
  driver().answer("cuLibraryLoadData", 0);
  EXPECT_EQ(cudaSuccess, __cudaLaunchKernel(kernel, 1, 1, nullptr, 0, nullptr));
}

TEST_F(Runtime, ImpossibleLaunchesAreToldApart) {
  Program program("kernel");
  driver().answer("cuLaunchKernel", 1);
  EXPECT_EQ(cudaErrorInvalidConfiguration, cudaLaunchKernel(&program.stub, 0, 1, nullptr, 0, nullptr));
  EXPECT_EQ(cudaErrorInvalidConfiguration, cudaLaunchKernel(&program.stub, 1, 2000, nullptr, 0, nullptr));
  EXPECT_EQ(cudaErrorInvalidValue, cudaLaunchKernel(&program.stub, 1, 1, nullptr, 1 << 20, nullptr));
  driver().answer("cuLaunchKernel", 0);
  EXPECT_EQ(cudaErrorInvalidValue, cudaGetLastError());
}

TEST_F(Runtime, PartsOfVariablesAreBounded) {
  Program program("kernel");
  char bytes[64] = {};
  EXPECT_EQ(cudaSuccess, cudaMemcpyToSymbol(&program.shadow, bytes, 16, 48, cudaMemcpyHostToDevice));
  EXPECT_EQ(0x80000000u + 48, calls_of("cuMemcpyHtoD").at(0).arguments[0]);
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyToSymbol(&program.shadow, bytes, 17, 48, cudaMemcpyHostToDevice));
  EXPECT_EQ(cudaErrorInvalidValue, cudaMemcpyFromSymbol(bytes, &program.shadow, SIZE_MAX, 48, cudaMemcpyDeviceToHost));
  EXPECT_EQ(cudaErrorInvalidMemcpyDirection, cudaMemcpyToSymbol(&program.shadow, bytes, 1, 0, cudaMemcpyDeviceToHost));
  EXPECT_EQ(1u, calls_of("cuLibraryLoadData").size());
}

TEST_F(Runtime, CallConfigurationsNest) {
  for (unsigned i = 1; i <= 20; ++i) {
    ASSERT_EQ(0u, __cudaPushCallConfiguration(dim3(i), dim3(i, 2), i, reinterpret_cast<CUstream_st*>(uint64_t{i})));
  }
  dim3 grid;
  dim3 block;
  size_t shared = 0;
  void* stream = nullptr;
  for (unsigned i = 20; i >= 1; --i) {
    ASSERT_EQ(cudaSuccess, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    EXPECT_EQ(i, grid.x);
    EXPECT_EQ(2u, block.y);
    EXPECT_EQ(i, shared);
    EXPECT_EQ(reinterpret_cast<void*>(uint64_t{i}), stream);
  }
  EXPECT_EQ(cudaErrorMissingConfiguration, __cudaPopCallConfiguration(&grid, &block, &shared, &stream));
}

TEST_F(Runtime, MissingFunctionsSayWhichOnce) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(cudaErrorNotSupported, cudaImportExternalMemory(nullptr, nullptr));
  EXPECT_EQ(cudaErrorNotSupported, cudaImportExternalMemory(nullptr, nullptr));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(1, std::count(said.begin(), said.end(), '\n')) << said;
  EXPECT_NE(std::string::npos, said.find("cudaImportExternalMemory")) << said;
  EXPECT_EQ(cudaErrorNotSupported, cudaGetLastError());
}

TEST_F(Runtime, EntryPointTheDriverLacks) {
  EXPECT_EQ(cudaErrorCallRequiresNewerDriver, cudaMemPoolTrimTo(nullptr, 0));
  void* function = &function;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
  EXPECT_EQ(cudaSuccess,
            cudaGetDriverEntryPointByVersion("cuMemPoolTrimTo", &function, 13000, cudaEnableDefault, &status));
  EXPECT_EQ(cudaDriverEntryPointSymbolNotFound, status);
  EXPECT_EQ(nullptr, function);
  EXPECT_EQ(cudaSuccess, cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 13000, cudaEnableDefault, &status));
  EXPECT_EQ(cudaDriverEntryPointSuccess, status);
  EXPECT_NE(nullptr, function);
}

TEST_F(Runtime, PropertiesInBothLayouts) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties(&properties, 1));
  EXPECT_STREQ("fake", properties.name);
  EXPECT_EQ(size_t{1} << 33, properties.totalGlobalMem);
  EXPECT_EQ(1075, properties.major);
  EXPECT_EQ(1016, properties.multiProcessorCount);
  EXPECT_EQ(1038, properties.l2CacheSize);
  EXPECT_EQ(1129, properties.unifiedFunctionPointers);
  EXPECT_EQ(1134, properties.hostNumaId);
  cudart::DeviceProperties12 older;
  ASSERT_EQ(cudaSuccess, cudaGetDeviceProperties_v2(&older, 1));
  EXPECT_STREQ("fake", older.name);
  EXPECT_EQ(1013, older.clockRate);
  EXPECT_EQ(1075, older.major);
  EXPECT_EQ(1036, older.memoryClockRate);
  EXPECT_EQ(1096, older.cooperativeMultiDeviceLaunch);
  EXPECT_EQ(1129, older.unifiedFunctionPointers);
  EXPECT_EQ(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, fake::kDevices));
}

TEST_F(Runtime, VersionsAreTold) {
  int version = 0;
  EXPECT_EQ(cudaSuccess, cudaRuntimeGetVersion(&version));
  EXPECT_EQ(CUDART_VERSION, version);
  EXPECT_EQ(cudaSuccess, cudaDriverGetVersion(&version));
  EXPECT_EQ(fake::kVersion, version);
  const void* table = nullptr;
  const cudaUUID_t id{};
  EXPECT_EQ(cudaErrorNotSupported, cudaGetExportTable(&table, &id));
}

TEST_F(Runtime, ForkedChildGetsTheDriversAnswer) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    driver().answer("cuMemAlloc", 3);
    void* address = nullptr;
    Program program("kernel");  // registering and unregistering works all the same
    _exit(cudaMalloc(&address, 8) == cudaErrorInitializationError ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST(Errors, NamesAndTexts) {
  EXPECT_STREQ("cudaErrorMemoryAllocation", cudaGetErrorName(cudaErrorMemoryAllocation));
  EXPECT_STREQ("out of memory", cudaGetErrorString(cudaErrorMemoryAllocation));
  EXPECT_STREQ("no error", cudaGetErrorString(cudaSuccess));
  EXPECT_STREQ("unrecognized error code", cudaGetErrorName(static_cast<cudaError_t>(4242)));
}

}  // namespace
