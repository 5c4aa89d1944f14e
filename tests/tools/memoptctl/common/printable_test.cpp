#include "tools/memoptctl/common/printable.h"

#include <gtest/gtest.h>

namespace memopt::tools {
namespace {

TEST(Printable, LeavesPlainAndForeignTextAlone) {
  EXPECT_EQ(printable("python3 train.py --größe 3 模型"), "python3 train.py --größe 3 模型");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, TakesOutWhatATerminalWouldObey) {
  EXPECT_EQ(printable("\x1b[2Jx\x07\n\r\ty\x7f"), "?[2Jx????y?");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");  // CSI as a C1 character
  EXPECT_EQ(printable("a\u202Eb\u2066c\u2028d\uFEFF"), "a?b?c?d?");
}

TEST(Printable, ReplacesEachByteThatIsNotUtf8) {
  EXPECT_EQ(printable("a\xff\xfe"
                      "b"),
            "a??b");
  EXPECT_EQ(printable("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(printable("\xe0\x80\xaf"), "???");       // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????");  // beyond Unicode
  EXPECT_EQ(printable("\xe6\xa8"), "??");            // cut short
  EXPECT_EQ(printable(std::string("ok\xe6", 3)), "ok?");
}

TEST(Printable, CutsAtCharactersAndSaysSo) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 4), "abc…");
  EXPECT_EQ(printable("größer", 4), "grö…");
  EXPECT_EQ(width(printable("größer", 4)), 4u);
  EXPECT_EQ(width(printable(std::string(1000, 'x'))), 200u);
}

TEST(BytesText, ChoosesTheUnit) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(64.0 * 1024 * 1024), "64.0 MiB");
  EXPECT_EQ(bytes_text(1e18), "909494.7 TiB");
}

}  // namespace
}  // namespace memopt::tools
