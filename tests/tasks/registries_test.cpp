// Two cells, ops or kinds of device of one name, and names that are nearly right. What is registered stays so: each
// registry is looked at before it is spoilt.
#include <algorithm>

#include "cells/cell.h"
#include "cells/registry.h"
#include "tasks/app/run.h"
#include "tests/support/check.h"

using namespace reel;
using test::contains;
using test::error_of;

namespace {

/// A name that every build has among its ops, and an op that nothing calls.
struct SecondTanh {
  static constexpr Traits traits{.name = "tanh", .kind = Kind::elementwise, .cost = 1, .differentiable = false};
  Spec infer(Inputs in) const { return in[0].spec(); }
  void run(Inputs, Tensor&) const {}
};

/// What run_program makes of it, where an exception that nobody catches would end in std::terminate.
int program_ends_with() {
  return run_program("program", [] { return 0; });
}

/// A device that does not compute; how many were made.
struct IdleDevice : Backend {
  static inline int made = 0;
  IdleDevice() { ++made; }
  std::string name() const override { return "idle"; }
  Storage* allocate(std::size_t) override { return nullptr; }
  void release(Storage*) override {}
  void read(void*, const void*, std::size_t) override {}
  void write(void*, const void*, std::size_t) override {}
};

}  // namespace

TEST_CASE("all names of this build are different") { CHECK_NOTHROW(check_registries()); }

TEST_CASE("an unknown cell: the nearest name") {
  CHECK(error_of([] { cell_type("lsmt"); }).ends_with(". Hint: cell = lstm"));
  CHECK(error_of([] { cell_type("SRNN"); }).ends_with(". Hint: cell = srnn"));
  const std::string far = error_of([] { cell_type("perceptron"); });
  CHECK(far.starts_with("cell: there is no cell \"perceptron\"; known are "));
  CHECK_FALSE(contains(far, "Hint"));
}

TEST_CASE("an unknown device: what it may be called here") {
  const auto said = [](const char* name) { return error_of([&] { find_device(name); }); };
  const std::vector<std::string> kinds = backend_names();
  if (std::find(kinds.begin(), kinds.end(), "cuda") == kinds.end()) {
    CHECK(said("gpu") ==
          "--device gpu: [device] there is no device \"gpu\"; this build has: cpu. Hint: build with "
          "-DREEL_CUDA=ON, then --device cuda.");
    register_backend("cuda", [](const std::string&) -> std::unique_ptr<Backend> { throw Error("cuda", "none here"); });
  }
  const std::vector<std::pair<const char*, const char*>> hints{
      {"gpu", "cuda"},     {"GPU", "cuda"}, {"cuda0", "cuda:0"},      {"CUDA:1", "cuda:1"}, {"gpu,bf16", "cuda"},
      {"gpu:1", "cuda:1"}, {"CPU", "cpu"},  {"cuda1,tf32", "cuda:1"}, {"cpus", "cpu"},      {"nvidia", "cuda"},
  };
  for (const auto& [name, hint] : hints)
    CHECK_MESSAGE(said(name).ends_with(std::string(". Hint: --device ") + hint + "."), said(name));
  CHECK(said("tpu").ends_with("Hint: --device cpu."));
  CHECK_FALSE(contains(said("typewriter"), "Hint"));
  CHECK_FALSE(contains(said("cuda:99"), "Hint: --device cuda"));  // known, but not here
}

TEST_CASE("a device by another of its names is not made each time to learn its name") {
  register_backend("idle",
                   [](const std::string&) -> std::unique_ptr<Backend> { return std::make_unique<IdleDevice>(); });
  Backend& first = backend("idle:0");
  CHECK(&backend("idle") == &first);
  CHECK(&backend("idle:0") == &first);
  CHECK(IdleDevice::made == 1);
  for (int i = 0; i < 3; ++i) CHECK(&backend("idle,fast") == &first);
  CHECK(IdleDevice::made == 2);
}

