// Where a result comes from: the processor, and the kernels of its products, which decide the last bits.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/cpu/product_libraries.h"
#include "tasks/app/provenance.h"
#include "tasks/io/files.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

TEST_CASE("processor: its name with family and model, of the first core; a name alone, or none") {
  const std::string core = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n";
  CHECK(processor_in(core + "model name\t: AMD EPYC\nflags\t\t: fpu vme\n\nprocessor\t: 1\nmodel\t\t: 18\n") ==
        "AMD EPYC (family 25, model 17)");
  CHECK(processor_in("model name\t: some: thing\n") == "some: thing");
  CHECK(processor_in("processor\t: 0\nCPU part\t: 0xd0c\n").empty());
  CHECK(processor_in("").empty());
}

TEST_CASE("kernels: each library with its version and the kernels it takes") {
  const std::string text = cpu::product_libraries();
  CAPTURE(text);
  const std::string first = text.substr(0, text.find(';'));
  CHECK(first.starts_with("OpenBLAS 0."));
  CHECK(std::count(first.begin(), first.end(), ' ') == 2);  // name, number, kernels
  CHECK_FALSE(first.ends_with(' '));
}

#ifdef __x86_64__
TEST_CASE("run.json has the kernels that OpenBLAS was told to take") {
  const TempDir dir;
  const auto kernels = [&](const std::string& out, const std::vector<std::string>& environment) {
    const Result r = run("adding",
                         {"--length", "3", "--hidden", "4", "--batch", "2", "--valid-size", "2", "--steps", "1",
                          "--quiet", "--out", dir / out},
                         dir.path, environment);
    REQUIRE(r.code == 0);
    return nlohmann::json::parse(read_file(dir / out + "/run.json"))["kernels"].get<std::string>();
  };
  CHECK(kernels("own", {}) == cpu::product_libraries());
  const std::string told = kernels("told", {"OPENBLAS_CORETYPE=Nehalem"});  // any x86-64 processor has these
  CHECK(contains(told, " Nehalem"));
  CHECK(told != cpu::product_libraries());
}
#endif
