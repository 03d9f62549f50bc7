// The functors of one element without parameters, each with its C++ function: (Softplus, softplus). ops/ops.h declares
// the functions from only this list, so a formula can change without rebuilding all its callers.
#pragma once

// clang-format off
#define REEL_UNARY_FUNCTIONS(X)                                                                        \
  X(Neg, neg) X(Abs, abs) X(Sign, sign) X(Square, square) X(Reciprocal, reciprocal)                    \
  X(Sqrt, sqrt) X(Rsqrt, rsqrt) X(Exp, exp) X(Expm1, expm1) X(Log, log) X(Log1p, log1p)                \
  X(Sin, sin) X(Cos, cos) X(Tan, tan) X(Asin, asin) X(Acos, acos) X(Atan, atan)                        \
  X(Sinh, sinh) X(Cosh, cosh) X(Tanh, tanh) X(Sigmoid, sigmoid) X(Erf, erf)                            \
  X(Relu, relu) X(Gelu, gelu) X(Silu, silu) X(Softplus, softplus) X(Softsign, softsign)                \
  X(Floor, floor) X(Ceil, ceil) X(Round, round) X(Trunc, trunc)                                        \
  X(IsNan, is_nan) X(IsInf, is_inf) X(IsFinite, is_finite) X(Not, logical_not)
// clang-format on
