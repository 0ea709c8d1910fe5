// The tables of fabrics.
#include "inventory/binding.h"
#include "inventory/declared.h"
#include "inventory/formats.h"

#include <fmt/format.h>

#include <map>

namespace muster::inventory {

namespace {

constexpr int kMaxCount = 1'000'000;
constexpr int kMaxPort = 254;                  ///< InfiniBand port numbers
constexpr int kMaxPkey = 0x7fff;               ///< 15 bits
constexpr int kMaxPkeyAndMembership = 0xffff;  ///< the 16th bit is the membership

ObjectSpec make_partitionSpec() {
  return Table<Partition>("partition", "partition", "A partition (PKey) of the fabric.")
      .custom("pkey", true, integer(1, kMaxPkey), "15 bits, 0x0001 to 0x7fff; the membership bit is not part of it.",
              [](Partition& partition, const Value& value, const Shape& shape, Reader& reader) {
                Diagnostics ignored;
                Reader probe(reader.file, reader.folder, ignored);
                if (auto wide = readInteger(value, integer(kMaxPkey + 1, kMaxPkeyAndMembership), probe))
                  return reader.error(
                      value, fmt::format("the PKey {} has the membership bit (0x8000), or is over 15 bits", shorten(value.text)),
                      *wide == 0x8000 ? "write 0x0001 to 0x7fff"
                                      : fmt::format("write {:#06x}; full and limited say who is a full member", *wide & kMaxPkey));
                readInto(partition.pkey, value, shape, reader);
              })
      .optional("ipoib", &Partition::ipoib, boolean(), "Whether IP over InfiniBand runs in it.")
      .optional("full", &Partition::full_members, listOf(text(kHostlist)), "Hostlists of full members; ALL and SELF as OpenSM knows them.")
      .optional("limited", &Partition::limited_members, listOf(text(kHostlist)),
                "Hostlists of limited members, which reach full members only.")
      .spec();
}
MUSTER_SPEC(partitionSpec)

ObjectSpec make_cableSpec() {
  return Table<FabricCable>("cable", "cable",
                            "One cable: a node (\"gpu001\", port N is its HCA N-1), an HCA (\"gpu001 mlx5_0\") or a switch, at each end.")
      .required("from", &FabricCable::from_node, text(kText), "One end.")
      .optional("from_port", &FabricCable::from_port, integer(1, kMaxPort), "Its port.")
      .required("to", &FabricCable::to_node, text(kText), "The other end.")
      .optional("to_port", &FabricCable::to_port, integer(1, kMaxPort), "Its port.")
      .check([](FabricCable& cable, const Value& map, Reader& reader) { cable.where = reader.at(map); })
      .spec();
}
MUSTER_SPEC(cableSpec)

void checkFabric(Fabric& fabric, const Value& map, Reader& reader) {
  if (fabric.shape == FabricShape::Explicit && fabric.cables.empty())
    reader.error(map, "the shape explicit needs cables", "add cables: [{from: gpu001, to: leaf1, to_port: 1}, …]");
  if (fabric.shape == FabricShape::RailOptimized && !fabric.cables.empty())
    reader.error(*map.findKey("cables"), "the shape rail-optimized says every cable itself", "remove cables, or write shape: explicit");
  std::map<std::pair<std::string, int>, const Value*> used;
  const Value& cables = place(map, "cables");
  for (std::size_t i = 0; i < fabric.cables.size(); ++i) {
    const FabricCable& cable = fabric.cables[i];
    for (const auto& end : {std::pair(cable.from_node, cable.from_port), std::pair(cable.to_node, cable.to_port)})
      if (auto [first, fresh] = used.emplace(end, &cables.items[i]); !fresh)
        reader.error(cables.items[i], fmt::format("port {} of {} already has a cable", end.second, shorten(end.first)),
                     fmt::format("the other one is declared at {}", reader.at(*first->second).str()));
  }
  std::map<int, const Partition*> keys;
  for (const Partition& partition : fabric.partitions)
    if (auto [first, fresh] = keys.emplace(partition.pkey, &partition); !fresh)
      reader.error(place(place(place(map, "partitions"), partition.name), "pkey"),
                   fmt::format("the partitions {} and {} have the same PKey {:#06x}", first->second->name, partition.name, partition.pkey),
                   "give each its own");
}

ObjectSpec make_fabricSpec() {
  return Table<Fabric>("fabric", "fabric", "A fabric as it should be cabled, and its subnet managers.")
      .optional("shape", &Fabric::shape, choice({"rail-optimized", "explicit"}),
                "rail-optimized: leaf r of a scalable unit takes HCA r of each of its nodes, every leaf goes to every spine. explicit: as "
                "cables say.")
      .optional("sus", &Fabric::sus, integer(1, kMaxCount), "Scalable units.")
      .optional("nodes_per_su", &Fabric::nodes_per_su, integer(1, kMaxCount), "Nodes in each.")
      .optional("rails", &Fabric::rails, integer(1, kMaxPort), "HCAs of a node, each to its own leaf.")
      .optional("spines_per_su", &Fabric::spines_per_su, integer(0, kMaxCount), "Spines = sus × spines_per_su.")
      .optional("uplinks_per_leaf_spine", &Fabric::uplinks_per_leaf_spine, integer(1, kMaxPort), "Cables between each leaf and each spine.")
      .optional("switch_ports", &Fabric::switch_ports, integer(2, kMaxPort), "Ports of a switch.")
      .optional("link", &Fabric::link, text(kLink), "Width and speed of every cable, as ibnetdiscover writes it.")
      .optional("cables", &Fabric::cables, listOf(object(cableSpec)), "Every cable, for the shape explicit.")
      .optional("routing", &Fabric::routing, text(kRouting), "OpenSM's routing engine.")
      .optional("subnet_managers", &Fabric::subnet_managers, listOf(text(kHostName)),
                "Who runs the subnet manager, the master first: nodes, or controller.")
      .optional("partitions", &Fabric::partitions, mapOf(object(partitionSpec), kEntryName), "The partitions.")
      .check(checkFabric)
      .spec();
}
}  // namespace

MUSTER_SPEC(fabricSpec)

}  // namespace muster::inventory
