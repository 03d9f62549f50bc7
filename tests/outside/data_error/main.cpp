// A file of a data set that is missing.
#include <reel/data/data_error.h>

#include <cstdio>

int main() {
  try {
    reel::data_file("nowhere", "waves", "train.csv");
  } catch (const reel::DataError& e) {
    std::puts(e.what());
  }
}
