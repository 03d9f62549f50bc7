#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tasks/explain/graphs.h"
#include "tasks/explain/page.h"
#include "tasks/explain/render.h"
#include "tasks/explain/source.h"

namespace reel::explain {

namespace {

std::string cell(const std::string& text, const char* kind = "n") {
  return fmt::format("<td class=\"{}\">{}</td>", kind, escaped(text));
}

std::string tag(const char* kind, const char* text) {
  return fmt::format(" <span class=\"tag {}\">{}</span>", kind, text);
}

std::string group_tag(std::size_t group, bool fused) {
  const std::string colour = fused ? fmt::format(" g{}", group % 8) : "";
  return fmt::format("<span class=\"group{}\">{}</span>", colour, group + 1);
}

/// A bar of a length from 0 to 1.
std::string bar(double share) {
  return fmt::format("<span class=\"bar\" style=\"width:{:.0f}px\"></span>", std::max(1.0, 90 * share));
}

struct Section {
  const char* name;
  std::string title;
  const ProgramRows& rows;
  const std::vector<double>* seconds;  // null: not shown
};

class Page {
 public:
  explicit Page(const Explanation& e) : e_(e), source_(e.source_folders) {}
  std::string text();

 private:
  std::string loop(const LoopReport& loop);
  std::string stage(const LoopReport& loop, const StageRows& stage, bool runs, const std::string& content);
  std::string program(const LoopReport& loop, const Section& section, bool runs);
  std::string row(const LoopReport& loop, const Section& section, const OpRow& row, const std::string& group,
                  bool runs);
  std::string graph(const LoopReport& loop, const StageRows& stage, bool runs);
  static std::string kept(const LoopReport& loop);
  static std::string groups(const LoopReport& loop);
  static std::string buffers(const LoopReport& loop);
  std::string totals_table(const LoopReport& loop) const;

