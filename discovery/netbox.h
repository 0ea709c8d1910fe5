// SPDX-License-Identifier: Apache-2.0
// What NetBox knows of a site's machines, by its REST API (version 4; of 3.x what has not changed).
// It is only asked. docs/discovery.md, docs/adr/0341
// Source: NetBox's published OpenAPI description (contrib/openapi.json), dcim and ipam.
#pragma once

#include "base/async/task.h"
#include "base/io/http.h"
#include "base/log.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::discovery {

inline constexpr std::size_t kMaxNetboxObjects = 1'000'000;  ///< of one kind

struct NetboxInterface {
  std::int64_t id = 0, device = 0;
  std::string name, mac;  ///< the MAC as NetBox writes it; may be empty
  bool mgmt_only = false;
  std::string peer_device, peer_port;  ///< at the other end of its cable, through patch panels
};

struct NetboxAddress {
  std::int64_t device = 0, interface = 0;
  std::string address;  ///< "10.20.1.1/16"
};

struct NetboxDevice {
  std::int64_t id = 0;
  std::string name, serial, rack;
  std::optional<double> position;  ///< the lowest height unit; NetBox knows halves
  std::string primary_ip4, oob_ip;
  std::vector<NetboxInterface> interfaces;
  std::vector<NetboxAddress> addresses;  ///< of its interfaces
};

struct NetboxQuery {
  std::vector<std::string> sites, tags, roles;  ///< slugs; of tags a device must have all
};

/// One NetBox.
class NetboxClient {
 public:
  /// `root`: without /api. `client` is for it alone: the token goes nowhere else.
  NetboxClient(io::Url root, const Secret& token, std::unique_ptr<io::HttpClient> client);

  /// Devices with their interfaces and the addresses of these. Errors: Denied (token, rights),
  /// InvalidInput (a filter that NetBox does not know), Corrupt (no NetBox answers there), Conflict
  /// (pages that lead elsewhere), Unavailable, Timeout
  Async<std::vector<NetboxDevice>> devices(NetboxQuery query);

 private:
  using Parameters = std::vector<std::pair<std::string, std::string>>;
  /// All pages of a list.
  Async<std::vector<nlohmann::json>> list(std::string path, Parameters parameters);
  Async<nlohmann::json> page(io::Url url);
  Async<void> addParts(std::vector<NetboxDevice>& devices, std::size_t first, std::size_t last);

  const io::Url root_;
  const Secret token_;
  std::unique_ptr<io::HttpClient> client_;
};

/// A record of each kind. Pure. Errors: Corrupt (says which member)
Result<NetboxDevice> netboxDevice(const nlohmann::json& record);
Result<NetboxInterface> netboxInterface(const nlohmann::json& record);
/// nullopt: it is assigned to no device's interface, or of IPv6.
Result<std::optional<NetboxAddress>> netboxAddress(const nlohmann::json& record);

}  // namespace muster::discovery
