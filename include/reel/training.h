// All of reel::training: what reel.h has, and models, optimisers, training steps, checkpoints, safetensors files and
// predictors.
#pragma once
#include "reel/reel.h"
#include "tasks/training/checkpoint.h"
#include "tasks/training/device.h"
#include "tasks/training/predictor.h"
#include "tasks/training/prefetch.h"
#include "tasks/training/probe.h"
#include "tasks/training/safetensors.h"
#include "tasks/training/training_step.h"