  const Explanation& e_;
  SourceLines source_;
  std::set<std::string> problems_;  // of drawing
};

std::string Page::row(const LoopReport& loop, const Section& section, const OpRow& row, const std::string& group,
                      bool runs) {
  const char* kind = runs                        ? ""
                     : row.mark == Mark::moved   ? "moved"
                     : row.mark == Mark::added   ? "added"
                     : row.mark == Mark::dropped ? "dropped"
                                                 : "";
  std::string tags;
  if (*kind) tags += tag(kind, row.mark == Mark::moved ? "moved here" : row.mark == Mark::added ? "new" : "gone");
  if (row.kept) tags += tag("kept", "kept");
  if (row.again && row.mark != Mark::dropped) tags += tag("again", "again");
  std::string out =
      fmt::format("<tr class=\"{}\" data-op=\"{}\">", kind, escaped(loop.title + ":" + section.name + row.name));
  if (runs && std::string(section.name) == "body") out += "<td>" + group + "</td>";
  out += fmt::format("<td class=\"code\">{} = {}({}){}</td>", escaped(row.name), row.op,
                     escaped(fmt::format("{}", fmt::join(row.args, ", "))), tags);
  out += cell(row.spec.str(), "") + cell(row.view ? "" : flops_text(row.cost.flops)) +
         cell(row.view ? "" : bytes_text(row.cost.bytes));
  if (section.seconds && !section.seconds->empty()) {
    const auto n = static_cast<std::size_t>(row.node);
    out += cell(row.view || n >= section.seconds->size() ? "" : milliseconds_text((*section.seconds)[n]));
  }
  const std::string line = source_(row.where);
  out += fmt::format("<td class=\"src\">{}{}</td></tr>\n", escaped(row.where),
                     line.empty() ? "" : " <code>" + escaped(line) + "</code>");
  return out;
}

std::string Page::program(const LoopReport& loop, const Section& section, bool runs) {
  if (section.rows.rows.empty()) return "";
  const bool body = std::string(section.name) == "body";
  std::map<int, std::string> groups;
  for (std::size_t g = 0; runs && body && g < loop.groups.size(); ++g) {
    for (const int n : loop.groups[g].nodes) groups[n] = group_tag(g, loop.groups[g].fused);
  }
  std::string out = fmt::format("<h3>{}</h3><div class=\"io\">inputs {}", section.title,
                                escaped(fmt::format("{}", fmt::join(section.rows.inputs, " "))));
  if (!section.rows.consts.empty())
    out += "<br>consts " + escaped(fmt::format("{}", fmt::join(section.rows.consts, " ")));
  out += "<br>outputs " + escaped(fmt::format("{}", fmt::join(section.rows.outputs, " "))) + "</div>";
  out += "<div class=\"wide\"><table><tr>";
  if (runs && body) out += "<th>group</th>";
  out += "<th>op</th><th>result</th><th class=\"n\">operations</th><th class=\"n\">bytes</th>";
  if (section.seconds && !section.seconds->empty()) out += "<th class=\"n\">time</th>";
  out += "<th>source</th></tr>\n";
  for (const OpRow& r : section.rows.rows) {
    if (runs && r.mark == Mark::dropped) continue;
    out += row(loop, section, r, groups.contains(r.node) ? groups.at(r.node) : "", runs);
  }
  return out + "</table></div>\n";
}

std::string Page::graph(const LoopReport& loop, const StageRows& stage, bool runs) {
  const Drawn drawn = draw_graph(dot(loop, stage, runs));
  if (!drawn.problem.empty()) problems_.insert(drawn.problem);
  if (drawn.svg.empty()) return "";
  // Its size in points makes it readable; a wide screen may shrink it a little.
  std::string svg = drawn.svg;
  const std::size_t width = svg.find("width=\"");
  const double points = width == std::string::npos ? 0 : std::strtod(svg.c_str() + width + 7, nullptr);
  if (points < 1500) svg.replace(0, 4, "<svg class=\"fits\"");
  return "<div class=\"graph\">" + svg + "</div>\n";
}

std::string Page::stage(const LoopReport& loop, const StageRows& stage, bool runs, const std::string& rule) {
  const Signature& s = loop.signature;
  std::string out = "<div class=\"stage\"><p class=\"rule\">" + rule + "</p>\n" + graph(loop, stage, runs);
  out += program(
      loop, {"prologue", "Prologue: once, before the loop", stage.prologue, runs ? &loop.prologue_seconds : nullptr},
      runs);
  out += program(loop,
                 {"body", fmt::format("Body: {} steps{}", s.length, s.reverse ? ", from the last to the first" : ""),
                  stage.body, nullptr},
                 runs);
  out += program(
      loop, {"epilogue", "Epilogue: once, after the loop", stage.epilogue, runs ? &loop.epilogue_seconds : nullptr},
      runs);
  return out + "</div>\n";
}

std::string Page::kept(const LoopReport& loop) {
  std::string out;
  const auto T = static_cast<double>(loop.signature.length);
  if (loop.signature.save_carries) {
    out +=
        "<div><h3>Kept for the gradient, besides inputs and weights</h3><div "
        "class=\"wide\"><table><tr><th>value</th><th "
        "class=\"n\">a step</th><th class=\"n\">in all</th><th class=\"n\">price of keeping</th><th "
        "class=\"n\">computing "
        "it again</th></tr>\n";
    out += "<tr><td>the states</td>" + cell(bytes_text(loop.states_bytes)) +
           cell(bytes_text(loop.states_bytes * (T + 1))) + "<td></td><td></td></tr>\n";
    for (const KeptRow& k : loop.kept)
      out += fmt::format("<tr><td class=\"code\">{} {}</td>", escaped(k.name), k.op) + cell(bytes_text(k.bytes)) +
             cell(bytes_text(k.bytes * T)) + cell(amount_text(k.save_price, "") + " additions") +
             cell(fmt::format("{} in {} op{}", flops_text(k.again_flops), k.again_ops, k.again_ops == 1 ? "" : "s")) +
             "</tr>\n";
    out += "</table></div></div>\n";
  }
  if (loop.again_ops > 0)
    out += fmt::format(
        "<div><h3>Computed again</h3><p>{} op{} of the forward step, {} a step: cheaper than keeping their "
        "results. They are tagged in the last position of the slider.</p></div>\n",
        loop.again_ops, loop.again_ops == 1 ? "" : "s", flops_text(loop.again_flops));
  return out;
}

std::string Page::groups(const LoopReport& loop) {
  double most = 0;
  for (const GroupRow& g : loop.groups) most = std::max(most, g.seconds);
  std::string out = "<h3>Groups and kernel calls of a step, in the order in which they run</h3><p class=\"dim\">" +
                    escaped(shards_text(loop)) +
                    "</p><div class=\"wide\"><table><tr><th>group</th><th>ops</th><th>calls</th>"
                    "<th class=\"n\">operations</th><th class=\"n\">bytes</th>";
  if (most > 0) out += fmt::format("<th>time of all {} steps</th>", loop.signature.length);
  out += "</tr>\n";
  for (std::size_t g = 0; g < loop.groups.size(); ++g) {
    const GroupRow& group = loop.groups[g];
    std::string calls;
    for (std::size_t c = group.first_call; c < group.end_call && c < loop.calls.size(); ++c)
      calls += fmt::format("{}{} {}", calls.empty() ? "" : "<br>", loop.calls[c].kernel, escaped(loop.calls[c].sizes));
    out += fmt::format("<tr><td>{}</td><td class=\"wrap\">{}</td><td class=\"code\">{}</td>", group_tag(g, group.fused),
                       escaped(ops_text(group)), calls) +
           cell(flops_text(group.flops)) + cell(bytes_text(group.bytes));
    if (most > 0) out += fmt::format("<td>{}{}</td>", bar(group.seconds / most), milliseconds_text(group.seconds));
    out += "</tr>\n";
  }
  for (const CallRow& call : loop.calls) {
    if (call.group < 0)
      out += fmt::format("<tr><td></td><td>at the end of the step</td><td class=\"code\">{} {}</td></tr>\n",
                         call.kernel, escaped(call.sizes));
  }
  return out + "</table></div>\n";
}

std::string Page::buffers(const LoopReport& loop) {
  if (loop.buffers.empty()) return "";
  std::string out =
      "<div><h3>Buffers of the first shard's loop</h3><div class=\"wide\"><table><tr><th>kind</th><th>value</th>"
      "<th class=\"n\">size</th><th>from step to step</th></tr>\n";
  for (const BufferRow& b : loop.buffers)
    out += "<tr>" + cell(b.kind, "") + cell(b.name, "code") + cell(b.bytes < 0 ? "" : bytes_text(b.bytes)) +
           cell(b.moves, "") + "</tr>\n";
  return out + "</table></div></div>\n";
}

std::string Page::totals_table(const LoopReport& loop) const {
  const bool measured = loop.seconds() >= 0;
  std::string out =
      "<div><h3>Operations and memory traffic of the calls</h3><div class=\"wide\"><table><tr><th></th><th "
      "class=\"n\">operations</th><th class=\"n\">of products</th><th class=\"n\">bytes</th>";
  if (measured) out += "<th class=\"n\">time</th>";
  out += "</tr>\n";
  for (const Total& t : totals(loop)) {
    out += "<tr>" + cell(t.what, "") + cell(flops_text(t.once.flops * t.times)) +
           cell(flops_text(t.products * t.times)) + cell(bytes_text(t.once.bytes * t.times));
    if (measured) out += cell(milliseconds_text(t.seconds));
    out += "</tr>\n";
  }
  out += "</table></div>";
  if (const double bound = bound_seconds(loop, e_.rates); bound > 0) {
    out += fmt::format("<p>The bound: the products alone take {} at {}/s", milliseconds_text(bound),
                       flops_text(e_.rates.products));
    if (measured)
      out += fmt::format(", {:.0f} % of the {} that were measured", 100 * bound / loop.seconds(),
                         milliseconds_text(loop.seconds()));
    out += ".</p>";
  }
  return out + "</div>\n";
}

std::string Page::loop(const LoopReport& loop) {
  std::string names, stages;
  for (const StageRows& s : loop.stages) {
    const std::string name = s.rule.empty() ? "as traced" : s.pass;
    names += fmt::format("<button type=\"button\"{}>{}</button>", s.changed ? "" : " class=\"same\"", escaped(name));
    stages +=
        stage(loop, s, false,
              s.rule.empty() ? "The step as it was traced."
                             : escaped(s.rule) + (s.changed ? "." : ". <span class=\"dim\">Nothing to do.</span>"));
  }
  names += "<button type=\"button\">as it runs</button>";
  stages += stage(loop, loop.stages.back(), true, "What runs in the end; ops of one colour are one fused kernel.");
  std::string out = fmt::format(
      "<section class=\"loop\"><div class=\"top\"><h2>{}</h2><span class=\"dim\">{}; in all {}, {}</span></div>\n"
      "<div class=\"passes\"><input type=\"range\" min=\"0\" max=\"{}\" value=\"{}\" step=\"1\" aria-label=\"pass\">"
      "<div class=\"names\">{}</div></div>\n",
      escaped(loop.title == "forward"    ? "Forward loop"
              : loop.title == "gradient" ? "Loop of the gradient"
                                         : loop.title),
      escaped(shards_text(loop)), flops_text(loop.whole().flops), bytes_text(loop.whole().bytes), loop.stages.size(),
      loop.stages.size(), names);
  return out + stages + groups(loop) + "<div class=\"cols\">" + totals_table(loop) + kept(loop) + buffers(loop) +
         "</div></section>\n";
}

std::string Page::text() {
  std::string loops;
  for (const LoopReport& l : e_.loops) loops += loop(l);
  const std::string roof = roofline(e_);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<link rel=\"icon\" "
      "href=\"data:,\"><title>{}</title>\n<style>{}</style></head>\n<body>"
      "<header><h1>{}</h1>\n",
      escaped(e_.title), page_style, escaped(e_.title));
  for (const std::string& fact : e_.facts) out += "<p class=\"dim\">" + escaped(fact) + "</p>\n";
  for (const std::string& problem : problems_) out += "<p><b>" + escaped(problem) + ".</b></p>\n";
  out += "</header><main>\n";
  if (!roof.empty())
    out +=
        "<section><div class=\"top\"><h2>Roofline</h2><span class=\"dim\">what the groups of the bodies reach, and "
        "what "
        "the machine allows them, on one thread</span></div><div class=\"wide\">" +
        roof + "</div></section>\n";
  out +=
      loops +
      "</main><footer>Made by Reel's explain. Operations are counted in additions; bytes are those that the calls read "
      "and write, be it from a cache.</footer>\n";
  return out + fmt::format("<script>{}</script></body></html>\n", page_script);
}

}  // namespace

std::string html(const Explanation& e) { return Page(e).text(); }

}  // namespace reel::explain
