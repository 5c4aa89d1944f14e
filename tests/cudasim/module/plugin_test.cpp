// Plug-ins by their own interface: the plain and the instrumented build compute the same bits, and the latter reports
// exactly the bytes touched.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "cudasim/plugin_abi.h"

namespace {

// One entry a byte; bit 0 read, bit 1 written. Only what lies inside `tracked`.
std::map<const char*, int> accesses;
const char* tracked_begin = nullptr;
const char* tracked_end = nullptr;

void on_access(const void* address, size_t size, int write) {
  for (const char* p = static_cast<const char*>(address); p < static_cast<const char*>(address) + size; ++p) {
    if (p >= tracked_begin && p < tracked_end) accesses[p] |= write != 0 ? 2 : 1;
  }
}

int on_is_tracked(const void* address) {
  const char* const p = static_cast<const char*>(address);
  return p >= tracked_begin && p < tracked_end ? 1 : 0;
}

struct Loaded {
  const CudasimPlugin* plugin;

  explicit Loaded(const char* path) {
    static const CudasimHost host{CUDASIM_PLUGIN_ABI, sizeof(CudasimHost), &on_access, &on_is_tracked};
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    plugin = reinterpret_cast<CudasimPluginEntry>(dlsym(library, "cudasim_plugin"))(&host);
  }

  const CudasimKernel& kernel(const std::string& name) const {
    for (std::uint64_t i = 0; i < plugin->kernel_count; ++i) {
      if (name == plugin->kernels[i].mangled_name) return plugin->kernels[i];
    }
    throw std::runtime_error("no kernel " + name);
  }
};

const Loaded& plain() {
  static const Loaded loaded(PLAIN_PLUGIN);
  return loaded;
}

const Loaded& instrumented() {
  static const Loaded loaded(INSTRUMENTED_PLUGIN);
  return loaded;
}

std::vector<float> numbers(const Loaded& loaded, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  const float* in = x.data();
  float* to = out.data();
  int n = static_cast<int>(x.size());
  const void* const params[] = {&in, &to, &n};
  const CudasimLaunch launch{{(static_cast<std::uint32_t>(n) + 31) / 32, 1, 1}, {32, 1, 1}, 0};
  const CudasimKernel& kernel = loaded.kernel("_Z7numbersPKfPfi");
  const std::uint64_t half = launch.grid[0] / 2;
  kernel.run(params, &launch, 0, half);
  kernel.run(params, &launch, half, launch.grid[0]);
  if (loaded.plugin->flush != nullptr) loaded.plugin->flush();
  return out;
}

TEST(Plugin, TellsItsKind) {
  EXPECT_EQ(plain().plugin->instrumented, 0u);
  EXPECT_EQ(plain().plugin->flush, nullptr);
  EXPECT_EQ(instrumented().plugin->instrumented, 1u);
  EXPECT_NE(instrumented().plugin->flush, nullptr);
  EXPECT_EQ(plain().plugin->kernel_count, 9u);
}

TEST(Plugin, RefusesAnotherVersion) {
  const CudasimHost newer{CUDASIM_PLUGIN_ABI + 1, sizeof(CudasimHost), &on_access, &on_is_tracked};
  void* const library = dlopen(PLAIN_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  EXPECT_EQ(reinterpret_cast<CudasimPluginEntry>(dlsym(library, "cudasim_plugin"))(&newer), nullptr);
}

TEST(Plugin, NamesAndParameters) {
  const CudasimKernel& kernel = plain().kernel("_Z8by_valuePf6Recordc6Packedx");
  ASSERT_EQ(kernel.parameter_count, 5u);
  EXPECT_EQ(std::vector<std::uint32_t>(kernel.parameter_sizes, kernel.parameter_sizes + 5),
            (std::vector<std::uint32_t>{8, 32, 1, 16, 8}));
  EXPECT_EQ(plain().kernel("_Z7nothingv").parameter_count, 0u);
  EXPECT_EQ(plain().kernel("_Z6scaledIfEvPT_S0_").parameter_count, 2u);
}

TEST(Plugin, PlainAndInstrumentedGiveTheSameBits) {
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i)) * 3.0f;
  const std::vector<float> a = numbers(plain(), x);
  const std::vector<float> b = numbers(instrumented(), x);
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
  EXPECT_NE(a[0], a[1]);
}

