// explain as a program: text, graph and page of cells, presets, runs and tasks; errors; and the page in a browser, if
// there is one: nothing in its console, a slider that shows one stage at a time, nothing wider than the screen.
#include <algorithm>
#include <sstream>

#include "tasks/io/spawn.h"
#include "tests/support/browser.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/golden_order.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

const std::vector<std::string> small{"--hidden", "32", "--batch", "4", "--length", "6"};

Result explain(const TempDir& dir, std::vector<std::string> options, const std::vector<std::string>& environment = {}) {
  return run("explain", options, dir.path, environment);
}

std::vector<std::string> cell(const std::string& name, const std::vector<std::string>& more) {
  std::vector<std::string> all{"--cell", name};
  all.insert(all.end(), small.begin(), small.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// What there is to see on the page.
constexpr const char* look = R"js(
const loops = [...document.querySelectorAll("section.loop")];
seen.loops = loops.length; seen.stages = 0; seen.wrong = 0; seen.graphs = 0; seen.lit = 0;
for (const loop of loops) {
  const slider = loop.querySelector("input");
  for (let i = 0; i <= Number(slider.max); ++i) {
    slider.value = i;
    slider.dispatchEvent(new Event("input"));
    const on = loop.querySelectorAll(".stage.on");
    if (on.length !== 1 || on[0] !== loop.querySelectorAll(".stage")[i] || on[0].getBoundingClientRect().height === 0) ++seen.wrong;
    ++seen.stages;
    const svg = on[0].querySelector(".graph svg");
    if (svg && svg.getBoundingClientRect().width > 50) ++seen.graphs;
  }
  loop.querySelector(".names button").click();
  if (slider.value !== "0") ++seen.wrong;
  const node = loop.querySelector(".stage.on g.node.op");
  if (node) node.dispatchEvent(new MouseEvent("click"));
  seen.lit += loop.querySelectorAll(".stage.on tr.lit").length;
  const ops = [...loop.querySelectorAll(".stage.on g.node.op")];  // by keyboard, too
  if (ops.some(op => op.tabIndex !== 0 || op.getAttribute("role") !== "button")) ++seen.wrong;
  for (const row of [...loop.querySelectorAll(".stage.on tr[data-op]")].slice(0, 2))
    for (const key of ["Enter", " "]) {
      loop.querySelectorAll(".lit").forEach(lit => lit.classList.remove("lit"));
      row.focus();
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key}));
      if (!row.classList.contains("lit")) ++seen.wrong;
    }
}
const names = [...document.querySelectorAll("svg.roof .name")].map(name => name.getBoundingClientRect());
names.forEach((a, i) => names.slice(i + 1).forEach(b => {
  if (a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom) ++seen.wrong;
}));
seen.roofs = document.querySelectorAll("svg.roof circle").length;
)js";

}  // namespace

TEST_CASE("a cell as text, with its settings; a pass alone; passes left out") {
  const TempDir dir;
  const Result lstm = explain(dir, cell("lstm", {"--backward", "--lstm.biases", "1"}));
  CHECK(lstm.code == 0);
  CHECK(lstm.err.empty());
  for (const char* part :
       {"lstm: 32 units, 32 inputs, 8320 trainable parameters; 6 steps of a batch of 4, f32", "==== forward",
        "---- hoist: ", "> %1 = matmul(x, W_i)", "kept for the gradient", "==== gradient", "again",
        "groups of the body", "gemm", "buffers of the first", "products in all"})
    CHECK_MESSAGE(contains(lstm.out, part), part);
  CHECK(!contains(lstm.out, "b2_i"));
  CHECK(!contains(explain(dir, cell("lstm", {})).out, "==== gradient"));

  const Result hoist = explain(dir, cell("lstm", {"--pass", "hoist"}));
  CHECK(contains(hoist.out, "---- hoist: "));
  CHECK(!contains(hoist.out, "---- dce"));
  CHECK(!contains(explain(dir, cell("lstm", {"--without", "hoist,fuse"})).out, "---- hoist"));
  CHECK(contains(explain(dir, cell("lstm", {"--rate", "100"})).out, "at 100 Gflop/s"));
}

