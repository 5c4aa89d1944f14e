// The shim as a program sees it: this test runs with libmemopt.so preloaded and opens the fake driver as CUDA's users
// do.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver_calls.h"
#include "fake_driver.h"
#include "status_client.h"

namespace memopt::test {
namespace {

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle;
}

template <typename Pointer>
Pointer control(const char* name) {
  return reinterpret_cast<Pointer>(dlsym(driver(), name));
}
std::uint64_t calls(const char* symbol) { return control<decltype(&fake_calls)>("fake_calls")(symbol); }
void* exported(const char* symbol) { return control<decltype(&fake_export)>("fake_export")(symbol); }
void fail_next(const char* symbol, int code) { control<decltype(&fake_fail_next)>("fake_fail_next")(symbol, code); }
void hide_exports(bool hide) { control<decltype(&fake_hide_exports)>("fake_hide_exports")(hide); }
std::uint64_t last_arguments() { return control<decltype(&fake_last_arguments)>("fake_last_arguments")(); }
std::uint64_t driver_live_bytes() { return control<decltype(&fake_live_bytes)>("fake_live_bytes")(); }

template <typename Pointer>
Pointer hooked(const char* symbol) {
  return reinterpret_cast<Pointer>(dlsym(driver(), symbol));
}
template <typename Pointer>
Pointer native(const char* symbol) {
  return reinterpret_cast<Pointer>(exported(symbol));
}

struct Place {
  std::string library;
  std::string symbol;
};
Place place_of(const void* address) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return {};
  const std::string path = info.dli_fname;
  return {path.substr(path.rfind('/') + 1),
          info.dli_sname != nullptr && info.dli_saddr == address ? info.dli_sname : ""};
}

nlohmann::json status() { return status_of(getpid()); }
std::uint64_t live_bytes() { return status()["memory"]["live_bytes"]; }

class Shim : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(driver(), nullptr) << dlerror();
    ASSERT_EQ(place_of(reinterpret_cast<const void*>(dlsym(RTLD_DEFAULT, "memopt_version"))).library, "libmemopt.so")
        << "this test must run with libmemopt.so preloaded";
  }
};

struct Entry {
  const char* symbol;
  bool (*call_both)(void* hooked, void* native);  // true if both saw the same arguments and returned the same
  bool plain;                                     // the fake driver only mixes its arguments
};

// Called with arguments that have a pattern in every byte: equal results mean that all of them arrived.
template <typename Pointer>
struct Patterned;
template <typename... Parameters>
struct Patterned<CUresult (*)(Parameters...)> {
  template <typename Value>
  static Value pattern(std::size_t seed) {
    if constexpr (std::is_enum_v<Value>) return static_cast<Value>(1);
    Value value;
    for (std::size_t i = 0; i < sizeof(value); ++i)
      reinterpret_cast<unsigned char*>(&value)[i] = static_cast<unsigned char>(seed * 31 + i + 1);
    return value;
  }
  template <std::size_t... indices>
  static bool call_both(void* hooked_address, void* native_address, std::index_sequence<indices...>) {
    const auto through_shim = reinterpret_cast<CUresult (*)(Parameters...)>(hooked_address);
    const auto past_shim = reinterpret_cast<CUresult (*)(Parameters...)>(native_address);
    const CUresult through = through_shim(pattern<Parameters>(indices)...);
    const std::uint64_t arrived = last_arguments();
    const CUresult bare = past_shim(pattern<Parameters>(indices)...);
    return through == bare && arrived == last_arguments();
  }
  static bool call_both(void* hooked_address, void* native_address) {
    return call_both(hooked_address, native_address, std::index_sequence_for<Parameters...>());
  }
};

