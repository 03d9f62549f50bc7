// Pages in a headless Chromium, if there is one: a script at the end of the page finds out what a user would see.
#pragma once
#include <fmt/core.h>

#include <map>
#include <regex>
#include <string>

#include "tasks/io/files.h"
#include "tasks/io/spawn.h"
#include "tests/support/installed.h"
#include "tests/support/temp_dir.h"

namespace reel::test {

/// Opens a page `width` pixels wide and returns the numbers that `script` puts into the object `seen`, by name.
/// "errors" counts those of scripts and the messages of the console, "overflow" the pixels by which the page is too
/// wide, "dark" is 1 in dark mode. Empty if something went wrong.
inline std::map<std::string, int> in_browser(const TempDir& dir, std::string page, const std::string& script, int width,
                                             bool dark) {
  page.insert(page.find("<style>"), R"js(<script>
const seen = {errors: 0}; window.addEventListener("error", () => ++seen.errors);
console.error = console.warn = () => ++seen.errors;
</script>)js");
  // Once what is drawn later, canvases, is there and fits; a browser that is short of time resizes them late.
  page.insert(page.rfind("</body>"), "<script>const probe = () => {" + script + R"js(
seen.overflow = Math.max(0, document.documentElement.scrollWidth - document.documentElement.clientWidth);
seen.dark = getComputedStyle(document.body).backgroundColor === "rgb(18, 22, 28)" ? 1 : 0;
document.body.textContent = "seen " + Object.entries(seen).map(([k, v]) => k + "=" + v).join(" ");
};
const fit = () => typeof everyChart === "undefined" ||
  everyChart.every(c => !c.plot || Math.abs(c.plot.width - c.area.clientWidth) <= 1);
const wait = left => fit() || left === 0 ? probe() : setTimeout(() => wait(left - 1), 50);
setTimeout(() => wait(50), 300);</script>)js");
  const std::string path = dir / "probe.html";
  write_atomically(path, page);
  const Spawned browser = run_child({"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                                     "--virtual-time-budget=4000", fmt::format("--window-size={},900", width),
                                     fmt::format("--blink-settings=preferredColorScheme={}", dark ? 0 : 1),
                                     "--user-data-dir=" + dir / "profile", "file://" + path});
  std::map<std::string, int> out;
  const std::size_t seen = browser.out.find("seen errors=");
  if (seen == std::string::npos) return out;
  const std::string text = browser.out.substr(seen);
  const std::regex word("([a-z]+)=([0-9]+)");
  for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) out[(*i)[1]] = std::stoi((*i)[2]);
  return out;
}

}  // namespace reel::test
