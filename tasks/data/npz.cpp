// .npz: a zip archive of .npy files, read by libzip.
#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "tasks/data/arrays.h"
#include "tasks/data/data_error.h"

namespace reel {

namespace {
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;  // unpacked
constexpr zip_int64_t most_entries = 64;
}  // namespace

std::map<std::string, Array> parse_npz(const std::string& path, std::string_view bytes) {
  zip_error_t problem;
  zip_error_init(&problem);
  const std::unique_ptr<zip_error_t, void (*)(zip_error_t*)> end_of_problem(&problem, zip_error_fini);
  const auto refuse = [&](const std::string& what) { throw FileError(path + ": " + what); };
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &problem);
  if (!source) throw std::bad_alloc();
  zip_t* opened = zip_open_from_source(source, ZIP_RDONLY, &problem);
  if (!opened) {
    zip_source_free(source);
    refuse(fmt::format("this is not an .npz file: {}", zip_error_strerror(&problem)));
  }
  const std::unique_ptr<zip_t, void (*)(zip_t*)> archive(opened, zip_discard);
  const zip_int64_t entries = zip_get_num_entries(opened, 0);
  if (entries < 1) refuse("there are no arrays in it");
  if (entries > most_entries) refuse(fmt::format("{} arrays or fewer are expected, got {}", most_entries, entries));

  std::map<std::string, Array> arrays;
  std::uint64_t total = 0, values = 0;
  for (zip_int64_t i = 0; i < entries; ++i) {
    const auto index = static_cast<zip_uint64_t>(i);
    zip_stat_t about;
    zip_stat_init(&about);
    if (zip_stat_index(opened, index, 0, &about) != 0 || !(about.valid & ZIP_STAT_SIZE) ||
        !(about.valid & ZIP_STAT_NAME))
      refuse(fmt::format("array {} is damaged", i));
    std::string name = about.name;
    if (!name.ends_with(".npy")) refuse(fmt::format("{}: an .npy file is expected in the archive", name));
    name.resize(name.size() - 4);
    if (about.size > most_bytes - total) refuse("the arrays have more than 2^31 bytes");
    total += about.size;
    const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(opened, index, 0), zip_fclose);
    if (!file) refuse(fmt::format("{}: {}", name, zip_strerror(opened)));
    std::string unpacked;  // grows with what is there: the size may be a lie
    char chunk[1 << 16];
    for (zip_int64_t n = 0; (n = zip_fread(file.get(), chunk, sizeof chunk)) != 0;) {
      if (n < 0) refuse(fmt::format("{}: does not unpack: {}", name, zip_file_strerror(file.get())));
      if (unpacked.size() + static_cast<std::size_t>(n) > about.size) refuse(fmt::format("{}: is damaged", name));
      unpacked.append(chunk, static_cast<std::size_t>(n));
    }
    Array array = parse_npy(path + ": " + name, unpacked);
    values += array.values.size();
    if (values > most_values) refuse(fmt::format("the arrays have more than {} values", most_values));
    if (!arrays.emplace(name, std::move(array)).second) refuse(fmt::format("{} is there twice", name));
  }
  return arrays;
}

}  // namespace reel
