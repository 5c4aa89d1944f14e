#include "agent/stacks/python_interpreter.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "tests/agent/stacks/fake_python.h"

namespace memopt::agent {
namespace {

using namespace fake_python;

class PythonFrames : public testing::Test {
 protected:
  void SetUp() override {
    g_version = "3.13.1 (main, Dec 3 2024) [GCC]";
    g_current = &g_thread;
    set(file_, "/home/a/train.py");
    set(names_[0], "Net.forward");
    set(names_[1], "main");
    for (std::size_t i = 0; i < 2; ++i) {
      codes_[i].object.type = &PyCode_Type;
      codes_[i].file = &file_;
      codes_[i].qualified_name = &names_[i];
    }
    frames_[0] = {&codes_[0], &frames_[1], {}, codes_[0].instructions.data() + 6, 0, 0, 0};
    frames_[1] = {nullptr, &frames_[2], {}, nullptr, 0, 0, kPythonFrameOfC};
    frames_[2] = {&codes_[1], nullptr, {}, codes_[1].instructions.data() + 20, 0, 0, 0};
    g_thread.frame = &frames_[0];
  }

  static std::string text(const PythonInterpreter& python, const PythonFrame& frame,
                          std::size_t most = PythonInterpreter::kMaxText) {
    std::string text(most, '\0');
    text.resize(python.describe(frame, text));
    return text;
  }

  Text file_;
  Text names_[2];
  Code codes_[2];
  Frame frames_[3];
  PythonFrame found_[8];
};

TEST_F(PythonFrames, OfTheProgramInnermostFirst) {
  PythonInterpreter python = PythonInterpreter::find();
  ASSERT_TRUE(python.found());
  for (int round = 0; round < 2; ++round) {  // the second is no longer checked word by word
    ASSERT_EQ(python.frames(found_), 2u);
    EXPECT_EQ(found_[0].code, &codes_[0]);
    EXPECT_EQ(text(python, found_[0]), "Net.forward (/home/a/train.py:106)");
    EXPECT_EQ(text(python, found_[1]), "main (/home/a/train.py:120)");
  }
}

TEST_F(PythonFrames, NoMoreThanThereIsRoomFor) {
  PythonInterpreter python = PythonInterpreter::find();
  EXPECT_EQ(python.frames({found_, 1}), 1u);
  EXPECT_EQ(found_[0].code, &codes_[0]);
  EXPECT_EQ(text(python, found_[0], 8), "Net.forw");
}

TEST_F(PythonFrames, AThreadWithoutPythonLearnsNothing) {
  PythonInterpreter python = PythonInterpreter::find();
  g_current = nullptr;
  EXPECT_EQ(python.frames(found_), 0u);
  g_current = &g_thread;
  EXPECT_EQ(python.frames(found_), 2u);
}

TEST_F(PythonFrames, WideCharactersAreUtf8) {
  PythonInterpreter python = PythonInterpreter::find();
  ASSERT_EQ(python.frames(found_), 2u);
  constexpr std::uint16_t kNet[] = {0x4E, 0xE9, 0x7F51};  // Né网
  names_[0].length = 3;
  names_[0].state = 2u << 2 | 1u << 5;
  std::memcpy(reinterpret_cast<char*>(&names_[0]) + 56, kNet, sizeof kNet);
  EXPECT_EQ(text(python, found_[0]), "N\xC3\xA9\xE7\xBD\x91 (/home/a/train.py:106)");
}

TEST_F(PythonFrames, ALongPathIsCutAtItsBeginning) {
  PythonInterpreter python = PythonInterpreter::find();
  ASSERT_EQ(python.frames(found_), 2u);
  std::vector<char> pages(4096);
  auto& file = *new (pages.data()) Text;
  set(file, "");
  file.length = 1000;
  std::memset(pages.data() + 40, 'x', 1000);
  std::memcpy(pages.data() + 40 + 990, "/train.py ", 10);
  codes_[0].file = &file;
  const std::string whole = text(python, found_[0]);
  EXPECT_EQ(whole.size(), std::strlen("Net.forward (") + PythonInterpreter::kMaxText / 2 + std::strlen(":106)"));
  EXPECT_NE(whole.find("/train.py "), std::string::npos);
}

// Each is refused once and for all, without a word being read that is not there.
TEST_F(PythonFrames, ALayoutThatIsAnotherOnesIsRefused) {
  void* const nothing = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto refused = [&] {
    PythonInterpreter python = PythonInterpreter::find();
    EXPECT_EQ(python.frames(found_), 0u);
    SetUp();
    EXPECT_EQ(python.frames(found_), 0u);
  };
  frames_[0].code = nothing;
  refused();
  frames_[2].code = &file_;  // an object, but no code
  refused();
  frames_[0].previous = static_cast<Frame*>(nothing);
  refused();
  codes_[1].file = &codes_[0];
  refused();
  codes_[1].qualified_name = nothing;
  refused();
  frames_[0].instruction = reinterpret_cast<void*>(~std::uintptr_t{0});
  refused();
  g_thread.frame = static_cast<Frame*>(nothing);
  refused();
  frames_[2].previous = &frames_[1];  // a ring
  frames_[0] = frames_[1];
  frames_[2] = frames_[1];
  frames_[1].previous = &frames_[0];
  frames_[0].previous = &frames_[1];
  refused();
  munmap(nothing, 4096);
}

// Names that have changed since the frames were found.
TEST_F(PythonFrames, WhatIsNoTextHasNoName) {
  PythonInterpreter python = PythonInterpreter::find();
  ASSERT_EQ(python.frames(found_), 2u);
  names_[0].length = std::int64_t{1} << 50;
  EXPECT_EQ(text(python, found_[0]), "");
  names_[0].length = -1;
  EXPECT_EQ(text(python, found_[0]), "");
  names_[0].length = 4;
  names_[0].state = 3u << 2 | 1u << 5;
  EXPECT_EQ(text(python, found_[0]), "");
  codes_[1].object.type = nullptr;
  EXPECT_EQ(text(python, found_[1]), "");
}

TEST_F(PythonFrames, VersionsThatAreNotKnown) {
  for (const char* version : {"2.7.18 (default)", "3.7.16 (default)", "3.14.0 (main)", "3.1 (main)", "", "x",
                              "3.13.1 experimental free-threading build (main)"}) {
    g_version = version;
    PythonInterpreter python = PythonInterpreter::find();
    EXPECT_FALSE(python.found()) << version;
    EXPECT_EQ(python.frames(found_), 0u) << version;
    EXPECT_EQ(text(python, {&codes_[0], 0}), "") << version;
  }
}

}  // namespace
}  // namespace memopt::agent
