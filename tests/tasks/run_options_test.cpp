// Options do what they say: how often and in which order a run goes through a fixed set, and that no option of training
// is lost on its way. Runs build/bin/charlm and adding.
#include <algorithm>
#include <iterator>
#include <sstream>

#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/child.h"
#include "tests/support/metrics.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using namespace reel::test;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The train losses of a short run on a fixed set of eight sequences with these further options.
std::vector<std::string> losses_with(const TempDir& dir, const std::string& further) {
  static int runs = 0;
  const std::string out = dir / fmt::format("run{}", ++runs);
  const std::string options =
      "--length 8 --hidden 8 --batch 2 --examples 8 --steps 12 --valid-every 1 --valid-size 2 --threads 1 --quiet "
      "--out " +
      out + " " + further;
  const Result r = run("adding", words(options), dir.path, {"PATH=" + dir.path});
  CAPTURE(r.err);
  REQUIRE(r.code == 0);
  const auto losses = train_losses(out);
  REQUIRE(losses.size() == 12);
  return losses;
}

}  // namespace

TEST_CASE("--epochs with a fraction is the nearest number of updates, and 1 at least") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i % 20);
  write_atomically(dir / "text.txt", text);
  // 360 characters to train on are 3 tracks of 120: three updates an epoch.
  const std::vector<std::pair<std::string, int>> expected{{"1", 3},   {"1.5", 5},  {"2", 6},
                                                          {"0.6", 2}, {"0.01", 1}, {"2.4", 7}};
  for (const auto& [epochs, updates] : expected) {
    CAPTURE(epochs);
    const Result r = run("charlm",
                         {"--text", dir / "text.txt", "--batch", "3", "--unroll", "50", "--hidden", "4", "--epochs",
                          epochs, "--dry-run"},
                         dir.path);
    CHECK(r.code == 0);
    CHECK_MESSAGE(contains(r.out, fmt::format("\nupdates {}, batch 3", updates)), r.out);
  }
}

TEST_CASE("typed --steps are the run's, whatever epochs a file or the run so far has; not beside typed --epochs") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i % 20);
  write_atomically(dir / "text.txt", text);  // three updates an epoch
  write_atomically(dir / "c.toml", "epochs = 2\n");
  const auto charlm = [&](const std::string& options) {
    return run("charlm", words(options + " --threads 1 --quiet"), dir.path, {"PATH=" + dir.path});
  };
  const std::string file = "--config " + dir / "c.toml",
                    small = "--text " + dir / "text.txt" + " --batch 3 --unroll 50 --hidden 4 ";
  for (const auto& [options, updates] : std::initializer_list<std::pair<std::string, int>>{
           {file, 6}, {file + " --steps 4", 4}, {"--steps 4 --epochs 0", 4}, {file + " --epochs 3", 9}}) {
    CAPTURE(options);
    CHECK(contains(charlm(small + options + " --dry-run").out, fmt::format("\nupdates {}, batch 3", updates)));
  }
  const Result both = charlm(small + "--steps 4 --epochs 1.5 --dry-run");
  CHECK(both.code == 2);
  CHECK(both.err ==
        "charlm: --epochs 1.5: --steps 4 is given, too; only one can say how long the run is. Hint: leave one out\n");

  REQUIRE(charlm(small + "--epochs 1 --out " + dir / "run").code == 0);
  for (const std::string more : {"--steps 5", "--epochs 2", "--steps 7"}) {
    CAPTURE(more);
    CHECK(contains(charlm("--resume " + dir / "run" + " " + more).out,
                   fmt::format(" {} steps in ", more == "--epochs 2" ? 6 : more.back() - '0')));
  }
}

TEST_CASE("every program says its version; those without runs to continue have no --resume") {
  const TempDir dir;
  for (const std::string program : {"copying", "mechanism", "apply", "compare", "reproduce", "sweep"}) {
    CAPTURE(program);
    const Result r = run(program, {"--version"}, dir.path);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK(r.out.starts_with(program + " (Reel) "));
    CHECK(std::count(r.out.begin(), r.out.end(), '\n') == 1);
    CHECK(contains(run(program, {"-h"}, dir.path).out, "--resume DIR") == (program == "copying"));
    if (program == "copying")
      CHECK(run(program, {"--epochs", "3"}, dir.path).err ==
            "copying: --epochs: there is no such option. Hint: this task makes fresh examples without end; --steps.\n");
    if (program == "copying") continue;
    const Result resumed = run(program, {"--resume", dir.path}, dir.path);
    CHECK(resumed.code == 2);
    CHECK(resumed.err == program + ": --resume: there is no such option" +
                             (program == "reproduce" ? ". Hint: the same command goes on where it stopped.\n"
                              : program == "sweep"   ? ". Hint: sweep DIR goes on where it stopped.\n"
                                                     : ". See --help.\n"));
  }
}

