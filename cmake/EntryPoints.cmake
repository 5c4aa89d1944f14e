# memopt_generate_entry_points(): writes what cmake/entry_points.py derives from the toolkit's headers into the build folder, at configure
# time and only if it changed. Sets in the caller's scope MEMOPT_ENTRY_POINTS_DIR, an include folder with
#   memopt_entry_points/table.inc    MEMOPT_ENTRY(base, version, per_thread, symbol) per row of cuGetProcAddress
#   memopt_entry_points/hooks.inc    MEMOPT_HOOK(index, symbol, type) per exported symbol, MEMOPT_ABI(...) per row
#   memopt_entry_points/trampolines.S, memopt_entry_points/exports.map    for the shim
# and defines the interface target memopt_entry_points with that folder (once, whoever calls first).
include_guard(GLOBAL)

function(memopt_generate_entry_points)
  set(dir ${CMAKE_BINARY_DIR}/generated)
  set(MEMOPT_ENTRY_POINTS_DIR ${dir} PARENT_SCOPE)
  if(TARGET memopt_entry_points)
    return()
  endif()
  set(generator ${CMAKE_SOURCE_DIR}/cmake/entry_points.py)
  file(MAKE_DIRECTORY ${dir}/memopt_entry_points)
  foreach(pair IN ITEMS table:table.inc hooks:hooks.inc asm:trampolines.S exports:exports.map)
    string(REPLACE ":" ";" pair ${pair})
    list(GET pair 0 emit)
    list(GET pair 1 file)
    execute_process(COMMAND ${Python3_EXECUTABLE} ${generator} --include ${MEMOPT_CUDA_INCLUDE} --emit ${emit}
                            -o ${dir}/memopt_entry_points/${file}
                    RESULT_VARIABLE failed ERROR_VARIABLE error)
    if(failed)
      message(FATAL_ERROR "The list of driver entry points could not be read from ${MEMOPT_CUDA_INCLUDE}:\n${error}")
    endif()
  endforeach()
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
               ${generator} ${MEMOPT_CUDA_INCLUDE}/cuda.h ${MEMOPT_CUDA_INCLUDE}/cudaTypedefs.h)
  add_library(memopt_entry_points INTERFACE)
  target_include_directories(memopt_entry_points INTERFACE ${dir})
endfunction()
