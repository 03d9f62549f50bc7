// Messages from one device's memory to another's, where each of several processes has a device. A kind of device that
// can do so registers how; the processes find each other by other means.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "engine/device/backend.h"

namespace reel {

/// Bytes for another process, or from it; of a device's memory or of the host's.
struct Message {
  int rank = 0;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// The connection of a process's device with those of all others.
class DeviceLink {
 public:
  virtual ~DeviceLink() = default;
  /// Sends and receives all of these, in the order of the device's work; it may be captured. All processes call it with
  /// messages that fit together.
  virtual void exchange(std::span<const Message> sends, std::span<const Message> receives) = 0;
  /// True when the device has done all of its work; throws Error if the connection is broken.
  virtual bool done() = 0;
  /// Gives up what is under way. The link must not be used after that.
  virtual void abort() = 0;
};

/// What a kind of device has to link its devices. Functions throw Error if something is missing.
struct DeviceLinks {
  int (*count)();                            // devices that this process sees
  std::string (*identity)(Backend& device);  // of the device within its machine
  std::string (*version)();                  // of the library that sends messages
  std::string (*make_id)();                  // what all who join must have, made by one
  std::unique_ptr<DeviceLink> (*join)(Backend& device, const std::string& id, int rank, int size);
};

/// Registers how devices of a kind ("cuda") are linked.
bool register_device_links(const std::string& kind, const DeviceLinks& links);
/// How the devices of this kind are linked; null: they are not.
const DeviceLinks* device_links(const std::string& kind);

}  // namespace reel
