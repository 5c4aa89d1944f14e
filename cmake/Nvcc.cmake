# Programs and modules by nvcc. CMake's CUDA language stays off: it wants a whole toolkit, decides about runtimes itself, and pip's wheels
# have neither lib64/ nor a libcudart.so.
#
#   nvcc_add_program(NAME n SOURCES a.cu … [RUNTIME shared|static] [OUTPUT_DIR d] [OPTIONS …] [STRIP])
#       d/n (target n). shared: linked against the toolkit's libcudart, without a run path, so that LD_LIBRARY_PATH decides which one is loaded.
#       static: the simulated runtime's libcudart_static.a, or the toolkit's where MEMOPT_GPU_RUNTIME is on (it refuses to run on anything
#       but NVIDIA's driver).
#   nvcc_add_module(NAME n SOURCE a.cu [FORMAT fatbin|cubin|ptx] [OUTPUT_DIR d | OUTPUT file] [OPTIONS …])
#       d/n.FORMAT, or the file named (target n).
# d is the current binary folder unless given. The target's property NVCC_OUTPUT is the file.
#
# What nvcc makes is the same in each preset: sanitizers look at what stands below such programs, which are taken for a user's. Hence another
# build of this tree may give it.
include_guard(GLOBAL)
set(MEMOPT_NVCC_FROM "" CACHE PATH "Another build folder of this tree, up to date: modules and objects of nvcc are copied from there")
option(MEMOPT_GPU_RUNTIME "Link static-runtime programs against the toolkit's libcudart_static.a: for a real GPU" OFF)

# Machine code for the oldest architecture of CUDA 13, and PTX of the same, from which the driver makes code for every newer GPU.
set(MEMOPT_NVCC_ARCHITECTURE 75 CACHE STRING "Compute capability of programs and modules: machine code for it, PTX for all newer ones")

foreach(_folder IN ITEMS lib64 lib targets/x86_64-linux/lib targets/sbsa-linux/lib)
  file(GLOB _candidates ${MEMOPT_CUDA_ROOT}/${_folder}/libcudart.so ${MEMOPT_CUDA_ROOT}/${_folder}/libcudart.so.1[2-9])
  if(_candidates)
    list(GET _candidates 0 _cudart)
    # Cached: the functions below are called from any folder.
    set(MEMOPT_CUDART ${_cudart} CACHE INTERNAL "The toolkit's shared runtime")
    set(MEMOPT_CUDA_LIBRARY_DIR ${MEMOPT_CUDA_ROOT}/${_folder} CACHE INTERNAL "The toolkit's libraries")
    break()
  endif()
endforeach()
if(NOT _candidates)
  message(FATAL_ERROR "libcudart.so was not found in lib64/ or lib/ of the CUDA toolkit ${MEMOPT_CUDA_ROOT}")
endif()
# -lcudart needs the name without a version, which wheels lack.
set(MEMOPT_CUDA_LINK_DIR ${CMAKE_BINARY_DIR}/cuda-link CACHE INTERNAL "Where -lcudart is found")
file(MAKE_DIRECTORY ${MEMOPT_CUDA_LINK_DIR})
file(CREATE_LINK ${MEMOPT_CUDART} ${MEMOPT_CUDA_LINK_DIR}/libcudart.so SYMBOLIC)

