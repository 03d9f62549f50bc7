// Safetensors files: the format to the byte, and every kind of damage.
#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "tasks/io/files.h"
#include "tasks/training/safetensors.h"
#include "tests/support/check.h"
#include "tests/support/temp_dir.h"

using namespace reel;
using test::contains;
using test::error_of;
using test::TempDir;

namespace {

/// One tensor of each dtype, and an empty and a scalar one.
TensorFile all_kinds() {
  TensorFile file;
  for (const DType dtype : all_dtypes)
    file.tensors.emplace_back(std::string("of ") + std::string(name_of(dtype)), test::random({3, 5}, 7, dtype));
  file.tensors.emplace_back("empty", Tensor::zeros({4, 0}));
  file.tensors.emplace_back("scalar", Tensor::from<double>({0.1}, {}));
  file.metadata = {{"step", "12"}, {"note", "a \"quoted\"\nline"}};
  return file;
}

/// A file with this header and this many bytes behind it.
std::string with_header(const std::string& header, std::size_t data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data, '\1');
}

}  // namespace

TEST_CASE("safetensors: every dtype, order and metadata come back") {
  const TempDir dir;
  const TensorFile file = all_kinds();
  save_safetensors(dir / "a", file);
  const TensorFile back = load_safetensors(dir / "a");
  CHECK(back.metadata == file.metadata);
  CHECK(back.checked);
  REQUIRE(back.tensors.size() == file.tensors.size());
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    const auto& [name, tensor] = back.tensors[i];
    CHECK(name == file.tensors[i].first);
    CHECK(tensor.spec() == file.tensors[i].second.spec());
    CHECK(std::memcmp(tensor.data(), file.tensors[i].second.data(), tensor.bytes()) == 0);
  }
  CHECK(&back.at("scalar") == &back.tensors.back().second);
  CHECK(contains(error_of([&] { back.at("x"); }), "there is no tensor \"x\"; there are of f32, of f64"));
  save_safetensors(dir / "b", {});
  CHECK(load_safetensors(dir / "b").tensors.empty());
}

TEST_CASE("safetensors: the bytes are those of the format") {
  const TempDir dir;
  save_safetensors(dir / "a", {{{"b", Tensor::from<bool>({true, false, true}, {3})},
                                {"w", Tensor::from<float>({1, -2}, {2, 1})},
                                {"z", Tensor::from<std::complex<double>>({{3, 4}}, {1})}},
                               {{"k", "v"}}});
  const std::string bytes = read_file(dir / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  REQUIRE(bytes.size() == 8 + length + 27);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(header["w"] == nlohmann::json::parse(R"({"dtype": "F32", "shape": [2, 1], "data_offsets": [16, 24]})"));
  CHECK(header["b"] == nlohmann::json::parse(R"({"dtype": "BOOL", "shape": [3], "data_offsets": [24, 27]})"));
  CHECK(header["z"] == nlohmann::json::parse(R"({"dtype": "F64", "shape": [1, 2], "data_offsets": [0, 16]})"));
  std::string zeroed = bytes;
  const auto& metadata = header["__metadata__"];
  const std::string crc = metadata["reel.crc32"];
  zeroed.replace(bytes.find("\"reel.crc32\":\"") + 14, 8, "00000000");
  const auto* data = reinterpret_cast<const unsigned char*>(zeroed.data());
  CHECK(crc == fmt::format("{:08x}", crc32(0, data, static_cast<unsigned>(zeroed.size()))));
  CHECK(metadata ==
        nlohmann::json{{"k", "v"}, {"reel.dtype.z", "c128"}, {"reel.checksum", "crc32"}, {"reel.crc32", crc}});
  const double z[] = {3, 4};
  CHECK(bytes.compare(8 + length, 16, reinterpret_cast<const char*>(z), 16) == 0);
}

TEST_CASE("safetensors: what cannot be saved leaves the old file") {
  const TempDir dir;
  const std::string path = dir / "a";
  write_atomically(path, "old");
  const Tensor one = Tensor::zeros({1});
  CHECK(contains(error_of([&] {
                   save_safetensors(path, {{{"a", one}, {"a", one}}, {}});
                 }),
                 "\"a\" is the name of another tensor"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{{"__metadata__", one}}, {}}); }), "or reserved"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{{"a", one.without_storage()}}, {}}); }), "has no value"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{{"a", Tensor()}}, {}}); }), "has no value"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{{"\xff", one}}, {}}); }), "UTF-8"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{}, {{"reel.dtype.x", "c128"}}}); }), "is kept for Reel"));
  CHECK(contains(error_of([&] { save_safetensors(path, {{}, {{"reel.crc32", "0"}}}); }), "is kept for Reel"));
  CHECK(contains(error_of([&] { save_safetensors("/dev/null/a", {}); }), "cannot be written: Not a directory"));
  CHECK(read_file(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path), {}) == 1);
}

