# Libraries that some planners need and not every machine has. An interface target for each that is found, made for the first folder that asks for it:
#   coin_clp       CLP's simplex, C++ (coinor-libclp-dev)
#   coin_cbc       CBC's search with CLP behind it, C++ (coinor-libcbc-dev, coinor-libclp-dev)
#   coin_cbc_c     the same by CBC's C interface (coinor-libcbc-dev)
#   eigen_headers  Eigen (libeigen3-dev)
# What is missing is looked for again at each configuration; those who need it say what is left out.
include_guard(GLOBAL)

# memopt_find_solver(TARGET HEADER FOLDERS LIBRARY...): FOLDERS, below the one of the header, where the header's own includes are.
function(memopt_find_solver target header folders)
  string(TOUPPER MEMOPT_${target} prefix)
  find_path(${prefix}_INCLUDE ${header} PATH_SUFFIXES eigen3)
  if(NOT ${prefix}_INCLUDE)
    return()
  endif()
  set(libraries)
  foreach(name IN LISTS ARGN)
    find_library(MEMOPT_${name}_LIBRARY NAMES ${name})
    if(NOT MEMOPT_${name}_LIBRARY)
      return()
    endif()
    list(APPEND libraries ${MEMOPT_${name}_LIBRARY})
  endforeach()
  list(TRANSFORM folders PREPEND ${${prefix}_INCLUDE}/)
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE ${${prefix}_INCLUDE} ${folders})
  target_link_libraries(${target} INTERFACE ${libraries})
endfunction()

memopt_find_solver(coin_clp coin/ClpSimplex.hpp coin Clp CoinUtils)
memopt_find_solver(coin_cbc coin/CbcSolver.hpp coin CbcSolver Cbc OsiClp Osi Clp CoinUtils)
memopt_find_solver(coin_cbc_c coin/Cbc_C_Interface.h "" CbcSolver)
memopt_find_solver(eigen_headers Eigen/Core "")

# memopt_add_solver_module(NAME LIBRARY SOURCE): a module that memoptctl loads when it is asked for what it does, and that takes its
# solver along; the source has the version of the build to compare.
function(memopt_add_solver_module name library source)
  add_library(${name} MODULE ${source})
  target_compile_definitions(${name} PRIVATE MEMOPT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name} PRIVATE memopt_flags ${library})
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL)
endfunction()
