// All of reel::app: what training.h has, and what makes a program of a task: options, run folders, pictures.
#pragma once
#include "reel/training.h"
#include "tasks/app/run.h"
