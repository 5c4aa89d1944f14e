// The page's head, the figures, the bars of what is held, and what is known about the recording.
function setUpHead() {
  document.querySelector(".brand span").textContent = data.kind;
  byId("program").textContent = data.title === "-" ? "standard input" : data.title || data.file;
  byId("facts").textContent = program ? [program.command || program.program, program.device && `on ${program.device}`, program.recorded,
    `${count(program.mallocs, "allocation")}, ${count(program.launches, program.recording ? "launch" : "access", program.recording ? "launches" : "accesses")}` +
    (program.length_ns ? ` in ${timeText(program.length_ns)}` : "")].filter(Boolean).join(" · ") : data.facts;
  const notices = [];
  if (program && program.damage) notices.push(`The recording is damaged: ${program.damage}. The page shows what could be read.`);
  if (program && program.missing_records) notices.push(`${count(program.missing_records, "record")} are missing in the recording.`);
  if (program && program.blind_launches) notices.push(`What ${count(program.blind_launches, "launch", "launches")} touch is not known: their parameters could not be read.`);
  if (data.no_iteration) notices.push(`No iteration is shown: ${data.no_iteration}.`);
  if (data.assumed) notices.push(`Assumed: ${data.assumed}.`);
  if (data.ignored_accesses) notices.push(`${count(data.ignored_accesses, "access", "accesses")} to what was never allocated are left out.`);
  if (iteration && iteration.interrupted) notices.push("Planning was interrupted: the plans are the best until then.");
  byId("notices").replaceChildren(...notices.map((text) => element("p", { class: "notice", role: "note" }, text)));
}

const freePlan = iteration ? plans.find((plan) => plan.swaps && plan.limit === null && plan.feasible) : null;

function figure(name, value, why, good) {
  return element("div", { class: good ? "figure good" : "figure" }, element("span", { class: "name" }, name), element("b", {}, value), element("p", { class: "why" }, why));
}

function figuresOfProgram() {
  const made = [figure("Peak load", bytesText(data.peak.load), `The largest sum of blocks that were live at once, of ${count(data.peak.blocks, "block")}.`)];
  const reserved = data.peak.reserved_by_caching_allocator;
  if (reserved !== null) {
    made.push(figure("Caching allocator", bytesText(reserved), `What PyTorch's own allocator would hold for the same calls: ${percentText(reserved / data.peak.load - 1)} above the load.`));
  }
  if (data.planned) {
    const { footprint } = data.planned;
    made.push(figure("memopt's layout", bytesText(footprint), reserved !== null && reserved > footprint
      ? `What the program holds once it is planned: ${bytesText(reserved - footprint)} less than the caching allocator, no time added.`
      : "What the program holds once it is planned, at no added time.", true));
  }
  if (freePlan) {
    made.push(figure("At no added time", bytesText(freePlan.footprint),
      `With blocks away in host memory while they are not used: ${percentText(freePlan.footprint / iteration.peak.load)} of the peak load.`, freePlan.footprint < data.planned.footprint));
  }
  return made;
}

// Of a file that has one iteration, of a plan, or of a layout.
function figuresOfIteration() {
  const load = data.peak_load || (iteration ? iteration.peak.load : 0);
  if (!load) return [];
  const made = [figure(PLAIN ? "Needed at once" : "Peak load", bytesText(load), PLAIN ? "The largest sum of buffers at one time." : iteration && iteration.peak.load < load ? "The largest sum of blocks that are live at once, nothing computed again." : "The largest sum of blocks that are live at once.")];
  if (data.lower_bound) made.push(figure("Lower bound", bytesText(data.lower_bound), "No placement is lower."));
  for (const plan of shownPlans.slice(0, 2)) {
    if (!plan.of_file && plan.swaps && data.kind === "report") continue;
    const [name, why] = PLAIN ? ["Height", "What this placement takes."] : plan.of_file ? ["The file's plan", ""] : plan.swaps ? ["This plan", ""] : ["Layout, nothing swapped", ""];
    made.push(figure(name, bytesText(plan.footprint), why || `${percentText(plan.footprint / load)} of the peak load, ${addedText(plan)}.`, plan.footprint <= load));
  }
  if (freePlan && data.kind === "report") made.push(figure("At no added time", bytesText(freePlan.footprint), `With swaps: ${percentText(freePlan.footprint / load)} of the peak load.`, true));
  return made;
}

