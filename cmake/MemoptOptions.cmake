# Compiler settings shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

set(MEMOPT_SANITIZE "" CACHE STRING "Sanitizers for all our targets: empty, 'address;undefined' or 'thread'")
option(MEMOPT_WERROR "Warnings are errors" ON)
option(MEMOPT_COVERAGE "Count lines and branches for gcov" OFF)
set(MEMOPT_TEST_OPTIONS "" CACHE STRING "Compiler options of GoogleTest binaries, after those of the build type")
option(MEMOPT_CCACHE "Compile through ccache where it is installed" ON)

# A launcher that the caller chose (command line or environment) stays.
find_program(MEMOPT_CCACHE_PROGRAM ccache)
if(MEMOPT_CCACHE AND MEMOPT_CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${MEMOPT_CCACHE_PROGRAM})
  # Without these it keeps nothing that was compiled with a precompiled header (cmake/Precompiled.cmake): it can't see macros of the
  # command line and __DATE__ in it, and there are none.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${MEMOPT_CCACHE_PROGRAM})
endif()

add_library(memopt_flags INTERFACE)
target_compile_options(memopt_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -fno-omit-frame-pointer
                       $<$<BOOL:${MEMOPT_WERROR}>:-Werror>)
if(MEMOPT_SANITIZE)
  list(JOIN MEMOPT_SANITIZE "," _sanitizers)
  target_compile_options(memopt_flags INTERFACE -fsanitize=${_sanitizers} -fno-sanitize-recover=all)
  # These check each load and store, for a third of what compiling takes. AddressSanitizer sees accesses through null and beyond objects, not a
  # member call through null that touches nothing.
  if("undefined" IN_LIST MEMOPT_SANITIZE)
    target_compile_options(memopt_flags INTERFACE -fno-sanitize=null,alignment,object-size)
  endif()
  target_link_options(memopt_flags INTERFACE -fsanitize=${_sanitizers})
endif()
if(MEMOPT_COVERAGE)
  target_compile_options(memopt_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(memopt_flags INTERFACE --coverage)
endif()

# Libraries, because options of what is linked come behind those of the target itself: after memopt_flags.
add_library(memopt_alignment_flags INTERFACE)
add_library(memopt_cold_flags INTERFACE)
if("undefined" IN_LIST MEMOPT_SANITIZE)
  target_compile_options(memopt_alignment_flags INTERFACE -fsanitize=alignment)
  target_compile_options(memopt_cold_flags INTERFACE -fno-sanitize=undefined)
endif()
target_compile_options(memopt_cold_flags INTERFACE -Og)
add_library(memopt_user_flags INTERFACE)
if(MEMOPT_SANITIZE)
  target_compile_options(memopt_user_flags INTERFACE -fno-sanitize=all)
endif()
if(NOT MEMOPT_COVERAGE AND (MEMOPT_SANITIZE OR NOT CMAKE_BUILD_TYPE STREQUAL "Debug"))
  target_compile_options(memopt_user_flags INTERFACE -O3)
endif()

# memopt_checks_alignment(TARGET…), called last: bytes of a file or of another process are taken for objects.
function(memopt_checks_alignment)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE memopt_flags memopt_alignment_flags)
  endforeach()
endfunction()

# memopt_compile_cold(TARGET…), called last: sources that hold little more than calls of a large library of headers (a command line's options
# by CLI11, a log by spdlog), each of which takes as long to compile as twenty others. Hardly optimised, and without
# UndefinedBehaviorSanitizer, which doubles that.
function(memopt_compile_cold)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE memopt_flags memopt_cold_flags)
  endforeach()
endfunction()

# memopt_as_users_compile(TARGET…), called last: programs that stand for a user's, under the library that is to be looked at. These are no
# more sanitised than a user's are, and optimised in all builds that are not for a debugger: what they do with their own memory, word by
# word, is most of what they do.
function(memopt_as_users_compile)
  foreach(target IN LISTS ARGN)
    target_link_libraries(${target} PRIVATE memopt_flags memopt_user_flags)
  endforeach()
endfunction()

find_package(Threads REQUIRED)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# The interpreter itself, where what was found is a version manager's script that looks for it at each start.
execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)" OUTPUT_VARIABLE _python
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(_python)
  set(Python3_EXECUTABLE ${_python})
endif()
