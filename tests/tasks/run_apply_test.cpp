// build/bin/apply: every cell from file to file and back, and what it says of bad files.
#include <filesystem>

#include "cells/cell.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> call(const CellType& type, const std::vector<std::string>& more) {
  std::vector<std::string> all{"--cell", type.name, "--input-size", "3", "--hidden", "8", "--dtype", "f64"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// The cell as apply makes it, for comparison.
std::unique_ptr<Cell> make(const CellType& type) {
  Init init(1, DType::f64);
  return type.make(3, 8, Settings(type.name, type.settings), init);
}

}  // namespace

TEST_CASE("every cell: weights out, weights in, outputs, last states and gradients as in memory") {
  const TempDir dir;
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W, "--seed", "5"}), dir.path).code == 0);
    const auto cell = make(type);
    const TensorFile weights = load_safetensors(W);
    Tensors wrt;
    std::vector<std::string> names;
    for (const Parameter& p : cell->parameters()) {
      Tensor value = p.value;
      value.assign(weights.at(p.name));
      if (!p.trained) continue;
      wrt.push_back(value);
      names.push_back("grad." + p.name);
    }

    const Tensor x = random({5, 2, 3}, 1), dy = random({5, 2, cell->outputs()}, 2);
    TensorFile in;
    in.tensors = {{"x", x}, {"dy", dy}};
    Tensors state;
    for (const State& s : cell->states()) {
      state.push_back(random({2, s.width}, 3 + state.size(), s.complex ? DType::c128 : DType::f64));
      in.tensors.emplace_back("state." + s.name, state.back());
      wrt.push_back(state.back());
      names.push_back("grad.state." + s.name);
    }
    wrt.push_back(x);
    names.push_back("grad.x");
    save_safetensors(X, in);
    const Result r = run("apply", call(type, {"--weights", W, "--input", X, "--output", Y}), dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);

    const TensorFile out = load_safetensors(Y);
    Tape tape;
    const Sequence all = scan(*cell, state, x);
    CHECK(difference(out.at("y"), all.hs) < 1e-13);
    for (std::size_t i = 0; i < state.size(); ++i)
      CHECK(difference(out.at("state." + cell->states()[i].name), all.last[i]) < 1e-13);
    const Tensors gradients = grad({all.hs}, wrt, {.cotangents = {dy}});
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      CAPTURE(names[i]);
      CHECK(difference(out.at(names[i]), gradients[i]) < 1e-12);
    }
    CHECK(out.tensors.size() == 1 + state.size() + wrt.size());
  }
}

TEST_CASE("--describe: a line each for parameters and states, and the count") {
  const TempDir dir;
  const Result r = run(
      "apply", {"--cell", "lstm", "--lstm.biases", "1", "--input-size", "3", "--hidden", "5", "--describe"}, dir.path);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "W_i\t(5, 3)\tf32\n"));
  CHECK(contains(r.out, "state.c\t(B, 5)\tf32\ny\t(T, B, 5)\tf32\ntotal\t180\n"));
}

TEST_CASE("files that do not fit are named, and nothing is written") {
  const TempDir dir;
  const CellType& type = cell_type("gru");
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  const auto answer = [&](const std::vector<std::string>& more, int code) {
    const Result r = run("apply", call(type, more), dir.path);
    CHECK(r.code == code);
    CHECK(!std::filesystem::exists(Y));
    return r.err;
  };
  const auto with_weights = [&] { return answer({"--weights", W, "--input", X, "--output", Y}, 1); };
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}}, {}});
  CHECK(contains(answer({"--weights", W, "--input", X, "--output", Y}, 1), W));  // there is none yet
  REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);

  TensorFile weights = load_safetensors(W);
  const TensorFile good = weights;
  weights.tensors.pop_back();
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), "missing: " + good.tensors.back().first));
  weights = good;
  weights.tensors.emplace_back("W_q", random({2}, 1));
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), "the cell has no W_q"));
  weights = good;
  weights.tensors[0].second = random({2, 3}, 1);
  save_safetensors(W, weights);
  CHECK(contains(with_weights(), good.tensors[0].first + " has shape (2, 3)"));
  save_safetensors(W, good);
  save_safetensors(X, {{{"x", random({5, 2, 4}, 1)}}, {}});
  CHECK(contains(with_weights(), "x has shape (5, 2, 4), (5, 2, 3) expected"));
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}, {"state.c", random({2, 8}, 1)}}, {}});
  CHECK(contains(with_weights(), "state.c is neither x, lengths, dy nor a state"));
  save_safetensors(X, {{{"dy", random({5, 2, 3}, 1)}}, {}});
  CHECK(contains(with_weights(), "[" + X + "] has no tensor x"));
  for (const std::int32_t wrong : {6, 0, -5}) {
    save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}, {"lengths", Tensor::from<std::int32_t>({5, wrong}, {2})}}, {}});
    CHECK(contains(with_weights(), fmt::format("1 to 5 time steps are expected, got {} of sequence 1", wrong)));
  }
  CHECK(contains(answer({"--input", X}, 2), "--output"));
  CHECK(contains(answer({"--init-only"}, 2), "--weights-out"));
  CHECK(contains(answer({"--layer", "5", "--describe"}, 2), "--layer chooses from a --run or its --weights, which "));
}

