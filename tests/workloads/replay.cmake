# Replay and the networks' traces. Included by CMakeLists.txt.
# In Python alone: in the plain build only.
if(NOT MEMOPT_SANITIZE)
  memopt_add_python_test(NAME nets_test SCRIPT nets_test.py LABELS workloads TIMEOUT 300
                         ENV TEST_NETS=${CMAKE_SOURCE_DIR}/integration/workloads/nets MEMOPTCTL=$<TARGET_FILE:memoptctl>)
endif()
if(NOT TARGET replay_trace)
  return()
endif()
memopt_add_test(NAME replay_parts_test ONE_THREAD LIBS replay_trace LABELS workloads SOURCES
  replay_steady_test.cpp
  replay_trace_test.cpp)
if(TARGET memopt_recording)
  target_sources(replay_parts_test PRIVATE replay_recording_test.cpp)
  target_link_libraries(replay_parts_test PRIVATE memopt_recording)
  target_include_directories(replay_parts_test PRIVATE ${CMAKE_SOURCE_DIR})
endif()

if(TARGET replay AND TARGET cudasim_driver)
  set(replay_environment TEST_WORKLOADS=${CMAKE_BINARY_DIR}/workloads TEST_SIMULATOR=${CMAKE_BINARY_DIR}/cudasim
                         TEST_NETS=${CMAKE_SOURCE_DIR}/integration/workloads/nets TEST_SHARED=${CMAKE_SOURCE_DIR}/../shared)
  memopt_add_python_test(NAME replay_test SCRIPT replay_test.py TIMEOUT 600 LABELS workloads ENV ${replay_environment})
  # Whole networks: in the plain build only.
  if(NOT MEMOPT_SANITIZE)
    memopt_add_python_test(NAME replay_traces_test SCRIPT replay_traces_test.py ARGS Daily TIMEOUT 1800 LABELS slow workloads
                           ENV ${replay_environment})
    memopt_add_python_test(NAME replay_traces_full_test SCRIPT replay_traces_test.py ARGS Full TIMEOUT 7200 LABELS full workloads
                           ENV ${replay_environment})
  endif()
endif()
