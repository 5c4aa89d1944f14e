#include "tools/memoptctl/top/top_page.h"

#include <gtest/gtest.h>

#include <clocale>
#include <string>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

std::string text_of(const PageLine& line) {
  std::string text;
  for (const Span& span : line.spans) text += span.text;
  return text;
}

std::string text_of(const std::vector<PageLine>& page) {
  std::string text;
  for (const PageLine& line : page) text += text_of(line) + "\n";
  return text;
}

StatusRow row(pid_t pid, const std::string& command, std::uint64_t held, std::uint64_t limit) {
  StatusRow made;
  made.pid = pid;
  made.command = printable(command);
  made.state = "planned";
  made.footprint = held;
  made.raw = {{"plan", {{"footprint_peak", 2 * held}}}, {"swaps", {{"limit", limit}, {"held", held}}}};
  return made;
}

class TopPage : public testing::Test {
 protected:
  void SetUp() override {
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) GTEST_SKIP() << "no locale C.UTF-8";
  }
  void TearDown() override { std::setlocale(LC_CTYPE, "C"); }
};

TEST_F(TopPage, FitsAnyText) {
  EXPECT_EQ(fit("abc", 5), "abc  ");
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("abcdef", 4, false), "abc~");
  EXPECT_EQ(fit("abc", 0), "");
  EXPECT_EQ(columns_of("日本"), 4u);
  EXPECT_EQ(fit("日本語", 5), "日本…");
  EXPECT_EQ(fit("日本語", 4), "日… ");
  EXPECT_EQ(fit("e\xCC\x81x", 3), "ex ");
  EXPECT_EQ(fit("日本", 4, false), "??  ");
}

TEST_F(TopPage, NoLineIsWiderThanTheScreenAndNoPageHigher) {
  TopModel model;
  std::vector<StatusRow> rows;
  for (pid_t pid = 1; pid <= 30; ++pid) {
    rows.push_back(row(pid, pid % 3 == 0 ? "日本語のプログラム --with arguments" : std::string(300, 'x'), 100,
                       pid % 2 == 0 ? 90 : 0));
    rows.back().problems.emplace_back("a problem of many words that has to go over several lines of a narrow screen");
    rows.back().problems.emplace_back(std::string(500, 'y'));
  }
  model.add(rows, std::chrono::seconds(1));
  for (const bool unicode : {true, false}) {
    for (const int shown : {0, 1, 2}) {
      for (const std::size_t width : {1, 2, 5, 10, 39, 40, 59, 60, 61, 74, 75, 80, 99, 100, 132, 200, 400}) {
        for (const std::size_t height : {1, 2, 3, 4, 5, 6, 24, 70}) {
          TopView view;
          view.width = width;
          view.height = height;
          view.unicode = unicode;
          view.sampled = true;
          view.details = shown == 1;
          view.help = shown == 2;
          model.select(29);
          const auto page = draw(model, view);
          ASSERT_LE(page.size(), height);
          for (const PageLine& line : page) {
            ASSERT_LE(columns_of(text_of(line)), width) << text_of(line);
            if (unicode) continue;
            for (const char letter : text_of(line)) ASSERT_TRUE(letter >= ' ' && letter < 0x7F) << text_of(line);
          }
        }
      }
    }
  }
}

TEST_F(TopPage, ABarSaysHowMuchOfTheLimitIsHeld) {
  TopModel model;
  model.add({row(1, "half", 50, 100), row(2, "over", 130, 100), row(3, "free", 10, 0)}, std::chrono::seconds(1));
  model.sort_by(TopKey::kPid);
  TopView view;
  view.sampled = true;
  const auto page = draw(model, view);
  EXPECT_NE(text_of(page[2]).find("███▌···  50%"), std::string::npos) << text_of(page[2]);
  EXPECT_NE(text_of(page[3]).find("███████ 130%"), std::string::npos) << text_of(page[3]);
  EXPECT_EQ(text_of(page[4]).find('%'), std::string::npos) << text_of(page[4]);
  view.unicode = false;
  EXPECT_NE(text_of(draw(model, view)[2]).find("###....  50%"), std::string::npos);
}

TEST_F(TopPage, TheSelectedProcessIsAlwaysInTheList) {
  TopModel model;
  std::vector<StatusRow> rows;
  for (pid_t pid = 1; pid <= 50; ++pid) rows.push_back(row(pid, "p", 100, 0));
  model.add(rows, std::chrono::seconds(1));
  model.sort_by(TopKey::kPid);
  TopView view;
  view.height = 10;
  view.sampled = true;
  for (const std::size_t at : {0, 3, 20, 49, 48, 0, 49}) {
    model.select(at);
    const auto page = draw(model, view);
    int selected = 0;
    for (const PageLine& line : page) {
      if (!line.selected) continue;
      ++selected;
      EXPECT_EQ(std::stoi(text_of(line)), static_cast<int>(at) + 1);
    }
    EXPECT_EQ(selected, 1) << at;
  }
}

TEST_F(TopPage, SaysWhenThereIsNothing) {
  TopModel model;
  TopView view;
  EXPECT_NE(text_of(draw(model, view)).find("looking"), std::string::npos);
  view.sampled = true;
  view.width = 120;
  EXPECT_NE(text_of(draw(model, view)).find("start one by: memoptctl run"), std::string::npos);
  view.details = true;
  EXPECT_NE(text_of(draw(model, view)).find("no process"), std::string::npos);
}

TEST_F(TopPage, DetailsAreOfTheSelectedProcess) {
  TopModel model;
  model.add({row(1, "first", 100, 0), row(2, "second", 100, 0)}, std::chrono::seconds(1));
  TopView view;
  view.sampled = view.details = true;
  model.select(1);
  const std::string text = text_of(draw(model, view));
  EXPECT_NE(text.find("process 2"), std::string::npos) << text;
  EXPECT_EQ(text.find("process 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace memopt::tools
