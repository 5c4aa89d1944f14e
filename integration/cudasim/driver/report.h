// The report: everything counted, as JSON in a file or as a few lines for people; and the end of the process, which
// writes it.
#pragma once
#include <string>

namespace cudasim {

struct Driver;

// Called with the driver's lock held.
std::string report_json(Driver& driver);
std::string report_text(Driver& driver);

// 0, or an errno value.
int write_file(const std::string& path, const std::string& text);

}  // namespace cudasim
