// cuGetProcAddress over every name, version and flag that CUDA's headers know.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "check.h"

namespace {

struct Row {
  std::string base;
  int version;
  bool per_thread;
  std::string symbol;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> table{
#define MEMOPT_ENTRY(base, version, per_thread, symbol) {base, version, per_thread, #symbol},
#include "memopt_entry_points/table.inc"
#undef MEMOPT_ENTRY
  };
  return table;
}

constexpr int kDriver = 13000;

void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  return handle;
}

void* exported(const std::string& symbol) { return dlsym(library(), symbol.c_str()); }

struct Answer {
  void* address = reinterpret_cast<void*>(-1);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
};

Answer ask(const std::string& base, int version, cuuint64_t flags) {
  Answer answer;
  EXPECT_OK(cuGetProcAddress(base.c_str(), &answer.address, version, flags, &answer.status)) << base;
  return answer;
}

std::set<int> versions_of_interest() {
  std::set<int> versions{1000, 2000, kDriver};
  for (const Row& row : rows()) {
    if (row.version > kDriver) continue;
    versions.insert(row.version);
    versions.insert(row.version - 10);
  }
  return versions;
}

// An entry point that is only a stub refuses without looking at a parameter.
bool refuses(const std::string& symbol) {
  return reinterpret_cast<CUresult (*)()>(exported(symbol))() == CUDA_ERROR_NOT_SUPPORTED;
}

class ProcAddressTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(cuInit(0));
    ASSERT_NE(library(), nullptr);
  }
};

TEST_F(ProcAddressTest, EverySymbolOfTheHeadersIsExported) {
  for (const Row& row : rows()) EXPECT_NE(exported(row.symbol), nullptr) << row.symbol;
}

TEST_F(ProcAddressTest, EveryNameVersionAndFlag) {
  std::map<std::string, std::vector<Row>> by_base;
  for (const Row& row : rows()) by_base[row.base].push_back(row);
  std::set<std::string> missing;
  for (auto& [base, entries] : by_base) {
    std::sort(entries.begin(), entries.end(),
              [](const Row& a, const Row& b) { return a.version > b.version; });  // newest first
    for (const int version : versions_of_interest()) {
      const auto newest = [&](bool per_thread, const std::string& prefix) -> const Row* {
        for (const Row& row : entries) {
          if (row.version <= version && row.per_thread == per_thread && row.symbol.starts_with(prefix)) return &row;
        }
        return nullptr;
      };
      const Row* const plain = newest(false, "");
      // Its per-thread form: the same ABI name and a suffix of five characters.
      const Row* own = plain == nullptr ? nullptr : newest(true, plain->symbol + "_pt");
      if (own == nullptr) own = plain;
      for (const cuuint64_t flags : {CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                                     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM}) {
        const Answer answer = ask(base, version, flags);
        if (plain == nullptr) {
          EXPECT_EQ(answer.address, nullptr) << base << " " << version;
          EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) << base << " " << version;
          continue;
        }
        const std::string& symbol = (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? own : plain)->symbol;
        if (answer.address == nullptr) {
          missing.insert(symbol);
          EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << base << " " << version;
        } else {
          EXPECT_EQ(answer.address, exported(symbol)) << base << " " << version << " " << flags;
          EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SUCCESS) << base << " " << version;
        }
      }
    }
  }
  testing::internal::CaptureStderr();
  for (const std::string& symbol : missing)
    EXPECT_TRUE(refuses(symbol)) << symbol << " is there but cuGetProcAddress hides it";
  const std::string said = testing::internal::GetCapturedStderr();
  for (const std::string& symbol : missing) {
    EXPECT_NE(said.find("cudasim: " + symbol + " is not implemented"), std::string::npos)
        << symbol << " is no stub, but cuGetProcAddress hides it";
  }
}

TEST_F(ProcAddressTest, KnownPairs) {
  struct {
    const char* base;
    int version;
    cuuint64_t flags;
    const char* symbol;
  } const cases[] = {
      {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
      {"cuMemAlloc", 3010, 0, "cuMemAlloc"},
      {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
      {"cuMemAlloc", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemAlloc_v2"},
      {"cuMemcpyHtoD", 12000, 0, "cuMemcpyHtoD_v2"},
      {"cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemcpyHtoD_v2_ptds"},
      {"cuMemcpyHtoD", 6050, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemcpyHtoD_v2"},
      {"cuMemcpyHtoDAsync", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemcpyHtoDAsync_v2_ptsz"},
      {"cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuLaunchKernel_ptsz"},
      {"cuStreamSynchronize", 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, "cuStreamSynchronize"},
      {"cuMemAllocAsync", 11020, 0, "cuMemAllocAsync"},
      {"cuMemAllocAsync", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemAllocAsync_ptsz"},
      {"cuMemFreeAsync", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemFreeAsync_ptsz"},
      {"cuMemPoolTrimTo", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, "cuMemPoolTrimTo"},
      {"cuMemGetMemPool", 13000, 0, "cuMemGetMemPool"},
      {"cuCtxCreate", 2000, 0, "cuCtxCreate"},
      {"cuCtxCreate", 3020, 0, "cuCtxCreate_v2"},
      {"cuCtxCreate", 11040, 0, "cuCtxCreate_v3"},
      {"cuCtxCreate", 13000, 0, "cuCtxCreate_v4"},
      {"cuCtxSynchronize", 12090, 0, "cuCtxSynchronize"},
      {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
      {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
      {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
      {"cuMemCreate", 10020, 0, "cuMemCreate"},
      {"cuInit", 13000, 0, "cuInit"},
  };
  for (const auto& one : cases) {
    const Answer answer = ask(one.base, one.version, one.flags);
    ASSERT_NE(exported(one.symbol), nullptr) << one.symbol;
    EXPECT_EQ(answer.address, exported(one.symbol)) << one.base << " at " << one.version << " is not " << one.symbol;
  }
}

TEST_F(ProcAddressTest, UnknownNames) {
  for (const char* name : {"cuNoSuchThing", "cuMemAlloc_v2", "cuLaunchKernel_ptsz", "", "printf", "cudasim_counters"}) {
    const Answer answer = ask(name, kDriver, 0);
    EXPECT_EQ(answer.address, nullptr) << name;
    EXPECT_EQ(answer.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << name;
  }
}

TEST_F(ProcAddressTest, BadRequests) {
  void* address = nullptr;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress(nullptr, &address, kDriver, 0, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", nullptr, kDriver, 0, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, kDriver + 10, 0, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, kDriver, 3, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress("cuInit", &address, kDriver, 4, nullptr));
  EXPECT_OK(cuGetProcAddress("cuInit", &address, kDriver, 0, nullptr));
}

TEST_F(ProcAddressTest, FirstVersionOfItselfReportsMissingAsError) {
  using First = CUresult (*)(const char*, void**, int, cuuint64_t);
  const auto first = reinterpret_cast<First>(ask("cuGetProcAddress", 11030, 0).address);
  ASSERT_NE(first, nullptr);
  void* address = &address;
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, first("cuNoSuchThing", &address, 11030, 0));
  EXPECT_EQ(address, nullptr);
  EXPECT_OK(first("cuInit", &address, 11030, 0));
  EXPECT_EQ(address, exported("cuInit"));
}

TEST_F(ProcAddressTest, NoExportTables) {
  const void* table = &table;
  const CUuuid id{};
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, cuGetExportTable(&table, &id));
  EXPECT_EQ(table, nullptr);
}

}  // namespace