TEST_CASE("sizes come from the weights") {
  const TempDir dir;
  const std::string W = dir.path + "/W.safetensors";
  for (const CellType& type : cell_registry()) {
    CAPTURE(type.name);
    REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);
    const Result r = run("apply", {"--cell", type.name, "--weights", W, "--describe"}, dir.path);
    CAPTURE(r.err);
    CHECK(r.code == 0);
    CHECK(r.out ==
          run("apply", {"--cell", type.name, "--input-size", "3", "--hidden", "8", "--describe"}, dir.path).out);
  }
  const Result r = run("apply", {"--cell", "gru", "--weights", W, "--describe"}, dir.path);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "fits gru at no size"));
}

TEST_CASE("a run's folder: its cell, settings and weights") {
  const TempDir dir;
  const std::string X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors", folder = dir.path + "/run";
  REQUIRE(run("copying",
              {"--cell", "lstm", "--lstm.biases", "1", "--hidden", "6", "--layers", "2", "--delay", "5", "--steps", "3",
               "--out", folder, "--quiet"},
              dir.path)
              .code == 0);
  const TensorFile checkpoint = load_safetensors(folder + "/best.safetensors");
  const Tensor x = random({4, 2, 6}, 1, DType::f32);
  save_safetensors(X, {{{"x", x}}, {}});
  const auto apply = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--run", folder, "--input", X, "--output", Y};
    all.insert(all.end(), more.begin(), more.end());
    return run("apply", all, dir.path);
  };
  const Result r = apply({"--layer", "2"});
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.err, "lstm with I = 6, N = 6"));
  Init init(1);
  const CellType& type = cell_type("lstm");
  const auto cell = type.make(6, 6, Settings("lstm", type.settings, {{"biases", "1"}}), init);
  for (const Parameter& p : cell->parameters()) Tensor(p.value).assign(checkpoint.at("cell2." + p.name));
  CHECK(difference(load_safetensors(Y).at("y"), scan(*cell, cell->initial(2), x).hs) < 1e-6);
  CHECK(contains(apply({"--layer", "3"}).err, "has no layer 3, only cell1., cell2."));
  CHECK(apply({"--layer", "1"}).code == 0);
  const Result layer = run("apply", {"--run", "nowhere", "--layer", "1", "--input", X, "--output", Y}, dir.path);
  CHECK(layer.code == 2);
  CHECK(contains(layer.err, "nowhere/config.toml"));
  const Result nowhere = run("apply", {"--run", "nowhere", "--input", X, "--output", Y}, dir.path);
  CHECK(nowhere.code == 1);
  CHECK(contains(nowhere.err, "[nowhere] does not exist"));
}

