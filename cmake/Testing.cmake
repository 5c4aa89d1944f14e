# Tests, the same under every preset.
#
#   memopt_add_test(NAME n SOURCES … [LIBS …] [PRELOAD lib…] [ENV k=v …] [LABELS …] [TIMEOUT s] [WRAPPER cmd…] [ONE_THREAD]
#                   [OPTIMISED] [NOT_UNDER_TSAN case…])
#       a GoogleTest binary, one ctest. Exit code 77 is a skip. ONE_THREAD: it starts no thread, which the other builds hold it to, so
#       ThreadSanitizer has nothing to find: its build leaves it out (`ninja n` still builds it). OPTIMISED: it has more to say in a plain
#       build than in a sanitised one: more problems, more threads at once; the others are left out of plain builds where
#       MEMOPT_ALL_GOOGLETESTS is off. NOT_UNDER_TSAN: cases (GoogleTest's patterns) that compare many results, of code whose threads
#       other cases of the binary run.
#   memopt_add_benchmark(NAME n SOURCES … [LIBS …] [ARGS …] [PRELOAD lib…] [ENV k=v …])
#       a benchmark by Google's library, run for a moment only, so that it does not rot; in plain builds only. For numbers start it with
#       --benchmark_min_time=1 --benchmark_repetitions=5.
#   memopt_add_program_test(NAME n COMMAND cmd… [PRELOAD lib…] [ENV k=v …] [LABELS …] [TIMEOUT s] [WORKING_DIRECTORY d])
#       any program, ours or not, with our libraries preloaded.
#   memopt_add_python_test(NAME n SCRIPT file [ARGS …] [ENV k=v …] [LABELS …] [TIMEOUT s] [PLAIN])
#       cases by Python's unittest, started by tests/tools/cases.py's main(). Nothing is preloaded; SANITIZER_PRELOAD has the prefix.
#       PLAIN: a command from outside whose code GoogleTest binaries run as well: with a sanitizer only by --full.
#
# Sanitised builds need three things that these two functions see to, and that a test which starts processes of its own takes
# from the variables (also defined as macros of the same name for C++ tests, see memopt_sanitizer_definitions):
#   MEMOPT_PRELOAD_PREFIX   goes in front of every LD_PRELOAD: the sanitizer's runtime must come first. "" or "PATH:".
#   MEMOPT_SANITIZER_ENV    list of k=v for programs that are not ours (no leak report for the leaks of others).
#   MEMOPT_TEST_WRAPPER     what every test is started with: ThreadSanitizer needs address randomisation off.
#
# Labels: lint (static checks), slow (left out by run-tests --quick), full (run by --full only), frameworks (by --frameworks only).
enable_testing()
# Times after which a test that waits fails are far above what it takes: they end what hangs, and say nothing of speed. Where machines are slow,
# tools/run-tests raises them, and those in the tests themselves (tests/tools/patience.py).
set(MEMOPT_TEST_PATIENCE 1 CACHE STRING "How many times as long as on a usual machine tests wait before they fail: 1 to 20")
if(NOT MEMOPT_TEST_PATIENCE MATCHES "^([1-9]|1[0-9]|20)$")
  message(FATAL_ERROR "MEMOPT_TEST_PATIENCE: expected a whole number from 1 to 20, not '${MEMOPT_TEST_PATIENCE}'")
endif()
option(MEMOPT_ALL_GOOGLETESTS "In a plain build, GoogleTest binaries too that a sanitised one runs as well (docs/adr/0019)" ON)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

set(MEMOPT_PRELOAD_PREFIX "")
set(MEMOPT_TEST_WRAPPER "")
set(_memopt_in_time ${CMAKE_SOURCE_DIR}/tests/tools/in_time)
# A segmentation fault that a user's handler takes (the simulator turns some into CUDA errors) must reach it, and everything
# else must end in a report: the sanitizer installs its handler first, allows ours on top, and ours hands on what is not its own.
set(_memopt_asan "allow_user_segv_handler=1:detect_stack_use_after_return=1:strict_init_order=1")
set(_memopt_ubsan "print_stacktrace=1:halt_on_error=1")
set(_memopt_tsan "halt_on_error=1:second_deadlock_stack=1:allow_user_segv_handler=1")
set(MEMOPT_SANITIZER_ENV "")
set(_memopt_own_env "")
set(_memopt_runtime "")
if("address" IN_LIST MEMOPT_SANITIZE)
  set(_memopt_runtime libasan.so)
  set(MEMOPT_SANITIZER_ENV "ASAN_OPTIONS=${_memopt_asan}:detect_leaks=0" "UBSAN_OPTIONS=${_memopt_ubsan}")
  set(_memopt_own_env "ASAN_OPTIONS=${_memopt_asan}:detect_leaks=1" "UBSAN_OPTIONS=${_memopt_ubsan}")
