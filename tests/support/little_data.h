// A little of every data set, written by the tests.
#pragma once
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <matio.h>
#include <sndfile.h>
#include <zlib.h>
#include <vector>

#include <cmath>
#include <filesystem>

#include "tasks/io/files.h"

namespace reel::test {

inline void write_new(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_atomically(path, bytes);
}

inline void write_idx(const std::string& path, const std::vector<std::uint32_t>& shape) {
  std::string bytes{0, 0, 8, static_cast<char>(shape.size())};
  std::size_t count = 1;
  for (const std::uint32_t n : shape) {
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(n >> shift & 255);
    count *= n;
  }
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10);
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  gzFile file = gzopen(path.c_str(), "wb1");
  REQUIRE(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())) == static_cast<int>(bytes.size()));
  REQUIRE(gzclose(file) == Z_OK);
}

inline void write_tunes(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  mat_t* mat = Mat_CreateVer(path.c_str(), nullptr, MAT_FT_MAT5);
  REQUIRE(mat);
  for (const char* name : {"traindata", "validdata", "testdata"}) {
    std::vector<double> frames(3 * 88, 1);
    std::size_t size[] = {3, 88}, one[] = {1, 1};
    matvar_t* cells[] = {Mat_VarCreate(nullptr, MAT_C_DOUBLE, MAT_T_DOUBLE, 2, size, frames.data(), 0)};
    matvar_t* array = Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, one, cells, 0);
    REQUIRE(Mat_VarWrite(mat, array, MAT_COMPRESSION_NONE) == 0);
    Mat_VarFree(array);
  }
  Mat_Close(mat);
}

inline void write_sound(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::vector<double> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i) / 5);
  SF_INFO info{};
  info.samplerate = 8000, info.channels = 1, info.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16;
  SNDFILE* file = sf_open(path.c_str(), SFM_WRITE, &info);
  REQUIRE(file);
  REQUIRE(sf_write_double(file, x.data(), static_cast<sf_count_t>(x.size())) == static_cast<sf_count_t>(x.size()));
  sf_close(file);
}

/// A little of every data set, with the sizes that models depend on: 50 characters, 88 keys, 10 digits.
inline void write_data(const std::string& data) {
  for (const auto& [part, n] : {std::pair{"train", 12000U}, {"t10k", 2U}}) {
    write_idx(fmt::format("{}/mnist/{}-images-idx3-ubyte.gz", data, part), {n, 28, 28});
    write_idx(fmt::format("{}/mnist/{}-labels-idx1-ubyte.gz", data, part), {n});
  }
  std::string text;
  for (int line = 0; line < 40; ++line) {
    for (int i = 0; i < 48; ++i) text += static_cast<char>(i < 26 ? 'a' + i : 'A' + i - 26);
    text.insert(text.size() - 20, " ");
    text += "\n";
  }
  for (const char* part : {"train", "valid", "test"}) write_new(fmt::format("{}/ptb/ptb.{}.txt", data, part), text);
  write_tunes(data + "/music/Nottingham.mat");
  for (const char* size : {"en-valid", "en-valid-10k"})
    for (int task = 1; task <= 20; ++task)
      for (const char* part : {"train", "valid", "test"})
        write_new(fmt::format("{}/babi/{}/qa{}_{}.txt", data, size, task, part),
                  "1 Ann went home.\n2 Where is Ann? \thome\t1\n");
  for (const char* path : {"train/dr1/fcjf0/si648.wav", "test/dr1/faks0/si943.wav", "test/dr1/mdab0/si1039.wav"})
    write_sound(data + "/timit/" + path);
}

}  // namespace reel::test