TEST(Plugin, ReportsExactlyTheBytesTouched) {
  alignas(64) static char memory[4096];
  tracked_begin = memory;
  tracked_end = memory + sizeof memory;
  accesses.clear();
  const float* a = reinterpret_cast<float*>(memory + 4);
  const float* b = reinterpret_cast<float*>(memory + 1000);
  float* sum = reinterpret_cast<float*>(memory + 2000);
  int n = 37;
  const void* const params[] = {&a, &b, &sum, &n};
  const CudasimLaunch launch{{2, 1, 1}, {32, 1, 1}, 0};
  instrumented().kernel("_Z11add_vectorsPKfS0_Pfi").run(params, &launch, 0, 2);
  EXPECT_LT(accesses.size(), 3u * 37 * 4);  // collected, not yet handed over
  instrumented().plugin->flush();
  ASSERT_EQ(accesses.size(), 3u * 37 * 4);
  for (const auto& [p, kind] : accesses) {
    const auto at = p - memory;
    const int expected = at >= 4 && at < 4 + 148 ? 1 : at >= 1000 && at < 1148 ? 1 : at >= 2000 && at < 2148 ? 2 : 0;
    EXPECT_EQ(kind, expected) << at;
  }
  accesses.clear();
  instrumented().plugin->flush();
  EXPECT_TRUE(accesses.empty());
}

TEST(Plugin, RunsTheBlocksAskedForAndNoOthers) {
  std::vector<unsigned> out(3 * 2 * 2 * 4, 0);
  unsigned* to = out.data();
  const void* const params[] = {&to};
  const CudasimLaunch launch{{3, 2, 2}, {2, 1, 2}, 0};
  plain().kernel("_Z11coordinatesPj").run(params, &launch, 4, 5);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool mine = i / 4 == 4;  // block 4 is (1, 1, 0)
    const unsigned x = i % 4 % 2, z = i % 4 / 2;
    EXPECT_EQ(out[i], mine ? (1u << 20 | 1u << 16 | x << 8 | z) : 0u) << i;
  }
}

// What can't work must not compile, and say why.
TEST(KernelPluginHeader, RefusesWhatNeedsConcurrentThreads) {
  const auto folder = std::filesystem::temp_directory_path() / ("cudasim_plugin_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const auto compile = [&](const char* body) {
    std::ofstream(folder / "k.cpp") << "#include \"cudasim/kernel_plugin.h\"\n__global__ void k(float* x) { " << body
                                    << " }\n";
    const std::string log = folder / "log";
    const std::string command = std::string(COMPILER) + " -std=c++20 -fsyntax-only -I" + CUDASIM_INCLUDE +
                                " -isystem " + CUDA_INCLUDE + " " + (folder / "k.cpp").string() + " > " + log + " 2>&1";
    const int status = std::system(command.c_str());
    std::ifstream file(log);
    return std::pair(WEXITSTATUS(status), std::string{std::istreambuf_iterator<char>(file), {}});
  };
  EXPECT_EQ(compile("x[threadIdx.x] = __ldg(x) + max(1.0f, __expf(2.0f));").first, 0);
  for (const char* body :
       {"__shared__ float s[3]; x[0] = s[0];", "x[0] = 1; __syncthreads();", "x[0] = __shfl_sync(~0u, x[0], 1);"}) {
    const auto [status, text] = compile(body);
    EXPECT_NE(status, 0) << body;
    EXPECT_NE(text.find("does not work in a simulated kernel: its threads run one after the other"), std::string::npos)
        << text;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