// Those that the fake driver implements, and must not be given patterns for pointers.
const std::set<std::string> kImplemented = {"cuGetProcAddress",
                                            "cuGetProcAddress_v2",
                                            "cuMemAlloc",
                                            "cuMemAlloc_v2",
                                            "cuMemAllocPitch",
                                            "cuMemAllocPitch_v2",
                                            "cuMemFree",
                                            "cuMemFree_v2",
                                            "cuMemAllocAsync",
                                            "cuMemAllocAsync_ptsz",
                                            "cuMemAllocFromPoolAsync",
                                            "cuMemAllocFromPoolAsync_ptsz",
                                            "cuMemFreeAsync",
                                            "cuMemFreeAsync_ptsz",
                                            "cuMemCreate",
                                            "cuMemRelease",
                                            "cuMemRetainAllocationHandle",
                                            "cuMemMap",
                                            "cuMemUnmap",
                                            "cuPointerGetAttribute",
                                            "cuDevicePrimaryCtxRetain",
                                            "cuDevicePrimaryCtxRelease",
                                            "cuDevicePrimaryCtxRelease_v2",
                                            "cuDevicePrimaryCtxReset",
                                            "cuDevicePrimaryCtxReset_v2",
                                            "cuDevicePrimaryCtxGetState",
                                            "cuCtxSetCurrent",
                                            "cuCtxDestroy",
                                            "cuCtxDestroy_v2",
                                            "cuInit"};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = {
#define MEMOPT_HOOK(index, symbol, type) \
  {#symbol, static_cast<bool (*)(void*, void*)>(&Patterned<type>::call_both), !kImplemented.contains(#symbol)},
#include "memopt_entry_points/hooks.inc"
  };
  return all;
}

TEST_F(Shim, EveryEntryPointIsHookedByDlsym) {
  ASSERT_GT(entries().size(), 500u);
  for (const Entry& entry : entries()) {
    void* const address = dlsym(driver(), entry.symbol);
    const Place place = place_of(address);
    EXPECT_EQ(place.library, "libmemopt.so") << entry.symbol;
    EXPECT_EQ(place.symbol, entry.symbol);
    EXPECT_EQ(dlerror(), nullptr) << entry.symbol;
  }
}

TEST_F(Shim, EveryEntryPointForwardsAllArgumentsAndTheResult) {
  for (const Entry& entry : entries()) {
    if (!entry.plain) continue;
    const std::uint64_t before = calls(entry.symbol);
    EXPECT_TRUE(entry.call_both(dlsym(driver(), entry.symbol), exported(entry.symbol))) << entry.symbol;
    EXPECT_EQ(calls(entry.symbol), before + 2) << entry.symbol;
  }
}

TEST_F(Shim, StatusCountsEveryEntryPoint) {
  for (const Entry& entry : entries()) {
    if (entry.plain) entry.call_both(dlsym(driver(), entry.symbol), exported(entry.symbol));
  }
  const nlohmann::json counted = status()["calls"]["entry_points"];
  for (const Entry& entry : entries()) {
    if (!entry.plain) continue;
    ASSERT_TRUE(counted.contains(entry.symbol)) << entry.symbol;
    // The other half of the driver's calls went past the shim.
    EXPECT_EQ(counted[entry.symbol].get<std::uint64_t>() * 2, calls(entry.symbol)) << entry.symbol;
  }
}

TEST_F(Shim, DlvsymFailsAsTheDriverDoes) {
  EXPECT_EQ(dlvsym(driver(), "cuInit", "NO_SUCH_VERSION"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
}

TEST_F(Shim, UnknownNamesPassThrough) {
  EXPECT_EQ(dlsym(driver(), "cuNoSuchFunction"), nullptr);
  EXPECT_NE(dlerror(), nullptr);
  EXPECT_EQ(place_of(dlsym(driver(), "fake_calls")).library, "libcuda.so.1");
  EXPECT_EQ(place_of(dlsym(RTLD_DEFAULT, "getauxval")).library, "libc.so.6");
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "customary"), nullptr);
}

using GetProcAddress = PFN_cuGetProcAddress_v11030;
using GetProcAddressV2 = PFN_cuGetProcAddress_v12000;

const int kVersions[] = {2000, 3020, 7000, 11030, 11080, 12000, 12020, 12040, 12090, 13000, 13010, 99000};

std::set<std::string> bases() {
  std::set<std::string> names;
#define MEMOPT_ABI(base, version, per_thread, index) names.insert(base);
#include "memopt_entry_points/hooks.inc"
  return names;
}

