// In the place of the page, where d3 was not found.
#include <stdexcept>

#include "tools/memoptctl/page/page.h"

namespace memopt::tools {

void expect_pages(const std::string& what) {
  throw std::runtime_error(what +
                           " is not in this build: d3 was not there when it was configured (Debian's package node-d3)");
}

std::string page(const std::string&, const std::string&) {
  expect_pages("a page");
  return "";
}

}  // namespace memopt::tools