# _nvcc_command(OUT): nvcc with what every call needs. -Xcompiler splits its argument at commas, hence one each.
function(_nvcc_command out)
  set(command ${MEMOPT_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++17 -O2)
  foreach(option IN ITEMS -fno-omit-frame-pointer -g ${ARGN})
    list(APPEND command -Xcompiler ${option})
  endforeach()
  set(${out} ${command} PARENT_SCOPE)
endfunction()

# _nvcc_make(OUTPUT SOURCE COMMENT COMMAND…): a rule for the file; its headers are listed in a file .d beside it. Once for all that need it in a folder.
function(_nvcc_make output source comment)
  get_property(known DIRECTORY PROPERTY MEMOPT_NVCC_OUTPUTS)
  if(output IN_LIST known)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY MEMOPT_NVCC_OUTPUTS ${output})
  cmake_path(GET output PARENT_PATH folder)
  file(MAKE_DIRECTORY ${folder})
  cmake_path(RELATIVE_PATH output BASE_DIRECTORY ${CMAKE_BINARY_DIR} OUTPUT_VARIABLE relative)
  if(MEMOPT_NVCC_FROM AND EXISTS ${MEMOPT_NVCC_FROM}/${relative})
    add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -E copy ${MEMOPT_NVCC_FROM}/${relative} ${output}
                       DEPENDS ${MEMOPT_NVCC_FROM}/${relative} COMMENT "copy ${relative}" VERBATIM)
    return()
  endif()
  add_custom_command(OUTPUT ${output} COMMAND ${ARGN} -MD -MF ${output}.d -MT ${output} ${source} -o ${output}
                     DEPENDS ${source} ${MEMOPT_NVCC} DEPFILE ${output}.d COMMENT "nvcc ${comment}" VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

function(_nvcc_require context)
  foreach(required IN LISTS ARGN)
    if(NOT ARG_${required})
      message(FATAL_ERROR "${context}: ${required} is missing")
    endif()
  endforeach()
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${context}: unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
endfunction()

function(nvcc_add_program)
  cmake_parse_arguments(ARG "STRIP" "NAME;RUNTIME;OUTPUT_DIR" "SOURCES;OPTIONS" ${ARGN})
  _nvcc_require("nvcc_add_program(${ARG_NAME})" NAME SOURCES)
  if(NOT ARG_RUNTIME)
    set(ARG_RUNTIME shared)
  elseif(NOT ARG_RUNTIME MATCHES "^(shared|static)$")
    message(FATAL_ERROR "nvcc_add_program(${ARG_NAME}): RUNTIME is shared or static, not ${ARG_RUNTIME}")
  endif()
  if(NOT ARG_OUTPUT_DIR)
    set(ARG_OUTPUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  # Its libraries are sanitised, and need the sanitizer's first in the program.
  set(sanitizers)
  if(MEMOPT_SANITIZE)
    foreach(sanitizer IN LISTS MEMOPT_SANITIZE)
      list(APPEND sanitizers -fsanitize=${sanitizer})
    endforeach()
    list(APPEND sanitizers -fno-sanitize-recover=all)
  endif()
  _nvcc_command(compile -Wall)
  _nvcc_command(link ${sanitizers})
  set(architecture ${MEMOPT_NVCC_ARCHITECTURE})
  set(generate -gencode=arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])

  set(objects)
  foreach(source IN LISTS ARG_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source STEM stem)
    # The runtime is chosen by the linker: programs of one source share the object.
    string(MD5 options "${source} ${ARG_OPTIONS}")
    string(SUBSTRING ${options} 0 8 options)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${stem}.nvcc/${options}.o)
    _nvcc_make(${object} ${source} "${ARG_NAME}: ${stem}" ${compile} ${generate} ${ARG_OPTIONS} -c)
    list(APPEND objects ${object})
  endforeach()

  set(program ${ARG_OUTPUT_DIR}/${ARG_NAME})
  if(ARG_RUNTIME STREQUAL "shared")
    set(runtime -cudart shared -L${MEMOPT_CUDA_LINK_DIR})
    set(runtime_file ${MEMOPT_CUDART})
  elseif(MEMOPT_GPU_RUNTIME)
    set(runtime -cudart static -L${MEMOPT_CUDA_LIBRARY_DIR})
    set(runtime_file ${MEMOPT_CUDA_LIBRARY_DIR}/libcudart_static.a)
  else()
    set(archive ${CMAKE_BINARY_DIR}/cudasim/lib/libcudart_static.a)
    set(runtime -cudart none ${archive} -ldl -lpthread -lrt)
    set(runtime_file cudasim_runtime_static ${archive})
  endif()
  if(MEMOPT_GPU_RUNTIME)
    # Carried to the machine with the GPU, which may have another C++ library.
    list(APPEND runtime -Xcompiler -static-libstdc++ -Xcompiler -static-libgcc)
  endif()
  set(strip)
  if(ARG_STRIP)
    set(strip COMMAND ${CMAKE_STRIP} ${program})
  endif()
  file(MAKE_DIRECTORY ${ARG_OUTPUT_DIR})
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${link} ${generate} -cudadevrt none ${objects} ${runtime} -o ${program}
    ${strip}
    DEPENDS ${objects} ${runtime_file}
    COMMENT "nvcc ${ARG_NAME}: link (${ARG_RUNTIME} runtime)" VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${ARG_NAME} ALL DEPENDS ${program})
  set_target_properties(${ARG_NAME} PROPERTIES NVCC_OUTPUT ${program})
endfunction()

function(nvcc_add_module)
  cmake_parse_arguments(ARG "" "NAME;SOURCE;FORMAT;OUTPUT_DIR;OUTPUT" "OPTIONS" ${ARGN})
  _nvcc_require("nvcc_add_module(${ARG_NAME})" NAME SOURCE)
  if(NOT ARG_OUTPUT_DIR)
    set(ARG_OUTPUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  if(NOT ARG_FORMAT)
    set(ARG_FORMAT fatbin)
  endif()
  set(architecture ${MEMOPT_NVCC_ARCHITECTURE})
  if(ARG_FORMAT STREQUAL "fatbin")
    set(generate -gencode=arch=compute_${architecture},code=[sm_${architecture},compute_${architecture}])
  elseif(ARG_FORMAT STREQUAL "cubin")
    set(generate -gencode=arch=compute_${architecture},code=sm_${architecture})
  elseif(ARG_FORMAT STREQUAL "ptx")
    set(generate -gencode=arch=compute_${architecture},code=compute_${architecture})
  else()
    message(FATAL_ERROR "nvcc_add_module(${ARG_NAME}): FORMAT is fatbin, cubin or ptx, not ${ARG_FORMAT}")
  endif()
  _nvcc_command(nvcc)
  cmake_path(ABSOLUTE_PATH ARG_SOURCE NORMALIZE OUTPUT_VARIABLE source)
  set(module ${ARG_OUTPUT_DIR}/${ARG_NAME}.${ARG_FORMAT})
  if(ARG_OUTPUT)
    cmake_path(ABSOLUTE_PATH ARG_OUTPUT BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE module)
  endif()
  _nvcc_make(${module} ${source} "${ARG_NAME}.${ARG_FORMAT}" ${nvcc} ${generate} ${ARG_OPTIONS} -${ARG_FORMAT})
  add_custom_target(${ARG_NAME} ALL DEPENDS ${module})
  set_target_properties(${ARG_NAME} PROPERTIES NVCC_OUTPUT ${module})
endfunction()