TEST_CASE("what a run's config.toml has by default does not count as chosen for another optimiser or other layers") {
  const TempDir dir;
  const auto adding = [&](const std::string& options) {
    return run("adding", words(options + " --length 8 --hidden 4 --batch 2 --steps 2 --threads 1 --quiet"), dir.path,
               {"PATH=" + dir.path});
  };
  const auto decay_after = [&](const std::string& first, const std::string& then) {
    static int runs = 0;
    const std::string out = dir / fmt::format("run{}", ++runs);
    REQUIRE(adding(first + " --out " + out).code == 0);
    REQUIRE(adding("--config " + out + "/config.toml " + then + " --out " + out + "b").code == 0);
    const std::string config = read_file(out + "b/config.toml"), key = "\nweight-decay = ";
    return std::stod(config.substr(config.find(key) + key.size()));
  };
  CHECK(decay_after("--optimizer adam", "--optimizer adamw") == 0.01);
  CHECK(decay_after("--optimizer adamw", "--optimizer adam") == 0);
  CHECK(decay_after("--optimizer adamw", "--lr 1e-2") == 0.01);
  CHECK(decay_after("--optimizer adamw --weight-decay 0.1", "--optimizer adam") == 0.1);
  CHECK(decay_after("--optimizer adamw --weight-decay 0", "--lr 1e-2") == 0);
  CHECK(decay_after("--optimizer adam", "--optimizer adamw --weight-decay 0") == 0);
  write_atomically(dir / "own.toml", "weight-decay = 0.0\n");  // by hand, without an optimiser
  REQUIRE(adding("--config " + dir / "own.toml" + " --optimizer adamw --out " + dir / "own").code == 0);
  CHECK(contains(read_file(dir / "own/config.toml"), "\nweight-decay = 0.0\n"));

  const std::string one = "--config " + dir / "run1/config.toml" + " --dry-run ";
  CHECK(contains(adding(one + "--cell gru,lstm").out, "cell2.W_o"));
  CHECK(contains(adding(one + "--cell gru --layers 2").out, "cell2.U_z"));
  CHECK(contains(adding(one + "--cell gru,lstm --layers 1").err, "--layers 1: --cell gru,lstm has 2 layers"));
  write_atomically(dir / "own.toml", "cell = \"gru,lstm\"\nlayers = 3\n");
  CHECK(contains(adding("--config " + dir / "own.toml").err, "--layers 3: --cell gru,lstm has 2 layers"));
}

TEST_CASE("--no-test leaves out the test") {
  const TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i % 20);
  write_atomically(dir / "text.txt", text);
  for (const bool without : {false, true}) {
    std::vector<std::string> arguments{"--text",
                                       dir / "text.txt",
                                       "--hidden",
                                       "4",
                                       "--batch",
                                       "4",
                                       "--steps",
                                       "2",
                                       "--threads",
                                       "1",
                                       "--quiet",
                                       "--out",
                                       dir / (without ? "a" : "b")};
    if (without) arguments.push_back("--no-test");
    const Result r = run("charlm", arguments, dir.path, {"PATH=" + dir.path});
    CHECK(r.code == 0);
    CHECK(contains(r.out, "test, with the lowest validation loss") != without);
  }
}

TEST_CASE("--shuffle off: the fixed set comes in the same order each time through; otherwise in new ones") {
  const TempDir dir;
  for (const std::string shuffle : {"on", "off"}) {
    CAPTURE(shuffle);
    // With a rate of 0 the loss of an update is a function of its examples.
    const auto losses = losses_with(dir, "--optimizer sgd --lr 0 --shuffle " + shuffle);
    const std::vector first(losses.begin(), losses.begin() + 4), second(losses.begin() + 4, losses.begin() + 8),
        third(losses.begin() + 8, losses.end());
    CHECK((first == second) == (shuffle == "off"));
    CHECK((second == third) == (shuffle == "off"));
  }
}

