// Modules and launches through the driver's own entry points, as a program makes them. Run with the plain plug-in, and
// again with the instrumented one (INSTRUMENTED).
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "cudasim/cudasim.h"

namespace {

#define OK(call) ASSERT_EQ(call, CUDA_SUCCESS)

struct Record {
  alignas(16) float scale[4];
  int offset;
  char tag;
};

struct Packed {
  double d;
  char c[5];
};

std::string fatbin() {
  std::ifstream file(MODULE_FATBIN, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t host_now() {
  CudasimCounters counters{};
  counters.struct_size = sizeof counters;
  EXPECT_EQ(cudasim_counters(&counters), 0);
  return counters.host_now_ns;
}

CudasimCounters counters() {
  CudasimCounters c{};
  c.struct_size = sizeof c;
  EXPECT_EQ(cudasim_counters(&c), 0);
  return c;
}

class Launch : public testing::Test {
 protected:
  void SetUp() override {
    OK(cuInit(0));
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    const std::string image = fatbin();
    OK(cuModuleLoadData(&module_, image.data()));
    OK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  }
  void TearDown() override { cuDevicePrimaryCtxReset(0); }

  CUfunction function(const char* name) {
    CUfunction f = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&f, module_, name), CUDA_SUCCESS) << name;
    return f;
  }

  CUresult run(const char* name, unsigned blocks, unsigned threads, std::vector<void*> parameters) {
    return cuLaunchKernel(function(name), blocks, 1, 1, threads, 1, 1, 0, stream_, parameters.data(), nullptr);
  }

  // Device time of what `launch` queues on stream_, to the nanosecond, whatever calls cost on the host: behind a long
  // kernel, against one that is told how long it takes.
  std::uint64_t device_time(const std::function<void()>& launch) {
    constexpr std::uint64_t kLong = 10'000'000;
    const auto measure = [&](const std::function<void()>& second) {
      EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
      const std::uint64_t begin = host_now();
      cudasim_next_launch_takes(kLong);
      EXPECT_EQ(run("_Z7nothingv", 1, 1, {}), CUDA_SUCCESS);
      second();
      EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
      return host_now() - begin;
    };
    const std::uint64_t reference = measure([&] {
      cudasim_next_launch_takes(kLong);
      EXPECT_EQ(run("_Z7nothingv", 1, 1, {}), CUDA_SUCCESS);
    });
    return measure(launch) - (reference - kLong);
  }

  template <class T>
  std::vector<T> back(CUdeviceptr from, std::size_t n) {
    std::vector<T> to(n);
    EXPECT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    EXPECT_EQ(cuMemcpyDtoH(to.data(), from, n * sizeof(T)), CUDA_SUCCESS);
    return to;
  }

  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
};

TEST_F(Launch, Computes) {
  constexpr int n = 100'000;
  std::vector<float> a(n), b(n);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 0.5f);
  CUdeviceptr da, db, dc;
  for (CUdeviceptr* p : {&da, &db, &dc}) OK(cuMemAlloc(p, n * sizeof(float)));
  OK(cuMemcpyHtoD(da, a.data(), n * sizeof(float)));
  OK(cuMemcpyHtoD(db, b.data(), n * sizeof(float)));
  int count = n;
  const std::uint64_t launches = counters().launches;
  OK(run("_Z11add_vectorsPKfS0_Pfi", (n + 255) / 256, 256, {&da, &db, &dc, &count}));
  count = 0;  // parameters were copied at the call
  EXPECT_EQ(counters().launches, launches + 1);
  const std::vector<float> c = back<float>(dc, n);
  for (int i = 0; i < n; ++i) ASSERT_EQ(c[static_cast<std::size_t>(i)], 2.0f * static_cast<float>(i) + 0.5f) << i;
}

