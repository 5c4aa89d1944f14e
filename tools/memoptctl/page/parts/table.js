// Blocks as a table: of the iteration, or of the recording's peak.
const PAGE = 25;
const table = { source: "iteration", key: "bytes", down: true, shown: PAGE, rows: [] };

const COLUMNS = [
  ["bytes", "Size", true, (row) => bytesText(row.bytes)],
  ["name", PLAIN ? "Buffer" : "Block", false, (row) => row.name],
  ["born", PLAIN ? "Needed from" : "Allocated at", true, (row) => (row.stays ? "before" : timeText(row.born))],
  ["life", PLAIN ? "For" : "Lives for", true, (row) => (row.life === Infinity ? "always" : timeText(row.life))],
  ["uses", "Uses", true, (row) => (row.uses < 0 ? "" : d3.format(",")(row.uses))],
  ["kernel", "First touched by", false, (row) => row.kernel],
  ["place", "Allocated from", false, (row) => row.place],
];

// Blocks of a recording have the program's number if they stay, else they are known by their malloc.
function blockName(block) {
  const name = blocks.name ? blocks.name[block] : "";
  if (PLAIN) return `buffer ${name}`;
  if (program) return stays(block) ? `block ${blocks.number[block]}` : `malloc at record ${blocks.number[block]}`;
  return `block ${blocks.number[block]}${name ? ` (${name})` : ""}${blocks.flags[block] & MADE_AGAIN ? ", computed again" : ""}`;
}

function iterationRow(block) {
  return {
    block, bytes: blocks.bytes[block], name: blockName(block), stays: stays(block), born: stays(block) ? -1 : blocks.born_ns[block],
    life: stays(block) ? Infinity : blocks.freed_ns[block] - blocks.born_ns[block], uses: blocks.accesses[block], kernel: firstNameOf(block), place: placeOf(blocks.stack[block]),
  };
}
const TABLE_SOURCES = {
  iteration: [PLAIN ? "all" : "of the planned iteration", () => d3.range(blockCount).map(iterationRow)],
  peak: [PLAIN ? "needed at once" : "live at the iteration's peak", () => Array.from(iteration.peak.blocks, iterationRow)],
  recorded: ["live at the recording's peak", () => d3.range(data.peak.bytes.length).map((i) => ({
    block: -1, bytes: data.peak.bytes[i], name: `block ${data.peak.number[i]}`, stays: false, born: data.peak.born_ns[i],
    life: data.peak.freed_ns[i] < 0 ? Infinity : data.peak.freed_ns[i] - data.peak.born_ns[i], uses: -1, kernel: "", place: placeOf(data.peak.stack[i]),
  }))],
};

function chooseTable(source) {
  byId("table-source").value = source;
  loadTable();
}
function loadTable() {
  table.source = byId("table-source").value;
  table.all = TABLE_SOURCES[table.source][1]();
  table.shown = PAGE;
  sortTable();
}
function sortTable() {
  const wanted = byId("find").value.trim().toLowerCase(), { key } = table;
  table.rows = wanted ? table.all.filter((row) => `${row.name}\n${row.kernel}\n${row.place}`.toLowerCase().includes(wanted)) : table.all.slice();
  const sign = table.down ? -1 : 1;
  table.rows.sort((a, b) => (a[key] < b[key] ? -sign : a[key] > b[key] ? sign : b.bytes - a.bytes));
  drawTable();
}

function drawTable() {
  const head = byId("table").tHead, body = byId("table").tBodies[0];
  const used = COLUMNS.filter(([key]) => !((table.source === "recorded" || PLAIN) && (key === "uses" || key === "kernel")) && (program || key !== "place"));
  head.replaceChildren(element("tr", {}, ...used.map(([key, name, number]) => {
    const sorted = key === table.key;
    const cell = element("th", { class: number ? "number" : null, scope: "col", "aria-sort": sorted ? (table.down ? "descending" : "ascending") : null });
    cell.append(element("button", {
      type: "button",
      onclick: () => {
        table.down = sorted ? !table.down : number;
        table.key = key;
        sortTable();
        [...head.querySelectorAll("button")].find((button) => button.textContent.startsWith(name)).focus();
      },
    }, name + (sorted ? (table.down ? " ↓" : " ↑") : "")));
    return cell;
  })));
  body.replaceChildren(...table.rows.slice(0, table.shown).map((row) => {
    const made = element("tr", row.block < 0 ? { style: "cursor: default" } : { tabindex: 0, "aria-selected": String(row.block === chosen.block) },
      ...used.map(([key, , number, text]) => element("td", { class: number ? "number" : "name", title: key === "bytes" ? exactBytes(row.bytes) : number ? null : text(row) }, text(row))));
    if (row.block >= 0) {
      made.dataset.block = row.block;
      made.addEventListener("click", () => chooseBlock(row.block));
      made.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          chooseBlock(row.block);
        } else if (event.key === "ArrowDown" && made.nextSibling) {
          event.preventDefault();
          made.nextSibling.focus();
        } else if (event.key === "ArrowUp" && made.previousSibling) {
          event.preventDefault();
          made.previousSibling.focus();
        }
      });
    }
    return made;
  }));
  byId("table-count").textContent = `${d3.format(",")(table.rows.length)} of ${count(table.all.length, PLAIN ? "buffer" : "block")}, ${bytesText(d3.sum(table.rows, (row) => row.bytes))}`;
  byId("more").hidden = table.shown >= table.rows.length;
}
function markSelected() {
  for (const row of byId("table").tBodies[0].rows) {
    if (row.dataset.block !== undefined) row.setAttribute("aria-selected", String(Number(row.dataset.block) === chosen.block));
  }
}

function setUpTable() {
  const sources = Object.entries(TABLE_SOURCES).filter(([key]) => (key === "recorded" ? data.peak && data.peak.bytes.length > 0 : iteration));
  if (!sources.length && !program) {
    removeSection("blocks");
    return;
  }
  if (PLAIN) {
    byId("blocks-title").textContent = "Largest buffers";
    byId("blocks").querySelector(".lead").textContent = "Buffers as a table; a heading sorts by its column, a row selects its buffer in the layout.";
    byId("find").placeholder = "name";
  }
  byId("table-source").replaceChildren(...sources.map(([key, [name]]) => element("option", { value: key }, name)));
  byId("table-source").addEventListener("change", loadTable);
  byId("find").addEventListener("input", () => {
    table.shown = PAGE;
    sortTable();
  });
  byId("more").addEventListener("click", () => {
    table.shown += 10 * PAGE;
    drawTable();
  });
  changed.on("block.table", markSelected);
  changed.on("peak.table", () => chooseTable(chosen.peakOnly ? "peak" : "iteration"));
  if (sources.length) loadTable();
}
