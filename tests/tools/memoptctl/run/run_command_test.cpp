#include "tools/memoptctl/run/run_command.h"

#include <gtest/gtest.h>

namespace memopt::tools {
namespace {

TEST(PreloadWith, PutsItsLibraryInFrontOfWhatIsThere) {
  EXPECT_EQ(preload_with("/l/memopt.so", nullptr), "/l/memopt.so");
  EXPECT_EQ(preload_with("/l/memopt.so", ""), "/l/memopt.so");
  EXPECT_EQ(preload_with("/l/memopt.so", "/a.so:/b.so"), "/l/memopt.so:/a.so:/b.so");
  EXPECT_EQ(preload_with("/l/memopt.so", "/a.so /b.so"), "/l/memopt.so:/a.so:/b.so");  // the loader takes blanks too
}

TEST(PreloadWith, NamesItOnce) {
  EXPECT_EQ(preload_with("/l/memopt.so", "/l/memopt.so"), "/l/memopt.so");
  EXPECT_EQ(preload_with("/l/memopt.so", "/a.so::/l/memopt.so:/b.so"), "/l/memopt.so:/a.so:/b.so");
}

}  // namespace
}  // namespace memopt::tools
