/* What a launch does to device memory, and how long it takes, where no plug-in has its kernel. For an instrument that
 * sees the program's launches before the driver does: it says here what the next one does, and calls cuLaunchKernel.
 * Whatever stands between the two sees one launch, as ever.
 *
 * Found by dlsym on the simulator's libcuda.so.1; absent on a real driver. */
#ifndef CUDASIM_LAUNCH_EFFECT_H_
#define CUDASIM_LAUNCH_EFFECT_H_
#include <stddef.h>
#include <stdint.h>

#include "cudasim/plugin_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CudasimTouched {
  uint64_t address;
  uint64_t size;
  uint32_t reads;  /* 0 or 1: read() loads these bytes */
  uint32_t writes; /* 0 or 1: write() stores to them */
} CudasimTouched;

/* The functions run when the launch's bytes change: after the launch call, perhaps on another thread, one launch at a
 * time, in stream order. They touch device memory by plain loads and stores; a fault is the launch's illegal address
 * and leaves them by a longjmp, so they must own nothing and lock nothing. Null: nothing to do.
 *
 * read() and write() are two pieces of the launch: unordered work of other streams may run between them. The bytes of
 * `touched` are the launch's for the checker, and must belong to memory that is the program's when they are touched.
 * Where a plug-in has the kernel, all this is left out, and so is `cost`; prepare() alone is called, and only then,
 * before the plug-in's code: it may write bytes that nothing has written yet. */
typedef struct CudasimEffect {
  uint32_t struct_size; /* sizeof(CudasimEffect) */
  uint32_t touched_count;
  const CudasimTouched* touched; /* copied */
  CudasimCost cost;              /* cudasim_next_launch_takes() comes first */
  void (*prepare)(
      void* argument); /* before anything else, a plug-in's kernel too: bytes that nothing has written yet */
  void (*read)(void* argument);
  void (*write)(void* argument);
  /* Called once when the argument is no longer needed, whatever became of the launch; from any thread, inside of a
   * driver call. It must not call the driver. */
  void (*release)(void* argument);
  void* argument;
} CudasimEffect;

/* The calling thread's next launch of `function` (a CUfunction or CUkernel) does this. A launch of another function
 * leaves it waiting. Null: nothing any more. 0, or -1 where the struct is of another version; then release() is not
 * called. */
int cudasim_next_launch_does(const void* function, const CudasimEffect* effect);

/* Device time that the calling thread's last launch was given; 0 before the first. */
uint64_t cudasim_last_launch_took(void);

#ifdef __cplusplus
}
#endif
#endif /* CUDASIM_LAUNCH_EFFECT_H_ */
