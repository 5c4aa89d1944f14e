// A PTX module as parsed: what an interpreter or a compiler starts from. Plain data, never changed after parse() has
// made it; any number of threads may read it.
//
// What a compiler needs to know:
// - Registers are numbered per function and typed by their declaration; an instruction reads and writes as many bits as
//   its own type says. A register narrower than the type (ld.u8 into a .b32) is extended as the ISA says.
// - Each name is resolved: labels to blocks, symbols to `Program::variables`, callees to `Program::functions`.
// - Every variable of every scope is in `Program::variables`. Those of module scope have no offset: .global and .const
//   ones get device memory when the module is loaded, and are found by name. Those of a function (.local, .param, its
//   formals) lie at `offset` in its frame, of which each thread has one per call. Parameters of a kernel lie at
//   `offset` in the launch's parameter buffer. Where .shared ones lie depends on the kernel: `Function::shared`.
// - Addresses. Global, constant, local, parameter and generic addresses are addresses of the process; those of .shared
//   are offsets into the block's shared memory, which cvta turns into addresses of the process and back.
// - A function that uses what is not known has a `problem`; a kernel whose callees have one can't be run either.
// - Control flow: `blocks` with successors and immediate post-dominators. Block 0 is the entry. Only the last
// instruction
//   of a block branches, returns or exits; other instructions may have a guard, too, and a guarded call is one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/front/opcodes.h"

namespace cudasim::ptx {

enum class Space : std::uint8_t { kGeneric, kGlobal, kConst, kShared, kLocal, kParam };

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;

// Bytes of a variable's initial value that are an address: filled in when that is known. Eight bytes, or as many as
// `bytes` says, at `offset`.
struct Relocation {
  std::uint64_t offset;
  std::uint32_t bytes;
  std::string symbol;  // a variable or a function
  std::int64_t addend;
  std::uint64_t mask = 0;  // mask(): the byte that is kept, shifted down by `shift`; 0: all
  std::uint32_t shift = 0;
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;           // of an element
  std::uint64_t size = 0;          // bytes; 0 for an unsized array (dynamic shared memory)
  std::uint64_t alignment = 1;     // a power of two
  std::uint64_t offset = 0;        // see above
  std::vector<std::byte> initial;  // the first bytes; the rest is zero
  std::vector<Relocation> relocations;
  bool managed = false;
  bool external = false;  // defined by another module, or dynamic shared memory
};

struct Register {
  Type type;  // as declared
};

// %tid.x and its like, by what they say.
enum class Special : std::uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClockHi,
  kClock64,
  kGlobaltimer,
  kGlobaltimerLo,
  kGlobaltimerHi,
  kDynamicSmemSize,
  kTotalSmemSize,
  kEnvreg1,  // the address of a cooperative grid's workspace: the upper half, then the lower; 0 for other grids
  kEnvreg2,
  kZero,  // %tid.w, cluster indices of a grid without clusters
  kOne,   // cluster sizes of a grid without clusters
};

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,   // index: register
    kSink,       // _: a destination that is thrown away
    kImmediate,  // value: its bits, in the width of the instruction's type
    kSpecial,    // special
    kVariable,   // index: variable, value: bytes added. As a source its address; in brackets what lies there
    kFunction,   // index: function, as a source its address
    kVector,     // elements: registers, sinks, immediates
    kAddress,    // register `index` plus `value` bytes, in brackets; absolute with kNoIndex. Of a texture or a surface:
                 // its handle, and the coordinates as elements
    kBlock,      // index: block
  };
  Kind kind = Kind::kRegister;
  bool negated = false;  // !p, -r is not PTX
  Special special = Special::kZero;
  std::uint32_t index = kNoIndex;
  std::uint32_t pair = kNoIndex;  // q of a destination p|q
  std::uint64_t value = 0;
  std::vector<Operand> elements;
};

struct Instruction {
  Op op = Op::kRet;
  std::vector<Type> types;  // as written; mma has four: d, a, b, c
  Modifiers modifiers;
  std::uint32_t guard = kNoIndex;  // a predicate register; kNoIndex: always
  bool guard_negated = false;
  // In the order of the table's row; what was left out is not there. A call has: return values, callee (a function or
  // a register), arguments as two vectors around it, each element a .param variable.
  std::vector<Operand> operands;
  std::uint32_t line = 0;

  bool has(Modifier m) const { return modifiers.has(m); }
  Type type() const { return types.empty() ? Type::kNone : types.front(); }
  Space space() const;                 // of ld, st, atom, red, cvta, isspacep
  std::uint32_t vector_width() const;  // 1, 2, 4 or 8
};
// "add.rn.f32", for messages.
std::string text_of(const Instruction& instruction);

struct Block {
  std::uint32_t first;                    // into Function::instructions
  std::uint32_t last;                     // exclusive
  std::vector<std::uint32_t> successors;  // the branch's targets, then the block that follows
  // Where lanes that part at the end of this block meet again; kNoIndex: only when they return.
  std::uint32_t post_dominator = kNoIndex;
};

struct SharedPlace {
  std::uint32_t variable;
  std::uint64_t offset;
};

struct Function {
  std::string name;
  bool is_kernel = false;
  bool is_defined = false;                // it has a body
  std::vector<std::uint32_t> parameters;  // into Program::variables
  std::vector<std::uint32_t> results;     // the same, of a device function
  std::uint64_t parameter_bytes = 0;      // of a kernel
  std::uint64_t frame_bytes = 0;          // per thread: .local, .param and formals of a device function
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  std::vector<std::uint32_t> callees;           // into Program::functions, each once
  bool calls_pointers = false;                  // call through a register
  bool uses_carry = false;                      // add.cc and its like
  std::vector<std::uint32_t> shared_variables;  // that its own instructions name
  // Of a kernel: its shared variables and those of everything that it may call. Dynamic shared memory lies behind.
  std::vector<SharedPlace> shared;
  std::uint32_t static_shared_bytes = 0;
  std::uint64_t dynamic_shared_offset = 0;
  std::uint32_t max_threads = 1024;  // .maxntid, .reqntid
  std::string problem;               // not empty: it can't be run, and why ("line 12: tex.2d.v4.f32.s32")
};

struct Program {
  int arch = 0;          // .target, 10 * major + minor
  char arch_suffix = 0;  // 'a', 'f' or 0
  std::vector<Variable> variables;
  std::vector<std::uint32_t> module_variables;  // those of module scope, in their order
  std::vector<Function> functions;              // kernels in their order among them

  const Function* kernel(std::string_view name) const;
  // Of the kernel or anything that it may call; empty: it can be run.
  std::string problem_of(const Function& kernel) const;
  // The kernel and all that it may call: with a call through a pointer, every function of the module.
  std::vector<std::uint32_t> closure_of(const Function& kernel) const;
};

}  // namespace cudasim::ptx
