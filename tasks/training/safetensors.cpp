#include "tasks/training/safetensors.h"

#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tasks/io/files.h"
#include "tasks/training/stored_dtypes.h"

namespace reel {

namespace {

static_assert(std::endian::native == std::endian::little, "elements are written as they lie in memory");

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // keeps the order of the tensors, but finds a name by linear search

constexpr std::size_t prefix = 8;                        // bytes that hold the header's length
const std::string own = "reel.", note = own + "dtype.";  // metadata reserved for Reel
const std::string checksum_kind = own + "checksum", checksum_value = own + "crc32";
constexpr std::string_view no_checksum = "00000000";  // eight hexadecimal digits

/// The position of the checksum's digits in a header, which is JSON without spaces; npos if there is none. No name or
/// text can contain these bytes, because a quote in it is escaped.
std::size_t checksum_place(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", checksum_value);
  const std::size_t at = header.find(before);
  const bool there = at != header.npos && header.size() - at >= before.size() + no_checksum.size();
  return there ? at + before.size() : header.npos;
}

/// The checksum of a whole file whose digits are at `place`.
std::string checksum(std::string_view bytes, std::size_t place) {
  uLong crc = 0;
  for (const std::string_view part : {bytes.substr(0, place), no_checksum, bytes.substr(place + no_checksum.size())})
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(part.data()), part.size());
  return fmt::format("{:08x}", crc);
}

/// The format's names, in the order of DType; c128 has none and is stored as pairs of F64.
constexpr const char* dtype_names[] = {"F32", "F64", "C64", "F64", "I32", "BOOL"};

/// Orders tensors by the size of their elements, largest first, so that each lies at a multiple of its element size.
std::vector<std::size_t> by_alignment(const TensorFile& file) {
  std::vector<std::size_t> order(file.tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto size = [&](std::size_t i) { return size_of(file.tensors[i].second.dtype()); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  return order;
}

void check_saveable(const std::string& path, const TensorFile& file) {
  for (auto entry = file.tensors.begin(); entry != file.tensors.end(); ++entry) {
    const auto& [name, tensor] = *entry;
    if (!tensor.concrete()) throw Error(path, fmt::format("tensor \"{}\" has no value to save", name));
    const bool twice = std::any_of(file.tensors.begin(), entry, [&](const auto& other) { return other.first == name; });
    if (twice || name == "__metadata__")
      throw Error(path, fmt::format("\"{}\" is the name of another tensor, or reserved", name));
  }
  for (const auto& [key, text] : file.metadata)
    if (key.starts_with(note) || key == checksum_kind || key == checksum_value)
      throw Error(path, fmt::format("metadata \"{}\" is kept for Reel", key));
}

/// A tensor as described in the header.
struct Described {
  std::string name;
  const StoredDType* stored = nullptr;
  DType dtype = DType::f32;
  std::vector<std::int64_t> dims;
  std::size_t begin = 0, end = 0;
};

/// Reads a file; every rule that its header breaks is an Error with the file's name.
class Reader {
 public:
  Reader(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  TensorFile read(Backend& backend) {
    std::vector<std::string> names;  // in the order of the header
    const Json header = parse_header(names);
    if (header.contains("__metadata__")) read_metadata(header["__metadata__"]);
    take_checksum();
    std::vector<Described> all;
    for (const std::string& name : names)
      if (name != "__metadata__") all.push_back(describe(name, header[name]));
    check_cover(all);
    for (const Described& tensor : all) file_.tensors.emplace_back(tensor.name, load(tensor, backend));
    for (const auto& [key, text] : file_.metadata)
      if (key.starts_with(note)) damaged("metadata \"{}\" belongs to no tensor", key);
    return std::move(file_);
  }

 private:
  template <class... Args>
  [[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) const {
    throw Error(path_, "damaged safetensors file: " + fmt::format(format, std::forward<Args>(args)...));
  }

  Json parse_header(std::vector<std::string>& names) {
    if (bytes_.size() < prefix) damaged("{} bytes are too few for a header", bytes_.size());
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), prefix);
    if (length > bytes_.size() - prefix)
      damaged("the header should have {} bytes, the file has {} in all", length, bytes_.size());
    first_ = prefix + static_cast<std::size_t>(length);
    const auto take_name = [&](int depth, Json::parse_event_t event, const Json& name) {
      if (depth == 1 && event == Json::parse_event_t::key) names.push_back(name.get<std::string>());
      return true;
    };
    const std::string_view text = bytes_.substr(prefix, first_ - prefix);
    Json header = Json::parse(text.begin(), text.end(), take_name, false);
    if (!header.is_object()) damaged("the header is not a JSON object");
    if (header.size() != names.size()) damaged("a name stands twice in the header");
    return header;
  }

  void read_metadata(const Json& metadata) {
    if (!metadata.is_object()) damaged("__metadata__ is not a JSON object");
    for (const auto& [key, text] : metadata.items()) {
      if (!text.is_string()) damaged("metadata \"{}\" is not text", key);
      file_.metadata[key] = text.get<std::string>();
    }
  }

  void take_checksum() {
    const auto take = [&](const std::string& key) {
      const auto line = file_.metadata.extract(key);
      return line ? line.mapped() : "";
    };
    const std::string kind = take(checksum_kind), wanted = take(checksum_value);
    if (kind.empty() && wanted.empty()) return;
    const std::size_t place = checksum_place(bytes_.substr(0, first_));
    if (kind != "crc32" || place == bytes_.npos || checksum(bytes_, place) != wanted)
      damaged(
          "its checksum is wrong. Hint: a program that changes the file must drop \"{}\" and \"{}\" from its "
          "metadata",
          checksum_kind, checksum_value);
    file_.checked = true;
  }

  /// An element count, byte offset or extent: a non-negative integer, small enough to compute with.
  std::int64_t count(const std::string& name, const char* what, const Json& value) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{1} << 62)
      damaged("{} of tensor \"{}\" holds something else than a size", what, name);
    return value.get<std::int64_t>();
  }

  Described describe(const std::string& name, const Json& entry) {
    Described out;
    out.name = name;
    if (!entry.is_object()) damaged("tensor \"{}\" is not a JSON object", name);
    for (const char* key : {"dtype", "shape", "data_offsets"})
      if (!entry.contains(key)) damaged("tensor \"{}\" has no {}", name, key);
    if (!entry["dtype"].is_string()) damaged("dtype of tensor \"{}\" is not text", name);
    const auto dtype = entry["dtype"].get<std::string>();
    out.stored = stored_dtype(dtype);
    if (!out.stored)
      throw Error(path_, fmt::format("tensor \"{}\" has dtype {}. Hint: Reel reads {}", name, dtype, stored_dtypes()));
    out.dtype = out.stored->dtype;

    if (!entry["shape"].is_array()) damaged("shape of tensor \"{}\" is not a list", name);
    for (const Json& extent : entry["shape"]) out.dims.push_back(count(name, "shape", extent));
    const Json& offsets = entry["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) damaged("data_offsets of tensor \"{}\" are not two numbers", name);
    out.begin = static_cast<std::size_t>(count(name, "data_offsets", offsets[0]));
    out.end = static_cast<std::size_t>(count(name, "data_offsets", offsets[1]));
    check_extent(out);
    take_note(out);
    if (out.dims.size() > Shape::max_rank) damaged("tensor \"{}\" has {} axes", name, out.dims.size());
    return out;
  }

  void check_extent(const Described& tensor) const {
    std::size_t wanted = tensor.stored->bytes;
    bool too_big = false;
    for (const std::int64_t extent : tensor.dims)
      too_big = __builtin_mul_overflow(wanted, static_cast<std::size_t>(extent), &wanted) || too_big;
    if (too_big || tensor.end < tensor.begin || tensor.end - tensor.begin != wanted)
      damaged("bytes {} to {} do not hold tensor \"{}\" of {} and shape ({})", tensor.begin, tensor.end, tensor.name,
              tensor.stored->name, fmt::join(tensor.dims, ", "));
  }

  /// Turns pairs of F64 back into c128 if the metadata says so, and removes that entry.
  void take_note(Described& tensor) {
    const auto found = file_.metadata.find(note + tensor.name);
    if (found == file_.metadata.end()) return;
    if (found->second != "c128" || tensor.dtype != DType::f64 || tensor.dims.empty() || tensor.dims.back() != 2)
      damaged("tensor \"{}\" is noted as {} but does not hold pairs of F64", tensor.name, found->second);
    tensor.dtype = DType::c128;
    tensor.dims.pop_back();
    file_.metadata.erase(found);
  }

  /// Checks that the tensors cover all bytes after the header, each byte once.
  void check_cover(std::vector<Described> all) const {
    std::sort(all.begin(), all.end(), [](const Described& a, const Described& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    const std::size_t size = bytes_.size() - first_;
    std::size_t covered = 0;
    for (const Described& tensor : all) {
      if (tensor.end > size) damaged("tensor \"{}\" ends at byte {} of {}", tensor.name, tensor.end, size);
      if (tensor.begin != covered)
        damaged("tensor \"{}\" starts at byte {}, the one before ends at {}", tensor.name, tensor.begin, covered);
      covered = tensor.end;
    }
    if (covered != size) damaged("{} B belong to no tensor", size - covered);
  }

  Tensor load(const Described& tensor, Backend& backend) const {
    const char* data = bytes_.data() + first_ + tensor.begin;
    const std::size_t size = tensor.end - tensor.begin;
    if (tensor.dtype == DType::boolean && std::any_of(data, data + size, [](char b) { return b != 0 && b != 1; }))
      damaged("tensor \"{}\" is of BOOL but holds other bytes than 0 and 1", tensor.name);
    Tensor out = Tensor::empty({tensor.dtype, Shape(std::span(tensor.dims)), &backend});
    std::vector<std::max_align_t> converted;  // room for elements of any type
    if (tensor.stored->convert) {
      converted.resize(out.bytes() / sizeof(std::max_align_t) + 1);
      const auto n = static_cast<std::size_t>(out.numel());
      if (const auto unfit = tensor.stored->convert(data, n, converted.data()))
        throw Error(path_, fmt::format("element {} of tensor \"{}\" does not fit into {}", *unfit, tensor.name,
                                       name_of(tensor.dtype)));
      data = reinterpret_cast<const char*>(converted.data());
    }
    if (out.bytes() > 0) backend.write(out.data(), data, out.bytes());
    return out;
  }

  const std::string& path_;
  const std::string_view bytes_;
  std::size_t first_ = 0;  // where the elements start
  TensorFile file_;
};

}  // namespace

const Tensor& TensorFile::at(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.first == name; });
  if (found != tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, tensor] : tensors) names.push_back(known);
  throw Error("safetensors", fmt::format("there is no tensor \"{}\"; there are {}", name, fmt::join(names, ", ")));
}

