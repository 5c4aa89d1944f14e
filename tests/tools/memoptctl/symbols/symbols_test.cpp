// Names for addresses of this very process, whose files are known.
#include "tools/memoptctl/symbols/symbols.h"

#include <gtest/gtest.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace memopt::tools {
namespace {

struct Loaded {
  std::uint64_t base = 0;
  std::string path;
  std::string build_id;
};

std::string build_id_of(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    const char* const end = at + info.dlpi_phdr[i].p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const auto* const bytes = reinterpret_cast<const unsigned char*>(name + (note.n_namesz + 3) / 4 * 4);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4) {
        std::string id;
        for (unsigned k = 0; k < note.n_descsz; ++k) {
          id += "0123456789abcdef"[bytes[k] >> 4];
          id += "0123456789abcdef"[bytes[k] & 15];
        }
        return id;
      }
      at = reinterpret_cast<const char*>(bytes) + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return {};
}

// The C library.
Loaded loaded() {
  Loaded found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        if (std::string(info->dlpi_name).find("/libc.so.6") == std::string::npos) return 0;
        *static_cast<Loaded*>(to) = {info->dlpi_addr, info->dlpi_name, build_id_of(*info)};
        return 1;
      },
      &found);
  return found;
}

std::uint64_t address_of_getppid() { return reinterpret_cast<std::uint64_t>(&::getppid); }

class SymbolsTest : public testing::Test {
 protected:
  void SetUp() override {
#if !MEMOPT_HAS_SYMBOLS
    GTEST_SKIP() << "not in this build: libdw (libdw-dev) was not there when it was configured";
#endif
    ASSERT_FALSE(libc_.build_id.empty());
  }

  const Loaded libc_ = loaded();
};

TEST_F(SymbolsTest, NameFunctionsOfFilesThatAreTheSame) {
  planner::Modules modules;
  modules.add(libc_.base, libc_.path + "\n" + libc_.build_id);
  Symbols symbols(modules);
  EXPECT_EQ(symbols.function(address_of_getppid() + 1).name, "getppid");
  const std::string line = symbols.function(address_of_getppid() + 1).line;  // where it has debugging information
  EXPECT_EQ(symbols.of_call(address_of_getppid() + 1),
            "getppid" + (line.empty() ? "" : " at " + line) + " (" + modules.name(address_of_getppid() + 1) + ")");
  EXPECT_EQ(symbols.function(libc_.base - 1).name, "");
  EXPECT_EQ(symbols.of_call(libc_.base - 1), modules.name(libc_.base - 1));
}

TEST_F(SymbolsTest, NameNothingOfAnotherFile) {
  const std::uint64_t address = address_of_getppid() + 1;
  std::string other = libc_.build_id;
  other[0] = other[0] == '0' ? '1' : '0';
  for (const std::string& text : {libc_.path + "\n" + other, libc_.path + "\n", libc_.path, std::string("\n"),
                                  "/nothing/here\n" + libc_.build_id, "/dev/zero\n" + libc_.build_id}) {
    planner::Modules modules;
    modules.add(libc_.base, text);
    EXPECT_EQ(Symbols(modules).function(address).name, "") << text;
  }
}

// To open it would wait for a writer.
TEST_F(SymbolsTest, DoNotWaitForAPipe) {
  char folder[] = "/tmp/memopt-symbols-XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string pipe = std::string(folder) + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  planner::Modules modules;
  modules.add(libc_.base, pipe + "\n" + libc_.build_id);
  EXPECT_EQ(Symbols(modules).function(address_of_getppid() + 1).name, "");
  std::filesystem::remove_all(folder);
}

TEST_F(SymbolsTest, TheProgramItselfHasItsPath) {
  planner::Modules modules;
  modules.set_program(libc_.path);
  modules.add(libc_.base, "/proc/self/exe\n" + libc_.build_id);
  EXPECT_EQ(Symbols(modules).function(address_of_getppid() + 1).name, "getppid");
}

}  // namespace
}  // namespace memopt::tools
