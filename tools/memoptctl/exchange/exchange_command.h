// `memoptctl export` and `import`: recordings to and from the files of other tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memopt::tools {

// The names that --format takes.
const std::vector<std::string>& export_formats();

struct ExportOptions {
  std::string file;  // a recording, or what import reads
  std::string format;
  std::string output;  // "-": standard output
};

// 0; 1 where the recording could not be read to its end: what was there is written.
int export_recording(const ExportOptions& options);

struct ImportOptions {
  std::string file;
  std::string format;  // empty: by content
  std::string output;
  std::uint64_t iterations = 0;  // of a MiniMalloc file; 0: not given
  bool force = false;            // overwrite
  std::string version;           // of this memoptctl, for the file
};

// 0; 1 where the file can't be read or written; 2 for options that don't belong to the format.
int import_file(const ImportOptions& options);

}  // namespace memopt::tools