TEST_CASE("safetensors: types that Reel does not compute with are converted") {
  const TempDir dir;
  const std::string path = dir / "a";
  const auto load = [&](const std::string& dtype, std::size_t n, const std::string& data) {
    std::string bytes = with_header(
        fmt::format("{{\"a\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[0,{}]}}}}", dtype, n, data.size()), 0);
    write_atomically(path, bytes + data);
    return load_safetensors(path).at("a");
  };
  const auto bytes_of = []<class T>(std::initializer_list<T> values) {
    return std::string(reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T));
  };
  using Halves = std::initializer_list<std::uint16_t>;
  constexpr float inf = std::numeric_limits<float>::infinity();
  // what numpy.float16 and torch.bfloat16 say of these bits
  const Tensor half = load("F16", 7, bytes_of(Halves{0x3c00, 0xc000, 0x3555, 0x7bff, 0x0001, 0x83ff, 0xfc00}));
  CHECK(half.values<float>() ==
        std::vector<float>{1, -2, 0.333251953125F, 65504, 5.9604644775390625e-8F, -6.097555160522461e-5F, -inf});
  CHECK(std::isnan(load("F16", 1, bytes_of(Halves{0x7e00})).item()));
  const Tensor bfloat = load("BF16", 4, bytes_of(Halves{0x3f80, 0xc049, 0x7f80, 0x0001}));
  CHECK(bfloat.values<float>() == std::vector<float>{1, -3.140625F, inf, 9.183549615799121e-41F});
  using Longs = std::initializer_list<std::int64_t>;
  CHECK(load("I64", 3, bytes_of(Longs{-1, 2147483647, -2147483648})).values<std::int32_t>() ==
        std::vector<std::int32_t>{-1, 2147483647, -2147483647 - 1});
  CHECK(contains(error_of([&] {
                   load("I64", 2, bytes_of(Longs{0, 2147483648}));
                 }),
                 "element 1 of tensor \"a\" does not fit into i32"));
  CHECK(load("I8", 2, "\xff\x7f").values<std::int32_t>() == std::vector<std::int32_t>{-1, 127});
  CHECK(load("U8", 2, "\xff\x7f").values<std::int32_t>() == std::vector<std::int32_t>{255, 127});
  CHECK(load("I16", 1, "\xfe\xff").values<std::int32_t>() == std::vector<std::int32_t>{-2});
  CHECK(load("I64", 0, "").numel() == 0);
}

TEST_CASE("safetensors: each kind of damage is named") {
  const TempDir dir;
  const std::string path = dir / "a";
  const auto error = [&](const std::string& bytes) {
    write_atomically(path, bytes);
    return error_of([&] { load_safetensors(path); });
  };
  const auto tensor = [&](const std::string& entry, std::size_t data = 4) {
    return error(with_header("{\"a\":" + entry + "}", data));
  };
  CHECK(error("1234567") == "[" + path + "] damaged safetensors file: 7 bytes are too few for a header");
  CHECK(
      contains(error(std::string(8, '\xff') + "{}"), "header should have 18446744073709551615 bytes, the file has 10"));
  CHECK(contains(error(std::string("\3\0\0\0\0\0\0\0{}", 10)), "header should have 3 bytes"));
  for (const char* header : {"", "{", "[]", "{\"a\"", "{\"\xff\":1}"})
    CHECK(contains(error(with_header(header, 0)), "is not a JSON object"));
  CHECK(contains(error(with_header(std::string(1 << 20, '['), 0)), "is not a JSON object"));
  CHECK(contains(tensor("3"), "tensor \"a\" is not a JSON object"));
  CHECK(contains(tensor("{}"), "tensor \"a\" has no dtype"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1]})"), "has no data_offsets"));
  CHECK(contains(tensor(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})"), "dtype of tensor \"a\" is not text"));
  CHECK(contains(tensor(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"),
                 "tensor \"a\" has dtype F8_E4M3. Hint: Reel reads F32, F64"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":1,"data_offsets":[0,4]})"), "shape of tensor \"a\" is not a list"));
  for (const char* extent : {"-1", "1.0", "\"1\"", "null", "9223372036854775808", "1e400"})
    CHECK(contains(tensor(fmt::format(R"({{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}})", extent)),
                   extent[0] == '1' && extent[2] == '4' ? "is not a JSON" : "something else than a size"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), "are not two numbers"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"),
                 "bytes 4 to 0 do not hold tensor \"a\" of F32 and shape (1)"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "do not hold"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"), "do not hold"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[268435456],"data_offsets":[0,1073741824]})"),
                 "ends at byte 1073741824 of 4"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})"), "has 9 axes"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[1,5]})", 5),
                 "starts at byte 1, the one before ends at 0"));
  CHECK(contains(
      tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]})",
             6),
      "starts at byte 2"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})", 7), "3 B belong to no tensor"));
  CHECK(contains(
      tensor(
          R"({"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]})",
          2),
      ""));
  write_atomically(path, with_header(R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 0) + '\2');
  CHECK(contains(error_of([&] { load_safetensors(path); }), "holds other bytes than 0 and 1"));
  CHECK(contains(error(with_header(R"({"__metadata__":{"a":1}})", 0)), "metadata \"a\" is not text"));
  for (const char* half : {R"("reel.checksum":"crc32")", R"("reel.crc32":"00000000")"})
    CHECK(contains(error(with_header(fmt::format(R"({{"__metadata__":{{{}}}}})", half), 0)), "its checksum is wrong"));
  CHECK(contains(error(with_header(R"({"a":1,"a":2})", 0)), "a name stands twice"));
  CHECK(contains(error(with_header(R"({"__metadata__":[]})", 0)), "__metadata__ is not a JSON object"));
  CHECK(contains(error(with_header(R"({"__metadata__":{"reel.dtype.x":"c128"}})", 0)), "belongs to no tensor"));
  CHECK(contains(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]},"__metadata__":{"reel.dtype.a":"c128"})"),
                 "does not hold pairs of F64"));
}

TEST_CASE("safetensors: cut or flipped anywhere, a file is refused") {
  const TempDir dir;
  const std::string path = dir / "a";
  save_safetensors(path, all_kinds());
  const std::string good = read_file(path);
  const auto try_reading = [&](const std::string& bytes) {
    write_atomically(path, bytes);
    return error_of([&] { load_safetensors(path); });
  };
  for (std::size_t n = 0; n < good.size(); ++n)
    CHECK(contains(try_reading(good.substr(0, n)), "damaged safetensors file"));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << i % 8));
    CHECK(contains(try_reading(bytes), "damaged safetensors file"));
  }
}
