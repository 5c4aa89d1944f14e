#include "tools/memoptctl/doctor/elf_file.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

// Names and a section as in a program that nvcc has linked with the static runtime.
extern "C" [[gnu::used, gnu::noinline]] int cudaMalloc(void**, unsigned long) { return 0; }
[[gnu::used, gnu::section(".nv_fatbin")]] static const char kDeviceCode[16] = {};

namespace memopt::tools {
namespace {

namespace fs = std::filesystem;

class Scratch : public ::testing::Test {
 protected:
  Scratch() : folder_(fs::temp_directory_path() / ("memopt-elf-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Scratch() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  static std::string bytes_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  fs::path folder_;
};

using ElfFileTest = Scratch;

TEST_F(ElfFileTest, ReadsWhatThisTestIs) {
  std::string why;
  const auto elf = read_elf("/proc/self/exe", &why);
  ASSERT_TRUE(elf) << why;
  EXPECT_TRUE(elf->bits_64);
  EXPECT_EQ(elf->machine, EM_X86_64);
  EXPECT_NE(elf->interpreter.find("ld-linux"), std::string::npos);
  EXPECT_NE(std::find(elf->needed.begin(), elf->needed.end(), "libc.so.6"), elf->needed.end());
  EXPECT_TRUE(elf->has_symbols);
  EXPECT_TRUE(elf->has_device_code);
  EXPECT_TRUE(elf->has_runtime);
  EXPECT_EQ(runtime_kind(*elf), RuntimeKind::kStatic);
}

TEST_F(ElfFileTest, KindsOfRuntime) {
  ElfFile file;
  EXPECT_EQ(runtime_kind(file), RuntimeKind::kNone);
  file.needed = {"libcuda.so.1"};
  EXPECT_EQ(runtime_kind(file), RuntimeKind::kDriver);
  file.has_device_code = true;
  EXPECT_EQ(runtime_kind(file), RuntimeKind::kStaticWithoutSymbols);
  file.has_runtime = true;
  EXPECT_EQ(runtime_kind(file), RuntimeKind::kStatic);
  file.needed = {"libc.so.6", "libcudart.so.13"};
  EXPECT_EQ(runtime_kind(file), RuntimeKind::kShared);
}

TEST_F(ElfFileTest, WhatIsNoElfFileIsSaid) {
  std::string why;
  EXPECT_FALSE(read_elf(write("text", "#!/bin/sh\necho, and a little more\n"), &why));
  EXPECT_EQ(why, "it is no ELF file");
  EXPECT_FALSE(read_elf(write("empty", ""), &why));
  EXPECT_FALSE(read_elf("/nonexistent/file", &why));
  EXPECT_EQ(why, "No such file or directory");
  EXPECT_FALSE(read_elf("/", &why));
  EXPECT_FALSE(read_elf("/dev/zero", &why));
}

TEST_F(ElfFileTest, AnotherMachineIsSeen) {
  std::string bytes = bytes_of("/proc/self/exe");
  const std::uint16_t machine = EM_AARCH64;
  std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_machine), &machine, sizeof machine);
  std::string why;
  EXPECT_EQ(read_elf(write("arm", bytes), &why)->machine, EM_AARCH64);
  bytes[EI_CLASS] = ELFCLASS32;
  EXPECT_FALSE(read_elf(write("narrow", bytes), &why)->bits_64);
}

// Nothing of a damaged file may be believed: no crash, no endless reading.
TEST_F(ElfFileTest, DamagedFilesAreHarmless) {
  const std::string good = bytes_of("/bin/true");
  std::string why;
  for (const std::size_t size : {16ul, 20ul, 63ul, 64ul, 200ul, 4096ul, good.size() / 2, good.size() - 100}) {
    read_elf(write("cut", good.substr(0, size)), &why);
  }
  // Each word of the header, of the first segments and of the section table's beginning.
  Elf64_Ehdr header;
  std::memcpy(&header, good.data(), sizeof header);
  std::vector<std::size_t> places;
  for (std::size_t at = 16; at < 64 + 12 * sizeof(Elf64_Phdr); at += 8) places.push_back(at);
  for (std::size_t at = header.e_shoff; at + 8 < std::min<std::size_t>(good.size(), header.e_shoff + 2560); at += 24) {
    places.push_back(at);
  }
  for (const std::size_t at : places) {
    for (const int filler : {0x00, 0x7f, 0xff}) {
      std::string bad = good;
      std::memset(bad.data() + at, filler, 8);
      read_elf(write("bad", bad), &why);
    }
  }
}

}  // namespace
}  // namespace memopt::tools
