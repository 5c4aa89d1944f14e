# Headers that are read once instead of for each source: the standard library's for libraries, GoogleTest's for tests. Half of what
# compiling a small source takes is reading these (docs/adr/0013).
#
#   memopt_precompile(TARGET…)        libraries of ours, with memopt_flags and no options that change the language
#   memopt_precompile_test(TARGET…)   GoogleTest binaries
#
# Sources still name what they use: with -DMEMOPT_PRECOMPILE=OFF, or another compiler, nothing is read for them, and
# tests/tools/check_includes.py looks at it. Larger sets were slower: reading fmt's and nlohmann's back takes as long as parsing them.
option(MEMOPT_PRECOMPILE "Read the standard library's and GoogleTest's headers once" ON)
# Named here, not in a header of ours: what is precompiled is then the same in every checkout, which ccache needs.
set(MEMOPT_PRECOMPILED_HEADERS
    <algorithm> <array> <atomic> <chrono> <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
    <unordered_map> <vector>)
# clang's compile faster than they are read, and coverage counts sources.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR MEMOPT_COVERAGE)
  set(MEMOPT_PRECOMPILE OFF)
endif()

if(MEMOPT_PRECOMPILE)
  # A header of another target's options is not taken, with a warning: slower, not wrong.
  add_library(memopt_precompiled OBJECT ${CMAKE_SOURCE_DIR}/cmake/nothing.cpp)
  target_link_libraries(memopt_precompiled PRIVATE memopt_flags)
  target_precompile_headers(memopt_precompiled PRIVATE ${MEMOPT_PRECOMPILED_HEADERS})
  # Programs are compiled otherwise than libraries (-fPIE), so this is one.
  add_executable(memopt_precompiled_test EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/cmake/nothing.cpp)
  target_link_libraries(memopt_precompiled_test PRIVATE memopt_flags GTest::gtest GTest::gtest_main)
  target_compile_options(memopt_precompiled_test PRIVATE ${MEMOPT_TEST_OPTIONS})
  target_precompile_headers(memopt_precompiled_test PRIVATE <gtest/gtest.h>)
endif()

function(_memopt_precompile from)
  if(NOT MEMOPT_PRECOMPILE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_precompile_headers(${target} REUSE_FROM ${from})
    target_compile_options(${target} PRIVATE -Wno-error=invalid-pch)
  endforeach()
endfunction()

function(memopt_precompile)
  _memopt_precompile(memopt_precompiled ${ARGN})
endfunction()

function(memopt_precompile_test)
  _memopt_precompile(memopt_precompiled_test ${ARGN})
endfunction()