elseif("thread" IN_LIST MEMOPT_SANITIZE)
  set(_memopt_runtime libtsan.so)
  set(MEMOPT_SANITIZER_ENV "TSAN_OPTIONS=${_memopt_tsan}")
  set(_memopt_own_env ${MEMOPT_SANITIZER_ENV})
  execute_process(COMMAND setarch -R true RESULT_VARIABLE _setarch OUTPUT_QUIET ERROR_QUIET)
  if(_setarch EQUAL 0)
    set(MEMOPT_TEST_WRAPPER setarch -R)
  else()
    message(WARNING "setarch -R is not permitted here (a container's seccomp profile?): "
                    "ThreadSanitizer may refuse to start where vm.mmap_rnd_bits is above 28")
  endif()
endif()
if(_memopt_runtime)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${_memopt_runtime}
                  OUTPUT_VARIABLE _path OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT IS_ABSOLUTE "${_path}")
    message(FATAL_ERROR "${_memopt_runtime} was not found by ${CMAKE_CXX_COMPILER}: install the compiler's sanitizer libraries")
  endif()
  file(REAL_PATH ${_path} _path)
  set(MEMOPT_PRELOAD_PREFIX "${_path}:")
endif()

# The same three as C++ string literals (environment and wrapper joined by blanks), for tests that start processes themselves.
function(memopt_sanitizer_definitions target)
  list(JOIN MEMOPT_SANITIZER_ENV " " env)
  list(JOIN MEMOPT_TEST_WRAPPER " " wrapper)
  target_compile_definitions(${target} PRIVATE MEMOPT_PRELOAD_PREFIX="${MEMOPT_PRELOAD_PREFIX}"
                             MEMOPT_SANITIZER_ENV="${env}" MEMOPT_TEST_WRAPPER="${wrapper}")
endfunction()

# What runs a command with these libraries preloaded. Not the environment of the test: shells that run the command do not survive
# every sanitizer's runtime.
function(_memopt_preloading result libraries)
  set(${result} "" PARENT_SCOPE)
  if(libraries)
    list(JOIN libraries ":" joined)
    set(${result} env LD_PRELOAD=${MEMOPT_PRELOAD_PREFIX}${joined} PARENT_SCOPE)
  endif()
endfunction()

