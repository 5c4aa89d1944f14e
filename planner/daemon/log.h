// Where memoptd's messages go.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace memopt::planner {

// Writes one message, with time and process. Any thread may call it.
using LogLine = std::function<void(std::string_view line)>;

// To the end of the file `path`; where that is empty, to standard error or nowhere. Throws std::exception when the file
// can't be opened.
LogLine open_log(const std::string& path, bool standard_error);

}  // namespace memopt::planner
