// SPDX-License-Identifier: Apache-2.0
#include "wire/node_network.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "wire/node_network_fields.h"

#include <set>

namespace muster::wire {

namespace {

constexpr std::size_t kMaxInterfaceName = 15, kDigestDigits = 16;

std::unexpected<Error> wrong(const std::string& link, std::string_view what) {
  return fail(ErrorCode::InvalidInput, fmt::format("network: the link {} {}", link, what));
}

}  // namespace

const NetworkLink* NodeNetwork::find(std::string_view name) const {
  for (const auto& link : links)
    if (link.name == name) return &link;
  return nullptr;
}

const NetworkLink* NodeNetwork::bondOf(std::string_view member) const {
  for (const auto& link : links)
    for (const auto& each : link.members)
      if (each == member) return &link;
  return nullptr;
}

bool isInterfaceName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxInterfaceName && name.front() != '.' &&
         name.front() != '-' &&
         node_network::onlyOf(name,
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

Result<void> checkNodeNetwork(const NodeNetwork& network) {
  std::set<std::string> before, joined;
  for (const auto& link : network.links) {
    if (link.kind == LinkKind::Ethernet && link.mac.empty() == link.pci.empty())
      return wrong(link.name, "is found neither by MAC nor by place, or by both");
    if (link.kind == LinkKind::Bond && link.members.empty())
      return wrong(link.name, "has no member");
    for (const auto& member : link.members) {
      const auto* other = network.find(member);
      if (!other || other->kind != LinkKind::Ethernet || !before.contains(member))
        return wrong(link.name, "has a member that is no Ethernet before it: " + member);
      if (!joined.insert(member).second) return wrong(member, "is in two bonds");
    }
    if (link.kind == LinkKind::Vlan && (link.vlan_id == 0 || !before.contains(link.parent)))
      return wrong(link.name, "has no id, or no parent before it");
    if (!before.insert(link.name).second) return wrong(link.name, "is there twice");
  }
  if (!before.contains(network.provisioning.link))
    return wrong(network.provisioning.link, "leads to the controller, but is not there");
  return {};
}

std::string toJson(const NodeNetwork& network) { return printMessage(network); }

Result<NodeNetwork> parseNodeNetwork(std::string_view text) {
  constexpr const char* kWhat = "network";
  const auto object = jsonOrNone(text, kOrderJson);
  if (!object.is_object()) return fail(ErrorCode::InvalidInput, "network: not a JSON object");
  JsonReader reader(object, kWhat);
  NodeNetwork network;
  readFields(reader, network);
  TRY_OK(reader.finish());
  TRY_OK(checkNodeNetwork(network));
  return network;
}

std::string digestOf(const NodeNetwork& network) {
  return io::sha256Hex(toJson(network)).substr(0, kDigestDigits);
}

}  // namespace muster::wire
