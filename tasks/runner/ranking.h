// Which models are best, and how often, over several tables of stored results: NRU's Table 1.
#pragma once
#include <span>

#include "tasks/runner/report.h"

namespace reel {

/// A text of two tables. First each case of each report with its models, best first: by the update that solved it if
/// the table has that column, then by the main metric; models of which a run diverged come last. Then how often each
/// model is first, with no better one, and among the first two, with one better one at most; so models with equal
/// numbers count alike. Cases in which fewer than two models have a result do not count.
std::string ranking(std::span<const Report> reports);

}  // namespace reel
