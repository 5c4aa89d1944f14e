// What was recorded and planned: columns of numbers become arrays.
const NONE = 0xffffffff;

async function column(packed) {
  const text = atob(packed.base64);
  let bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  if (packed.zlib) {
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  }
  switch (packed.type) {
    case "f64": return new Float64Array(bytes.buffer);
    case "f32": return new Float32Array(bytes.buffer);
    case "u32": return new Uint32Array(bytes.buffer);
    default: return bytes;
  }
}

async function columns(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.base64 === "string") return column(value);
  await Promise.all(Object.keys(value).map(async (key) => { value[key] = await columns(value[key]); }));
  return value;
}

if (typeof DecompressionStream === "undefined") {
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.textContent = "This browser can't unpack the data of the page: Chromium 90, Firefox 113 or Safari 16.4, or later, can.";
  document.getElementById("notices").append(notice);
  return;
}
const data = await columns(JSON.parse(document.getElementById("data").textContent));
// A page of a recording has all of it; of a plan, of a layout, of a comparison of plans, some of it.
const program = data.program || null;
if (!program) Object.assign(data, { frames: [], stacks: { start: [0], frame: [] } });
const PLAIN = data.plain_units === true;  // sizes and times are numbers of a file that has no units
const iteration = data.iteration;
const blocks = iteration ? iteration.blocks : null;
const blockCount = blocks ? blocks.bytes.length : 0;
const plans = iteration ? iteration.plans : [];
const tick = iteration ? iteration.tick_ns : 1;

const STAYS = 1, PINNED = 2, MADE_AGAIN = 4;
const stays = (block) => (blocks.flags[block] & STAYS) !== 0;
const LAUNCH = 2, COPY = 3, REPLAY = 5;

// Names of the call stack, innermost first.
function framesOf(stack) {
  if (stack === NONE) return [];
  const names = [];
  for (let i = data.stacks.start[stack]; i < data.stacks.start[stack + 1]; ++i) names.push(data.frames[data.stacks.frame[i]]);
  return names;
}
// Who asked for the memory: the innermost frame of Python code, else the innermost that is not of CUDA's own libraries.
const OF_PYTHON = / \(.*:\d+\)$/;
const OF_CUDA = /\blib(cudart|cuda|cudasim|memopt)\b/;
const places = new Map();
function placeOf(stack) {
  if (!places.has(stack)) {
    const frames = framesOf(stack);
    places.set(stack, frames.find((frame) => OF_PYTHON.test(frame)) || frames.find((frame) => !OF_CUDA.test(frame)) || frames[0] || "");
  }
  return places.get(stack);
}

// The steps that touch a block: [{step, writes}], the first and last of them where there are very many.
function usesOf(block) {
  const uses = [];
  for (let i = blocks.use_start[block]; i < blocks.use_start[block + 1]; ++i) {
    uses.push({ step: blocks.use[i] & 0x7fffffff, writes: blocks.use[i] >>> 31 === 1 });
  }
  return uses;
}
const stepName = (step) => data.operations[iteration.steps.name[step]];

// By block: the name of what touches it first; a number of data.operations, or NONE.
const firstName = new Uint32Array(blockCount).fill(NONE);
for (let block = 0; block < blockCount; ++block) {
  const first = blocks.use_start[block];
  if (first < blocks.use_start[block + 1]) firstName[block] = iteration.steps.name[blocks.use[first] & 0x7fffffff];
}
const firstNameOf = (block) => (firstName[block] === NONE ? "" : data.operations[firstName[block]]);