function setUpFigures() {
  byId("figures").replaceChildren(...(program ? figuresOfProgram() : figuresOfIteration()));
}

function drawBars() {
  const rows = [["Peak load", data.peak.load, colours.load, "The largest sum of live blocks: nothing that keeps all of them on the device holds less."]];
  const reserved = data.peak.reserved_by_caching_allocator;
  if (reserved !== null) rows.push(["PyTorch's caching allocator", reserved, colours.held, "What it would have reserved by the end of the recording, by a model of it with its default settings."]);
  if (data.planned) {
    rows.push(["memopt's layout", data.planned.footprint, colours.plan,
      `Slab of ${bytesText(data.planned.slab)}, and ${bytesText(data.planned.persistent_bytes)} in ${count(data.planned.persistent_blocks, "block")} that stay. Rounding to 512 bytes adds ${bytesText(data.planned.rounding)}.`]);
    rows.push(["Least possible layout", data.planned.footprint - data.planned.slab + data.planned.lower_bound, colours.muted, "A lower bound: no layout of the same blocks is smaller."]);
  }
  if (freePlan) rows.push(["With swaps, no time added", freePlan.footprint, colours.moves, "The least footprint that was found at which copies hide behind the computation."]);
  const most = Math.max(...rows.map(([, bytes]) => bytes)) || 1;
  byId("bars").replaceChildren(...rows.map(([name, bytes, colour, why]) => element("div", { class: "row" }, element("span", {}, name),
    element("div", { class: "track" }, element("div", { class: "fill", style: `width: ${100 * bytes / most}%; background: ${colour}` })),
    element("span", { class: "value", title: exactBytes(bytes) }, `${bytesText(bytes)} · ${percentText(bytes / (data.peak.load || 1))}`),
    element("span", { class: "why" }, why))));
}

function setUpAbout() {
  if (!program) {
    const rows = [["file", data.file]];
    if (iteration && !PLAIN) rows.push(["times", iteration.times], ["copies", iteration.machine]);
    rows.push(["made by", `memopt ${data.version || ""}`]);
    pairs(byId("about-list"), rows);
    return;
  }
  const { planned } = data, rows = [["file", data.file], ["program", program.program], ["command", program.command], ["device", program.device],
    ["recorded", program.recorded], ["records", d3.format(",")(program.records)],
    ["operations", `${count(program.mallocs, "malloc")}, ${count(program.frees, "free")}, ${count(program.launches, "launch", "launches")} of ${count(program.kernels, "kernel")}, ` +
      `${count(program.copies, "copy", "copies")}, ${count(program.memsets, "memset")}`]];
  if (planned) {
    rows.push(["iteration", `${count(planned.operations, "operation")}, from record ${planned.began_at}, known at record ${planned.found_at}`],
      ["planned", `${count(planned.mallocs, "allocation")} in ${count(planned.lanes, "thread")}, ${count(planned.persistent_blocks, "block")} that stay, layout by ${planned.layout}` +
        (planned.rounds > 1 ? `, ${planned.rounds} iterations as one` : "")]);
  }
  if (iteration) rows.push(["times", iteration.times], ["copies", iteration.machine]);
  rows.push(["made by", `memopt ${data.version}`]);
  pairs(byId("about-list"), rows);
}

setUpHead();
setUpFigures();
setUpAbout();
setUpLoad();
setUpLimits();
setUpLayout();
setUpLanes();
setUpDetails();
setUpFlame();
setUpTable();
if (program) each(["theme"], drawBars);
else removeSection("fragmentation");
setUpComparison();
const wantedPlan = shownPlans.findIndex((plan) => plan.wanted);
applyTheme();
if (wantedPlan > 0) choosePlan(wantedPlan);
// For programs that look at the page.
performance.mark("memopt ready");
document.documentElement.dataset.ready = "";
