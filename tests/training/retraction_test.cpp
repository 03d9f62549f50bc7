// Parameters that move along a manifold: what of the rates and of clipping reaches their retraction.
#include "tasks/training/optimizer.h"
#include "tests/support/check.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("parameters that move on a manifold: the rate, times its factor, times what clipping leaves") {
  const double norm = 5;
  for (const double limit : {0.0, 0.5, 10.0}) {
    CAPTURE(limit);
    OptimizerOptions options;
    options.kind = "sgd", options.lr = 0.2, options.clip_norm = limit;
    double rate = 0;
    Parameter p{"p", Tensor::zeros({2}, DType::f64), ""};
    p.retract = [&](Tensor, const Tensor& g, double r) {
      CHECK(g.values<double>() == std::vector<double>{3, 4});
      rate = r;
    };
    Optimizer optimizer({p}, options);
    optimizer.step({Tensor::from<double>({3, 4}, {2})}, norm, 0.25);
    CHECK(rate == doctest::Approx(0.05 * (limit == 0.5 ? 0.1 : 1)).epsilon(1e-15));
  }
}

TEST_CASE("clip_value holds for parameters that move on a manifold, for both parts of complex ones") {
  for (const double norm : {0.0, 5.0}) {  // the gradients' is 10, and clipping by it comes first
    CAPTURE(norm);
    OptimizerOptions options;
    options.kind = "sgd", options.lr = 1, options.clip_norm = norm, options.clip_value = 2;
    Parameter p{"p", Tensor::zeros({2}, DType::f64), ""}, z{"z", Tensor::zeros({1}, DType::c128), ""};
    p.retract = z.retract = [](Tensor& value, const Tensor& g, double rate) { value.assign(value - rate * g); };
    const Tensors gradients{Tensor::from<double>({1, -5}, {2}), Tensor::full({1}, {-5, 7}, DType::c128)};
    Optimizer optimizer({p, z}, options);
    CHECK(optimizer.norm(gradients) == 10);
    optimizer.step(gradients, 10);
    CHECK(p.value.values<double>() == std::vector<double>{norm > 0 ? -0.5 : -1, 2});
    CHECK(elements(z.value)[0] == std::complex<double>(2, -2));
  }
}

TEST_CASE("a retraction that gives the parameter another tensor moves nothing: an error that says what does") {
  Parameter p{"cell.W", Tensor::zeros({2}, DType::f64), ""};
  p.retract = [](Tensor& value, const Tensor& g, double r) { value = value - r * g; };
  const Tensors gradients{Tensor::from<double>({3, 4}, {2})};
  const std::string said = error_of([&] { Optimizer({p}, {.kind = "sgd"}).step(gradients, 5); });
  CHECK(said.starts_with("[optimizer] the retraction of cell.W gives it another tensor"));
  CHECK(said.ends_with("Hint: value.assign(...) moves it in place"));
  p.retract = [](Tensor& value, const Tensor& g, double r) { value.assign(value - r * g); };
  Optimizer({p}, {.kind = "sgd", .lr = 0.5}).step(gradients, 5);
  CHECK(p.value.values<double>() == std::vector<double>{-1.5, -2});
}
