// Bytes at a peak, by call stack or by what touches the blocks: the widest holds the most. The root is on top.
const FLAME_ROW = 24, FLAME_LEAST = 0.0008;  // of the width; what is narrower is not drawn
const flame = { root: null, focus: null, nodes: [] };

const flameSources = [];
if (program && data.peak.blocks > 0) {
  flameSources.push({
    name: "the recording", title: "recorded", lead: `at ${timeText(data.peak.at_ns)} of the recording`,
    items: () => d3.range(data.peak.bytes.length).map((i) => ({ bytes: data.peak.bytes[i], stack: data.peak.stack[i], block: -1 })),
  });
}
if (program && iteration) {
  flameSources.unshift({
    name: "the planned iteration", title: "iteration", lead: `at ${timeText(iteration.peak.at_ns)} of the planned iteration`,
    items: () => Array.from(iteration.peak.blocks, (block) => ({ bytes: blocks.bytes[block], stack: blocks.stack[block], block })),
  });
}
const BY = { stack: "call stack", kernel: "first kernel that touches it" };

function pathOf(item, by) {
  if (by === "stack") {
    const frames = framesOf(item.stack).reverse();
    return frames.length ? frames : ["call stack not recorded"];
  }
  const kernel = firstNameOf(item.block);
  return [stays(item.block) ? "blocks that stay through all iterations" : "blocks made in the iteration", kernel || "not touched in the iteration"];
}

function flameTree(source, by) {
  const root = { name: "all live blocks", bytes: 0, blocks: 0, largest: -1, children: new Map() };
  const add = (node, item) => {
    node.bytes += item.bytes;
    ++node.blocks;
    if (item.block >= 0 && (node.largest < 0 || item.bytes > blocks.bytes[node.largest])) node.largest = item.block;
  };
  for (const item of source.items()) {
    let node = root;
    add(node, item);
    for (const name of [...pathOf(item, by), `blocks of ${bytesText(item.bytes)}`]) {
      if (!node.children.has(name)) node.children.set(name, { name, bytes: 0, blocks: 0, largest: -1, children: new Map() });
      node = node.children.get(name);
      add(node, item);
    }
  }
  return d3.hierarchy(root, (node) => [...node.children.values()]).sum((node) => (node.children.size ? 0 : node.bytes))
    .sort((a, b) => b.value - a.value);
}

function buildFlame() {
  const source = flameSources[byId("flame-source").selectedIndex];
  const select = byId("flame-by");
  const choices = source.title === "iteration" ? ["stack", "kernel"] : ["stack"];
  const wanted = choices.includes(select.value) ? select.value : choices.includes("kernel") && !program.call_stacks ? "kernel" : "stack";
  select.replaceChildren(...choices.map((by) => element("option", { value: by }, BY[by])));
  select.value = wanted;
  byId("flame-lead").textContent = `Each bar is as wide as the bytes that it holds ${source.lead}; what lies below a bar is part of it.` +
    (wanted === "stack" && !program.call_stacks ? (program.recording ? " This recording has no call stacks, only the addresses from which the driver was called." : " A trace has no call stacks.") : "");
  flame.root = flameTree(source, wanted);
  flame.focus = flame.root;
  drawFlame();
}

function flameColour(node) {
  if (node.depth === 0) return colours.isDark ? "#7c8aa0" : "#c3ccd8";
  const hue = 18 + (hashOf([...node.data.name].reduce((sum, letter) => Math.imul(sum, 31) + letter.charCodeAt(0), 7)) % 100) * 0.38;
  return String(d3.hsl(hue, colours.isDark ? 0.52 : 0.78, (colours.isDark ? 0.62 : 0.74) - 0.02 * (node.depth % 3)));
}