TEST_CASE("a run's whole model: embedding, unlike layers, read-out, and its gradients") {
  const TempDir dir;
  const std::string X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors", folder = dir.path + "/run";
  REQUIRE(run("copying",
              {"--cell", "lstm,gru", "--hidden", "6,5", "--layer-norm", "--delay", "5", "--steps", "3", "--out", folder,
               "--quiet"},
              dir.path)
              .code == 0);
  const TensorFile checkpoint = load_safetensors(folder + "/best.safetensors");
  const auto value = [&](const std::string& name) { return checkpoint.at(name); };
  Init init(1);
  const auto made = [&](const char* name, std::int64_t i, std::int64_t n, const std::string& prefix) {
    const CellType& type = cell_type(name);
    auto cell = type.make(i, n, Settings(name, type.settings), init);
    for (const Parameter& p : cell->parameters()) Tensor(p.value).assign(value(prefix + p.name));
    return cell;
  };
  const Tensor table = value("embedding"), V = value("head.V"), c = value("head.c");
  const auto lstm = made("lstm", table.dim(1), 6, "cell1."), gru = made("gru", 6, 5, "cell2.");
  const Tensor x = Tensor::from<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 7}, {4, 2});
  const Tensor first = random({2, 5}, 3, DType::f32), lengths = Tensor::from<std::int32_t>({4, 2}, {2});
  const Tensor dy = random({4, 2, V.dim(0)}, 4, DType::f32);
  save_safetensors(X, {{{"x", x}, {"state.layer2.h", first}, {"lengths", lengths}, {"dy", dy}}, {}});
  const Result r = run("apply", {"--run", folder, "--input", X, "--output", Y}, dir.path);
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  CHECK(contains(r.err, "parameters of " + folder + "/best.safetensors"));
  CHECK(contains(r.err, "last states and gradients"));

  Tape tape;
  CellInput below = embedding(x, table);
  below.lengths = lengths;
  const Sequence one = scan(*lstm, lstm->initial(2), below);
  CellInput above = layer_norm(one.hs, value("norm2.gain"), value("norm2.bias"));
  above.lengths = lengths;
  const Sequence two = scan(*gru, {first}, above);
  const Tensor y = linear(two.hs, V, c);
  const TensorFile out = load_safetensors(Y);
  CHECK(difference(out.at("y"), y) < 1e-6);
  CHECK(difference(out.at("state.layer1.c"), one.last[1]) < 1e-6);
  CHECK(difference(out.at("state.layer2.h"), two.last[0]) < 1e-6);
  Tensors wrt{table, V, first};
  std::vector<std::string> names{"embedding", "head.V", "state.layer2.h"};
  for (const Parameter& p : lstm->parameters()) {
    wrt.push_back(p.value);
    names.push_back("cell1." + p.name);
  }
  const Tensors gradients = grad({y}, wrt, {.cotangents = {dy}});
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(difference(out.at("grad." + names[i]), gradients[i]) < 1e-5);
  }

  const Result described = run("apply", {"--run", folder, "--describe"}, dir.path);
  CHECK(contains(described.out, "head.V"));
  const Result config = run("apply", {"--config", folder + "/config.toml", "--describe"}, dir.path);
  CHECK(config.code == 2);
  CHECK(contains(config.err, "Hint: --run " + folder));
  CHECK(contains(described.out, "state.layer2.h\t(B, 5)\tf32"));
  CHECK(contains(run("apply", {"--run", folder, "--hidden", "3", "--describe"}, dir.path).err,
                 "--hidden: --run alone takes the whole model"));
  CHECK(contains(run("apply", {"--run", folder, "--layer", "2", "--describe"}, dir.path).out, "U_r\t(5, 6)\tf32"));
}

TEST_CASE("a run's stack of unlike layers, with zoneout: each layer as in the model") {
  const TempDir dir;
  const std::string folder = dir / "run", X = dir / "X.safetensors", Y = dir / "Y.safetensors";
  REQUIRE(run("adding",
              {"--cell", "gru,lstm", "--lstm.biases", "1", "--hidden", "4,6", "--zoneout", "0.25", "--length", "8",
               "--steps", "3", "--threads", "1", "--out", folder, "--quiet"},
              dir.path)
              .code == 0);
  const TensorFile checkpoint = load_safetensors(folder + "/best.safetensors");
  struct Layer {
    std::string cell;
    std::int64_t input, hidden;
    std::map<std::string, std::string> settings;
  };
  const std::vector<Layer> layers{{"gru", 2, 4, {}}, {"lstm", 4, 6, {{"biases", "1"}}}};
  for (std::size_t l = 0; l < 2; ++l) {
    const Layer& layer = layers[l];
    const Tensor x = random({5, 2, layer.input}, 1, DType::f32);
    save_safetensors(X, {{{"x", x}}, {}});
    const std::string number = std::to_string(l + 1);
    const Result r = run("apply", {"--run=" + folder, "--layer=" + number, "--input", X, "--output", Y}, dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    CHECK(contains(r.err, fmt::format("{} with I = {}, N = {}", layer.cell, layer.input, layer.hidden)));
    Init init(1);
    const CellType& type = cell_type(layer.cell);
    const auto cell = type.make(layer.input, layer.hidden, Settings(layer.cell, type.settings, layer.settings), init);
    for (const Parameter& p : cell->parameters()) Tensor(p.value).assign(checkpoint.at("cell" + number + "." + p.name));
    const NoGrad inference;
    Tensors states = cell->initial(2), ys;
    for (std::int64_t t = 0; t < 5; ++t) {
      const Tensors next = cell->step(states, x.at(t));
      for (std::size_t s = 0; s < states.size(); ++s) states[s] = 0.25 * states[s] + 0.75 * next[s];
      ys.push_back(cell->output(states));
    }
    const Tensor y = load_safetensors(Y).at("y");
    for (std::int64_t t = 0; t < 5; ++t) CHECK(difference(y.at(t), ys[static_cast<std::size_t>(t)]) < 1e-6);
  }
}

TEST_CASE("complex tensors as pairs of real ones") {
  const TempDir dir;
  const CellType& type = cell_type("urnn");
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}}, {}});
  const auto y = [&] {
    const Result r = run("apply", call(type, {"--weights", W, "--input", X, "--output", Y}), dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    return load_safetensors(Y).at("y");
  };
  const Tensor wanted = y();
  TensorFile pairs, parts;
  for (const auto& [name, tensor] : load_safetensors(W).tensors) {
    if (!is_complex(tensor.dtype())) {
      pairs.tensors.emplace_back(name, tensor);
      parts.tensors.emplace_back(name, tensor);
      continue;
    }
    const Tensor re = real(tensor), im = imag(tensor);
    const auto pairs_of = [](const Tensor& a, const Tensor& b) {  // [...], [...] -> [..., 2]
      std::vector<std::int64_t> dims(a.shape().begin(), a.shape().end());
      dims.push_back(1);
      return concat({reshape(a, dims), reshape(b, dims)}, a.rank());
    };
    pairs.tensors.emplace_back(name, pairs_of(re, im));
    parts.tensors.emplace_back(name + ".re", re);
    parts.tensors.emplace_back(name + ".im", im);
  }
  REQUIRE(parts.tensors.size() > pairs.tensors.size());
  save_safetensors(W, pairs);
  CHECK(difference(y(), wanted) == 0);
  save_safetensors(W, parts);
  CHECK(difference(y(), wanted) == 0);
  for (auto& [name, tensor] : parts.tensors) {
    if (name == "perm") tensor = Tensor::from<std::int32_t>({0, 1, 2, 3, 4, 5, 6, 3}, {8});
  }
  save_safetensors(W, parts);
  const Result r = run("apply", call(type, {"--weights", W, "--input", X, "--output", Y}), dir.path);
  CHECK(r.code == 1);
  CHECK(contains(r.err, "perm is no permutation of 0 to 7: entry 7 is 3, again"));
}

