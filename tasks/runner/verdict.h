// Whether a row of a table shows what its paper found: the rules of `expect` in the presets, applied to means over
// seeds.
#pragma once
#include <map>
#include <string>

#include "tasks/runner/report.h"

namespace reel {

/// `none` if nothing is expected; `not_judged` if something is, and could not be compared.
enum class Verdict { pass, fail, not_judged, none };

struct Judgement {
  Verdict verdict = Verdict::not_judged;
  std::string why;      // what was compared, or why nothing could be
  bool better = false;  // fails only because the number is better than the reported one
  bool open = false;    // not judged, as another row of its order has no run yet
};

/// Judges one measure of a row; other rows of the report are looked at where an order is expected.
Judgement judge(const Report& report, const ReportRow& row, std::size_t measure);

/// "pass", "fail", "not judged", or "-" for none.
std::string text_of(Verdict verdict);

/// How many of the measures have which verdict, but for none; those of which nothing is expected count if they fail, as
/// a run diverged or has another count of parameters.
struct VerdictCount {
  std::size_t pass = 0, fail = 0, not_judged = 0;
  std::size_t better = 0;                      // of those that fail: only because they are better than the paper
  std::size_t not_run = 0;                     // of those not judged: without a run, although nothing hinders it
  std::map<std::string, std::size_t> lacking;  // of those not judged: without a run, by what they need
  void add(const Report& report);
  void add(const VerdictCount& other);
  /// "12 pass, 2 fail (1 of them better than the paper), 3 not judged"
  std::string text() const;
  /// Why the others are not judged: "92 need TIMIT, 460 have no run, 3 have runs, but not all that they are judged by";
  /// empty if all are judged.
  std::string reasons() const;
};

}  // namespace reel
