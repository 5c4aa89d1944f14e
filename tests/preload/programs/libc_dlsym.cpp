// Opened with RTLD_DEEPBIND, it is bound to libc's own dlsym.
#include <dlfcn.h>

extern "C" __attribute__((visibility("default"))) void* libc_dlsym() { return reinterpret_cast<void*>(&dlsym); }
