#include "agent/scan/scan_kernel.h"

#include <cstddef>

#include "agent/scan/scan_slot.h"

namespace memopt::agent {

// The offsets in the text.
static_assert(offsetof(ScanSlot, serial) == 4 && offsetof(ScanSlot, ranges) == 16 && sizeof(ScanRange) == 16);
static_assert(offsetof(ScanRange, words) == 8 && offsetof(ScanSlot, words) == 528 && ScanSlot::kMostWords == 510);
static_assert(kScanPageShift == 21);

// Loads and stores are volatile: the slot is the host's memory, and blocks may be written by others meanwhile.
const char* const kScanKernel = R"ptx(
.version 6.0
.target sm_50
.address_size 64

.visible .entry memopt_scan_words(
  .param .u64 slot_parameter,
  .param .u64 pages_parameter,
  .param .u64 begin_parameter,
  .param .u64 bytes_parameter,
  .param .u32 serial_parameter
)
{
  .reg .pred %p<5>;
  .reg .b32 %r<8>;
  .reg .b64 %slot, %pages, %begin, %bytes, %base, %words, %at, %step, %word, %offset;

  ld.param.u64 %slot, [slot_parameter];
  cvta.to.global.u64 %slot, %slot;
  ld.param.u64 %pages, [pages_parameter];
  cvta.to.global.u64 %pages, %pages;
  ld.param.u64 %begin, [begin_parameter];
  ld.param.u64 %bytes, [bytes_parameter];

  mov.u32 %r1, %ctaid.y;
  mul.wide.u32 %offset, %r1, 16;
  add.s64 %offset, %slot, %offset;
  ld.volatile.global.u64 %base, [%offset+16];
  ld.volatile.global.u64 %words, [%offset+24];
  cvta.to.global.u64 %base, %base;

  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mul.wide.u32 %at, %r2, %r3;
  cvt.u64.u32 %offset, %r4;
  add.s64 %at, %at, %offset;
  mov.u32 %r5, %nctaid.x;
  mul.wide.u32 %step, %r5, %r3;

  or.b32 %r5, %r1, %r2;
  or.b32 %r5, %r5, %r4;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra LOOK;
  ld.param.u32 %r6, [serial_parameter];
  st.volatile.global.u32 [%slot+4], %r6;

LOOK:
  setp.ge.u64 %p2, %at, %words;
  @%p2 bra DONE;
  shl.b64 %offset, %at, 3;
  add.s64 %offset, %base, %offset;
  ld.volatile.global.u64 %word, [%offset];
  sub.s64 %offset, %word, %begin;
  setp.ge.u64 %p3, %offset, %bytes;
  @%p3 bra NEXT;
  atom.global.add.u32 %r7, [%slot], 1;
  setp.ge.u32 %p4, %r7, 510;
  @%p4 bra NO_ROOM;
  mul.wide.u32 %offset, %r7, 8;
  add.s64 %offset, %slot, %offset;
  st.volatile.global.u64 [%offset+528], %word;
  bra NEXT;
NO_ROOM:
  sub.s64 %offset, %word, %begin;
  shr.u64 %offset, %offset, 21;
  add.s64 %offset, %pages, %offset;
  mov.u32 %r7, 1;
  st.volatile.global.u8 [%offset], %r7;
NEXT:
  add.s64 %at, %at, %step;
  bra LOOK;
DONE:
  ret;
}
)ptx";

}  // namespace memopt::agent
