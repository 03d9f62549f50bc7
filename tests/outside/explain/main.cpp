// Reel's explain with all cells of this project.
#include <reel/app.h>

int main(int argc, char** argv) { return reel::run_explain(argc, argv); }