std::string safetensors_of(const std::string& path, const TensorFile& file) {
  check_saveable(path, file);
  std::vector<std::size_t> begins(file.tensors.size());
  std::size_t size = 0;
  for (const std::size_t i : by_alignment(file)) {
    begins[i] = size;
    size += file.tensors[i].second.bytes();
  }

  OrderedJson metadata(file.metadata), header = OrderedJson::object();
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    const auto& [name, tensor] = file.tensors[i];
    std::vector<std::int64_t> dims(tensor.shape().begin(), tensor.shape().end());
    if (tensor.dtype() == DType::c128) {
      dims.push_back(2);
      metadata[note + name] = "c128";
    }
    header[name] = {{"dtype", dtype_names[static_cast<int>(tensor.dtype())]},
                    {"shape", dims},
                    {"data_offsets", {begins[i], begins[i] + tensor.bytes()}}};
  }
  metadata[checksum_kind] = "crc32";
  metadata[checksum_value] = no_checksum;
  header["__metadata__"] = metadata;

  std::string text;
  try {
    text = header.dump();
  } catch (const OrderedJson::exception&) {
    throw Error(path, "names and metadata of tensors must be text in UTF-8");
  }
  text.resize((text.size() + prefix - 1) / prefix * prefix, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(prefix, '\0');
  std::memcpy(bytes.data(), &length, prefix);
  bytes += text;
  const std::size_t first = bytes.size();
  bytes.resize(first + size);
  for (std::size_t i = 0; i < file.tensors.size(); ++i) {
    const Tensor& tensor = file.tensors[i].second;
    if (tensor.bytes() > 0) tensor.backend().read(bytes.data() + first + begins[i], tensor.data(), tensor.bytes());
  }
  const std::size_t place = checksum_place(std::string_view(bytes).substr(0, first));
  bytes.replace(place, no_checksum.size(), checksum(bytes, place));
  return bytes;
}

void save_safetensors(const std::string& path, const TensorFile& file) {
  write_atomically(path, safetensors_of(path, file));
}

TensorFile load_safetensors(const std::string& path, Backend& backend) {
  return parse_safetensors(path, read_file(path), backend);
}

TensorFile parse_safetensors(const std::string& path, std::string_view bytes, Backend& backend) {
  return Reader(path, bytes).read(backend);
}

}  // namespace reel
