#include "tools/memoptctl/page/page.h"

#include <stdexcept>
#include <string_view>
#include <utility>

// Of page_parts.S.
extern "C" {
extern const char memopt_page_html[], memopt_page_html_end[];
extern const char memopt_page_style[], memopt_page_style_end[];
extern const char memopt_page_script[], memopt_page_script_end[];
extern const char memopt_page_d3[], memopt_page_d3_end[];
}

namespace memopt::tools {
namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

std::string_view part(const char* begin, const char* end) { return {begin, static_cast<std::size_t>(end - begin)}; }

}  // namespace

void expect_pages(const std::string&) {}

std::string page(const std::string& title, const std::string& data) {
  const std::string safe_title = escaped(title);
  // In the order in which they are in the page.
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"<!--memopt:title-->", safe_title},
      {"/*memopt:style*/", part(memopt_page_style, memopt_page_style_end)},
      {"/*memopt:data*/", data},
      {"/*memopt:d3*/", part(memopt_page_d3, memopt_page_d3_end)},
      {"/*memopt:script*/", part(memopt_page_script, memopt_page_script_end)}};
  std::string_view rest = part(memopt_page_html, memopt_page_html_end);
  std::string whole;
  whole.reserve(rest.size() + data.size() + (std::size_t{1} << 19));
  for (const auto& [mark, text] : parts) {
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) throw std::logic_error("the page has no " + std::string(mark));
    whole += rest.substr(0, at);
    whole += text;
    rest.remove_prefix(at + mark.size());
  }
  whole += rest;
  return whole;
}

}  // namespace memopt::tools
