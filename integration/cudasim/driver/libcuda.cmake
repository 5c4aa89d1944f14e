# The shared library libcuda.so.1 and what is generated for it. Included by CMakeLists.txt after the object library.
include(EntryPoints)
memopt_generate_entry_points()
target_link_libraries(cudasim_driver_objects PUBLIC memopt_entry_points)

# presets/*.json as string literals, in alphabetical order.
file(GLOB _presets CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/presets/*.json)
set(PRESET_ROWS "")
foreach(_preset IN LISTS _presets)
  cmake_path(GET _preset STEM LAST_ONLY _name)
  file(READ ${_preset} _json)
  string(APPEND PRESET_ROWS "    {\"${_name}\", R\"json(${_json})json\"},\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_preset})
endforeach()
configure_file(${CMAKE_CURRENT_SOURCE_DIR}/presets/presets.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/presets.cpp @ONLY)
target_sources(cudasim_driver_objects PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/presets.cpp)

set(_map ${CMAKE_CURRENT_SOURCE_DIR}/libcuda.map)
add_library(cudasim_driver SHARED $<TARGET_OBJECTS:cudasim_driver_objects>)
target_link_libraries(cudasim_driver PRIVATE memopt_flags cudasim_compression Threads::Threads ${CMAKE_DL_LIBS} PUBLIC cuda_headers cudasim_interface)
# -Bsymbolic: cuGetProcAddress hands out this library's own functions even where a preloaded library has some of the same names.
# nodelete: its threads, fork handlers and thread-local stacks outlive a dlclose.
target_link_options(cudasim_driver PRIVATE -Wl,--version-script=${_map} -Wl,-Bsymbolic -Wl,-z,nodelete -Wl,-z,now)
if(NOT MEMOPT_SANITIZE)
  # Loads into any process, whatever C++ library that brought.
  target_link_options(cudasim_driver PRIVATE -static-libstdc++ -static-libgcc -Wl,--no-undefined)
endif()
set_target_properties(cudasim_driver PROPERTIES
  OUTPUT_NAME cuda VERSION 1 SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/cudasim/lib LINK_DEPENDS ${_map})