// Every symbol at every version and every stream flag: what the driver returns is replaced by the wrapper of exactly
// that function.
TEST_F(Shim, ProcAddressReturnsTheWrapperOfWhatTheDriverReturned) {
  const auto through = hooked<GetProcAddressV2>("cuGetProcAddress_v2");
  const auto bare = native<GetProcAddressV2>("cuGetProcAddress_v2");
  const auto through_v1 = hooked<GetProcAddress>("cuGetProcAddress");
  std::size_t replaced = 0;
  for (const std::string& base : bases()) {
    for (const int version : kVersions) {
      for (const cuuint64_t flags : {0, 1, 2}) {
        SCOPED_TRACE(base + " version " + std::to_string(version) + " flags " + std::to_string(flags));
        void* ours = nullptr;
        void* theirs = nullptr;
        CUdriverProcAddressQueryResult our_state{};
        CUdriverProcAddressQueryResult their_state{};
        ASSERT_EQ(through(base.c_str(), &ours, version, flags, &our_state),
                  bare(base.c_str(), &theirs, version, flags, &their_state));
        ASSERT_EQ(our_state, their_state);
        void* ours_v1 = nullptr;
        through_v1(base.c_str(), &ours_v1, version, flags);
        ASSERT_EQ(ours, ours_v1);
        if (theirs == nullptr) {
          ASSERT_EQ(ours, nullptr);
        } else if (place_of(theirs).symbol.empty()) {
          ASSERT_EQ(ours, theirs) << "a function that the headers do not know";
        } else {
          ASSERT_EQ(place_of(ours).library, "libmemopt.so");
          ASSERT_EQ(place_of(ours).symbol, place_of(theirs).symbol);
          ++replaced;
        }
      }
    }
  }
  EXPECT_GT(replaced, 10000u);
}

// A driver whose cuGetProcAddress returns other addresses than those of its exports: names and versions decide.
TEST_F(Shim, ProcAddressFollowsTheRuleWhereAddressesSayNothing) {
  const auto through = hooked<GetProcAddressV2>("cuGetProcAddress_v2");
  const auto bare = native<GetProcAddressV2>("cuGetProcAddress_v2");
  std::size_t replaced = 0;
  for (const std::string& base : bases()) {
    for (const int version : kVersions) {
      for (const cuuint64_t flags : {0, 1, 2}) {
        SCOPED_TRACE(base + " version " + std::to_string(version) + " flags " + std::to_string(flags));
        void* ours = nullptr;
        void* theirs = nullptr;
        void* known = nullptr;
        bare(base.c_str(), &known, version, flags, nullptr);
        hide_exports(true);
        const CUresult our_result = through(base.c_str(), &ours, version, flags, nullptr);
        const CUresult their_result = bare(base.c_str(), &theirs, version, flags, nullptr);
        hide_exports(false);
        ASSERT_EQ(our_result, their_result);
        if (theirs == nullptr) {
          ASSERT_EQ(ours, nullptr);
        } else if (version > CUDA_VERSION || base == "cuGraphInstantiate") {
          // Which ABI this is, nobody here knows.
          ASSERT_EQ(ours, theirs);
        } else {
          ASSERT_EQ(place_of(ours).symbol, place_of(known).symbol);
          ASSERT_EQ(place_of(ours).library, "libmemopt.so");
          ++replaced;
        }
      }
    }
  }
  EXPECT_GT(replaced, 5000u);
}

