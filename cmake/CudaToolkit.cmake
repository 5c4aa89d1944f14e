# Finds CUDA's headers and nvcc where tools/lib/find-cuda finds them: CUDA_HOME, PATH, /usr/local/cuda, then build/cuda, which
# the set-up commands fill from pip's wheels where there is no toolkit. -DMEMOPT_CUDA_ROOT=… overrides the search.
# Sets MEMOPT_CUDA_ROOT, MEMOPT_NVCC and MEMOPT_CUDA_INCLUDE; defines the interface target cuda_headers.
set(MEMOPT_CUDA_ROOT "" CACHE PATH "CUDA toolkit: the folder with bin/nvcc and include/cuda.h; empty: search")

# A toolkit that has gone (unpacked wheels removed, a new CUDA_HOME) is looked for again instead of failing at the first compile.
if(MEMOPT_CUDA_ROOT AND NOT EXISTS ${MEMOPT_CUDA_ROOT}/bin/nvcc)
  message(STATUS "CUDA toolkit ${MEMOPT_CUDA_ROOT} is gone: searching again")
  set(MEMOPT_CUDA_ROOT "" CACHE PATH "" FORCE)
endif()
if(NOT MEMOPT_CUDA_ROOT)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/../tools/lib/find-cuda RESULT_VARIABLE _found
                  OUTPUT_VARIABLE _root ERROR_VARIABLE _why OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT _found EQUAL 0)
    message(FATAL_ERROR "No usable CUDA toolkit (nvcc and headers).\n${_why}"
                        "tools/quickstart and tools/run-tests fetch one from pip's wheels; or set CUDA_HOME or -DMEMOPT_CUDA_ROOT=….")
  endif()
  set(MEMOPT_CUDA_ROOT ${_root} CACHE PATH "" FORCE)
endif()
set(MEMOPT_NVCC ${MEMOPT_CUDA_ROOT}/bin/nvcc CACHE FILEPATH "" FORCE)
set(MEMOPT_CUDA_INCLUDE ${MEMOPT_CUDA_ROOT}/include CACHE PATH "" FORCE)
if(NOT EXISTS ${MEMOPT_CUDA_INCLUDE}/cudaTypedefs.h)
  message(FATAL_ERROR "${MEMOPT_CUDA_INCLUDE}/cudaTypedefs.h is missing: the toolkit at ${MEMOPT_CUDA_ROOT} is not whole")
endif()
message(STATUS "CUDA toolkit: ${MEMOPT_CUDA_ROOT}")

add_library(cuda_headers INTERFACE)
target_include_directories(cuda_headers SYSTEM INTERFACE ${MEMOPT_CUDA_INCLUDE})