function drawFlame() {
  const holder = byId("flame"), width = holder.clientWidth;
  if (!flame.root || width === 0) return;
  const focus = flame.focus;
  d3.partition().size([1, 1])(flame.root);
  const begin = focus.x0, span = focus.x1 - focus.x0 || 1;
  const above = focus.ancestors().reverse(), shown = [];
  for (const node of above.slice(0, -1)) shown.push([node, 0, 1]);
  focus.each((node) => {
    const from = (node.x0 - begin) / span, part = (node.x1 - node.x0) / span;
    if (part >= FLAME_LEAST) shown.push([node, from, part]);
  });
  const kept = document.activeElement && holder.contains(document.activeElement) ? document.activeElement.dataset.path : null;
  const deepest = d3.max(shown, ([node]) => node.depth);
  holder.style.height = `${(deepest + 1) * FLAME_ROW}px`;
  flame.nodes = [];
  holder.replaceChildren(...shown.map(([node, from, part]) => {
    const text = `${node.data.name}: ${bytesText(node.value)}, ${percentText(node.value / flame.root.value)} of the peak, ${count(node.data.blocks, "block")}`;
    const path = node.ancestors().map((one) => one.data.name).join("\n");
    const made = element("div", {
      class: part * width < 14 ? "node thin" : "node", role: "treeitem", "aria-label": text, "aria-level": node.depth + 1, title: text,
      tabindex: node === focus ? 0 : -1, "data-path": path,
      style: `left: ${100 * from}%; width: ${100 * part}%; top: ${node.depth * FLAME_ROW}px; background: ${flameColour(node)}`,
      onclick: () => focusFlame(node), onfocus: () => { byId("flame-readout").textContent = text; }, onmouseenter: () => { byId("flame-readout").textContent = text; },
    }, part * width < 40 ? "" : part * width > 190 ? `${shownName(node)}, ${bytesText(node.value)}` : shownName(node));
    made.addEventListener("keydown", (event) => flameKey(event, node));
    flame.nodes.push({ node, made });
    if (kept === path) requestAnimationFrame(() => made.focus({ preventScroll: true }));
    return made;
  }));
  byId("flame-reset").hidden = focus === flame.root;
  if (!byId("flame-readout").textContent) byId("flame-readout").textContent = "Click a bar, or press Enter on it, to see it alone; arrow keys move.";
}
const shownName = (node) => (node.children || node.depth === 0 ? node.data.name.replace(/^void /, "") : `${d3.format(",")(node.data.blocks)} × ${node.data.name.replace("blocks of ", "")}`);

function focusFlame(node) {
  flame.focus = node;
  if (node.data.largest >= 0 && !node.children) chooseBlock(node.data.largest);
  drawFlame();
}
function flameKey(event, node) {
  const siblings = node.parent ? node.parent.children : [node];
  const next = {
    ArrowDown: node.children && node.children[0], ArrowUp: node.parent,
    ArrowRight: siblings[siblings.indexOf(node) + 1], ArrowLeft: siblings[siblings.indexOf(node) - 1],
  }[event.key];
  if (event.key === "Enter" || event.key === " ") focusFlame(node);
  else if (event.key === "Escape") focusFlame(flame.root);
  else if (next) {
    const found = flame.nodes.find((one) => one.node === next);
    if (found) found.made.focus({ preventScroll: true });
  } else return;
  event.preventDefault();
}

function setUpFlame() {
  if (!program) {
    removeSection("peak");
    return;
  }
  if (!flameSources.length) {
    byId("flame-lead").textContent = "Nothing was allocated in this recording.";
    byId("peak").querySelector(".bar").remove();
    return;
  }
  byId("flame-source").replaceChildren(...flameSources.map((source) => element("option", { value: source.title }, source.name)));
  // Call stacks are what one wants, wherever there are any.
  byId("flame-source").addEventListener("change", buildFlame);
  byId("flame-by").addEventListener("change", buildFlame);
  byId("flame-reset").addEventListener("click", () => focusFlame(flame.root));
  byId("flame-by").replaceChildren(element("option", { value: "" }, ""));
  each(["theme", "size"], drawFlame);
  buildFlame();
}
