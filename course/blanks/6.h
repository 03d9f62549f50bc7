// Assignment 6: what a step costs, and what can be saved. Replace each BLANK.
#pragma once
#include <algorithm>

#include "course/check.h"
#include "course/weights.h"
#include "engine/scan/program.h"

namespace answer {

using namespace reel;
using course::Weights;
using Cost = Program::Cost;  // {operations, bytes}

/// What a product of [B, k] by [k, n] costs, in f32: a multiplication and an addition are two operations; each number
/// is read or written once.
inline Cost product(double B, double k, double n) { BLANK; }

/// How long a call takes at least, on a core that does `rate` operations a second and moves `bandwidth` bytes a second,
/// both at the same time.
inline double seconds(const Cost& cost, double rate, double bandwidth) { BLANK; }

/// The bytes that go through memory for a chain of elementwise calls, y = f(g(h(x))) for example, on n numbers of f32:
/// if each call runs by itself, and if all of them are one fusion group.
inline double chain_bytes(double calls, double n, bool fused) { BLANK; }

/// Operations in products of one training step, forward and gradient, of an LSTM with n units: T time steps, B
/// sequences, i inputs. Each of its four gates has W x and R h; the gradient is wanted of W, R and h, but not of x,
/// which is data.
inline double lstm_operations(double T, double B, double i, double n) { BLANK; }

/// A model of a GPU. A loop of T steps with `calls` kernels a step is launched kernel by kernel, which takes `launch`
/// seconds each. Or it is one kernel, launched once, in which all threads wait for each other `barriers` times a step,
/// for `barrier` seconds each. The work itself is small beside that. How many times as fast is the one kernel?
inline double one_kernel_gain(double T, double calls, double launch, double barriers, double barrier) { BLANK; }

/// The same function as course::slow_step (course/weights.h), from the same weights, with at most half the operations
/// in the loop. hoist takes what does not depend on h; what it cannot take is yours.
inline Tensor fast_step(const Tensor& h, const Tensor& x, const Weights& w) { BLANK; }

}  // namespace answer
