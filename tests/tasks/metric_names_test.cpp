// What the name of a metric says: the quantity, and whether more of it is better.
#include "tasks/page/compare.h"
#include "tests/support/check.h"

using namespace reel::page;

TEST_CASE("the quantity of a metric, without the part of run.json and the user's column") {
  CHECK(quantity_of("valid_loss") == "valid_loss");
  CHECK(quantity_of("test.accuracy") == "accuracy");
  CHECK(quantity_of("test.rmse of site.snr") == "rmse");
}

TEST_CASE("more of a metric is better by a word of its quantity, not by letters in it or in a column's name") {
  for (const char* metric :
       {"accuracy", "best.accuracy", "test.accuracy", "success", "test.segsnr_db", "test.stoi", "test.pesq",
        "test.paths_right", "steps_per_second", "test.macro_f1", "test.top5-accuracy"})
    CHECK_MESSAGE(higher_is_better(metric), metric);
  for (const char* metric : {"valid_loss",
                             "best valid_loss",
                             "train_loss",
                             "grad_norm",
                             "test.loss",
                             "test.bpc",
                             "test.nll",
                             "test.mse_over_steps",
                             "test.rmse",
                             "test.mae",
                             "test.rmse of snr",
                             "test.mae of accuracy",
                             "test.rmse of f1",
                             "test.mae of my.success",
                             "test.unsuccessful",
                             "solved_at.step",
                             "seconds",
                             "update_seconds",
                             "parameters",
                             "largest_error",
                             "ruined",
                             "epoch_seconds"})
    CHECK_FALSE_MESSAGE(higher_is_better(metric), metric);
}
