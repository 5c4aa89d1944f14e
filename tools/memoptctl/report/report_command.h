// `memoptctl report`: a page in which one sees what a program does with its memory, and what planning makes of it.
#pragma once

#include <cstdint>
#include <string>

namespace memopt::tools {

struct ReportOptions {
  std::string file;
  std::string output;   // "-": standard output
  std::string limit;    // as for `plan --limit`; empty: none beside those that are tried anyway
  std::string machine;  // as for `plan --machine`; empty: the file's
  double seconds = 10;  // for plans with swaps, all together; 0: none
  unsigned threads = 0;
  std::uint64_t seed = 1;
  std::string version;
};

// 0; 1 if the file was not read to its end, the page showing what was; 2 for options that can't be; 3 if no plan was
// found within the limit that was asked for; 4 if no iteration was found, the page showing the program's memory without
// one.
int report(const ReportOptions& options);

}  // namespace memopt::tools
