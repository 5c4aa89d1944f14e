// The page: its parts lie in this program (page_parts.S), the data is put among them.
#pragma once

#include <string>

namespace memopt::tools {

// One HTML file that needs nothing else. `title` is text, not markup; `json` of report_json().
std::string report_page(const std::string& title, const std::string& json);

}  // namespace memopt::tools
