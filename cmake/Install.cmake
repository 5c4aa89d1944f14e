# What `cmake --install` puts where, and packages of it: `cpack -G DEB`, the targets `wheel` and `uninstall` (docs/packages.md, ADR 0050).
# Included last: it looks at the targets that there are. Sanitised builds are not installed.
include_guard(GLOBAL)
if(MEMOPT_SANITIZE OR NOT TARGET memoptctl OR NOT TARGET memopt OR NOT TARGET memoptd)
  return()
endif()
include(GNUInstallDirs)
set(private ${CMAKE_INSTALL_LIBDIR}/memopt)
set(generated ${CMAKE_BINARY_DIR}/share)

install(TARGETS memoptctl memoptd RUNTIME DESTINATION bin)
# With its links: libmemopt.so is what LD_PRELOAD names.
install(TARGETS memopt LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Modules for which a library was there; memoptctl goes without those that are missing.
foreach(module IN ITEMS memopt_integer_program memopt_swap_bounds_module memopt_recompute_bounds_module memopt_recompute_checkmate_module
                        memopt_symbols_module)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${private} OPTIONAL)
  endif()
endforeach()

# The simulated device, for `run --sim`, in a folder that no loader looks into: its libcuda.so.1 must never be found instead of the real one.
_memopt_targets(${CMAKE_SOURCE_DIR}/integration all)
foreach(target IN LISTS all)
  get_target_property(type ${target} TYPE)
  get_target_property(folder ${target} LIBRARY_OUTPUT_DIRECTORY)
  if(NOT type MATCHES "^(SHARED|MODULE)_LIBRARY$" OR target STREQUAL "cudasim_schedule")
    continue()
  elseif(folder STREQUAL "${CMAKE_BINARY_DIR}/cudasim/lib")
    install(TARGETS ${target} LIBRARY DESTINATION ${private}/cudasim/lib NAMELINK_SKIP OPTIONAL)
  elseif(target MATCHES "^(memopt|libraries)_kernels$")
    install(TARGETS ${target} LIBRARY DESTINATION ${private}/cudasim/kernels OPTIONAL)
  endif()
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/cudasim/lib/stand-ins.txt DESTINATION ${private}/cudasim/lib OPTIONAL)

# Written by memoptctl itself.
set(manual ${generated}/man/man1/memoptctl.1)
set(bash ${generated}/bash-completion/completions/memoptctl)
set(zsh ${generated}/zsh/vendor-completions/_memoptctl)
set(fish ${generated}/fish/vendor_completions.d/memoptctl.fish)
foreach(line IN ITEMS "manual|${manual}" "completion bash|${bash}" "completion zsh|${zsh}" "completion fish|${fish}")
  string(REGEX REPLACE "^(.*)\\|(.*)$" "\\2" file "${line}")
  string(REGEX REPLACE "^(.*)\\|(.*)$" "\\1" words "${line}")
  separate_arguments(words)
  cmake_path(GET file PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(OUTPUT ${file} COMMAND memoptctl ${words} > ${file} DEPENDS memoptctl VERBATIM)
endforeach()
set(written ${manual} ${bash} ${zsh} ${fish})
find_program(MEMOPT_HELP2MAN help2man)
if(MEMOPT_HELP2MAN)
  set(planner_manual ${generated}/man/man1/memoptd.1)
  add_custom_command(OUTPUT ${planner_manual}
    COMMAND ${MEMOPT_HELP2MAN} --no-info --name "plans the memory of programs that run with memopt" --output ${planner_manual} $<TARGET_FILE:memoptd>
    DEPENDS memoptd VERBATIM)
  list(APPEND written ${planner_manual})
else()
  message(STATUS "memoptd has no manual page: help2man was not found")
endif()
add_custom_target(documentation ALL DEPENDS ${written})
install(DIRECTORY ${generated}/ DESTINATION ${CMAKE_INSTALL_DATAROOTDIR})

# Programs start memoptd themselves; the unit is for who wants it in a control group of its own (docs/packages.md).
install(CODE "
  # Where it is to be in the end, not where DESTDIR has it first.
  set(programs \"\${CMAKE_INSTALL_PREFIX}/bin\")
  configure_file(\"${CMAKE_SOURCE_DIR}/cmake/packages/memoptd.service.in\" \"${CMAKE_BINARY_DIR}/packages/memoptd.service\" @ONLY)")
install(FILES ${CMAKE_BINARY_DIR}/packages/memoptd.service DESTINATION lib/systemd/user)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/packages/copyright ${CMAKE_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/memopt)

add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -DMANIFEST=${CMAKE_BINARY_DIR}/install_manifest.txt
                                    -P ${CMAKE_SOURCE_DIR}/cmake/packages/uninstall.cmake VERBATIM)
add_custom_target(wheel COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/python/build_wheel.py ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/packages
                  DEPENDS memoptctl memoptd memopt USES_TERMINAL VERBATIM)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME memopt)
set(CPACK_PACKAGE_VENDOR memopt)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_VERBATIM_VARIABLES ON)
set(MEMOPT_MAINTAINER "memopt developers <memopt@localhost>" CACHE STRING "Who is named as the maintainer of the .deb: Name <address>")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${MEMOPT_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Preloads a library into CUDA programs as they are, which plans where each block
of device memory lies, and lets blocks wait in host memory where there is a
limit. Has a command line, and a simulated device, to try it without a GPU.")
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS libunwind8)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/packages/triggers)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/packages/debian_layout.cmake)
set(CPACK_MEMOPT_LIBDIR ${CMAKE_INSTALL_LIBDIR})
set(CPACK_MEMOPT_MULTIARCH ${CMAKE_LIBRARY_ARCHITECTURE})
set(CPACK_MEMOPT_STRIP ${CMAKE_STRIP})
set(CPACK_MEMOPT_MAINTAINER ${MEMOPT_MAINTAINER})
include(CPack)
