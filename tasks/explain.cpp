// Shows what becomes of a step on its way to kernels (tasks/app/explain_program.h).
#include "tasks/app/explain_program.h"

int main(int argc, char** argv) { return reel::run_explain(argc, argv); }