TEST_CASE("the graph is one for Graphviz") {
  const TempDir dir;
  const Result r = explain(dir, cell("goru", {"--backward", "--dot", dir / "step.dot"}));
  CHECK(r.code == 0);
  CHECK(r.out.empty());
  const std::string graph = read_file(dir / "step.dot");
  for (const char* part :
       {"cluster_forward:prologue", "cluster_forward:body", "cluster_gradient:epilogue", "fillcolor=\"#"})
    CHECK_MESSAGE(contains(graph, part), part);
  if (!installed("dot", "-V")) return;
  const Spawned drawn = run_child({"dot", "-Tsvg", dir / "step.dot"});
  CHECK(drawn.code == 0);
  CHECK(contains(drawn.out, "%30 rotate"));
}

TEST_CASE("a page without Graphviz has its tables, and says so") {
  const TempDir dir;
  const Result r = explain(dir, cell("lstm", {"--html", dir / "page.html"}), {"PATH=/nonexistent"});
  CHECK(r.code == 0);
  const std::string page = read_file(dir / "page.html");
  CHECK(contains(page, "Graphviz is not installed (Debian package graphviz)"));
  CHECK(contains(page, "<h3>Body: 6 steps</h3>"));
  CHECK(!contains(page, "<svg"));
  CHECK(!contains(page, "src="));
  CHECK(!contains(page, "@import"));
}

TEST_CASE("presets and runs by the programs of their tasks") {
  const TempDir dir;
  const Result preset = explain(dir, {"--preset", "srnn/table5/adding-srnn", "--pass", "hoist"});
  CHECK(preset.code == 0);
  CHECK(contains(preset.out, "body, 300 steps"));
  CHECK(contains(preset.out, "cell.f1.W"));
  const Result trained = run("copying",
                             {"--cell", "gru,lstm", "--hidden", "8,24", "--batch", "4", "--delay", "5", "--steps", "1",
                              "--quiet", "--out", dir / "run"},
                             dir.path);
  REQUIRE(trained.code == 0);
  const std::string before = read_file(dir / "run/config.toml");
  const Result r = explain(dir, {dir / "run", "--backward"});
  CHECK(r.code == 0);
  for (const char* part : {"==== forward, loop 1", "==== forward, loop 2", "==== gradient, loop 2", "cell2.W_i"})
    CHECK_MESSAGE(contains(r.out, part), part);
  CHECK(read_file(dir / "run/config.toml") == before);
  write_atomically(dir / "run/model.json", "{\"task\": \"../../bin/true\"}");
  CHECK(contains(explain(dir, {dir / "run"}).err, "the task is no name of a program"));
  CHECK(!contains(before, "explain"));
  const Result task =
      run("copying", {"--explain", "text,forward", "--delay", "5", "--hidden", "8", "--batch", "2"}, dir.path);
  CHECK(contains(task.out, "copying, T = 5 with srnn"));
  const Result forward =
      run("copying", {"--explain", "forward", "--delay", "5", "--hidden", "8", "--batch", "2"}, dir.path);
  CHECK(contains(forward.out, "==== forward"));
  CHECK(!contains(forward.out, "==== gradient"));
  CHECK(!std::filesystem::exists(dir / "runs"));
}

TEST_CASE("a page or graph may end in capitals, and replaces no file of a run") {
  const TempDir dir;
  CHECK(explain(dir, cell("lstm", {"--dot", dir / "STEP.DOT"})).code == 0);
  CHECK(std::filesystem::exists(dir / "STEP.DOT"));
  write_atomically(dir / "config.toml", "");
  const Result r =
      run("copying", {"--explain", dir / "report.html", "--delay", "5", "--hidden", "8", "--batch", "2"}, dir.path);
  CHECK(r.code == 2);
  CHECK_MESSAGE(contains(r.err, "--explain " + dir.path + "/report.html: this is a file of the run"), r.err);
  CHECK(!std::filesystem::exists(dir / "report.html"));
}

