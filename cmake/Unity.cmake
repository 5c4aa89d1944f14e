# memopt_compile_together(TARGET…), once, when all of their sources are known: in sanitised builds, sources are compiled up to eight at a
# time, which spares reading headers and making inline functions for each (docs/adr/0013). Other presets compile one by one, which finds
# includes that are missing. cmake/unity_groups.py keeps those apart whose names would clash: it looks at the sources when CMake runs,
# so a new clash (`redefinition of …`) goes away with `cmake --preset asan`.
include_guard(GLOBAL)
option(MEMOPT_UNITY "Compile several sources at once in sanitised builds" ON)

function(memopt_compile_together)
  if(NOT MEMOPT_SANITIZE OR NOT MEMOPT_UNITY)
    return()
  endif()
  set(lines "")
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    list(JOIN sources "|" sources)
    string(APPEND lines "${target}|${folder}|${sources}\n")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # Said of every type that has a member of an anonymous namespace's, where it is not in the file that the compiler was given.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endforeach()
  set(asked ${CMAKE_BINARY_DIR}/generated/unity.txt)
  file(WRITE ${asked} "${lines}")
  execute_process(COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/unity_groups.py --root ${CMAKE_SOURCE_DIR} --most 8
                  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} INPUT_FILE ${asked} OUTPUT_FILE ${CMAKE_BINARY_DIR}/generated/unity.cmake RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cmake/unity_groups.py failed")
  endif()
  include(${CMAKE_BINARY_DIR}/generated/unity.cmake)
endfunction()
