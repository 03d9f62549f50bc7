// All of reel::app: what training.h has, and what makes a program of a task: options, run folders, pictures;
// and run_explain, which shows what becomes of a cell.
#pragma once
#include "reel/training.h"
#include "tasks/app/explain_program.h"
#include "tasks/app/run.h"
