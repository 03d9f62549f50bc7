#include "tests/faults/jobs.h"

#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "tasks/training/safetensors.h"
#include "tests/support/little_data.h"

namespace reel::faults {

namespace fs = std::filesystem;
using test::write_new;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// A little run of a task.
Job task(const std::string& program, const Workplace& place, const std::string& options,
         const std::string& with_resume = "") {
  const std::string common = " --hidden 8 --steps 30 --valid-every 10 --threads 1 --quiet --out " + place.run();
  return {program, words(program + common + " " + options + " " + with_resume), words(with_resume), ""};
}

void succeed(Workplace& place, const std::vector<std::string>& command) {
  const Ended ended = place.start(command);
  if (ended.code != 0) throw std::runtime_error(command[0] + " fails without a fault: " + ended.err);
}

/// Where it is left when the run of `job` is killed at about this share of its calls on files.
std::string killed(const Job& job, Workplace& place, double share) {
  place.clear();
  succeed(place, job.command);
  const auto at = static_cast<std::uint64_t>(share * static_cast<double>(place.state().calls));
  place.clear();
  place.start(job.command, {.action = Action::kill_before, .at = at});
  fs::copy(place.run(), place.side() + "/killed", fs::copy_options::recursive);
  return place.side() + "/killed";
}

const char* const table = R"toml(paper = "Little (nobody 2000)"
[table1]
title = "Two cells"
where = "Table 1"
options = "--delay 3 --hidden 8 --batch 2 --valid-size 2 --steps 20 --valid-every 10"
metric = "valid_loss"
task = "copying"
models.srnn = "--cell srnn"
models.gru = "--cell gru"
)toml";

const char* const copying = "--delay 5 --batch 4 --valid-size 8";

/// A little run of table, on a table in the data folder.
Job table_run(Workplace& p) {
  std::string rows = "time,a,y\n";
  for (int r = 0; r < 60; ++r) rows += fmt::format("{},{},{}\n", r, r * r % 11, r * r % 7);
  write_new(p.data() + "/table.csv", rows);
  return task("table", p,
              "--target y --time time --at each --window 6 --cell gru --batch 4 --data " + p.data() + "/table.csv");
}

/// predict with these options, on that run.
Job predict_run(Workplace& p, const std::string& options) {
  p.clear();
  succeed(p, table_run(p).command);
  fs::rename(p.run(), p.data() + "/trained");
  fs::create_directories(p.side() + "/empty");
  return {"predict",
          words("predict " + p.data() + "/trained --quiet --input " + p.data() + "/table.csv --states-out " + p.run() +
                "/states.safetensors " + options),
          {},
          p.side() + "/empty"};
}

/// Leaves two runs in the data folder.
void train_two(Workplace& p) {
  for (const std::string cell : {"srnn", "gru"}) {
    p.clear();
    succeed(p, task("copying", p, copying + (" --cell " + cell)).command);
    fs::rename(p.run(), p.data() + "/" + cell);
  }
  fs::create_directories(p.side() + "/empty");
}

using Make = std::function<Job(Workplace&)>;

