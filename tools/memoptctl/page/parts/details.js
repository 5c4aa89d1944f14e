// The selected block: size, where and when it lies, what touches it, and who allocated it.
function offsetsText(block) {
  const drawn = view.plan.drawn.blocks, offsets = new Set();
  for (let i = 0; i < view.count; ++i) if (drawn.block[i] === block) offsets.add(drawn.offset[i]);
  return [...offsets].map((offset) => d3.format(",")(offset)).join(", then ");
}

function moveRows(block) {
  const copies = view.plan.drawn.copies, rows = [];
  for (let i = 0; i < copies.from.length; ++i) {
    if (copies.block[i] !== block) continue;
    rows.push(`${copies.in[i] ? "copied in" : "copied out"} from ${timeText(copies.from[i] * tick)} to ${timeText(copies.to[i] * tick)}`);
  }
  return rows;
}

function usesList(block) {
  const byName = new Map();
  for (const { step: use, writes } of usesOf(block)) {
    const name = stepName(use);
    const known = byName.get(name) || { times: 0, writes: false, first: shifted(iteration.steps.begin[use] * tick) };
    ++known.times;
    known.writes = known.writes || writes;
    byName.set(name, known);
  }
  return [...byName.entries()].map(([name, { times, writes, first }]) => element("li", {},
    element("span", { class: "mono" }, name), ` ${times > 1 ? `${times} times, ` : ""}${writes ? "may write" : "reads"}, first at ${timeText(first)}`));
}

function showDetails() {
  const pane = byId("details"), block = chosen.block;
  if (block < 0) {
    pane.replaceChildren(element("h3", {}, PLAIN ? "No buffer selected" : "No block selected"),
      element("p", {}, PLAIN ? "Click a rectangle or a row of the table, or press n or l in the layout."
        : "Click a rectangle, a bar of a copy or a row of the table, or press n or l in the layout. What touches the block, who allocated it and when it moves is shown here."));
    return;
  }
  const facts = element("dl", {});
  pairs(facts, [["size", exactBytes(blocks.bytes[block])], ["offset", offsetsText(block)],
    ["allocated", stays(block) ? "before the iteration" : timeText(planned(blocks.born_ns[block]))],
    ["freed", stays(block) ? "never" : timeText(planned(blocks.freed_ns[block])) + (!PLAIN && blocks.freed_ns[block] > iteration.period_ns ? ", in a later iteration" : "")],
    ["lives for", stays(block) ? "all iterations" : timeText(lifeOf(block))],
    ["at the peak", atPeak[block] ? "live" : "not live"],
    PLAIN ? ["has a fixed offset", blocks.flags[block] & PINNED ? "yes" : "no"] : ["may leave the device", blocks.flags[block] & PINNED ? "no" : "yes"]]);
  const frames = framesOf(blocks.stack[block]), uses = usesList(block), moves = moveRows(block);
  const parts = [element("h3", {}, `${bytesText(blocks.bytes[block])} · ${blockName(block)}`), facts];
  if (moves.length) parts.push(element("h4", {}, "In this plan"), ...moves.map((text) => element("div", {}, text)));
  if (!PLAIN) {
    parts.push(element("h4", {}, `What touches it (${count(blocks.accesses[block], "use")})`),
      uses.length ? element("ol", {}, ...uses) : element("p", {}, "nothing in the iteration"));
  }
  if (program) {
    parts.push(element("h4", {}, frames.length > 1 ? "Call stack, innermost first" : "Allocated from"),
      frames.length ? element("ol", {}, ...frames.map((frame) => element("li", { class: "mono" }, frame))) : element("p", {}, "not recorded"));
  }
  parts.push(element("div", { class: "bar" },
    element("button", { type: "button", onclick: () => zoomTo(block) }, "Zoom to it"),
    element("button", { type: "button", onclick: () => step(-1) }, "Previous"),
    element("button", { type: "button", onclick: () => step(1) }, "Next"),
    element("button", { type: "button", onclick: () => chooseBlock(-1) }, "Clear")));
  pane.replaceChildren(...parts);
}

function setUpDetails() {
  if (!iteration) return;
  changed.on("block.details", showDetails);
  changed.on("plan.details", showDetails);
  showDetails();
}