// Bindings of other languages read them as signed numbers (cuda.core, and Numba by way of it).
TEST_F(Launch, HandlesArePositiveAsSignedNumbers) {
  CUlibrary library = nullptr;
  const std::string image = fatbin();
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  OK(cuLibraryGetKernel(&kernel, library, "_Z7nothingv"));
  for (const void* handle : {static_cast<void*>(module_), static_cast<void*>(stream_), static_cast<void*>(library),
                             static_cast<void*>(kernel), static_cast<void*>(function("_Z7nothingv"))})
    EXPECT_GT(reinterpret_cast<std::intptr_t>(handle), 0);
}

TEST_F(Launch, StructuresByValueAndPackedBuffer) {
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 8 * sizeof(float)));
  Record record{{1.5f, 0, 0, 2.5f}, 77, 'r'};
  char c = 'c';
  Packed packed{6.25, {0, 0, 0, 0, 'p'}};
  long long j = -12;
  const std::vector<float> expected{1.5f, 2.5f, 77, 'r', 'c', 6.25f, 'p', -12};
  const char* name = "_Z8by_valuePf6Recordc6Packedx";
  OK(run(name, 1, 1, {&out, &record, &c, &packed, &j}));
  EXPECT_EQ(back<float>(out, 8), expected);

  OK(cuMemsetD8(out, 0, 8 * sizeof(float)));
  OK(cuCtxSynchronize());
  struct {
    CUdeviceptr out;
    Record record;
    char c;
    Packed packed;
    long long j;
  } buffer{out, record, c, packed, j};
  std::size_t size = sizeof buffer;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
  OK(cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, extra));
  EXPECT_EQ(back<float>(out, 8), expected);

  size = 79;  // one byte short of the last parameter's end
  EXPECT_EQ(cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  size = sizeof buffer;
  void* both[] = {&out, &record, &c, &packed, &j};
  EXPECT_EQ(cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream_, both, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(function(name), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Launch, EveryThreadOfEveryBlockOnceWithItsCoordinates) {
  constexpr unsigned gx = 5, gy = 3, gz = 2, bx = 4, by = 3, bz = 2;
  constexpr std::size_t n = gx * gy * gz * bx * by * bz;
  CUdeviceptr out;
  OK(cuMemAlloc(&out, n * sizeof(unsigned)));
  void* parameters[] = {&out};
  OK(cuLaunchKernel(function("_Z11coordinatesPj"), gx, gy, gz, bx, by, bz, 0, stream_, parameters, nullptr));
  const std::vector<unsigned> seen = back<unsigned>(out, n);
  std::size_t i = 0;
  for (unsigned z = 0; z < gz; ++z)
    for (unsigned y = 0; y < gy; ++y)
      for (unsigned x = 0; x < gx; ++x)
        for (unsigned tz = 0; tz < bz; ++tz)
          for (unsigned ty = 0; ty < by; ++ty)
            for (unsigned tx = 0; tx < bx; ++tx, ++i)
              ASSERT_EQ(seen[i], x << 20 | y << 16 | z << 12 | tx << 8 | ty << 4 | tz) << i;
}

// a100-40g: 19,500 flops and 1,555 bytes per ns, 3,000 ns for any kernel, 10,000 ns for an unknown one.
TEST_F(Launch, TakesTheTimeOfTheRoofline) {
  CUdeviceptr p;
  constexpr int n = 1 << 20;
  OK(cuMemAlloc(&p, 3 * n * sizeof(float)));
  CUdeviceptr b = p + n * sizeof(float), c = b + n * sizeof(float);
  OK(cuMemsetD8(p, 0, 3 * n * sizeof(float)));
  OK(cuCtxSynchronize());
  int count = n;
  // 12 * 2^20 bytes / 1555 = 8091.88, rounded 8092; the flops take 54 ns.
  EXPECT_EQ(device_time([&] {
              OK(run("_Z11add_vectorsPKfS0_Pfi", n / 256, 256, {&p, &b, &c, &count}));
            }),
            8092u + 3000u);
  Record record{{}, 1'000'000'000, 0};
  char ch = 0;
  Packed packed{};
  long long j = 0;
  // 10^12 flops / 19500 = 51,282,051.28
  EXPECT_EQ(device_time([&] {
              OK(run("_Z8by_valuePf6Recordc6Packedx", 1, 1, {&p, &record, &ch, &packed, &j}));
            }),
            51'282'051u + 3000u);
  // 96 threads: the cost function asks for as many ns, latency included.
  int few = 4;
  EXPECT_EQ(device_time([&] { OK(run("_Z7numbersPKfPfi", 3, 32, {&p, &b, &few})); }), 96u);
  // The default cost: 2^20 threads, 8 bytes each: 8,388,608 / 1555 = 5394.6
  EXPECT_EQ(device_time([&] { OK(run("_Z7nothingv", 1 << 10, 1 << 10, {})); }), 5395u + 3000u);
  EXPECT_EQ(device_time([&] { OK(run("_Z18unknown_to_pluginsPi", 1, 1, {&p})); }), 10'000u);
  EXPECT_EQ(device_time([&] {
              cudasim_next_launch_takes(123);
              OK(run("_Z18unknown_to_pluginsPi", 1, 1, {&p}));
            }),
            123u);
  // Given for one launch only.
  EXPECT_EQ(device_time([&] { OK(run("_Z18unknown_to_pluginsPi", 1, 1, {&p})); }), 10'000u);
}

TEST_F(Launch, RefusesWhatTheDriverRefuses) {
  const CUfunction nothing = function("_Z7nothingv");
  const auto shaped = [&](unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared) {
    return cuLaunchKernel(nothing, gx, gy, gz, bx, by, bz, shared, stream_, nullptr, nullptr);
  };
  EXPECT_EQ(shaped(1, 1, 1, 1, 1, 1, 0), CUDA_SUCCESS);
  for (int zero = 0; zero < 6; ++zero) {
    unsigned d[6] = {1, 1, 1, 1, 1, 1};
    d[zero] = 0;
    EXPECT_EQ(shaped(d[0], d[1], d[2], d[3], d[4], d[5], 0), CUDA_ERROR_INVALID_VALUE) << zero;
  }
  EXPECT_EQ(shaped(1, 65536, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(1, 1, 65536, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(0x80000000u, 1, 1, 1, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(1, 1, 1, 1025, 1, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(1, 1, 1, 1, 1, 65, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(1, 1, 1, 32, 33, 1, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(shaped(1, 1, 1, 1, 1, 1, 48 << 10), CUDA_SUCCESS);
  EXPECT_EQ(shaped(1, 1, 1, 1, 1, 1, (48 << 10) + 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10));
  EXPECT_EQ(shaped(1, 1, 1, 1, 1, 1, 64 << 10), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetAttribute(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(reinterpret_cast<CUfunction>(module_), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(0x1234560), nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  OK(cuModuleUnload(module_));
  EXPECT_EQ(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuModuleUnload(module_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launch, UnknownKernelsAreNamedOnceAndCounted) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  OK(cuMemsetD32(p, 5, 1));
  const std::uint64_t before = counters().unknown_kernels;
  testing::internal::CaptureStderr();
  const CUresult first = run("_Z18unknown_to_pluginsPi", 1, 1, {&p});
  const CUresult second = run("_Z18unknown_to_pluginsPi", 1, 1, {&p});
  const std::string text = testing::internal::GetCapturedStderr();
  OK(first);
  OK(second);
  EXPECT_EQ(counters().unknown_kernels, before + 2);
  EXPECT_EQ(back<int>(p, 1)[0], 5);
  // Another test of this process may have been the first.
  EXPECT_LE(
      text.size(),
      std::string(
          "cudasim: no plug-in has kernel _Z18unknown_to_pluginsPi: its launches take 10000 ns and change no bytes\n")
          .size());
}

TEST_F(Launch, OtherParametersInThePluginAreAnError) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 4));
  int n = 1;
  testing::internal::CaptureStderr();
  const CUresult result = run("_Z7changedPii", 1, 1, {&p, &n});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_NE(text.find("kernel _Z7changedPii: its parameters have sizes 8, 4 in the program and 8, 8 in plug-in"),
            std::string::npos)
      << text;
}

TEST_F(Launch, AnIllegalAddressIsStickyAndNamed) {
  CUdeviceptr wild = 0x10;
  int value = 3;
  const CUfunction nothing = function("_Z7nothingv");
  OK(run("_Z8store_atPii", 1, 1, {&wild, &value}));
  testing::internal::CaptureStderr();
  const CUresult result = cuStreamSynchronize(stream_);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(text.find("kernel store_at<<<1,1>>>: illegal address: it touches 0x10"), std::string::npos) << text;
  CUdeviceptr p;
  EXPECT_EQ(cuMemAlloc(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CUDA_ERROR_ILLEGAL_ADDRESS);
}

#ifdef INSTRUMENTED
// No fault here: the byte lies in the same granule as the block.
TEST_F(Launch, AStoreBeyondABlockIsAnIllegalAddress) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 1000));
  CUdeviceptr beyond = p + 1000;
  int value = 3;
  OK(run("_Z8store_atPii", 1, 1, {&beyond, &value}));
  testing::internal::CaptureStderr();
  const CUresult result = cuStreamSynchronize(stream_);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_NE(text.find("kernel store_at<<<1,1>>>: illegal address: it writes 0x"), std::string::npos) << text;
}

// Two streams, no edge between them: the checker knows each byte that kernels touch. In a process of its own, whose
// exit code the race changes.
TEST_F(Launch, DISABLED_MissingEdge) {
  CUdeviceptr p;
  OK(cuMemAlloc(&p, 8));
  OK(cuMemsetD32(p, 1, 2));
  CUdeviceptr out = p + 4;
  int value = 3;
  CUstream other;
  OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  OK(cuCtxSynchronize());
  ASSERT_EQ(counters().races, 0u);
  OK(run("_Z8store_atPii", 1, 1, {&p, &value}));
  void* parameters[] = {&p, &out};
  OK(cuLaunchKernel(function("_Z9load_fromPKiPi"), 1, 1, 1, 1, 1, 1, 0, other, parameters, nullptr));
  OK(cuCtxSynchronize());
  ASSERT_EQ(counters().races, 1u);
  const std::string race = cudasim_last_race();
  ASSERT_NE(race.find("kernel store_at<<<1,1>>>"), std::string::npos) << race;
  ASSERT_NE(race.find("kernel load_from<<<1,1>>>"), std::string::npos) << race;
}

TEST(Processes, AMissingEdgeBetweenKernelsIsARaceAndChangesTheExitCode) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      "env -u GTEST_OUTPUT '" + self + "' --gtest_also_run_disabled_tests --gtest_filter=*MissingEdge >/dev/null 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), CUDASIM_RACE_EXIT_CODE);
}
#endif

TEST_F(Launch, VariablesHaveTheirInitialBytes) {
  CUdeviceptr address;
  std::size_t size;
  OK(cuModuleGetGlobal(&address, &size, module_, "answer"));
  EXPECT_EQ(size, 4u);
  EXPECT_EQ(back<int>(address, 1)[0], 42);
  OK(cuModuleGetGlobal(&address, &size, module_, "shorts"));
  EXPECT_EQ(size, 6u);
  EXPECT_EQ(back<short>(address, 3), (std::vector<short>{1, -2, 3}));
  OK(cuModuleGetGlobal(&address, &size, module_, "zeros"));
  EXPECT_EQ(size, 64u);
  EXPECT_EQ(back<double>(address, 8), std::vector<double>(8));
  EXPECT_EQ(cuModuleGetGlobal(&address, &size, module_, "nothing"), CUDA_ERROR_NOT_FOUND);
  const std::uint64_t blocks = counters().blocks_live;
  OK(cuModuleUnload(module_));
  EXPECT_LT(counters().blocks_live, blocks);
}

TEST_F(Launch, LibrariesAndKernels) {
  const std::string image = fatbin();
  CUlibrary library;
  OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  OK(cuLibraryGetKernelCount(&count, library));
  unsigned in_module = 0;
  OK(cuModuleGetFunctionCount(&in_module, module_));
  EXPECT_EQ(count, in_module);
  CUkernel kernel;
  OK(cuLibraryGetKernel(&kernel, library, "_Z11coordinatesPj"));
  EXPECT_EQ(cuLibraryGetKernel(&kernel, library, "coordinates"), CUDA_ERROR_NOT_FOUND);
  const char* name = nullptr;
  OK(cuKernelGetName(&name, kernel));
  EXPECT_STREQ(name, "_Z11coordinatesPj");
  int threads = 0;
  OK(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  EXPECT_EQ(threads, 1024);

  CUdeviceptr out;
  OK(cuMemAlloc(&out, 8));
  void* parameters[] = {&out};
  OK(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 2, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr));
  EXPECT_EQ(back<unsigned>(out, 2), (std::vector<unsigned>{0, 1 << 20}));

  CUfunction same;
  OK(cuKernelGetFunction(&same, kernel));
  CUmodule owner, expected;
  OK(cuFuncGetModule(&owner, same));
  OK(cuLibraryGetModule(&expected, library));
  EXPECT_EQ(owner, expected);
  std::size_t offset = 99, size = 99;
  OK(cuFuncGetParamInfo(reinterpret_cast<CUfunction>(kernel), 0, &offset, &size));
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(size, 8u);
  EXPECT_EQ(cuFuncGetParamInfo(same, 1, &offset, &size), CUDA_ERROR_INVALID_VALUE);

  CUdeviceptr answer;
  OK(cuLibraryGetGlobal(&answer, &size, library, "answer"));
  EXPECT_EQ(back<int>(answer, 1)[0], 42);
  OK(cuLibraryUnload(library));
  EXPECT_EQ(cuKernelGetName(&name, kernel), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuLaunchKernel(same, 1, 1, 1, 1, 1, 1, 0, stream_, parameters, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Launch, BadImagesSayWhy) {
  CUmodule module;
  char log[200] = "untouched";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  testing::internal::CaptureStderr();
  const CUresult syntax = cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.entry k(", 2, options, values);
  const CUresult garbage = cuModuleLoadData(&module, "no image at all");
  const CUresult file = cuModuleLoad(&module, "/nowhere/at/all.cubin");
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(syntax, CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "PTX line 3: expected '.param', found ''");
  EXPECT_EQ(reinterpret_cast<std::size_t>(values[1]), std::strlen(log));
  EXPECT_EQ(garbage, CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(file, CUDA_ERROR_FILE_NOT_FOUND);
  OK(cuModuleLoad(&module, MODULE_FATBIN));
}

// sm_80: 2048 threads and 32 blocks per multiprocessor.
TEST_F(Launch, Occupancy) {
  const CUfunction nothing = function("_Z7nothingv");
  int blocks = 0;
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 0));
  EXPECT_EQ(blocks, 8);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
  EXPECT_EQ(blocks, 32);
  OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 256, 40 << 10));
  EXPECT_EQ(blocks, 4);  // 164 KiB, 41 a block with the system's own
  int grid = 0, block = 0;
  OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, nothing, nullptr, 0, 0));
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 2 * 108);
}

TEST_F(Launch, ExtendedAndCooperativeFormsRunPlainly) {
  CUdeviceptr out;
  OK(cuMemAlloc(&out, 8));
  void* parameters[] = {&out};
  CUlaunchConfig config{};
  config.gridDimX = 2;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream_;
  OK(cuLaunchKernelEx(&config, function("_Z11coordinatesPj"), parameters, nullptr));
  EXPECT_EQ(back<unsigned>(out, 2), (std::vector<unsigned>{0, 1 << 20}));
  OK(cuMemsetD8(out, 0xff, 8));
  OK(cuCtxSynchronize());
  OK(cuLaunchCooperativeKernel(function("_Z11coordinatesPj"), 2, 1, 1, 1, 1, 1, 0, stream_, parameters));
  EXPECT_EQ(back<unsigned>(out, 2), (std::vector<unsigned>{0, 1 << 20}));
  EXPECT_EQ(cuLaunchKernelEx(nullptr, function("_Z11coordinatesPj"), parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