const std::vector<std::pair<std::string, Make>>& makers() {
  static const std::vector<std::pair<std::string, Make>> all{
      {"copying", [](Workplace& p) { return task("copying", p, copying); }},
      {"adding", [](Workplace& p) { return task("adding", p, "--length 6 --batch 4 --valid-size 8 --cell lstm"); }},
      {"denoising",
       [](Workplace& p) { return task("denoising", p, "--delay 5 --batch 4 --valid-size 8 --cell goru"); }},
      {"paths",
       [](Workplace& p) { return task("paths", p, "--train 30 --valid 10 --test 20 --batch 10 --cell goru"); }},
      {"mnist",
       [](Workplace& p) {
         for (const auto& [part, n] : {std::pair{"train", 24U}, {"t10k", 6U}}) {
           const std::string path = fmt::format("{}/mnist/{}-", p.data(), part);
           test::write_idx(path + "images-idx3-ubyte.gz", {n, 28, 28});
           test::write_idx(path + "labels-idx1-ubyte.gz", {n});
         }
         return task("mnist", p, "--image crop8 --batch 4 --data " + p.data(), "--picture confusion");
       }},
      {"charlm",
       [](Workplace& p) {
         std::string text;
         for (int i = 0; i < 400; ++i) text += static_cast<char>('a' + i * i % 23);
         write_new(p.data() + "/text.txt", text);
         return task("charlm", p, "--batch 4 --unroll 10 --cell gru --text " + p.data() + "/text.txt", "--sample 20");
       }},
      {"music",
       [](Workplace& p) {
         test::write_tunes(p.data() + "/music/Nottingham.mat");
         return task("music", p, "--batch 2 --layers 2 --dropout 0.3 --data " + p.data());
       }},
      {"babi",
       [](Workplace& p) {
         for (const char* part : {"train", "valid", "test"})
           write_new(fmt::format("{}/babi/en-valid/qa5_{}.txt", p.data(), part),
                     "1 Ann went home.\n2 Where is Ann? \thome\t1\n3 Bob went out.\n4 Where is Bob? \tout\t3\n");
         return task("babi", p, "--task 5 --size 1k --batch 2 --data " + p.data());
       }},
      {"speech",
       [](Workplace& p) {
         for (const char* part : {"train/a", "train/b", "valid/a", "test/a"})
           test::write_sound(fmt::format("{}/speech/{}.wav", p.data(), part));
         return task("speech", p, "--batch 2 --cell enrnn --data " + p.data(), "--picture spectrogram");
       }},
      {"pictures", [](Workplace& p) { return task("copying", p, copying, "--picture states,changes,gradients"); }},
      {"resume",  // a run that goes on is the one that meets the faults
       [](Workplace& p) {
         Job job = task("copying", p, copying);
         job.begun = killed(job, p, 0.6);
         job.command = words("copying --quiet --resume " + p.run());
         return job;
       }},
      {"table", table_run},
      {"predict", [](Workplace& p) { return predict_run(p, "--output " + p.run() + "/y.npy"); }},
      {"stream", [](Workplace& p) { return predict_run(p, "--stream"); }},
      {"mechanism",
       [](Workplace& p) {
         fs::create_directories(p.side() + "/empty");
         const std::string options = "--symbols 2,4 --lengths 2,3 --delay 20 --draws 25 --planes 16 --out ";
         return Job{"mechanism",
                    words("mechanism " + options + p.run() + "/map.tsv --picture " + p.run() + "/map.svg"),
                    {},
                    p.side() + "/empty"};
       }},
      {"compare",
       [](Workplace& p) {
         train_two(p);
         return Job{"compare",
                    words("compare " + p.data() + "/srnn " + p.data() + "/gru --out " + p.run() + "/both.svg"),
                    {},
                    p.side() + "/empty"};
       }},
      {"report",
       [](Workplace& p) {
         train_two(p);
         return Job{"report",
                    words("report " + p.data() + "/srnn " + p.data() + "/gru --out " + p.run() + "/both.html"),
                    {},
                    p.side() + "/empty"};
       }},
      {"reproduce",
       [](Workplace& p) {
         write_new(p.data() + "/little.toml", table);
         return Job{
             "reproduce",
             words("reproduce little/table1 --threads 1 --runs " + p.run() + "/runs --results " + p.run() + "/results"),
             {},
             ""};
       }},
      {"pages",  // of results, written anew
       [](Workplace& p) {
         write_new(p.data() + "/little.toml", table);
         p.clear();
         succeed(p, words("reproduce little/table1 --threads 1 --runs " + p.data() + "/runs --results " + p.run()));
         for (const char* page : {"README.md", "little.md"}) write_new(p.run() + "/" + page, "old\n");
         fs::copy(p.run(), p.side() + "/results", fs::copy_options::recursive);
         return Job{"reproduce", words("reproduce --pages " + p.run()), {}, p.side() + "/results"};
       }},
      {"sweep",
       [](Workplace& p) {
         return Job{"sweep",
                    words("sweep copying --grid cell=srnn,gru --jobs 1 --out " + p.run() +
                          "/sweep -- --delay 3 --hidden 8 --batch 2 --valid-size 2 --steps 20 --valid-every 10"),
                    {},
                    ""};
       }},
      {"apply",
       [](Workplace& p) {
         fs::create_directories(p.side() + "/empty");
         return Job{"apply",
                    words("apply --cell gru --input-size 3 --hidden 8 --init-only --weights-out " + p.run() +
                          "/W.safetensors"),
                    {},
                    p.side() + "/empty"};
       }},
      {"apply-run",  // a whole model, with gradients
       [](Workplace& p) {
         p.clear();
         succeed(p, task("adding", p, "--length 6 --batch 4 --valid-size 8 --cell lstm").command);
         fs::rename(p.run(), p.data() + "/trained");
         fs::create_directories(p.side() + "/empty");
         save_safetensors(
             p.data() + "/x.safetensors",
             {{{"x", Tensor::full({4, 3, 2}, 0.5, DType::f32)}, {"dy", Tensor::full({3, 1}, 1, DType::f32)}}, {}});
         return Job{"apply",
                    words("apply --run " + p.data() + "/trained --input " + p.data() + "/x.safetensors --output " +
                          p.run() + "/y.safetensors"),
                    {},
                    p.side() + "/empty"};
       }},
  };
  return all;
}

}  // namespace

std::vector<std::string> job_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

Job make_job(const std::string& name, Workplace& place) {
  for (const auto& [known, make] : makers()) {
    if (known != name) continue;
    Job job = make(place);
    job.name = name;
    return job;
  }
  throw std::runtime_error("there is no job " + name);
}

void prepare(const Job& job, const Workplace& place) { place.clear(job.begun); }

std::vector<std::string> again(const Job& job, const Workplace& place) {
  if (!fs::exists(place.run() + "/checkpoint.safetensors")) return job.command;
  std::vector<std::string> command{job.command[0], "--resume", place.run(), "--quiet"};
  command.insert(command.end(), job.with_resume.begin(), job.with_resume.end());
  return command;
}

}  // namespace reel::faults