TEST_CASE("a cell without a function that makes it: an error that names it") {
  register_cell({"unmade", "", "", "", {}, nullptr}, "mine/unmade.cpp");
  Init init(1);
  CHECK(error_of([&] { cell_type("unmade").make(2, 3, Settings("unmade", {}), init); }) ==
        "[unmade] REEL_CELL has no function that makes the cell");
  cell_registry().pop_back();
}

TEST_CASE("references to cells stay valid when others are registered, as by a plugin") {
  const CellType &first = cell_type("gru"), *const found = find_cell("lstm");
  for (int i = 0; i < 100; ++i) register_cell({fmt::format("own{}", i), "", "", "", {}, nullptr}, "mine/own.cpp");
  CHECK(&cell_type("gru") == &first);
  CHECK(find_cell("lstm") == found);
  for (int i = 0; i < 100; ++i) cell_registry().pop_back();
}

TEST_CASE("two of one name: an error at a program's start that says which") {
  CHECK(program_ends_with() == 0);

  op_registry().push_back(&op_of<SecondTanh>());
  CHECK(error_of(check_registries).starts_with("[op] two ops are called \"tanh\". Hint: "));
  CHECK(program_ends_with() == 1);
  op_registry().pop_back();
  CHECK(program_ends_with() == 0);

  auto& cells = cell_registry();
  register_cell(CellType(cell_type("lstm")), "mine/lstm.cpp");
  for (const auto& look : {+[] { check_registries(); }, +[] { cell_type("gru"); }, +[] { cell_registry(); }})
    CHECK(error_of(look) ==
          "[cell] two cells are called \"lstm\", one in cells/lstm.cpp and one in mine/lstm.cpp. "
          "Hint: rename one of them, or link its file once");
  CHECK(program_ends_with() == 1);
  cells.pop_back();
  CHECK(program_ends_with() == 0);

  for (const char* number : {"nan", "-inf"}) {  // what no option takes
    register_cell({"own", "", "", "", {{"rate", Setting::Kind::real, number, "", {}}}, {}}, "mine/own.cpp");
    CHECK(error_of(check_registries) ==
          fmt::format(
              "[cell] \"own\" (mine/own.cpp): the default of the setting \"rate\" is {}, a finite number is needed",
              number));
    CHECK(program_ends_with() == 1);
    cells.pop_back();
  }

  for (const char* condition : {"style", "kind=fast", "!=2", "rat=1", "rate!1=1"}) {
    register_cell({"own", "", "", "", {{"rate", Setting::Kind::real, "0", "", {}, condition}}, {}}, "mine/own.cpp");
    CHECK(error_of(check_registries) ==
          fmt::format("[cell] \"own\" (mine/own.cpp): the setting \"rate\" is read only if \"{}\": another setting and "
                      "its value are needed, as in style=tunable or chrono!=0",
                      condition));
    cells.pop_back();
  }
  using enum Setting::Kind;
  for (const auto& [condition, why] : {std::pair{"solver=tayler", "own.solver: \"tayler\" is not one of euler, taylor"},
                                       {"solver!=", "own.solver: \"\" is not one of euler, taylor"},
                                       {"rate=low", "own.rate: \"low\" is not a number"}}) {
    const std::vector<Setting> settings{{"rate", real, "0", "", {}},
                                        {"solver", choice, "euler", "", {"euler", "taylor"}},
                                        {"order", integer, "2", "", {}, condition}};
    register_cell({"own", "", "", "", settings, {}}, "mine/own.cpp");
    CHECK(
        error_of(check_registries) ==
        fmt::format("[cell] \"own\" (mine/own.cpp): the setting \"order\" is read only if \"{}\": {}", condition, why));
    cells.pop_back();
  }
  CHECK(program_ends_with() == 0);

  register_backend("cpu", [](const std::string&) -> std::unique_ptr<Backend> { return nullptr; });
  CHECK(error_of(check_registries).starts_with("[device] two kinds of device are called \"cpu\". Hint: "));
  CHECK(program_ends_with() == 1);
}