TEST_F(Shim, ProcAddressPassesUnknownNamesAndBadArguments) {
  const auto through = hooked<GetProcAddressV2>("cuGetProcAddress_v2");
  void* address = nullptr;
  CUdriverProcAddressQueryResult state{};
  EXPECT_EQ(through("cuFutureThing", &address, 13000, 0, &state), CUDA_SUCCESS);
  EXPECT_EQ(place_of(address).library, "libcuda.so.1");
  EXPECT_EQ(through("cuNoSuchFunction", &address, 13000, 0, &state), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(address, nullptr);
  EXPECT_EQ(state, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(through(nullptr, &address, 13000, 0, &state), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(through("cuInit", nullptr, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  fail_next("cuGetProcAddress_v2", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(through("cuInit", &address, 13000, 0, &state), CUDA_ERROR_UNKNOWN);
}

TEST_F(Shim, LiveBytesFollowAllocationsOfEveryKind) {
  const std::uint64_t before = live_bytes();
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  CUdeviceptr c = 0;
  CUdeviceptr d = 0;
  CUdeviceptr_v1 e = 0;
  std::size_t pitch = 0;
  ASSERT_EQ(hooked<PFN_cuMemAlloc_v3020>("cuMemAlloc_v2")(&a, 1000), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemAllocPitch_v3020>("cuMemAllocPitch_v2")(&b, &pitch, 100, 3, 4), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemAllocAsync_v11020>("cuMemAllocAsync")(&c, 2000, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemAllocFromPoolAsync_v11020>("cuMemAllocFromPoolAsync")(&d, 3000, nullptr, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemAlloc_v2000>("cuMemAlloc")(&e, 50), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before + 1000 + pitch * 3 + 2000 + 3000 + 50);
  EXPECT_EQ(live_bytes(), driver_live_bytes());
  // A stream-ordered block may be given to the plain free, and the other way about.
  ASSERT_EQ(hooked<PFN_cuMemFree_v3020>("cuMemFree_v2")(c), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemFreeAsync_v11020>("cuMemFreeAsync")(a, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemFreeAsync_v11020_ptsz>("cuMemFreeAsync_ptsz")(d, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemFree_v3020>("cuMemFree_v2")(b), CUDA_SUCCESS);
  ASSERT_EQ(hooked<PFN_cuMemFree_v2000>("cuMemFree")(e), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before);
  EXPECT_GE(status()["memory"]["peak_bytes"].get<std::uint64_t>(), before + 6050);
}

TEST_F(Shim, RefusedCallsChangeNothing) {
  const auto allocate = hooked<PFN_cuMemAlloc_v3020>("cuMemAlloc_v2");
  const auto release = hooked<PFN_cuMemFree_v3020>("cuMemFree_v2");
  const std::uint64_t before = live_bytes();
  EXPECT_EQ(allocate(nullptr, 100), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr address = 0xABCD;
  EXPECT_EQ(allocate(&address, 0), CUDA_ERROR_INVALID_VALUE);
  fail_next("cuMemAlloc_v2", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(&address, 100), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address, 0xABCDu) << "an output that the driver did not write";
  EXPECT_EQ(live_bytes(), before);
  ASSERT_EQ(allocate(&address, 100), CUDA_SUCCESS);
  fail_next("cuMemFree_v2", CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(release(address), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(live_bytes(), before + 100) << "a refused free is taken back";
  EXPECT_EQ(release(0xDEAD), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(release(0), CUDA_SUCCESS);
  EXPECT_EQ(release(address), CUDA_SUCCESS);
  EXPECT_EQ(hooked<PFN_cuMemAllocPitch_v3020>("cuMemAllocPitch_v2")(&address, nullptr, 1, 1, 4),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(hooked<PFN_cuMemCreate_v10020>("cuMemCreate")(nullptr, 1, nullptr, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(live_bytes(), before);
}

TEST_F(Shim, PhysicalMemoryLivesAsLongAsAHandleOrAMapping) {
  const auto create = hooked<PFN_cuMemCreate_v10020>("cuMemCreate");
  const auto release = hooked<PFN_cuMemRelease_v10020>("cuMemRelease");
  const auto map = hooked<PFN_cuMemMap_v10020>("cuMemMap");
  const auto unmap = hooked<PFN_cuMemUnmap_v10020>("cuMemUnmap");
  const std::uint64_t before = live_bytes();
  CUmemAllocationProp properties{};
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(create(&handle, 4096, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before + 4096);
  ASSERT_EQ(map(0x700000, 4096, 0, handle, 0), CUDA_SUCCESS);
  fail_next("cuMemRelease", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(release(handle), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(release(handle), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before + 4096) << "still mapped";
  fail_next("cuMemUnmap", CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(unmap(0x700000, 4096), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(live_bytes(), before + 4096);
  EXPECT_EQ(unmap(0x700000, 4096), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before);
}

TEST_F(Shim, BlocksEndWithTheirContext) {
  const auto allocate = hooked<PFN_cuMemAlloc_v3020>("cuMemAlloc_v2");
  const auto set_current = hooked<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent");
  const auto destroy = hooked<PFN_cuCtxDestroy_v4000>("cuCtxDestroy_v2");
  const auto kept = reinterpret_cast<CUcontext>(0x1000);
  const auto doomed = reinterpret_cast<CUcontext>(0x7777);
  const std::uint64_t before = live_bytes();
  CUdeviceptr stays = 0;
  CUdeviceptr goes = 0;
  set_current(kept);
  ASSERT_EQ(allocate(&stays, 10), CUDA_SUCCESS);
  set_current(doomed);
  ASSERT_EQ(allocate(&goes, 20), CUDA_SUCCESS);
  fail_next("cuCtxDestroy_v2", CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(destroy(doomed), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(live_bytes(), before + 30);
  EXPECT_EQ(destroy(doomed), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before + 10);
  set_current(kept);
  EXPECT_EQ(hooked<PFN_cuMemFree_v3020>("cuMemFree_v2")(stays), CUDA_SUCCESS);

  // The primary context: at its last release, and at a reset.
  const auto retain = hooked<PFN_cuDevicePrimaryCtxRetain_v7000>("cuDevicePrimaryCtxRetain");
  const auto release = hooked<PFN_cuDevicePrimaryCtxRelease_v11000>("cuDevicePrimaryCtxRelease_v2");
  CUcontext primary = nullptr;
  ASSERT_EQ(retain(&primary, 0), CUDA_SUCCESS);
  ASSERT_EQ(retain(&primary, 0), CUDA_SUCCESS);
  set_current(primary);
  ASSERT_EQ(allocate(&goes, 40), CUDA_SUCCESS);
  EXPECT_EQ(release(0), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before + 40);
  EXPECT_EQ(release(0), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before);
  ASSERT_EQ(allocate(&goes, 50), CUDA_SUCCESS);
  EXPECT_EQ(hooked<PFN_cuDevicePrimaryCtxReset_v11000>("cuDevicePrimaryCtxReset_v2")(0), CUDA_SUCCESS);
  EXPECT_EQ(live_bytes(), before);
  set_current(kept);
  EXPECT_EQ(live_bytes(), driver_live_bytes());
}

TEST_F(Shim, NoCallIsLostWhenThreadsComeAndGo) {
  constexpr int kRounds = 20;
  constexpr int kThreads = 8;
  constexpr int kCalls = 5000;
  const auto symbol = "cuStreamSynchronize";
  const auto function = hooked<PFN_cuStreamSynchronize_v2000>(symbol);
  const auto counted = [&] { return status()["calls"]["entry_points"].value(symbol, std::uint64_t{0}); };
  const std::uint64_t before = counted();
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int call = 0; call < kCalls; ++call) function(nullptr);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(counted() - before, std::uint64_t{kRounds} * kThreads * kCalls);
}

TEST_F(Shim, EightThreadsLookUpFortyThousandTimes) {
  void* const expected = dlsym(driver(), "cuLaunchKernel");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 40000; ++k) {
        if (dlsym(driver(), "cuLaunchKernel") != expected) ++wrong;
        if (k % 16 == 0 && dlsym(RTLD_DEFAULT, "getpid") == nullptr) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Shim, StatusNamesTheDriverAndHasNoProblems) {
  hooked<PFN_cuInit_v2000>("cuInit")(0);
  const nlohmann::json answer = status();
  EXPECT_EQ(answer["format"], 1);
  EXPECT_EQ(answer["state"], "passthrough");
  EXPECT_EQ(answer["pid"], getpid());
  EXPECT_EQ(place_of(exported("cuInit")).library, "libcuda.so.1");
  EXPECT_NE(answer["driver"].get<std::string>().find("libcuda.so.1"), std::string::npos);
  EXPECT_EQ(answer["problems"], nlohmann::json::array());
  EXPECT_FALSE(answer["stack_walker"]["kind"].get<std::string>().empty());
}

}  // namespace
}  // namespace memopt::test
