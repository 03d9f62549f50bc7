#include "tasks/app/rank_devices.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tasks/app/launch.h"

namespace reel {

namespace {

std::string kind_of(const std::string& device) { return device.substr(0, device.find_first_of(":,")); }

/// Why these ranks cannot be linked; empty: they can.
std::string obstacle(const std::vector<nlohmann::json>& ranks) {
  std::map<std::string, std::size_t> seen;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].contains("problem")) return fmt::format("rank {}: {}", r, ranks[r]["problem"].get<std::string>());
    if (ranks[r]["version"] != ranks[0]["version"])
      return fmt::format("rank 0 has NCCL {}, rank {} has {}", ranks[0]["version"].get<std::string>(), r,
                         ranks[r]["version"].get<std::string>());
    const auto [first, fresh] = seen.emplace(ranks[r]["place"], r);
    if (!fresh) return fmt::format("ranks {} and {} compute on the same GPU", first->second, r);
  }
  return "";
}

std::vector<nlohmann::json> gather(Ranks& ranks, const nlohmann::json& mine) {
  std::vector<nlohmann::json> all;
  for (const std::string& text : ranks.gather(mine.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)))
    all.push_back(nlohmann::json::parse(text));
  return all;
}

}  // namespace

std::string device_of_rank(const std::string& device, int place) {
  const std::string kind = kind_of(device), rest = device.substr(kind.size());
  const DeviceLinks* const links = device_links(kind);
  const int count = links && !rest.starts_with(':') ? links->count() : 0;
  return count > 1 ? fmt::format("{}:{}{}", kind, place % count, rest) : device;
}

std::string link_devices(Ranks& ranks, Backend& device) {
  const DeviceLinks* const links = device_links(kind_of(device.name()));
  if (!links || ranks.size() == 1) return "";
  nlohmann::json mine = nlohmann::json::object();
  try {
    mine["version"] = links->version();
    mine["place"] = machine_name() + "\n" + links->identity(device);
    const std::string id = ranks.first() ? links->make_id() : "";
    mine["id"] = std::vector<int>(id.begin(), id.end());  // bytes
  } catch (const Error& e) {
    mine["problem"] = e.what();
  }
  const std::vector<nlohmann::json> all = gather(ranks, mine);
  if (const std::string why = obstacle(all); !why.empty())
    return "gradients go by way of the host, which is slow: " + why;
  const auto bytes = all[0]["id"].get<std::vector<int>>();
  ranks.set_link(links->join(device, {bytes.begin(), bytes.end()}, ranks.rank(), ranks.size()));
  return "";
}

}  // namespace reel