TEST_CASE("cotangents of the last states") {
  const TempDir dir;
  const CellType& type = cell_type("lstm");
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);
  const auto gradient = [&](TensorFile in) {
    save_safetensors(X, in);
    const Result r = run("apply", call(type, {"--weights", W, "--input", X, "--output", Y}), dir.path);
    CAPTURE(r.err);
    REQUIRE(r.code == 0);
    return load_safetensors(Y).at("grad.R_f");
  };
  // the last h is the last y: a cotangent of one is that of the other
  const Tensor x = random({5, 2, 3}, 1), last = random({1, 2, 8}, 2);
  const Tensor dy = concat({Tensor::zeros({4, 2, 8}, DType::f64), last}, 0);
  const Tensor by_y = gradient({{{"x", x}, {"dy", dy}}, {}});
  CHECK(difference(gradient({{{"x", x}, {"dstate.h", reshape(last, {2, 8})}}, {}}), by_y) < 1e-15);
  CHECK(difference(gradient({{{"x", x}, {"dstate.c", reshape(last, {2, 8})}}, {}}), by_y) > 1e-3);
}

TEST_CASE("what has no effect is refused, what is assumed is said") {
  const TempDir dir;
  const CellType& type = cell_type("enrnn");
  const std::string W = dir.path + "/W.safetensors", X = dir.path + "/X.safetensors", Y = dir.path + "/Y.safetensors";
  save_safetensors(X, {{{"x", random({5, 2, 3}, 1)}}, {}});
  const auto answer = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"--input", X, "--output", Y};
    all.insert(all.end(), more.begin(), more.end());
    return run("apply", call(type, all), dir.path);
  };
  const Result random_start = answer({});
  CHECK(random_start.code == 0);
  CHECK(contains(random_start.err, "no --weights, so they are random, of --seed 1"));
  CHECK(contains(random_start.err, "y (5, 2, 8)"));
  CHECK(contains(answer({"--weights", ""}).err, "--weights: the name of the file is empty"));
  CHECK(contains(answer({"--weights-out", W}).err, "--weights-out is written with --init-only only"));
  const Result described = run("apply", call(type, {"--describe", "--weights-out", W}), dir.path);
  CHECK(described.code == 2);
  CHECK(contains(described.err, "--weights-out: --describe writes no file"));
  REQUIRE(run("apply", call(type, {"--init-only", "--weights-out", W}), dir.path).code == 0);
  for (const std::string& read : {W, X}) {
    const Result lost = run("apply", call(type, {"--input", X, "--weights", W, "--output", read}), dir.path);
    CHECK(lost.code == 2);
    CHECK_MESSAGE(contains(lost.err, "which would be lost. Hint: another name"), lost.err);
  }
  TensorFile weights = load_safetensors(W);
  std::erase_if(weights.tensors, [](const auto& t) { return t.first == "grown"; });
  weights.tensors[0].second = Tensor::full(weights.tensors[0].second.shape(), NAN, DType::f64);
  save_safetensors(W, weights);
  const Result r = answer({"--weights", W});
  CHECK(contains(r.err, "has no grown, which the cell does not train: its own values stay"));
  CHECK(contains(r.err, "is NaN"));
}
