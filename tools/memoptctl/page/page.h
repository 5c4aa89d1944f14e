// The page: its parts lie in this program (page_parts.S), the data is put among them.
#pragma once

#include <string>

namespace memopt::tools {

// Of the data, whose members docs/report.md lists.
inline constexpr const char* kPageFormat = "memopt-report-1";

// Throws std::runtime_error where pages are not in this build; `what` asks for one.
void expect_pages(const std::string& what);

// One HTML file that needs nothing else. `title` is text, not markup; `data` of script_text().
std::string page(const std::string& title, const std::string& data);

}  // namespace memopt::tools