TEST_CASE("bad usage is told in a line") {
  const TempDir dir;
  const auto wrong = [&](const std::vector<std::string>& options, const char* part) {
    const Result r = explain(dir, options);
    CHECK(r.code == 2);
    CHECK(r.out.empty());
    CHECK_MESSAGE(contains(r.err, part), r.err);
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
  };
  wrong({"--pass", "hoisting"}, "--pass");
  wrong({"--html", "page.txt"}, "ends with .html");
  wrong({"--html", "page.html", "--pass", "hoist"}, "--pass hoist: a page or graph has all passes");
  wrong({"--dot", "a,b.dot"}, "without commas");
  wrong({"--preset", "srnn/nothing"}, "there is no such preset");
  wrong({dir / "none"}, "does not exist");
  wrong({dir.path}, "is not the folder of a run");
  wrong({"a", "b"}, "one RUN expected");
  wrong({"--preset", "srnn/table5/adding-srnn", "--hidden", "4"}, "--hidden: a preset has its own");
  wrong({"--preset", "srnn/table5/adding-srnn", "--srnn.width", "16"}, "--srnn.width: a preset has its own");
  wrong({dir / "none", "--srnn.width", "16"}, "--srnn.width: a run has its own; with it only --data, ");
  write_atomically(dir / "e.toml", "cell = \"gru\"\n");  // the file says no more than could be typed
  wrong({dir / "none", "--config", dir / "e.toml"}, "--cell: a run has its own");
  wrong({"--cell", "gru", "--pass", "hoist", "--without", "fuse,hoist"}, "--pass hoist: --without disables it");
  wrong({"--data", "x"}, "--data");
  wrong({"--cell", "srnn", "--srnn.width", "0"}, "--srnn.width");
  const Result task = run("copying", {"--explain", "page.pdf"}, dir.path);
  CHECK(task.code == 2);
  CHECK(contains(task.err, "--explain: text, FILE.html"));
  for (const auto& [two, said] : {std::pair{"a.html,b.html", "one FILE.html expected, got a.html and b.html"},
                                  {"a.dot,text,b.dot", "one FILE.dot expected, got a.dot and b.dot"},
                                  {"pass=dce,pass=hoist", "one pass=NAME expected, got dce and hoist"}}) {
    const Result r = run("copying", {"--explain", two}, dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, said), r.err);
  }
  CHECK(explain(dir, cell("lstm", {"--html", dir / "no/page.html"})).code == 1);
}

TEST_CASE("the page in a browser") {
  if (!installed("chromium", "--version")) {
    MESSAGE("skipped: the page is not looked at, as there is no chromium (Debian package chromium)");
    return;
  }
  const TempDir dir;
  const bool drawn = installed("dot", "-V");
  for (const char* name : {"lstm", "goru"}) {
    CAPTURE(name);
    REQUIRE(
        explain(dir, cell(name, {"--backward", "--measure", "--html", dir / "page.html"}), {"REEL_COMPILE=off"}).code ==
        0);
    const std::string page = read_file(dir / "page.html");
    for (const auto& [width, dark] : {std::pair{400, true}, {1600, false}}) {
      CAPTURE(width);
      std::map<std::string, int> seen = in_browser(dir, page, look, width, dark);
      REQUIRE(seen.contains("roofs"));
      CHECK(seen["errors"] == 0);
      CHECK(seen["loops"] == 2);
      CHECK(seen["stages"] == 14);  // the traced loop, five passes, and as it runs; twice
      CHECK(seen["wrong"] == 0);
      CHECK(seen["graphs"] == (drawn ? 14 : 0));
      CHECK(seen["lit"] == (drawn ? 2 : 0));
      CHECK(seen["overflow"] == 0);
      CHECK(seen["dark"] == (dark ? 1 : 0));
      CHECK(seen["roofs"] >= 4);
    }
  }
}

TEST_CASE("the blocks of docs/explain.md are what the program prints" * doctest::skip(!order_of_gcc)) {
  const std::string path = REEL_SOURCE_DIR "/docs/explain.md";
  if (!std::filesystem::exists(path)) return;  // on a machine that has the programs alone
  const TempDir dir;
  const std::string page = read_file(path), begin = "```explain\n$ build/bin/explain ", end = "```\n";
  int blocks = 0;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    const std::size_t first = page.find('\n', at) + 1, last = page.find(end, at);
    std::istringstream words(page.substr(at, first - at));
    std::vector<std::string> options;
    for (std::string word; words >> word;) options.push_back(word);
    const std::string out = explain(dir, options).out;
    std::string parts = page.substr(first, last - first);
    while (!parts.empty()) {  // between lines of dots
      const std::size_t dots = parts.find("...\n");
      const std::string part = parts.substr(0, dots);
      CHECK_MESSAGE(contains(out, part), part, "\nis not in\n", out);
      parts = dots == std::string::npos ? "" : parts.substr(dots + 4);
    }
    ++blocks;
  }
  CHECK(blocks == 3);
}
