// What the code blocks of the lectures share.
#pragma once
#include <cmath>
#include <vector>

#include "course/toy.h"
#include "docs/prelude.h"
