# The target memopt_fmt: {fmt}, linked in. What is preloaded into somebody's program brings no shared library along, Debian has no static one,
# and the header-only one is compiled again in every file that includes it, which takes seconds. So fmt's own source, which Debian's
# package ships as format-inl.h, is compiled once. Its explicit instantiations are those of fmt's src/format.cc and differ from one major
# version to the next: with one that is not known here, the header-only library is used.
include_guard(GLOBAL)
find_package(fmt REQUIRED)

if(NOT fmt_VERSION MATCHES "^(9|10)\\.")
  add_library(memopt_fmt INTERFACE)
  target_link_libraries(memopt_fmt INTERFACE fmt::fmt-header-only)
  return()
endif()

set(_fmt_source ${CMAKE_BINARY_DIR}/generated/fmt.cpp)
file(CONFIGURE OUTPUT ${_fmt_source} CONTENT [[
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale&);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 100000
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>, locale_ref);
#else
template FMT_API void vformat_to(buffer<char>&, string_view, typename vformat_args<>::type, locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
]] @ONLY)
get_target_property(_fmt_includes fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
add_library(memopt_fmt STATIC ${_fmt_source})
target_include_directories(memopt_fmt SYSTEM PUBLIC ${_fmt_includes})
target_link_libraries(memopt_fmt PRIVATE memopt_flags)