TEST_CASE("--checkpoint-every changes losses by rounding only: gradients are summed in other parts") {
  const TempDir dir;
  const std::string f64 = "--dtype f64";
  const auto expected = losses_with(dir, f64), losses = losses_with(dir, f64 + " --checkpoint-every 3");
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(std::stod(losses[i]) == doctest::Approx(std::stod(expected[i])).epsilon(1e-13));
}

TEST_CASE("each option of training changes the losses of a run; those that must not, do not") {
  const TempDir dir;
  struct Case {
    std::string base, option;
    bool same = false;
  };
  const std::string adam = "--optimizer adam", sgd = "--optimizer sgd --lr 0.1", stack = "--cell gru --layers 2";
  const std::vector<Case> cases{
      {"", "--lr 0.01"},
      {"", "--seed 2"},
      {"", "--cell gru"},
      {"", "--head-init eunn"},
      {"", "--head-init linear", true},
      {"", "--hidden 9"},
      {"", "--batch 3"},
      {"", "--decay 0.5"},
      {"", "--rms-start 1"},
      {"", "--epsilon 1"},
      {"--epsilon 1", "--epsilon-place inside"},
      {"", "--clip-norm 0.01 --optimizer sgd"},
      {sgd, "--clip-norm 0.01"},
      {sgd, "--clip-value 0.001"},
      {sgd, "--momentum 0.9"},
      {sgd, "--group-lr head=0"},
      {adam, "--beta1 0.5"},
      {adam, "--beta2 0.5"},
      {adam + " --beta2 0.5", "--optimizer amsgrad"},
      {"", "--schedule step --lr-every 3 --lr-factor 0.1"},
      {"", "--schedule cosine"},
      {"--schedule cosine", "--schedule linear"},
      {"--schedule cosine", "--lr-floor 0.5"},
      {"", "--warmup 5"},
      {"--schedule cosine", "--warmup 5"},
      {"", "--lr-floor 0.5", true},  // of cosine and linear
      {"", "--weight-decay 0.1"},
      {adam, "--weight-decay 0.1"},
      {adam + " --weight-decay 0.1", "--optimizer adamw"},
      {adam, "--optimizer adamw --weight-decay 0", true},
      {"--optimizer adamw", "--weight-decay 0.01", true},
      {"", "--dtype f64"},
      {stack, "--dropout 0.5"},
      {stack + " --dropout 0.5", "--accumulate 2"},  // each part drops out by its own numbers
      {stack + " --dropout 0.5", "--variational-dropout"},
      {stack, "--layers 1"},
      {"", "--zoneout 0.5"},
      {stack, "--cell gru,rnn"},
      {stack, "--hidden 8,9"},
      {stack, "--cell gru,gru --hidden 8,8", true},
      {"", "--valid-size 3", true},
      {"", "--momentum 0.9", true},  // sgd's
      {adam, "--rms-start 1", true},
      {"--schedule plateau --lr-patience 100", "--lr-factor 0.1", true},
  };
  for (const auto& [base, option, same] : cases) {
    CAPTURE(base);
    CAPTURE(option);
    CHECK((losses_with(dir, base) == losses_with(dir, base + " " + option)) == same);
  }
}

