# memopt_add_fuzzer(NAME n SOURCES … [LIBS …] [INCLUDE_DIRECTORIES …] [SYSTEM_INCLUDE_DIRECTORIES …] [DEPENDS target…])
#   tests/n, by libFuzzer, which comes with clang: nothing where there is none. Not part of `all`: `ninja n`, then tests/n CORPUS.
#   All its sources are compiled here, with coverage counters, whatever the build's own options are; LIBS are linker options.
include_guard(GLOBAL)
find_program(MEMOPT_CLANG NAMES clang++ clang++-14)

function(memopt_add_fuzzer)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBS;INCLUDE_DIRECTORIES;SYSTEM_INCLUDE_DIRECTORIES;DEPENDS" ${ARGN})
  if(NOT ARG_NAME OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "memopt_add_fuzzer(${ARG_NAME}): NAME and SOURCES are needed; unknown arguments: '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT MEMOPT_CLANG)
    return()
  endif()
  set(sources)
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    list(APPEND sources ${source})
  endforeach()
  list(TRANSFORM ARG_INCLUDE_DIRECTORIES PREPEND -I)
  list(TRANSFORM ARG_SYSTEM_INCLUDE_DIRECTORIES PREPEND -isystem)
  set(program ${CMAKE_BINARY_DIR}/tests/${ARG_NAME})
  add_custom_command(OUTPUT ${program}
                     COMMAND ${MEMOPT_CLANG} -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
                             ${ARG_INCLUDE_DIRECTORIES} ${ARG_SYSTEM_INCLUDE_DIRECTORIES} ${sources} ${ARG_LIBS} -o ${program}
                     DEPENDS ${sources} COMMENT "clang++ ${ARG_NAME}" VERBATIM)
  add_custom_target(${ARG_NAME} DEPENDS ${program})
  if(ARG_DEPENDS)
    add_dependencies(${ARG_NAME} ${ARG_DEPENDS})
  endif()
endfunction()
