/* Between libcuda.so.1 of the simulator and libcudasim_schedule.so, which is preloaded where CUDASIM_SCHEDULE orders
 * the threads of a program: the one knows which thread goes on, the other sees where threads wait. Nothing for
 * programs.
 *
 * The driver finds cudasim_schedule_attach() when it is made, and hands over what the preloaded library then calls in
 * the place of waiting. All of it may be called from any thread.
 */
#ifndef CUDASIM_SCHEDULE_H_
#define CUDASIM_SCHEDULE_H_
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDASIM_SCHEDULE_VERSION 1

/* Can the waiting thread go on? Asked while every scheduled thread stands still. */
typedef int (*CudasimReady)(void* argument);

typedef struct CudasimWait {
  const char* what;       /* for people: "a mutex", "a futex" */
  const void* object;     /* what notify() names */
  CudasimReady ready;     /* null: notify() alone */
  void* argument;         /* of ready */
  void (*release)(void*); /* called once when the wait has begun, before another thread goes on; may be null */
  void* release_argument;
  int64_t deadline_ns; /* by CLOCK_MONOTONIC; negative: none */
} CudasimWait;

typedef struct CudasimSchedule {
  uint32_t version;
  /* Is the calling thread one of those that are scheduled? */
  int (*is_scheduled)(void);
  /* The calling thread is about to create one; its number, or 0 where the new one is none of the program's. */
  uint64_t (*expect_thread)(void);
  void (*start_thread)(uint64_t number);  /* first thing on the new thread; returns when it is its turn */
  void (*cancel_thread)(uint64_t number); /* it could not be created */
  int (*has_ended)(uint64_t number);      /* for CudasimWait::ready alone */
  /* Another thread may go on; returns when it is the calling thread's turn again. */
  void (*point)(const char* what);
  /* 1: ready or notified, 0: the deadline has passed. */
  int (*wait)(const CudasimWait* wait);
  /* Up to `count` of those that wait for the object, the longest waiting first, go on. Returns how many. */
  int (*notify)(const void* object, int count);
  /* The thread sleeps for a moment, and looks again then; `caller`: an address in the code that does, or null. */
  void (*nap)(const char* what, const void* caller, int64_t nanoseconds);
} CudasimSchedule;

/* Exported by libcudasim_schedule.so. */
void cudasim_schedule_attach(const CudasimSchedule* schedule);
/* Exported by libcudasim_schedule.so: is the calling thread a preloaded library's own, and not the program's? */
int cudasim_schedule_is_service(void);

#ifdef __cplusplus
}
#endif
#endif /* CUDASIM_SCHEDULE_H_ */
