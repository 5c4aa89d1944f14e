# Run by CPack when all is installed into a folder and nothing is packed yet.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(share ${root}/share)

# Installed by hand, libraries go to lib; Debian has a folder for each processor.
if(CPACK_MEMOPT_MULTIARCH AND NOT CPACK_MEMOPT_LIBDIR MATCHES "${CPACK_MEMOPT_MULTIARCH}")
  file(MAKE_DIRECTORY ${root}/lib/${CPACK_MEMOPT_MULTIARCH})
  file(GLOB ours ${root}/${CPACK_MEMOPT_LIBDIR}/libmemopt* ${root}/${CPACK_MEMOPT_LIBDIR}/memopt)
  foreach(path IN LISTS ours)
    cmake_path(GET path FILENAME name)
    file(RENAME ${path} ${root}/lib/${CPACK_MEMOPT_MULTIARCH}/${name})
  endforeach()
endif()

file(GLOB_RECURSE libraries ${root}/lib/*.so ${root}/lib/*.so.*)
foreach(file IN LISTS libraries)
  if(NOT IS_SYMLINK ${file})
    execute_process(COMMAND ${CPACK_MEMOPT_STRIP} --strip-unneeded ${file} COMMAND_ERROR_IS_FATAL ANY)
    file(CHMOD ${file} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  endif()
endforeach()
execute_process(COMMAND ${CPACK_MEMOPT_STRIP} ${root}/bin/memoptctl ${root}/bin/memoptd COMMAND_ERROR_IS_FATAL ANY)

execute_process(COMMAND date -R OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE)
file(WRITE ${share}/doc/memopt/changelog
     "memopt (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n -- ${CPACK_MEMOPT_MAINTAINER}  ${date}\n")
file(GLOB pages ${share}/man/man1/*.1)
foreach(file IN LISTS pages ITEMS ${share}/doc/memopt/changelog)
  execute_process(COMMAND gzip -9 -n -f ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(MAKE_DIRECTORY ${share}/lintian/overrides)
file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/lintian-overrides ${share}/lintian/overrides/memopt)
