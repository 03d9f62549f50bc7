#include "tasks/app/agreement.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tasks/app/options.h"
#include "tasks/io/output.h"
#include "tasks/training/checksum.h"

namespace reel {

namespace {

/// The first line that differs, of each.
std::pair<std::string, std::string> difference(const std::string& a, const std::string& b) {
  std::istringstream as(a), bs(b);
  std::string x, y;
  while (true) {
    const bool more_x = static_cast<bool>(std::getline(as, x)), more_y = static_cast<bool>(std::getline(bs, y));
    if (!more_x) x = "nothing";
    if (!more_y) y = "nothing";
    if (x != y || !more_x || !more_y) return {x, y};
  }
}

/// What is wrong with the digest of rank r; empty: nothing.
std::string compare(const nlohmann::json& first, const nlohmann::json& other, std::size_t r) {
  for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    const std::string name = first[i][0], a = first[i][1], b = other[i][1];
    if (a == b) continue;
    const auto [x, y] = difference(a, b);
    return fmt::format("[ranks] all must have the same {}: rank 0 has {}, rank {} has {}", name, x, r, y);
  }
  return "";
}

}  // namespace

void together(Ranks& ranks, const std::function<Digest()>& work) {
  if (ranks.size() == 1) {
    work();
    return;
  }
  nlohmann::json mine = nlohmann::json::object();
  try {
    mine["digest"] = work();
  } catch (const Exit& e) {
    mine["exit"] = e.text, mine["code"] = e.code;
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    mine["failed"] = failure.line, mine["code"] = failure.code;
  }
  const auto dump = [](const nlohmann::json& j) {
    return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const std::vector<std::string> texts = ranks.gather(dump(mine));
  std::vector<nlohmann::json> all;
  for (const std::string& text : texts) all.push_back(nlohmann::json::parse(text));
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].contains("failed")) continue;
    const bool same = std::all_of(
        all.begin(), all.end(), [&](const auto& j) { return j.contains("failed") && j["failed"] == all[r]["failed"]; });
    const std::string line = all[r]["failed"];
    throw AllFailed({all[r]["code"], same ? line : fmt::format("rank {}: {}", r, line)});
  }
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].contains("exit") != mine.contains("exit"))
      throw AllFailed(
          {2, fmt::format("[ranks] all must have the same options: rank 0 and rank {} do different things", r)});
    if (all[r].contains("exit")) continue;
    const std::string wrong = compare(all[0]["digest"], all[r]["digest"], r);
    if (!wrong.empty()) throw AllFailed({2, wrong});
  }
  if (mine.contains("exit")) throw Exit{mine["code"], mine["exit"]};
}

void require_same(Ranks& ranks, const Model& model) {
  if (ranks.size() == 1) return;
  Tensors parameters;
  for (const Parameter& p : model.parameters()) parameters.push_back(p.value);
  const std::vector<std::string> sums = ranks.gather(checksum(parameters));
  for (std::size_t r = 1; r < sums.size(); ++r)
    if (sums[r] != sums[0])
      throw Error("ranks", fmt::format("rank {} has other parameters than rank 0, so its memory, its processor or its "
                                       "program differs. Hint: run the same build everywhere, and --resume",
                                       r));
}

int run_ranks(const std::string& program, Ranks& ranks, const std::function<int()>& body) {
  const auto say = [&](const std::string& line) { print_err("{}: {}\n", program, one_line(line)); };
  int code = 1;
  std::optional<Failure> failed;
  bool echo = false;
  ranks.set_patience(600);  // they read their data, some faster than others
  try {
    code = body();
    ranks.set_patience(0);  // rank 0 may have pictures to draw
    ranks.gather("");
  } catch (const AllFailed& e) {
    if (ranks.first()) say(e.failure.line);
    ranks.gather("");
    return ranks.first() ? e.failure.code : 0;
  } catch (const Exit& e) {
    write_out(e.text);
    code = e.code;
    ranks.gather("");
  } catch (const RankLeft&) {
    failed = Failure{}, echo = true;
  } catch (...) {
    failed = failure_of(std::current_exception());
  }
  if (!failed) return ranks.first() ? code : 0;
  const auto all = ranks.leave(echo ? "" : failed->line);
  const bool complete = std::all_of(all.begin(), all.end(), [](const auto& why) { return why.has_value(); });
  const bool same = std::all_of(all.begin(), all.end(), [](const auto& why) { return why && !why->empty(); });
  const auto speaker = std::find_if(all.begin(), all.end(), [](const auto& why) { return why.has_value(); });
  if (speaker - all.begin() == ranks.rank()) {
    const auto cause = std::find_if(all.begin(), all.end(), [](const auto& why) { return why && !why->empty(); });
    const std::string line = cause != all.end() ? **cause : "[ranks] a rank has left the run";
    const bool plain = same || line.starts_with("[ranks]");  // those name a rank by themselves
    say(plain ? line : fmt::format("rank {}: {}", cause - all.begin(), line));
  }
  if (complete && same && ranks.settled()) return ranks.first() ? failed->code : 0;
  if (speaker - all.begin() != ranks.rank()) sleep(10);  // the speaker ends us before
  ranks.abort(failed->code);
}

}  // namespace reel
