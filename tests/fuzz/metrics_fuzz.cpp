// metrics.csv.
#include "tasks/app/run_folder.h"
#include "tests/fuzz/fuzz.h"

using namespace reel;
using namespace reel::fuzz;

REEL_FUZZ(bytes) {
  takes([&] { (void)RunFolder::rows_in("metrics.csv", bytes); });
  const std::string behind = "step,examples,seconds,train_loss,valid_loss,accuracy,grad_norm\n" + std::string(bytes);
  takes([&] { (void)RunFolder::rows_in("metrics.csv", behind); });
}
