// SPDX-License-Identifier: Apache-2.0
// The tables of nodes: entries of the inventory, and rows of its CSV files.
#include "inventory/model/bmc_identity.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/node.h"
#include "inventory/model/node_network.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace muster::inventory {

namespace {

using Json = nlohmann::json;

Result<void> checkAccepted(std::string_view text) {
  TRY_OK(parseAcceptedIdentity(text));
  return {};
}

constexpr TextFormat kAccepted{
    "what identifies the machine",
    R"(^((chassis-serial|system-uuid|manager-serial|manager-uuid|service-uuid)=[^ ]+)( (chassis-serial|system-uuid|manager-serial|manager-uuid|service-uuid)=[^ ]+)*$)",
    "chassis-serial=1234567890", checkAccepted};
constexpr TextFormat kNics{"NAME=MAC, divided by blanks", R"(^\S+=\S+( +\S+=\S+)*$)",
                           "data0=52:54:00:20:01:01", acceptAny};
constexpr TextFormat kNodeAddresses{"NETWORK=ADDRESS, divided by blanks",
                                    R"(^\S+=\S+( +\S+=\S+)*$)", "storage=10.30.0.7", acceptAny};
constexpr TextFormat kPorts{"NAME=SWITCH:PORT, divided by blanks",
                            R"(^\S+=\S+:\S+( +\S+=\S+:\S+)*$)", "data0=leaf1:swp7", acceptAny};
constexpr std::string_view kAcceptDoc =
    "What identifies the machine where its BMC reports neither its serial nor a MAC: "
    "chassis-serial=, system-uuid=, manager-serial=, manager-uuid= or service-uuid= and the value "
    "that the BMC reports, as muster shows it; several divided by blanks. Another value is "
    "refused; docs/bmc.md.";
constexpr std::string_view kSystemDoc =
    "The Id of its ComputerSystem, where one BMC has several machines. Absent: the one that can be "
    "reset and boots.";

void readAccepted(BmcAddress& bmc, const Value& value, const Shape& shape, Reader& reader) {
  const auto read = readText(value, shape, reader);
  if (!read) return;
  if (auto accepted = parseAcceptedIdentity(*read)) bmc.accept = std::move(*accepted);
}

void readUrl(BmcAddress& bmc, const Value& value, const Shape& shape, Reader& reader) {
  auto read = readText(value, shape, reader);
  if (!read) return;
  constexpr std::string_view kScheme = "https://";
  bmc.url.clear();
  bmc.username_override.clear();
  if (!read->starts_with(kScheme)) {
    bmc.url = std::move(*read);
    return;
  }
  std::string rest = read->substr(kScheme.size());
  if (auto user = rest.find('@'); user != std::string::npos) {
    bmc.username_override = rest.substr(0, user);
    rest.erase(0, user + 1);
  }
  if (rest.ends_with('/')) rest.pop_back();
  if (rest.ends_with(":443")) rest.erase(rest.size() - 4);
  std::transform(rest.begin(), rest.end(), rest.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  bmc.url = std::string(kScheme) + rest;
}

ObjectSpec make_nodeBmcSpec() {
  return Table<BmcAddress>("node-bmc", "BMC of a node", "A BMC of which more is said.")
      .custom("url", true, text(kBmcUrl),
              "https://[USER@]HOST[:PORT], or libvirt:DOMAIN. USER replaces the credential's.",
              readUrl)
      .custom("accept", false, text(kAccepted), kAcceptDoc, readAccepted)
      .optional("system", &BmcAddress::system, text(kWord), kSystemDoc)
      .spec();
}

void readBmc(BmcAddress& bmc, const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind == Value::Kind::Map)
    readObject(&bmc, value, *nodeBmcSpec(), reader);
  else
    readUrl(bmc, value, shape, reader);
}

/// The columns of a CSV are the keys of a node: one list for both.
template <class T>
void addNodeFields(Table<T>& table, bool complete) {
  auto add = [&](std::string_view key, bool required, auto member, Shape shape,
                 std::string_view doc) {
    required&& complete ? table.required(key, member, std::move(shape), doc)
                        : table.optional(key, member, std::move(shape), doc);
  };
  add("rack", false, &Node::rack, text(kText), "The rack.");
  add("unit", false, &Node::unit, integer(1, 99), "The lowest height unit in the rack.");
  add("mac", true, &Node::mac, text(kMac), "Ethernet address of the NIC that boots.");
  add("address", true, &Node::address, text(kIpv4), "Its address on the provisioning network.");
  table.custom(
      "bmc", complete, textOrObject(kBmcUrl, nodeBmcSpec),
      "Its BMC: https://[USER@]HOST[:PORT], or libvirt:DOMAIN. USER replaces the credential's.",
      [](T& node, const Value& value, const Shape& shape, Reader& reader) {
        readBmc(node.bmc, value, shape, reader);
      });
  table.prints([](const T& node, const Printer&) -> Json { return node.bmc.url; });
  table.custom("bmc_accept", false, text(kAccepted), kAcceptDoc,
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readAccepted(node.bmc, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json { return str(node.bmc.accept); });
  table.custom("bmc_system", false, text(kWord), kSystemDoc,
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readInto(node.bmc.system, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json { return node.bmc.system; });
  table.custom("bmc_pin", false, text(kFingerprint),
               "SHA-256 of its BMC's TLS certificate: no other one gets the password. Instead of "
               "the profile's bmc_pin or bmc_ca.",
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readBmcPin(*node.bmc.trust, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json { return node.bmc.trust->pin; });
  table.custom("bmc_ca", false, text(kPath),
               "Or a PEM file of the root CA that its BMC's certificate must lead to, with the "
               "BMC's name or address in it.",
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readBmcCa(*node.bmc.trust, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json {
    return node.bmc.trust->ca_pem;  // the content counts, not the path
  });
  table.custom("bmc_ssh_key", false, text(kSshHostKey),
               "Host key of its BMC's SSH server, for a console by SSH.",
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readBmcSshKey(*node.bmc.trust, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json { return node.bmc.trust->ssh_key; });
  table.custom("bmc_credential", false, reference("credentials"),
               "The account of its BMC, instead of the profile's.",
               [](T& node, const Value& value, const Shape& shape, Reader& reader) {
                 readInto(node.bmc.credential, value, shape, reader);
               });
  table.prints([](const T& node, const Printer&) -> Json { return node.bmc.credential; });
  add("serial", false, &Node::serial, text(kText),
      "The chassis serial that must be found there; absent: learned.");
  add("switch", false, &Node::switch_name, text(kWord),
      "The switch that the NIC that boots is cabled to, as LLDP names it.");
  add("port", false, &Node::switch_port, text(kWord), "The switch's port, as LLDP names it.");
  const auto links = [&](std::string_view key, const TextFormat& format, std::string_view doc,
                         void (*read)(Node&, const Value&, const Shape&, Reader&), auto member) {
    table.custom(key, false, text(format), doc,
                 [read](T& node, const Value& value, const Shape& shape, Reader& reader) {
                   read(node, value, shape, reader);
                 });
    table.prints([member](const T& node, const Printer&) -> Json {
      return node.links ? Json(str((*node.links).*member)) : Json("");
    });
  };
  links("nics", kNics,
        "MACs of Ethernets that its profile matches by mac: NAME=MAC, several divided by blanks.",
        readNodeNics, &NodeLinks::nics);
  links(
      "addresses", kNodeAddresses,
      "Its addresses on other networks, instead of those of their pools: NETWORK=ADDRESS, several "
      "divided by blanks.",
      readNodeAddresses, &NodeLinks::addresses);
  links("ports", kPorts,
        "Where its Ethernets are cabled, as LLDP names both: NAME=SWITCH:PORT, several divided by "
        "blanks.",
        readNodePorts, &NodeLinks::ports);
}

ObjectSpec make_nodeRowSpec() {
  Table<Node> table("node-row", "row of nodes",
                    "The columns of a CSV file of nodes, in any order; the first row names them.");
  table.custom("name", true, text(kHostName), "The node's name.",
               [](Node& node, const Value& value, const Shape& shape, Reader& reader) {
                 if (auto read = readText(value, shape, reader))
                   node.name = NodeName(std::move(*read));
               });
  table.prints([](const Node& node, const Printer&) -> Json { return node.name.str(); });
  table.derives([](const Node& node, Json& out, const Printer&) {
    out["profile"] = node.profile;  // of its entry under `nodes`
    if (!node.bmc.username_override.empty()) out["bmc_username"] = node.bmc.username_override;
  });
  addNodeFields(table, true);
  return table.spec();
}

void checkGroup(NodeGroup& group, const Value& map, Reader& reader) {
  if (!map.find("names") && !map.find("from"))
    return reader.error(map, "nodes: neither names nor from is given",
                        "add names: gpu001, or from: racks.csv");
  if (!map.find("from")) return;
  for (std::string_view key :
       {"unit", "mac", "address", "bmc", "bmc_accept", "bmc_system", "bmc_pin", "bmc_ca",
        "bmc_ssh_key", "bmc_credential", "serial", "switch", "port", "nics", "addresses", "ports"})
    if (const Value* found = map.findKey(key))
      reader.error(*found, fmt::format("nodes: \"{}\" belongs into {}", key, shorten(group.from)),
                   "remove the key here");
}

ObjectSpec make_nodeGroupSpec() {
  Table<NodeGroup> table("nodes", "nodes", "One node, or many whose rows are in a CSV file.");
  table
      .optional("names", &NodeGroup::names, text(kHostlist),
                "One name or a hostlist. With from: which rows; absent: all rows.")
      .required("profile", &NodeGroup::profile, reference("profiles"), "What they should be.")
      .optional("from", &NodeGroup::from, text(kPath),
                "A CSV file with the columns name, rack, unit, mac, address, bmc, bmc_accept, "
                "bmc_system, "
                "bmc_pin, bmc_ca, bmc_ssh_key, bmc_credential, serial, switch, port, nics, "
                "addresses, ports.");
  addNodeFields(table, false);
  return table.check(checkGroup).spec();
}
}  // namespace

MUSTER_SPEC(nodeBmcSpec)
MUSTER_SPEC(nodeRowSpec)
MUSTER_SPEC(nodeGroupSpec)

}  // namespace muster::inventory