TEST_CASE("a typed option that changes nothing is noted; not one of a file, nor one that is as without it") {
  const TempDir dir;
  write_atomically(dir / "c.toml", "dropout = 0.5\nmomentum = 0.9\n");
  const std::string one = "it works between layers, and there is one. Hint: --layers 2",
                    rmsprop = ", and --optimizer is rmsprop", constant = ", and --schedule is constant";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--dropout 0.5", one},
      {"--variational-dropout", one},
      {"--layers 2 --variational-dropout", "--dropout is 0"},
      {"--layer-norm", one},
      {"--residual", one},
      {"--momentum 0.9", "it is for sgd" + rmsprop},
      {"--beta1 0.5", "it is for adam, adamw, amsgrad" + rmsprop},
      {"--optimizer adam --epsilon-place inside", "it is for rmsprop, and --optimizer is adam"},
      {"--optimizer sgd --epsilon 1", "it is for all others, and --optimizer is sgd"},
      {"--lr-floor 0.1", "it is for cosine, linear" + constant},
      {"--lr-factor 0.1", "it is for step, plateau, window" + constant},
      {"--lr-after 1", "it is for window" + constant},
      {"--shuffle off", "the examples of each update are new ones"},
      {"--input one-hot", "the inputs are numbers"},
      {"--embedding 4", "the inputs are numbers"},
      {"--cell lstm --lstm.chrono_draw whole", "--lstm.chrono is 0"},
      {"--cell lstm --lstm.chrono 100 --lstm.forget_bias 3", "--lstm.chrono is 100"},
      {"--cell eurnn --eurnn.capacity 4", "--eurnn.style is fft"},
      {"--cell goru --goru.capacity 4", "--goru.style is fft"},
      {"--cell goru --goru.style tunable --goru.reflections 2", "--goru.style is tunable"},
      {"--cell r_transformer --r_transformer.width 4", "--r_transformer.cell is rnn"},
      {"--cell enrnn --enrnn.coupled off --enrnn.coupling_init orthogonal", "--enrnn.coupled is off"},
      {"--cell enrnn --enrnn.normalise off --enrnn.epsilon 0.1", "--enrnn.normalise is off"},
      {"--dropout 0 --momentum 0 --beta1 0.9", ""},
      {"--layers 2 --dropout 0.5 --variational-dropout --layer-norm --residual", ""},
      {"--hidden 4,4 --dropout 0.5", ""},
      {"--shuffle off --examples 40", ""},
      {"--shuffle on", ""},
      {"--optimizer sgd --momentum 0.9 --schedule plateau --lr-patience 1 --lr-factor 0.1", ""},
      {"--cell lstm --lstm.chrono 9 --lstm.chrono_draw whole", ""},
      {"--cell lstm --lstm.chrono 0.0 --lstm.forget_bias 3", ""},
      {"--cell eurnn --eurnn.style tunable --eurnn.capacity 4", ""},
      {"--cell goru --goru.style householder --goru.reflections 2", ""},
      {"--cell r_transformer --r_transformer.cell srnn --r_transformer.width 4", ""},
      {"--cell enrnn --enrnn.coupling_init orthogonal --enrnn.epsilon 0.1", ""},
      {"--config " + dir / "c.toml", ""},
  };
  for (const auto& [options, why] : cases) {
    CAPTURE(options);
    const Result r = run("adding", words("--hidden 4 --dry-run " + options), dir.path);
    CHECK(r.code == 0);
    if (why.empty())
      CHECK(r.err.empty());
    else
      CHECK_MESSAGE((r.err.starts_with("note: --") && r.err.ends_with(" has no effect: " + why + "\n")), r.err);
  }
  CHECK(run("copying", words("--hidden 4 --dry-run --embedding 4"), dir.path).err.empty());
  CHECK(contains(run("copying", words("--dry-run --embedding 4 --input one-hot"), dir.path).err, "--input is one-hot"));
}

TEST_CASE("values that would make a run useless are refused before it starts") {
  const TempDir dir;
  const auto says = [&](const std::vector<std::string>& words, const std::string& text) {
    const Result r = run("adding", words, dir.path);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, text), r.err);
    CHECK_FALSE(std::filesystem::exists(dir / "run"));
  };
  for (const char* name : {"--beta1", "--beta2", "--decay"})
    says({name, "1", "--out", dir / "run"}, fmt::format("{}: a number from 0 to 0.999999 expected, got 1", name));
  says({"--group-lr", "head=1e-3,head=1e-4", "--out", dir / "run"},
       "--group-lr: one rate of each group is expected, got two of \"head\"");
  for (const char* name : {"--resume", "--preset", "--config"})
    says({name, "", "--out", dir / "run"}, fmt::format("{}: a name that is not empty expected", name));
  std::string rows = "v\n";
  for (int i = 0; i < 80; ++i) rows += fmt::format("{}\n", i % 7);
  write_atomically(dir / "x.csv", rows);
  const Result r = run("table",
                       {"--data", dir / "x.csv", "--target", "v", "--horizon", "1", "--at", "each", "--best",
                        "accuracy", "--out", dir / "run"},
                       dir.path);
  CHECK(contains(r.err, "table: --best: the task table has no accuracy. Hint: --best loss"));
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE("a run is not resumed to fewer updates than it has done, and stays as it is") {
  const TempDir dir;
  const std::string out = dir / "run";
  REQUIRE(run("adding", words("--length 8 --hidden 8 --batch 2 --steps 12 --threads 1 --quiet --out " + out), dir.path)
              .code == 0);
  const std::string config = read_file(out + "/config.toml"), record = read_file(out + "/run.json");
  const Result r = run("adding", {"--resume", out, "--steps", "5"}, dir.path);
  CHECK(r.code == 2);
  CHECK(r.err == "adding: --steps: the run in " + out + " has done 12 updates, got 5. Hint: --steps 12, or more\n");
  CHECK((read_file(out + "/config.toml") == config && read_file(out + "/run.json") == record));
  CHECK(run("adding", {"--resume", out, "--steps", "12", "--quiet"}, dir.path).code == 0);
  const Result other = run("copying", {"--resume", out, "--steps", "12"}, dir.path);
  CHECK(other.code == 2);
  CHECK(other.err ==
        "copying: --resume " + out + ": this is a run of adding, not of copying. Hint: adding --resume " + out + "\n");
}

