// What is chosen: the plan, the block, the theme. Views listen.
const changed = d3.dispatch("plan", "block", "hover", "theme", "peak", "size");
const chosen = { plan: 0, block: -1, hover: -1, peakOnly: false };

// Plans that can be shown: the first is the layout without swaps, then narrower and narrower ones.
const shownPlans = plans.filter((plan) => plan.feasible);

function choosePlan(index) {
  index = Math.max(0, Math.min(shownPlans.length - 1, index));
  if (index === chosen.plan) return;
  chosen.plan = index;
  changed.call("plan");
}
function chooseBlock(block) {
  chosen.block = block;
  changed.call("block");
}
function hoverBlock(block) {
  if (block === chosen.hover) return;
  chosen.hover = block;
  changed.call("hover");
}
function showPeakOnly(on) {
  chosen.peakOnly = on;
  changed.call("peak");
}

// The plan whose drawing is shown: where one has too many blocks to be drawn, that without swaps.
const drawnPlan = () => (shownPlans[chosen.plan] && shownPlans[chosen.plan].drawn ? shownPlans[chosen.plan] : shownPlans[0]);

const atPeak = new Uint8Array(blockCount);
if (iteration) for (const block of iteration.peak.blocks) atPeak[block] = 1;

const THEMES = ["system", "light", "dark"];
const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = "system";
let colours = {};

function applyTheme() {
  const dark = theme === "dark" || (theme === "system" && systemDark.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ["card", "ink", "muted", "line", "grid", "accent", "stays", "made", "moves", "again", "out", "in", "wait", "kernel", "copy", "load-fill",
    "load", "held", "plan", "select", "hover"]) colours[name] = style.getPropertyValue(`--${name}`).trim();
  colours.isDark = dark;
  const button = byId("theme");
  button.textContent = `Theme: ${theme}`;
  button.setAttribute("aria-label", `Theme: ${theme}; change it`);
  changed.call("theme");
}
byId("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  applyTheme();
});
systemDark.addEventListener("change", applyTheme);

// Once for all charts, when the room for them has changed.
let knownWidth = 0;
new ResizeObserver(() => {
  const width = document.querySelector("main").clientWidth;
  if (width === knownWidth) return;
  knownWidth = width;
  changed.call("size");
}).observe(document.querySelector("main"));

function each(events, view) {
  for (const event of events) changed.on(`${event}.${view.name}`, view);
}
