#include "tasks/app/launch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "backends/cpu/threads/cores.h"
#include "engine/core/parse.h"
#include "reel/version.h"
#include "tasks/app/options.h"

namespace reel {

namespace fs = std::filesystem;

namespace {

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? parse<int>(text) : std::nullopt;
}

/// Where the plug-in may be: in the build folder, or where it is installed.
fs::path plug_in() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path(),
                 built = programs.parent_path() / "lib/reel_mpi.so",
                 installed = programs / REEL_PLUGIN_DIR / "reel_mpi.so";
  for (const fs::path& path : {built, installed})
    if (fs::exists(path, error)) return path;
  throw Usage(
      fmt::format("{} processes were started as one run (mpirun, srun), but there is no {}. Hint: install "
                  "libopenmpi-dev and build again, or start one process",
                  launch().ranks, built.string()));
}

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

Launch launch() {
  const auto of = [](const char* ranks, const char* rank) {
    return Launch{number_in(ranks).value_or(1), number_in(rank).value_or(0)};
  };
  if (std::getenv("OMPI_COMM_WORLD_SIZE")) return of("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK");
  if (std::getenv("PMI_SIZE")) return of("PMI_SIZE", "PMI_RANK");                // MPICH, srun --mpi=pmi2
  if (std::getenv("PMIX_RANK")) return of("SLURM_STEP_NUM_TASKS", "PMIX_RANK");  // srun --mpi=pmix
  return {};
}

void require_stack() {
  constexpr rlim_t least = 256 << 10;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < least)
    throw Error("stack", fmt::format("{} KiB or more are needed, the limit is {} KiB. Hint: ulimit -s 8192",
                                     least >> 10, stack.rlim_cur >> 10));
}

std::unique_ptr<Ranks> join_ranks() {
  if (launch().ranks <= 1) return std::make_unique<Ranks>();
  const fs::path path = plug_in();
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // MPI's own plug-ins want its symbols
  if (!library) {
    const char* why = dlerror();
    throw Usage(fmt::format("{} cannot be opened: {}. Hint: install the MPI that it was built with", path.string(),
                            why ? why : ""));
  }
  const auto version = symbol<const char* (*)()>(library, "reel_mpi_version");
  const auto join = symbol<Transport* (*)()>(library, "reel_mpi_join");
  if (!version || !join || version() != std::string(REEL_VERSION))
    throw Usage(fmt::format("{} is of another version of Reel than this program, {}", path.string(), REEL_VERSION));
  auto ranks = std::make_unique<Ranks>(std::unique_ptr<Transport>(join()));
  if (ranks->size() != launch().ranks)
    throw Usage(
        fmt::format("{} processes were started, but MPI knows of {}. Hint: start them with the mpirun of the MPI "
                    "that reel_mpi.so was built with",
                    launch().ranks, ranks->size()));
  if (!ranks->first()) {
    const int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere >= 0) dup2(nowhere, STDOUT_FILENO), close(nowhere);
  }
  return ranks;
}

void require_one_process() {
  if (const auto [ranks, rank] = launch(); ranks > 1)
    throw Usage(
        fmt::format("this program runs as one process, and {} were started (mpirun, srun). Hint: start it by "
                    "itself; mpirun is for the tasks, as in mpirun -n {} build/bin/copying",
                    ranks, ranks));
}

std::string machine_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

Neighbours neighbours(Ranks& ranks) {
  const std::string machine = machine_name() + "\n";
  Neighbours all;
  const std::vector<std::string> texts = ranks.gather(machine + allowed_cores());
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (!texts[r].starts_with(machine)) continue;
    if (static_cast<int>(r) == ranks.rank()) all.place = all.cores.size();
    all.cores.push_back(texts[r].substr(machine.size()));
  }
  return all;
}

int threads_of_rank(const Neighbours& all) {
  const std::string& own = all.cores.at(all.place);
  const auto shares = [&](const std::string& cores) {
    const std::size_t n = std::min(own.size(), cores.size());
    for (std::size_t i = 0; i < n; ++i)
      if (own[i] == '1' && cores[i] == '1') return true;
    return false;
  };
  const auto sharing = std::max<std::int64_t>(1, std::count_if(all.cores.begin(), all.cores.end(), shares));
  std::int64_t threads = std::count(own.begin(), own.end(), '1') / sharing;
  if (const int quota = cores_by_quota(); quota > 0)
    threads = std::min<std::int64_t>(threads, quota / std::ssize(all.cores));
  return static_cast<int>(std::max<std::int64_t>(1, threads));
}

std::string too_many_threads(const Neighbours& all, int threads) {
  std::string any;  // the cores that any of them may use
  for (const std::string& cores : all.cores) {
    any.resize(std::max(any.size(), cores.size()), '0');
    for (std::size_t i = 0; i < cores.size(); ++i)
      if (cores[i] == '1') any[i] = '1';
  }
  std::int64_t count = std::count(any.begin(), any.end(), '1');
  if (const int quota = cores_by_quota(); quota > 0) count = std::min<std::int64_t>(count, quota);
  const std::int64_t wanted = std::ssize(all.cores) * threads;
  if (wanted <= count) return "";
  return fmt::format(
      "{} ranks with {} thread{} each share {} core{} of this machine, which is slow. Hint: fewer ranks, "
      "fewer --threads, or mpirun --bind-to none",
      all.cores.size(), threads, threads == 1 ? "" : "s", count, count == 1 ? "" : "s");
}

}  // namespace reel
