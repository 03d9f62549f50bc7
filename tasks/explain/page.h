// What the page of explain is made of besides its tables: style and script. It loads nothing.
#pragma once

namespace reel::explain {

constexpr const char* page_style = R"css(
:root { --bg:#fbfcfd; --fg:#1b2430; --dim:#5c6877; --line:#dbe1e8; --card:#fff; --accent:#1c62c4; --track:#e7ecf2;
  --moved:#c77700; --added:#2c8a3d; --dropped:#b0222a; --movedbg:#fff3dd; --addedbg:#e8f6ea; --droppedbg:#fdeaea;
  --node:#fff; --edge:#5b6673; --bar:#7fb0ee;
  --g0:#cfe3ff; --g1:#d9f2d0; --g2:#ffe3c2; --g3:#f3d6f5; --g4:#d0f0f0; --g5:#f9d5d5; --g6:#ece6c8; --g7:#dcdcf7; }
@media (prefers-color-scheme: dark) { :root { --bg:#12161c; --fg:#dfe6ee; --dim:#94a1b1; --line:#2b3440; --card:#1a2029;
  --accent:#7fb2ff; --track:#2b3440; --moved:#f0a43a; --added:#62c274; --dropped:#f07f86; --movedbg:#33270f;
  --addedbg:#16301b; --droppedbg:#3a1a1d; --node:#222a35; --edge:#8d9aab; --bar:#3b6eb0;
  --g0:#1f3f6b; --g1:#25492a; --g2:#5a3d17; --g3:#4d2a52; --g4:#1d4a4a; --g5:#5a2a2c; --g6:#4a4322; --g7:#35356b; } }
* { box-sizing:border-box }
html { color-scheme: light dark }
body { margin:0; background:var(--bg); color:var(--fg); font:15px/1.5 system-ui,"DejaVu Sans",sans-serif }
main, header { max-width:1500px; margin:0 auto; padding:0 20px }
header { padding-top:22px }
h1 { font-size:23px; line-height:1.25; margin:0 0 4px }
h2 { font-size:18px; margin:0 }
h3 { font-size:15px; margin:26px 0 8px }
p { margin:4px 0 } .dim { color:var(--dim) }
section { margin:22px 0; padding:18px 20px; background:var(--card); border:1px solid var(--line); border-radius:12px }
.top { display:flex; flex-wrap:wrap; gap:6px 20px; align-items:baseline; justify-content:space-between }
.passes { margin:14px 0 4px }
.passes input { width:100%; margin:0; accent-color:var(--accent) }
.names { display:flex; justify-content:space-between; gap:4px }
.names button { flex:1 1 0; min-width:0; overflow:hidden; text-overflow:ellipsis; white-space:nowrap; font:inherit; font-size:12.5px;
  color:var(--dim); background:none; border:0; border-radius:6px; padding:4px 2px; cursor:pointer }
.names button:first-child { text-align:left } .names button:last-child { text-align:right }
.names button.on { color:var(--accent); font-weight:600 } .names button.same { opacity:.55 }
.rule { min-height:1.5em; margin:6px 0 10px }
.stage { display:none } .stage.on { display:block }
.wide { overflow-x:auto; max-width:100% }
.graph { border:1px solid var(--line); border-radius:8px; padding:8px; margin:8px 0 14px; text-align:center; max-height:74vh; overflow:auto }
.graph svg { height:auto; max-width:none }
@media (min-width:900px) { .graph svg.fits { max-width:100% } }
.graph text { fill:var(--fg); font-family:inherit }
.graph .node path, .graph .node ellipse, .graph .node polygon { fill:var(--node); stroke:var(--edge) }
.graph .edge path { stroke:var(--edge) } .graph .edge polygon { fill:var(--edge); stroke:var(--edge) }
.graph .edge.carry path { stroke:var(--accent) } .graph .edge.carry polygon { fill:var(--accent); stroke:var(--accent) }
.graph .cluster path { fill:none; stroke:var(--line) } .graph .cluster > text { fill:var(--dim) }
.graph .state ellipse { fill:var(--track) }
.graph .moved path { stroke:var(--moved); stroke-width:2.2 } .graph .added path { stroke:var(--added); stroke-width:2.2 }
.graph .kept path { stroke:var(--dropped); stroke-width:2.2 } .graph .again path { stroke-dasharray:4 3 }
.graph .node.lit path { stroke:var(--accent); stroke-width:3.2 } .graph .node.op { cursor:pointer }
.g0 { --group:var(--g0) } .g1 { --group:var(--g1) } .g2 { --group:var(--g2) } .g3 { --group:var(--g3) }
.g4 { --group:var(--g4) } .g5 { --group:var(--g5) } .g6 { --group:var(--g6) } .g7 { --group:var(--g7) }
.graph .node.g0 path,.graph .node.g1 path,.graph .node.g2 path,.graph .node.g3 path,.graph .node.g4 path,
.graph .node.g5 path,.graph .node.g6 path,.graph .node.g7 path { fill:var(--group) }
table { border-collapse:collapse; font-size:13px; width:100%; font-variant-numeric:tabular-nums }
th { text-align:left; font-weight:600; color:var(--dim); border-bottom:1px solid var(--line); padding:3px 10px 3px 4px; vertical-align:bottom }
td { padding:2px 10px 2px 4px; border-bottom:1px solid color-mix(in srgb, var(--line) 55%, transparent); white-space:nowrap; vertical-align:top }
td.wrap { white-space:normal; min-width:170px } .n { text-align:right }
code, td.code, .io { font-family:ui-monospace,"DejaVu Sans Mono",monospace; font-size:12.5px }
.io { color:var(--dim); margin:3px 0 8px; overflow-wrap:anywhere; white-space:normal }
tr.moved { background:var(--movedbg) } tr.added { background:var(--addedbg) }
tr.dropped { background:var(--droppedbg); text-decoration:line-through; color:var(--dim) }
tr.lit { outline:2px solid var(--accent); outline-offset:-2px } tr[data-op] { cursor:pointer }
.tag { display:inline-block; border-radius:4px; padding:0 6px; font-size:11.5px; font-weight:600 }
.tag.moved { color:var(--moved); background:var(--movedbg) } .tag.added { color:var(--added); background:var(--addedbg) }
.tag.dropped { color:var(--dropped); background:var(--droppedbg); text-decoration:none }
.tag.kept { color:var(--dropped); background:var(--droppedbg) } .tag.again { color:var(--dim); background:var(--track) }
.group { display:inline-block; min-width:22px; text-align:center; border-radius:5px; padding:0 5px; background:var(--group,var(--track)) }
.bar { display:inline-block; height:9px; border-radius:3px; background:var(--bar); vertical-align:middle; margin-right:7px }
.src { color:var(--dim) } .src code { color:var(--fg) }
.cols { display:grid; grid-template-columns:repeat(auto-fit,minmax(min(100%,430px),1fr)); gap:0 34px }
.roof { width:100%; height:auto; min-width:600px; max-width:960px; display:block; margin:6px auto }
.roof text { fill:var(--dim); font:12px system-ui,"DejaVu Sans",sans-serif } .roof .axis { stroke:var(--line) }
.roof .grid { stroke:var(--line); stroke-opacity:.6 } .roof .limit { stroke:var(--fg); stroke-width:1.6; fill:none }
.roof .cache { stroke:var(--dim); stroke-dasharray:5 4; fill:none } .roof .name { fill:var(--fg); stroke:var(--card); stroke-width:3px; paint-order:stroke }
.roof .forward { fill:var(--accent) } .roof .gradient { fill:var(--moved) } .roof circle { stroke:var(--card); stroke-width:1 }
footer { color:var(--dim); font-size:13px; max-width:1500px; margin:0 auto; padding:0 20px 30px }
@media (max-width:600px) { main, header, footer { padding-left:10px; padding-right:10px } section { padding:14px 12px }
  h1 { font-size:19px } .names button { font-size:0; padding:3px 0 } .names button.on { font-size:12.5px; flex:3 1 auto; overflow:visible; text-align:center }
  .names button:not(.on)::after { content:"\2022"; font-size:12px } }
@media print { .stage { display:block } }
)css";

// The slider of each loop shows one stage; an op and its row light up together.
constexpr const char* page_script = R"js(
document.querySelectorAll("section.loop").forEach(loop => {
  const slider = loop.querySelector("input[type=range]");
  const stages = [...loop.querySelectorAll(".stage")], names = [...loop.querySelectorAll(".names button")];
  const show = i => {
    slider.value = i;
    slider.setAttribute("aria-valuetext", names[i].textContent);
    stages.forEach((s, k) => s.classList.toggle("on", k === i));
    names.forEach((b, k) => b.classList.toggle("on", k === i));
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  names.forEach((b, i) => b.addEventListener("click", () => show(i)));
  show(Number(slider.value));
  stages.forEach(stage => {
    const rows = [...stage.querySelectorAll("tr[data-op]")], nodes = [...stage.querySelectorAll("g.node.op")];
    const light = id => {
      rows.forEach(r => r.classList.toggle("lit", r.dataset.op === id));
      nodes.forEach(n => n.classList.toggle("lit", n.id === id));
    };
    const pressable = (element, act) => {
      element.setAttribute("tabindex", "0");
      element.addEventListener("click", act);
      element.addEventListener("keydown", e => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        act();
      });
    };
    rows.forEach(r => pressable(r, () => light(r.dataset.op)));  // rows stay rows for a screen reader
    nodes.forEach(n => {
      n.setAttribute("role", "button");
      pressable(n, () => {
        light(n.id);
        const row = rows.find(r => r.dataset.op === n.id);
        if (row) row.scrollIntoView({block: "nearest"});
      });
    });
  });
});
)js";

}  // namespace reel::explain
