# Replay and the networks' traces. Included by CMakeLists.txt.
memopt_add_python_test(NAME nets_test SCRIPT nets_test.py LABELS workloads
                       ENV TEST_NETS=${CMAKE_SOURCE_DIR}/integration/workloads/nets)
if(NOT TARGET replay_trace)
  return()
endif()
memopt_add_test(NAME replay_trace_test SOURCES replay_trace_test.cpp LIBS replay_trace LABELS workloads ONE_THREAD)
memopt_add_test(NAME replay_steady_test SOURCES replay_steady_test.cpp LIBS replay_trace LABELS workloads ONE_THREAD)
if(TARGET memopt_recording)
  memopt_add_test(NAME replay_recording_test SOURCES replay_recording_test.cpp LIBS replay_trace memopt_recording LABELS workloads ONE_THREAD)
  target_include_directories(replay_recording_test PRIVATE ${CMAKE_SOURCE_DIR})
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
