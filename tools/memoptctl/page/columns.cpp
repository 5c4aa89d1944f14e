#include "tools/memoptctl/page/columns.h"

#include <fmt/format.h>
#include <zlib.h>

#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <stdexcept>
#include <type_traits>

#include "tools/memoptctl/common/printable.h"

namespace memopt::tools {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestName = 400;
// Shorter columns are not worth a call of the browser's to unpack them.
constexpr std::size_t kLeastPacked = 512;

std::string base64(const void* data, std::size_t bytes) {
  using namespace boost::archive::iterators;
  using Encode = base64_from_binary<transform_width<const unsigned char*, 6, 8>>;
  const auto* const begin = static_cast<const unsigned char*>(data);
  std::string text(Encode(begin), Encode(begin + bytes));
  text.append((3 - bytes % 3) % 3, '=');
  return text;
}

std::string packed_by_zlib(const void* data, std::size_t bytes) {
  uLongf size = compressBound(bytes);
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, static_cast<const Bytef*>(data), bytes,
                Z_DEFAULT_COMPRESSION) != Z_OK) {
    throw std::runtime_error("zlib can't pack the page's data");
  }
  packed.resize(size);
  return packed;
}

// Little-endian, as all machines that this is built for.
template <typename Number>
Json column_of_type(const std::vector<Number>& numbers, const char* type) {
  const std::size_t bytes = numbers.size() * sizeof(Number);
  if (bytes < kLeastPacked) return {{"type", type}, {"base64", base64(numbers.data(), bytes)}};
  const std::string packed = packed_by_zlib(numbers.data(), bytes);
  return {{"type", type}, {"zlib", true}, {"base64", base64(packed.data(), packed.size())}};
}

}  // namespace

Json column(const std::vector<double>& numbers) { return column_of_type(numbers, "f64"); }
Json column(const std::vector<std::uint32_t>& numbers) { return column_of_type(numbers, "u32"); }
Json column(const std::vector<std::uint8_t>& numbers) { return column_of_type(numbers, "u8"); }

std::string shown_name(const std::string& name) { return printable(name, kLongestName); }

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(shown_name(name));
  return list;
}

std::string script_text(const Json& document) {
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 64);
  for (const char letter : text) {
    // In strings only: nothing that ends the element which the page has it in, or begins another.
    if (letter == '<' || letter == '>' || letter == '&') {
      escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

}  // namespace memopt::tools