TEST_CASE("the library's settings are options to the user of a program") {
  const TempDir dir;
  const Result r = run("adding", {"--cell", "gru", "--gru.activation", "modrelu", "--dry-run"}, dir.path);
  CHECK(r.code == 2);
  CHECK(r.err == "adding: --gru.biases: modReLU has its bias as a threshold. Hint: --gru.biases 1\n");
  CHECK(contains(run("apply", {"--cell", "nnrnn", "--hidden", "7", "--describe"}, dir.path).err, "apply: --hidden: "));
}

TEST_CASE("lists of --cell and --hidden make layers from bottom to top, and a run of them goes on and predicts") {
  const TempDir dir;
  const auto table = [&](const std::string& options) { return run("adding", words(options + " --dry-run"), dir.path); };
  const Result two = table("--cell gru,lstm --hidden 8,5 --lstm.biases 1 --gru.biases 2");
  CHECK(contains(two.out, "cell1.U_z   (8, 2)"));
  CHECK(contains(two.out, "cell1.b2_c  (8,)"));
  CHECK(contains(two.out, "cell2.W_o   (5, 8)"));
  CHECK(contains(table("--hidden 8,6,4").out, "cell3."));
  const std::vector<std::pair<std::string, std::string>> refused{
      {"--cell gru,lstm,rnn --hidden 8,5", "--hidden 8,5: 2 sizes for 3 cells"},
      {"--cell gru,lstm --layers 3", "--layers 3: --cell gru,lstm has 2 layers"},
      {"--hidden 8,9 --layers 3", "--layers 3: --hidden 8,9 has 2 layers"},
      {"--cell gru,lstmm", "expected, got \"lstmm\". Hint: lstm"},
      {"--hidden 8,", "--hidden: an integer from 1 to 1000000 expected, got \"\""},
      {"--hidden ,", "--hidden: an integer"},
      {"--cell gru,rnn --lstm.biases 1", "--lstm.biases: is not a setting of --cell gru,rnn"},
      {"--cell gru,rnn --residual --hidden 4,5", "layer 2 has 4 inputs and 5 outputs"},
  };
  for (const auto& [options, text] : refused) {
    CAPTURE(options);
    const Result r = table(options);
    CHECK(r.code == 2);
    CHECK_MESSAGE(contains(r.err, text), r.err);
  }
  const std::string small =
      "--cell gru,srnn --hidden 8,6 --gru.biases 1 --zoneout 0.1 --length 6 --batch 2 --valid-size 2 --valid-every 2 "
      "--threads 1 --quiet --steps ";
  for (const std::string& part : {"6 --out " + dir / "whole", "4 --out " + dir / "halves"}) {
    const Result r = run("adding", words(small + part), dir.path);
    REQUIRE_MESSAGE(r.code == 0, r.err);
  }
  REQUIRE(run("adding", {"--resume", dir / "halves", "--steps", "6", "--quiet"}, dir.path).code == 0);
  const TensorFile wanted = load_safetensors(dir / "whole/checkpoint.safetensors"),
                   got = load_safetensors(dir / "halves/checkpoint.safetensors");
  REQUIRE(got.tensors.size() == wanted.tensors.size());
  for (const auto& [name, value] : wanted.tensors) CHECK(elements(got.at(name)) == elements(value));
  write_atomically(dir / "x.csv", "value,marker\n0.5,1\n0.25,0\n");
  const Result answer = run("predict", {dir / "whole", "--input", dir / "x.csv"}, dir.path);
  CHECK_MESSAGE(answer.code == 0, answer.err);
}
