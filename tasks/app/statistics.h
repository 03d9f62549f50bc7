// Means over seeds, as tables show them.
#pragma once
#include <string>
#include <vector>

namespace reel {

double mean(const std::vector<double>& values);       // NaN of none
double deviation(const std::vector<double>& values);  // of a sample; NaN of fewer than two

/// A number with so many significant digits: "0.01234". From 10^digits to ten millions it is an integer, "21400"
/// and not "2.14e+04".
std::string significant(double value, int digits);

/// "0.01234 ± 0.0021", without the deviation if it is not finite.
std::string with_deviation(double mean, double deviation);

/// "never" if all values are infinite, as those of solved_at of a run that solved nothing; "1 of 3 never" if some are;
/// empty if none is.
std::string never_text(const std::vector<double>& values);

}  // namespace reel
