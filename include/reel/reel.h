// All of reel::reel: tensors, ops, gradients, scan and the cells.
#pragma once
#include "cells/cell.h"
#include "cells/plugin.h"
#include "ops/check_grads.h"
#include "reel/version.h"
