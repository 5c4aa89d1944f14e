#include "ptx/jit/cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "both.h"
#include "ptx/loader/compiler.h"

namespace {

namespace fs = std::filesystem;
using cudasim::ptx::jit::Cache;
using ptx_both::Kernel;

// A kernel of its own for each test: in one process each is compiled once.
std::string kernel_adding(int number) {
  return R"(.version 8.0
.target sm_75
.address_size 64
.entry k(.param .u64 p)
{
.reg .b32 %r<3>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd2, %r1, 4;
add.s64 %rd3, %rd1, %rd2;
add.s32 %r2, %r1, )" +
         std::to_string(number) +
         R"(;
st.global.u32 [%rd3], %r2;
ret;
}
)";
}

class Folder {
 public:
  Folder() {
    std::string name = fs::temp_directory_path() / "ptx_cache.XXXXXX";
    path = mkdtemp(name.data());
  }
  ~Folder() { fs::remove_all(path); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path)) found.push_back(entry.path());
    return found;
  }
  fs::path path;
};

std::uint32_t added(Kernel& kernel) {
  kernel.run({{1, 1, 1}, {32, 1, 1}}, {ptx_both::Bytes(128)});
  return kernel.result<std::uint32_t>(0)[0];
}

TEST(Cache, KeepsAFileForEachFunction) {
  const Folder folder;
  Kernel first(kernel_adding(1001), "k", folder.path), second(kernel_adding(1002), "k", folder.path);
  EXPECT_EQ(first.compiled.from_cache, 0u);
  EXPECT_EQ(folder.files().size(), 2u);
  EXPECT_EQ(added(first), 1001u);
  EXPECT_EQ(added(second), 1002u);
  Kernel again(kernel_adding(1001), "k", folder.path);
  EXPECT_EQ(again.compiled.from_cache, 1u);
  EXPECT_EQ(added(again), 1001u);
}

TEST(Cache, IgnoresWhatIsDamagedOrOfAnotherDescription) {
  const Folder folder;
  const Cache cache(folder.path);
  EXPECT_EQ(cache.find("a kernel"), "");
  const std::string object(1000, 'x');
  cache.keep("a kernel", object);
  EXPECT_EQ(cache.find("a kernel"), object);
  const std::vector<fs::path> files = folder.files();
  ASSERT_EQ(files.size(), 1u);
  const auto size = fs::file_size(files[0]);
  for (std::uintmax_t at = 0; at < size; ++at) {
    cache.keep("a kernel", object);
    std::fstream file(files[0], std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put('!');
    file.close();
    EXPECT_EQ(cache.find("a kernel"), "") << at;
  }
  for (const std::uintmax_t left : {size - 1, size / 2, std::uintmax_t{40}, std::uintmax_t{3}, std::uintmax_t{0}}) {
    cache.keep("a kernel", object);
    fs::resize_file(files[0], left);
    EXPECT_EQ(cache.find("a kernel"), "") << left;
  }
  // As if two descriptions had one name.
  cache.keep("another kernel", object);
  for (const fs::path& file : folder.files()) {
    if (file != files[0]) fs::rename(file, files[0]);
  }
  EXPECT_EQ(cache.find("a kernel"), "");
  cache.keep("a kernel", object);
  EXPECT_EQ(cache.find("a kernel"), object);
}

TEST(Cache, RemovesTheOldest) {
  const Folder folder;
  const Cache cache(folder.path, 10000);
  for (int i = 0; i < 30; ++i) {
    cache.keep(std::to_string(i), std::string(1000, 'x'));
    for (const fs::path& file : folder.files())
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::seconds(1));
  }
  EXPECT_EQ(cache.find("0"), "");
  EXPECT_NE(cache.find("29"), "");
  EXPECT_LE(folder.files().size(), 10u);
}

TEST(Cache, AFolderThatCanNotBeWrittenIsNoProblem) {
  Kernel kernel(kernel_adding(1004), "k", "/proc/no/such");
  EXPECT_EQ(kernel.compiled.functions, 1u);
  EXPECT_EQ(added(kernel), 1004u);
}

}  // namespace
