#pragma once

// Every driver entry point that the runtime uses: one list, from which the table, its loader and the tests derive.
//
// PLAIN(name, version)                      the same function whatever the default stream is
// STREAM(name, version, per_thread_version, suffix)
//                                           has a twin whose stream 0 means the thread's own stream
//
// Versions are ABI versions as cuGetProcAddress wants them; they also name the function type in cudaTypedefs.h, so that
// a version and a signature can't disagree.

#define CUDASIM_DRIVER_ENTRY_POINTS(PLAIN, STREAM)                  \
  PLAIN(cuInit, 2000)                                               \
  PLAIN(cuDriverGetVersion, 2020)                                   \
  PLAIN(cuDeviceGet, 2000)                                          \
  PLAIN(cuDeviceGetCount, 2000)                                     \
  PLAIN(cuDeviceGetName, 2000)                                      \
  PLAIN(cuDeviceGetUuid, 11040)                                     \
  PLAIN(cuDeviceTotalMem, 3020)                                     \
  PLAIN(cuDeviceGetAttribute, 2000)                                 \
  PLAIN(cuDeviceGetByPCIBusId, 4010)                                \
  PLAIN(cuDeviceGetPCIBusId, 4010)                                  \
  PLAIN(cuDeviceCanAccessPeer, 4000)                                \
  PLAIN(cuDeviceGetP2PAttribute, 8000)                              \
  PLAIN(cuDeviceGetDefaultMemPool, 11020)                           \
  PLAIN(cuDeviceGetMemPool, 11020)                                  \
  PLAIN(cuDeviceSetMemPool, 11020)                                  \
  PLAIN(cuDeviceGetGraphMemAttribute, 11040)                        \
  PLAIN(cuDeviceSetGraphMemAttribute, 11040)                        \
  PLAIN(cuDeviceGraphMemTrim, 11040)                                \
  PLAIN(cuDevicePrimaryCtxRetain, 7000)                             \
  PLAIN(cuDevicePrimaryCtxReset, 11000)                             \
  PLAIN(cuDevicePrimaryCtxGetState, 7000)                           \
  PLAIN(cuDevicePrimaryCtxSetFlags, 11000)                          \
  PLAIN(cuCtxGetCurrent, 4000)                                      \
  PLAIN(cuCtxSetCurrent, 4000)                                      \
  PLAIN(cuCtxGetDevice, 2000)                                       \
  PLAIN(cuCtxSynchronize, 2000)                                     \
  PLAIN(cuCtxGetLimit, 3010)                                        \
  PLAIN(cuCtxSetLimit, 3010)                                        \
  PLAIN(cuCtxGetCacheConfig, 3020)                                  \
  PLAIN(cuCtxSetCacheConfig, 3020)                                  \
  PLAIN(cuCtxGetStreamPriorityRange, 5050)                          \
  PLAIN(cuCtxResetPersistingL2Cache, 11000)                         \
  PLAIN(cuCtxEnablePeerAccess, 4000)                                \
  PLAIN(cuCtxDisablePeerAccess, 4000)                               \
  PLAIN(cuMemAlloc, 3020)                                           \
  PLAIN(cuMemAllocPitch, 3020)                                      \
  PLAIN(cuMemAllocManaged, 6000)                                    \
  PLAIN(cuMemFree, 3020)                                            \
  PLAIN(cuMemGetInfo, 3020)                                         \
  PLAIN(cuMemHostAlloc, 2020)                                       \
  PLAIN(cuMemFreeHost, 2000)                                        \
  PLAIN(cuMemHostRegister, 6050)                                    \
  PLAIN(cuMemHostUnregister, 4000)                                  \
  PLAIN(cuMemHostGetDevicePointer, 3020)                            \
  PLAIN(cuMemHostGetFlags, 2030)                                    \
  PLAIN(cuPointerGetAttributes, 7000)                               \
  PLAIN(cuMemAdvise, 12020)                                         \
  PLAIN(cuMemPoolCreate, 11020)                                     \
  PLAIN(cuMemPoolDestroy, 11020)                                    \
  PLAIN(cuMemPoolTrimTo, 11020)                                     \
  PLAIN(cuMemPoolGetAttribute, 11020)                               \
  PLAIN(cuMemPoolSetAttribute, 11020)                               \
  PLAIN(cuMemPoolGetAccess, 11020)                                  \
  PLAIN(cuMemPoolSetAccess, 11020)                                  \
  PLAIN(cuMemGetDefaultMemPool, 13000)                              \
  PLAIN(cuMemGetMemPool, 13000)                                     \
  PLAIN(cuMemSetMemPool, 13000)                                     \
  PLAIN(cuArray3DCreate, 3020)                                      \
  PLAIN(cuArray3DGetDescriptor, 3020)                               \
  PLAIN(cuArrayDestroy, 2000)                                       \
  PLAIN(cuMipmappedArrayCreate, 5000)                               \
  PLAIN(cuMipmappedArrayGetLevel, 5000)                             \
  PLAIN(cuMipmappedArrayDestroy, 5000)                              \
  PLAIN(cuTexObjectCreate, 5000)                                    \
  PLAIN(cuTexObjectDestroy, 5000)                                   \
  PLAIN(cuTexObjectGetResourceDesc, 5000)                           \
  PLAIN(cuTexObjectGetTextureDesc, 5000)                            \
  PLAIN(cuSurfObjectCreate, 5000)                                   \
  PLAIN(cuSurfObjectDestroy, 5000)                                  \
  PLAIN(cuSurfObjectGetResourceDesc, 5000)                          \
  PLAIN(cuIpcGetMemHandle, 4010)                                    \
  PLAIN(cuIpcOpenMemHandle, 11000)                                  \
  PLAIN(cuIpcCloseMemHandle, 4010)                                  \
  PLAIN(cuIpcGetEventHandle, 4010)                                  \
  PLAIN(cuIpcOpenEventHandle, 4010)                                 \
  PLAIN(cuStreamCreate, 2000)                                       \
  PLAIN(cuStreamCreateWithPriority, 5050)                           \
  PLAIN(cuStreamDestroy, 4000)                                      \
  PLAIN(cuThreadExchangeStreamCaptureMode, 10010)                   \
  PLAIN(cuEventCreate, 2000)                                        \
  PLAIN(cuEventDestroy, 4000)                                       \
  PLAIN(cuEventQuery, 2000)                                         \
  PLAIN(cuEventSynchronize, 2000)                                   \
  PLAIN(cuEventElapsedTime, 2000)                                   \
  PLAIN(cuLibraryLoadData, 12000)                                   \
  PLAIN(cuLibraryLoadFromFile, 12000)                               \
  PLAIN(cuLibraryUnload, 12000)                                     \
  PLAIN(cuLibraryGetKernel, 12000)                                  \
  PLAIN(cuLibraryGetGlobal, 12000)                                  \
  PLAIN(cuLibraryGetManaged, 12000)                                 \
  PLAIN(cuLibraryGetKernelCount, 12040)                             \
  PLAIN(cuLibraryEnumerateKernels, 12040)                           \
  PLAIN(cuKernelGetFunction, 12000)                                 \
  PLAIN(cuKernelGetAttribute, 12000)                                \
  PLAIN(cuKernelSetAttribute, 12000)                                \
  PLAIN(cuKernelSetCacheConfig, 12000)                              \
  PLAIN(cuKernelGetName, 12030)                                     \
  PLAIN(cuKernelGetParamInfo, 12040)                                \
  PLAIN(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000) \
  PLAIN(cuOccupancyAvailableDynamicSMemPerBlock, 10020)             \
  PLAIN(cuProfilerStart, 4000)                                      \
  PLAIN(cuProfilerStop, 4000)                                       \
  PLAIN(cuMemcpyPeer, 4000)                                         \
  PLAIN(cuMemcpyPeerAsync, 4000)                                    \
  PLAIN(cuGraphCreate, 10000)                                       \
  PLAIN(cuGraphDestroy, 10000)                                      \
  PLAIN(cuGraphClone, 10000)                                        \
  PLAIN(cuGraphNodeFindInClone, 10000)                              \
  PLAIN(cuGraphNodeGetType, 10000)                                  \
  PLAIN(cuGraphGetNodes, 10000)                                     \
  PLAIN(cuGraphGetRootNodes, 10000)                                 \
  PLAIN(cuGraphGetEdges, 12030)                                     \
  PLAIN(cuGraphNodeGetDependencies, 12030)                          \
  PLAIN(cuGraphNodeGetDependentNodes, 12030)                        \
  PLAIN(cuGraphAddDependencies, 12030)                              \
  PLAIN(cuGraphRemoveDependencies, 12030)                           \
  PLAIN(cuGraphDestroyNode, 10000)                                  \
  PLAIN(cuGraphDebugDotPrint, 11030)                                \
  PLAIN(cuGraphInstantiateWithFlags, 11040)                         \
  PLAIN(cuGraphExecGetFlags, 12000)                                 \
  PLAIN(cuGraphExecDestroy, 10000)                                  \
  PLAIN(cuGraphExecUpdate, 12000)                                   \
  PLAIN(cuGraphNodeSetEnabled, 11060)                               \
  PLAIN(cuGraphNodeGetEnabled, 11060)                               \
  PLAIN(cuUserObjectCreate, 11030)                                  \
  PLAIN(cuUserObjectRetain, 11030)                                  \
  PLAIN(cuUserObjectRelease, 11030)                                 \
  PLAIN(cuGraphRetainUserObject, 11030)                             \
  PLAIN(cuGraphReleaseUserObject, 11030)                            \
  PLAIN(cuGraphAddNode, 12030)                                      \
  PLAIN(cuGraphNodeSetParams, 12020)                                \
  PLAIN(cuGraphExecNodeSetParams, 12020)                            \
  PLAIN(cuGraphKernelNodeGetParams, 12000)                          \
  PLAIN(cuGraphKernelNodeGetAttribute, 11000)                       \
  PLAIN(cuGraphKernelNodeSetAttribute, 11000)                       \
  PLAIN(cuGraphKernelNodeCopyAttributes, 11000)                     \
  PLAIN(cuGraphMemcpyNodeGetParams, 10000)                          \
  PLAIN(cuGraphMemsetNodeGetParams, 10000)                          \
  PLAIN(cuGraphHostNodeGetParams, 10000)                            \
  PLAIN(cuGraphChildGraphNodeGetGraph, 10000)                       \
  PLAIN(cuGraphEventRecordNodeGetEvent, 11010)                      \
  PLAIN(cuGraphEventWaitNodeGetEvent, 11010)                        \
  PLAIN(cuGraphMemAllocNodeGetParams, 11040)                        \
  PLAIN(cuGraphMemFreeNodeGetParams, 11040)                         \
  STREAM(cuMemcpy, 4000, 7000, ptds)                                \
  STREAM(cuMemcpyHtoD, 3020, 7000, ptds)                            \
  STREAM(cuMemcpyDtoH, 3020, 7000, ptds)                            \
  STREAM(cuMemcpyDtoD, 3020, 7000, ptds)                            \
  STREAM(cuMemcpyAsync, 4000, 7000, ptsz)                           \
  STREAM(cuMemcpyHtoDAsync, 3020, 7000, ptsz)                       \
  STREAM(cuMemcpyDtoHAsync, 3020, 7000, ptsz)                       \
  STREAM(cuMemcpyDtoDAsync, 3020, 7000, ptsz)                       \
  STREAM(cuMemcpy2DUnaligned, 3020, 7000, ptds)                     \
  STREAM(cuMemcpy2DAsync, 3020, 7000, ptsz)                         \
  STREAM(cuMemcpy3D, 3020, 7000, ptds)                              \
  STREAM(cuMemcpy3DAsync, 3020, 7000, ptsz)                         \
  STREAM(cuMemsetD8, 3020, 7000, ptds)                              \
  STREAM(cuMemsetD8Async, 3020, 7000, ptsz)                         \
  STREAM(cuMemsetD2D8, 3020, 7000, ptds)                            \
  STREAM(cuMemsetD2D8Async, 3020, 7000, ptsz)                       \
  STREAM(cuMemPrefetchAsync, 12020, 12020, ptsz)                    \
  STREAM(cuMemAllocAsync, 11020, 11020, ptsz)                       \
  STREAM(cuMemAllocFromPoolAsync, 11020, 11020, ptsz)               \
  STREAM(cuMemFreeAsync, 11020, 11020, ptsz)                        \
  STREAM(cuStreamSynchronize, 2000, 7000, ptsz)                     \
  STREAM(cuStreamQuery, 2000, 7000, ptsz)                           \
  STREAM(cuStreamWaitEvent, 3020, 7000, ptsz)                       \
  STREAM(cuStreamGetFlags, 5050, 7000, ptsz)                        \
  STREAM(cuStreamGetPriority, 5050, 7000, ptsz)                     \
  STREAM(cuStreamGetId, 12000, 12000, ptsz)                         \
  STREAM(cuStreamGetDevice, 12080, 12080, ptsz)                     \
  STREAM(cuStreamSetAttribute, 11000, 11000, ptsz)                  \
  STREAM(cuStreamGetAttribute, 11000, 11000, ptsz)                  \
  STREAM(cuStreamCopyAttributes, 11000, 11000, ptsz)                \
  STREAM(cuStreamIsCapturing, 10000, 10000, ptsz)                   \
  STREAM(cuStreamGetCaptureInfo, 12030, 12030, ptsz)                \
  STREAM(cuStreamBeginCapture, 10010, 10010, ptsz)                  \
  STREAM(cuStreamBeginCaptureToGraph, 12030, 12030, ptsz)           \
  STREAM(cuStreamEndCapture, 10000, 10000, ptsz)                    \
  STREAM(cuStreamUpdateCaptureDependencies, 12030, 12030, ptsz)     \
  STREAM(cuGraphInstantiateWithParams, 12000, 12000, ptsz)          \
  STREAM(cuGraphUpload, 11010, 11010, ptsz)                         \
  STREAM(cuGraphLaunch, 10000, 10000, ptsz)                         \
  STREAM(cuStreamAddCallback, 5000, 7000, ptsz)                     \
  STREAM(cuStreamAttachMemAsync, 6000, 7000, ptsz)                  \
  STREAM(cuEventRecord, 2000, 7000, ptsz)                           \
  STREAM(cuEventRecordWithFlags, 11010, 11010, ptsz)                \
  STREAM(cuLaunchKernel, 4000, 7000, ptsz)                          \
  STREAM(cuLaunchKernelEx, 11060, 11060, ptsz)                      \
  STREAM(cuLaunchCooperativeKernel, 9000, 9000, ptsz)               \
  STREAM(cuLaunchHostFunc, 10000, 10000, ptsz)
