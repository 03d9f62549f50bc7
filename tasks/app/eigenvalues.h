// The picture of eigenvalues: what a cell's recurrence does to a state, before and after training.
#pragma once
#include "tasks/app/pictures.h"

namespace reel {

/// Eigenvalues of a cell's recurrence.
struct Spectrum {
  Tensor values;                    // c128 [m], on the CPU; undefined for a cell without recurrence
  std::vector<std::int64_t> times;  // none: of the recurrent matrix
};
/// Those of a cell that reads x [T, 1, input]: of its recurrent matrix, or where it has no single one, of the Jacobians
/// of up to four steps, at `times`, with the mean of zoneout.
Spectrum spectrum_of(const Cell& cell, const Tensor& x, const Zoneout& zoneout = {});

/// Draws the spectrum of each layer in the complex plane, with the unit circle, and saves the numbers.
void draw_eigenvalues(const Ended& e);

}  // namespace reel
