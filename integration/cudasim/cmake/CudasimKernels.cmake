# Plug-ins of host kernels and programs with load/store callbacks, for the simulated driver.
#
#   cudasim_add_kernels(NAME n SOURCES n.plugin.cpp [INCLUDE_DIRECTORIES …] [COMPILE_OPTIONS …])
#       cudasim/kernels/n.so                target n_kernels: as fast as the compiler makes it
#       cudasim/kernels-instrumented/n.so   target n_kernels_instrumented: every load and store is reported
#     Both compute the same bits: no option here or in COMPILE_OPTIONS may loosen floating point.
#
#   cudasim_instrument_host(target)
#       the target's own sources report their loads and stores too (host code that reads pinned memory). Nothing where
#       CUDASIM_INSTRUMENT_HOST is off: ThreadSanitizer's own callbacks have the same names.
#
# Sanitised builds: the plain plug-in gets AddressSanitizer and UndefinedBehaviorSanitizer, but not ThreadSanitizer, which knows only
# the address ranges of programs and would stop at the device's. The instrumented one never gets any.
set(CUDASIM_KERNEL_FLAGS "" CACHE STRING "More compiler options for simulated kernels, for example -mavx2")

# Cached: the functions below are called from any folder.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH _cudasim_root)
set(CUDASIM_INCLUDE_DIRECTORY ${_cudasim_root}/include CACHE INTERNAL "Headers of plug-ins")

if("thread" IN_LIST MEMOPT_SANITIZE)
  set(CUDASIM_INSTRUMENT_HOST OFF CACHE INTERNAL "cudasim_instrument_host() has an effect")
else()
  set(CUDASIM_INSTRUMENT_HOST ON CACHE INTERNAL "cudasim_instrument_host() has an effect")
endif()

# -ffp-contract=off: the same bits whatever is inlined where. Errors and traps of the floating-point unit are nobody's business on a GPU.
set(CUDASIM_KERNEL_OPTIONS -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-semantic-interposition -Wno-unknown-pragmas
    -Wno-attributes CACHE INTERNAL "Compiler options of every plug-in")

# Only the compiler's half of ThreadSanitizer: the callbacks are ours (instrument/), its runtime library is not linked.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag("-fsanitize=thread --param=tsan-instrument-func-entry-exit=0" CUDASIM_HAS_ENTRY_EXIT_PARAMETER)
if(CUDASIM_HAS_ENTRY_EXIT_PARAMETER)
  set(CUDASIM_INSTRUMENT_OPTIONS -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 CACHE INTERNAL "Load and store callbacks")
else()
  set(CUDASIM_INSTRUMENT_OPTIONS -fsanitize=thread CACHE INTERNAL "Load and store callbacks")
endif()

function(cudasim_add_kernels)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;INCLUDE_DIRECTORIES;COMPILE_OPTIONS" ${ARGN})
  foreach(required IN ITEMS NAME SOURCES)
    if(NOT ARG_${required})
      message(FATAL_ERROR "cudasim_add_kernels: ${required} is missing")
    endif()
  endforeach()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cudasim_add_kernels(${ARG_NAME}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  foreach(variant IN ITEMS kernels kernels_instrumented)
    string(REPLACE _ - folder ${variant})
    set(target ${ARG_NAME}_${variant})
    add_library(${target} MODULE ${ARG_SOURCES})
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${ARG_NAME}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/cudasim/${folder})
    target_include_directories(${target} PRIVATE ${CUDASIM_INCLUDE_DIRECTORY} ${ARG_INCLUDE_DIRECTORIES})
    target_link_libraries(${target} PRIVATE cuda_headers ${CMAKE_DL_LIBS})
    separate_arguments(flags UNIX_COMMAND "${CUDASIM_KERNEL_FLAGS}")
    # First, whatever order a formatter gives a plug-in's own includes.
    target_compile_options(${target} PRIVATE "SHELL:-include ${CUDASIM_INCLUDE_DIRECTORY}/cudasim/kernel_plugin.h"
                           ${CUDASIM_KERNEL_OPTIONS} ${flags} ${ARG_COMPILE_OPTIONS})
    # Kernels have the names of the program's host stubs: each library must mean its own.
    target_link_options(${target} PRIVATE -Wl,-Bsymbolic -Wl,-z,defs)
  endforeach()
  if("address" IN_LIST MEMOPT_SANITIZE)
    target_compile_options(${ARG_NAME}_kernels PRIVATE -fsanitize=address,undefined -fno-sanitize-recover=all)
    target_link_options(${ARG_NAME}_kernels PRIVATE -fsanitize=address,undefined)
  endif()
  target_compile_options(${ARG_NAME}_kernels_instrumented PRIVATE ${CUDASIM_INSTRUMENT_OPTIONS})
  target_compile_definitions(${ARG_NAME}_kernels_instrumented PRIVATE CUDASIM_INSTRUMENTED)
  target_link_libraries(${ARG_NAME}_kernels_instrumented PRIVATE cudasim_instrument_plugin)
endfunction()

function(cudasim_instrument_host target)
  if(CUDASIM_INSTRUMENT_HOST)
    target_compile_options(${target} PRIVATE ${CUDASIM_INSTRUMENT_OPTIONS})
    target_link_libraries(${target} PRIVATE cudasim_instrument)
  endif()
endfunction()