function(memopt_add_test)
  cmake_parse_arguments(ARG "ONE_THREAD;OPTIMISED" "NAME;TIMEOUT" "SOURCES;LIBS;PRELOAD;ENV;LABELS;WRAPPER;NOT_UNDER_TSAN" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE memopt_flags ${ARG_LIBS} GTest::gtest GTest::gtest_main Threads::Threads)
  target_include_directories(${ARG_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${ARG_NAME} PRIVATE ${MEMOPT_TEST_OPTIONS})
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  memopt_sanitizer_definitions(${ARG_NAME})
  memopt_precompile_test(${ARG_NAME})
  set_property(GLOBAL APPEND PROPERTY MEMOPT_GOOGLETEST_BINARIES ${ARG_NAME})
  if((ARG_ONE_THREAD AND "thread" IN_LIST MEMOPT_SANITIZE) OR
     NOT (ARG_OPTIMISED OR MEMOPT_ALL_GOOGLETESTS OR MEMOPT_SANITIZE))
    set_target_properties(${ARG_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  elseif(ARG_ONE_THREAD)
    add_dependencies(${ARG_NAME} one_thread)
    list(APPEND ARG_PRELOAD $<TARGET_FILE:one_thread>)
  endif()
  if(ARG_NOT_UNDER_TSAN AND "thread" IN_LIST MEMOPT_SANITIZE)
    list(JOIN ARG_NOT_UNDER_TSAN ":" patterns)
    list(APPEND ARG_ENV GTEST_FILTER=-${patterns})
  endif()
  _memopt_preloading(preloading "${ARG_PRELOAD}")
  add_test(NAME ${ARG_NAME} COMMAND ${MEMOPT_TEST_WRAPPER} ${_memopt_in_time} ${ARG_WRAPPER} ${preloading} $<TARGET_FILE:${ARG_NAME}>)
  # The cases in one binary are counted from GoogleTest's own report, so that a skipped case is seen as one. Its name is made
  # explicit: a report of an earlier run must be replaced, not kept beside.
  _memopt_test_properties(${ARG_NAME} "${ARG_TIMEOUT}" "${ARG_LABELS}"
                          "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${ARG_NAME}.xml;${_memopt_own_env};${ARG_ENV}")
endfunction()

function(memopt_add_benchmark)
  if(MEMOPT_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBS;ARGS;PRELOAD;ENV" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE memopt_flags ${ARG_LIBS} benchmark::benchmark)
  target_include_directories(${ARG_NAME} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  memopt_add_program_test(NAME ${ARG_NAME} COMMAND $<TARGET_FILE:${ARG_NAME}> --benchmark_min_time=0.001 ${ARG_ARGS}
                          PRELOAD ${ARG_PRELOAD} ENV ${ARG_ENV} LABELS benchmark)
endfunction()

function(memopt_add_program_test)
  cmake_parse_arguments(ARG "" "NAME;TIMEOUT;WORKING_DIRECTORY" "COMMAND;PRELOAD;ENV;LABELS" ${ARGN})
  if(NOT ARG_WORKING_DIRECTORY)
    set(ARG_WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  _memopt_preloading(preloading "${ARG_PRELOAD}")
  if(MEMOPT_PRELOAD_PREFIX AND NOT ARG_PRELOAD)  # the command need not have been built by us
    set(preloading env LD_PRELOAD=${MEMOPT_PRELOAD_PREFIX})
  endif()
  add_test(NAME ${ARG_NAME} COMMAND ${MEMOPT_TEST_WRAPPER} ${_memopt_in_time} ${preloading} ${ARG_COMMAND}
           WORKING_DIRECTORY ${ARG_WORKING_DIRECTORY})
  _memopt_test_properties(${ARG_NAME} "${ARG_TIMEOUT}" "${ARG_LABELS}" "${MEMOPT_SANITIZER_ENV};${ARG_ENV}")
endfunction()

function(memopt_add_python_test)
  cmake_parse_arguments(ARG "PLAIN" "NAME;TIMEOUT;SCRIPT" "ARGS;ENV;LABELS" ${ARGN})
  if(ARG_PLAIN AND MEMOPT_SANITIZE)
    list(APPEND ARG_LABELS full)
  endif()
  cmake_path(ABSOLUTE_PATH ARG_SCRIPT BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  add_test(NAME ${ARG_NAME} COMMAND ${MEMOPT_TEST_WRAPPER} ${_memopt_in_time} ${Python3_EXECUTABLE} ${ARG_SCRIPT} ${ARG_ARGS})
  list(JOIN MEMOPT_SANITIZE "," sanitizer)
  set(environment GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${ARG_NAME}.xml PYTHONPATH=${CMAKE_SOURCE_DIR}/tests/tools
                  PYTHONDONTWRITEBYTECODE=1 SANITIZER_PRELOAD=${MEMOPT_PRELOAD_PREFIX} "TEST_SANITIZER=${sanitizer}")
  _memopt_test_properties(${ARG_NAME} "${ARG_TIMEOUT}" "${ARG_LABELS}" "${environment};${MEMOPT_SANITIZER_ENV};${ARG_ENV}")
endfunction()

function(_memopt_test_properties name timeout labels environment)
  if(NOT timeout)
    set(timeout 120)
  endif()
  if(MEMOPT_SANITIZE)
    math(EXPR timeout "${timeout} * 4")
  endif()
  math(EXPR longest "${timeout} * ${MEMOPT_TEST_PATIENCE}")
  list(REMOVE_ITEM environment "")
  # Nor what is in the memopt.toml of the user.
  list(APPEND environment "XDG_CONFIG_HOME=${CMAKE_BINARY_DIR}/no-settings")
  list(APPEND environment "TEST_PATIENCE=${MEMOPT_TEST_PATIENCE}")
  # Not the planner of the user who runs the tests: it would plan for tests that play its part.
  if(NOT environment MATCHES "MEMOPT_PLANNER_NAME=")
    list(APPEND environment "MEMOPT_PLANNER_NAME=test-${name}")
  endif()
  # What may take longest starts first: at the end, short tests fill all processors.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${longest} COST ${timeout} ENVIRONMENT "${environment}" LABELS "${labels}" SKIP_RETURN_CODE 77)
endfunction()
