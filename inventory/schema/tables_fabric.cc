// SPDX-License-Identifier: Apache-2.0
// The tables of fabrics.
#include "inventory/model/bmc_trust.h"
#include "inventory/model/fabric.h"
#include "inventory/model/node.h"
#include "inventory/model/rails.h"
#include "inventory/parse/csv.h"
#include "inventory/parse/hostlist.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include "base/io/crypto.h"
#include "base/io/regular_file.h"

#include <fmt/format.h>

#include <charconv>
#include <map>

namespace muster::inventory {

namespace {

using Json = nlohmann::json;

constexpr int kMaxCount = 1'000'000;
constexpr int kMaxPort = 254;                  ///< InfiniBand port numbers
constexpr int kMaxPkey = 0x7fff;               ///< 15 bits
constexpr int kMaxPkeyAndMembership = 0xffff;  ///< the 16th bit is the membership
constexpr int kMaxUnit = 99;
constexpr int kMaxGpu = 63;
constexpr int kMaxDscp = 63;
constexpr int kMaxPriority = 7;
constexpr int kLeastRoceMtu = 1500;
constexpr std::size_t kMaxTopologyBytes = 64u << 20;  ///< 16,384 HCAs are 12 MB

ObjectSpec make_partitionSpec() {
  return Table<Partition>("partition", "partition", "A partition (PKey) of the fabric.")
      .custom(
          "pkey", true, integer(1, kMaxPkey),
          "15 bits, 0x0001 to 0x7fff; the membership bit is not part of it.",
          [](Partition& partition, const Value& value, const Shape& shape, Reader& reader) {
            Diagnostics ignored;
            Reader probe(reader.file, reader.folder, ignored);
            if (auto wide = readInteger(value, integer(kMaxPkey + 1, kMaxPkeyAndMembership), probe))
              return reader.error(
                  value,
                  fmt::format("the PKey {} has the membership bit (0x8000), or is over 15 bits",
                              shorten(value.text)),
                  *wide == 0x8000
                      ? "write 0x0001 to 0x7fff"
                      : fmt::format("write {:#06x}; full and limited say who is a full member",
                                    *wide & kMaxPkey));
            readInto(partition.pkey, value, shape, reader);
          })
      .prints(&Partition::pkey)
      .optional("ipoib", &Partition::ipoib, boolean(), "Whether IP over InfiniBand runs in it.")
      .optional("full", &Partition::full_members, listOf(text(kHostlist)),
                "Hostlists of full members; ALL and SELF as OpenSM knows them.")
      .optional("limited", &Partition::limited_members, listOf(text(kHostlist)),
                "Hostlists of limited members, which reach full members only.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(partitionSpec)

ObjectSpec make_cableSpec() {
  return Table<FabricCable>("cable", "cable",
                            "One cable: a node (\"gpu001\", port N is its HCA N-1), an HCA "
                            "(\"gpu001 mlx5_0\") or a switch, at each end.")
      .required("from", &FabricCable::from_node, text(kText), "One end.")
      .optional("from_port", &FabricCable::from_port, integer(1, kMaxPort), "Its port.")
      .required("to", &FabricCable::to_node, text(kText), "The other end.")
      .optional("to_port", &FabricCable::to_port, integer(1, kMaxPort), "Its port.")
      .optional("role", &FabricCable::role, choice({"none", "storage", "ufm", "gateway"}),
                "What `from` is, when it is neither a node nor a switch: an HCA of such a host "
                "(\"store1 mlx5_0\").")
      .optional("link", &FabricCable::link, text(kLink), "Width and speed; absent: the fabric's.")
      .printsAlways({"from_port", "to_port"})
      .check([](FabricCable& cable, const Value& map, Reader& reader) {
        cable.where = reader.at(map);
      })
      .spec();
}
MUSTER_SPEC(cableSpec)

void readNames(std::vector<std::string>& names, const Value& value, const Shape& shape,
               Reader& reader) {
  std::string text;
  readInto(text, value, shape, reader);
  auto expanded = expandHostlist(text);
  if (expanded)
    names = std::move(*expanded);
  else
    reader.error(value, fmt::format("\"{}\" is no hostlist", shorten(value.text)),
                 expanded.error().text());
}

ObjectSpec make_switchesSpec() {
  return Table<FabricSwitches>(
             "switches", "switches",
             "Where switches stand, for the cabling sheet, and what runs on them.")
      .custom("names", true, text(kHostlist),
              "Hostlist of switches as the shape names them: \"leaf-su1-r[0-7]\".",
              [](FabricSwitches& group, const Value& value, const Shape& shape, Reader& reader) {
                readNames(group.names, value, shape, reader);
              })
      .prints(&FabricSwitches::names)
      .required("rack", &FabricSwitches::rack, text(kText), "Their rack.")
      .optional("unit", &FabricSwitches::unit, integer(1, kMaxUnit),
                "The height unit of the first one.")
      .optional("units_apart", &FabricSwitches::units_apart, integer(1, kMaxUnit),
                "Each further one stands so much higher.")
      .optional("firmware", &FabricSwitches::firmware, text(kGroupFirmware),
                "The firmware that must run on them; any: it is not compared; absent: "
                "switch_firmware of the fabric.")
      .printsAlways({"unit", "units_apart"})
      .check(
          [](FabricSwitches& row, const Value& map, Reader& reader) { row.where = reader.at(map); })
      .spec();
}
MUSTER_SPEC(switchesSpec)

void checkRoce(Roce& roce, const Value& map, Reader& reader) {
  if (roce.priority == roce.cnp_priority)
    reader.error(place(map, "cnp_priority"),
                 fmt::format("RDMA and congestion notifications both have priority {}: a stopped "
                             "queue would hold back what resolves it",
                             roce.priority),
                 "give notifications another priority");
  if (roce.dscp == roce.cnp_dscp)
    reader.error(place(map, "cnp_dscp"),
                 fmt::format("RDMA and congestion notifications both have DSCP {}", roce.dscp),
                 "give them different ones");
  if (roce.ecn_min_kib >= roce.ecn_max_kib)
    reader.error(place(map, "ecn_min_kib"), "marking must begin below ecn_max_kib",
                 "write a smaller number");
}

ObjectSpec make_roceSpec() {
  return Table<Roce>(
             "roce", "roce",
             "How lossless traffic is marked: hosts, switches and NCCL are all rendered from this.")
      .optional("dscp", &Roce::dscp, integer(1, kMaxDscp), "DSCP of RDMA traffic.")
      .optional("priority", &Roce::priority, integer(0, kMaxPriority),
                "The priority that it maps to, the only one with PFC.")
      .optional("cnp_dscp", &Roce::cnp_dscp, integer(1, kMaxDscp),
                "DSCP of congestion notifications.")
      .optional("cnp_priority", &Roce::cnp_priority, integer(0, kMaxPriority),
                "Their priority; strict, never paused.")
      .optional("mtu", &Roce::mtu, integer(kLeastRoceMtu, 9216),
                "MTU of the interfaces in bytes; 4,096 bytes of RDMA payload need 4,200.")
      .optional("gid_index", &Roce::gid_index, integer(0, 255),
                "The GID that NCCL uses; 3 is RoCE v2 over IPv4 on mlx5.")
      .optional("ecn_min_kib", &Roce::ecn_min_kib, integer(1, kMaxCount),
                "Queue at which switches begin to mark.")
      .optional("ecn_max_kib", &Roce::ecn_max_kib, integer(1, kMaxCount),
                "Queue at which they mark ecn_percent.")
      .optional("ecn_percent", &Roce::ecn_percent, integer(1, 100),
                "How many packets are marked there.")
      .printsAlways()
      .check(checkRoce)
      .spec();
}
MUSTER_SPEC(roceSpec)

ObjectSpec make_nvlinkDomainSpec() {
  return Table<NvlinkDomain>("nvlink_domain", "NVLink domain",
                             "Nodes whose GPUs share one NVLink fabric (NVL72).")
      .custom("nodes", true, text(kHostlist), "Hostlist.",
              [](NvlinkDomain& domain, const Value& value, const Shape& shape, Reader& reader) {
                readNames(domain.nodes, value, shape, reader);
              })
      .prints(&NvlinkDomain::nodes)
      .spec();
}
MUSTER_SPEC(nvlinkDomainSpec)

ObjectSpec make_exclusionSpec() {
  return Table<FabricExclusion>("exclusion", "exclusion",
                                "A device or port that is known to be out: what is wrong with it "
                                "is told, but is no deviation.")
      .required("device", &FabricExclusion::device, text(kText),
                "An HCA (\"gpu001 mlx5_3\") or a switch.")
      .optional("port", &FabricExclusion::port, integer(1, kMaxPort), "Absent: the whole device.")
      .required("reason", &FabricExclusion::reason, text(kText),
                "Why, for whoever reads the report.")
      .printsAlways()
      .check([](FabricExclusion& excluded, const Value& map, Reader& reader) {
        excluded.where = reader.at(map);
      })
      .spec();
}
MUSTER_SPEC(exclusionSpec)

std::optional<std::string> readNamedFile(const Value& value, const Shape& shape, Reader& reader,
                                         std::filesystem::path& path) {
  const std::size_t errors = reader.errors;
  readInto(path, value, shape, reader);
  if (reader.errors != errors) return std::nullopt;
  auto content = io::readRegularFile(path, kMaxTopologyBytes);
  if (content) return std::move(*content);
  reader.error(value, fmt::format("cannot read {}: {}", path.string(), content.error().text()),
               "the path starts at the inventory's folder");
  return std::nullopt;
}

/// Rows of a CSV are read by the table of `cables`, so that both say the same.
void readCableFile(Fabric& fabric, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  auto content = readNamedFile(value, shape, reader, path);
  if (!content) return;
  std::string outer = std::exchange(reader.file, path.string());
  const std::size_t problems = reader.diagnostics.all().size();
  auto table = parseCsv(*content, reader.file, reader.diagnostics);
  reader.errors += reader.diagnostics.all().size() - problems;
  const auto& columns = *cableSpec();
  if (!table.header.empty() &&
      std::none_of(table.header.begin(), table.header.end(),
                   [&](const Value& cell) { return columns.find(cell.text); })) {
    reader.error(table.header.front(), "this is no list of cables: none of its columns is known",
                 "its first row names columns: from,from_port,to,to_port,role,link");
    table.rows.clear();
  }
  for (auto& row : table.rows) {
    Value map;
    map.kind = Value::Kind::Map;
    map.line = row.line;
    map.column = 1;
    for (std::size_t i = 0; i < row.cells.size(); ++i)
      if (!row.cells[i].text.empty())
        map.entries.push_back({table.header[i], std::move(row.cells[i])});
    FabricCable cable;
    if (readObject(&cable, map, *cableSpec(), reader)) fabric.cables.push_back(std::move(cable));
  }
  reader.file = std::move(outer);
}

void readTopologyFile(Fabric& fabric, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  if (auto content = readNamedFile(value, shape, reader, path))
    fabric.topology = std::move(*content);
}

/// One entry of `places`: nodes, or how many places are empty.
void readPlace(std::vector<std::string>& places, std::map<std::string, const Value*>& seen,
               const Value& value, Reader& reader) {
  constexpr std::string_view kFree = " free";
  const Shape shape = text(kPlaces);
  const auto word = readText(value, shape, reader);
  if (!word) return;
  std::size_t empty = *word == "-" ? 1 : 0;
  if (word->ends_with(kFree))
    if (std::from_chars(word->data(), word->data() + word->size() - kFree.size(), empty).ec !=
            std::errc() ||
        empty == 0 || empty > kMaxCount)
      return reader.error(
          value, fmt::format("\"{}\" does not say how many places are free", shorten(*word)),
          "write 3 free, or - for one");
  std::vector<std::string> names(empty);
  if (!empty) {
    auto expanded = expandHostlist(*word);
    if (!expanded)
      return reader.error(value, fmt::format("\"{}\" is no hostlist", shorten(*word)),
                          expanded.error().text());
    names = std::move(*expanded);
  }
  if (places.size() + names.size() > static_cast<std::size_t>(kMaxCount))
    return reader.error(value, "more places than any fabric has", "shorten the list");
  for (auto& name : names) {
    if (!name.empty())
      if (auto [first, fresh] = seen.emplace(name, &value); !fresh)
        reader.error(value, fmt::format("{} has two places", name),
                     fmt::format("the other one is at {}", reader.at(*first->second).str()));
    places.push_back(std::move(name));
  }
}

void readPlaces(Fabric& fabric, const Value& value, const Shape& shape, Reader& reader) {
  if (!expectList(value, shape, reader)) return;
  std::map<std::string, const Value*> seen;
  const std::size_t errors = reader.errors;
  for (const Value& item : value.items) readPlace(fabric.places, seen, item, reader);
  if (reader.errors != errors)
    fabric.places.clear();  // half a list would be reported again as nodes without a place
}

void checkPlaces(const Fabric& fabric, const Value& map, Reader& reader) {
  if (!map.findKey("places")) return;
  const Value& at = place(map, "places");
  if (fabric.shape == FabricShape::Explicit)
    return reader.error(at, "the shape explicit has no places: its cables name the nodes",
                        "remove places");
  const int down = fabric.leaf_down_ports ? fabric.leaf_down_ports : fabric.switch_ports / 2;
  const long long in_su = fabric.shape == FabricShape::RailOptimized
                              ? fabric.nodes_per_su
                              : static_cast<long long>(fabric.leaves_per_su) * down / fabric.rails;
  if (const auto most = in_su * fabric.sus; static_cast<long long>(fabric.places.size()) > most)
    reader.error(at,
                 fmt::format("{} places are listed, the shape has {} ({} SU of {})",
                             fabric.places.size(), most, fabric.sus, in_su),
                 "list fewer, or raise sus");
}

void checkShape(const Fabric& fabric, const Value& map, Reader& reader) {
  if (fabric.shape == FabricShape::Explicit && fabric.cables.empty() && fabric.topology.empty())
    reader.error(
        map, "the shape explicit needs cables",
        "add cables: [{from: gpu001, to: leaf1, to_port: 1}, …], cables_file or topology_file");
  if (fabric.shape != FabricShape::Explicit && !fabric.topology.empty())
    reader.error(*map.findKey("topology_file"),
                 "only the shape explicit takes a topology from a file",
                 "remove topology_file, or write shape: explicit");
  if (!fabric.topology.empty() && !fabric.cables.empty())
    reader.error(*map.findKey("topology_file"), "topology_file says every cable itself",
                 "remove cables");
  if (fabric.shape != FabricShape::FatTree)
    for (auto key : {"leaves_per_su", "leaf_down_ports"})
      if (const Value* at = map.findKey(key))
        reader.error(*at, fmt::format("only the shape fat-tree has {}", key),
                     "remove it; a rail-optimized SU has one leaf a rail");
  if (fabric.cores > 0 && (fabric.spines_per_su == 0 || fabric.cores % fabric.spines_per_su != 0))
    reader.error(
        place(map, "cores"),
        fmt::format("{} cores cannot be shared out evenly: spine k of every SU goes to plane k",
                    fabric.cores),
        fmt::format("write a multiple of spines_per_su ({})", fabric.spines_per_su));
}

void checkLinks(const Fabric& fabric, const Value& map, Reader& reader) {
  for (const auto key : {"link_node_leaf", "link_leaf_spine", "link_spine_core"})
    if (const Value* at = map.findKey(key); at && fabric.shape == FabricShape::Explicit)
      reader.error(*at, fmt::format("the shape explicit makes no cables, so it has no {}", key),
                   "write link at each cable that differs");
  if (const Value* at = map.findKey("link_spine_core");
      at && fabric.shape != FabricShape::Explicit && fabric.cores == 0)
    reader.error(*at, "a fabric without cores has no cables between spines and cores",
                 "remove it, or write cores");
}

/// What only a subnet manager has. A fabric with RoCE has none.
void checkEthernet(const Fabric& fabric, const Value& map, Reader& reader) {
  if (!fabric.roce) return;
  if (!fabric.subnet_managers.empty())
    reader.error(place(map, "subnet_managers"),
                 "a fabric with roce is Ethernet and has no subnet manager",
                 "remove subnet_managers, or roce if it is InfiniBand");
  if (!fabric.partitions.empty())
    reader.error(place(map, "partitions"),
                 "a fabric with roce is Ethernet: nothing gives its ports partitions",
                 "remove partitions, or roce if it is InfiniBand");
}

void checkFabric(Fabric& fabric, const Value& map, Reader& reader) {
  fabric.where = reader.at(map);
  if (fabric.shape == FabricShape::Explicit && !fabric.switch_prefix.empty())
    reader.error(place(map, "switch_prefix"),
                 "the shape explicit gives no names: its cables name the switches",
                 "remove switch_prefix");
  checkShape(fabric, map, reader);
  checkLinks(fabric, map, reader);
  checkPlaces(fabric, map, reader);
  checkEthernet(fabric, map, reader);
  std::map<std::pair<std::string, int>, const FabricCable*> used;
  for (const FabricCable& cable : fabric.cables)
    for (const auto& end :
         {std::pair(cable.from_node, cable.from_port), std::pair(cable.to_node, cable.to_port)})
      if (auto [first, fresh] = used.emplace(end, &cable); !fresh) {
        ++reader.errors;
        reader.diagnostics.error(
            cable.where,
            fmt::format("port {} of {} already has a cable", end.second, shorten(end.first)),
            fmt::format("the other one is declared at {}", first->second->where.str()));
      }
  std::map<int, const Partition*> keys;
  for (const Partition& partition : fabric.partitions)
    if (auto [first, fresh] = keys.emplace(partition.pkey, &partition); !fresh)
      reader.error(place(place(place(map, "partitions"), partition.name), "pkey"),
                   fmt::format("the partitions {} and {} have the same PKey {:#06x}",
                               first->second->name, partition.name, partition.pkey),
                   "give each its own");
}

ObjectSpec make_railSpec() {
  return Table<Rail>("rail", "rail", "One HCA on the fabric.")
      .optional("hca", &Rail::hca, text(kRdmaDevice),
                "Its name in the system, which its node description carries.")
      .optional("gpu", &Rail::gpu, integer(0, kMaxGpu),
                "The GPU that it serves, by its NVML index.")
      .optional("pci", &Rail::pci, text(kPciAddress), "Where it sits.")
      .optional("fabric", &Rail::fabric, reference("fabric"),
                "The fabric that it is cabled to: of a profile on several every rail says it.")
      .printsAlways({"hca"})
      .spec();
}

template <int Fabric::* kMember>
Json ofFatTree(const Fabric& fabric, const Printer&) {
  return fabric.shape == FabricShape::FatTree ? Json(fabric.*kMember) : Json();
}

ObjectSpec make_fabricSpec() {
  return Table<Fabric>("fabric", "fabric",
                       "A fabric as it should be cabled, and its subnet managers.")
      .optional("purpose", &Fabric::purpose, choice({"compute", "storage"}),
                "compute: jobs communicate over it, and Slurm, Kubernetes and NCCL are told of it. "
                "Of a profile on several fabrics exactly one is compute.")
      .optional("shape", &Fabric::shape, choice({"rail-optimized", "explicit", "fat-tree"}),
                "rail-optimized: leaf r of a scalable unit takes HCA r of each of its nodes. "
                "fat-tree: HCAs fill leaf after leaf. In both "
                "every leaf "
                "goes to every spine (with cores: of its SU). explicit: as cables say.")
      .optional("sus", &Fabric::sus, integer(1, kMaxCount),
                "Scalable units; the pods of a fat tree.")
      .optional("nodes_per_su", &Fabric::nodes_per_su, integer(1, kMaxCount), "Nodes in each.")
      .optional("rails", &Fabric::rails, integer(1, kMaxPort),
                "HCAs of a node, each to its own leaf.")
      .optional("leaves_per_su", &Fabric::leaves_per_su, integer(1, kMaxCount),
                "Leaves of each SU of a fat tree.")
      .prints(ofFatTree<&Fabric::leaves_per_su>)
      .optional("leaf_down_ports", &Fabric::leaf_down_ports, integer(0, kMaxPort),
                "Ports of a fat tree's leaf that take HCAs; 0: half of them.")
      .prints(ofFatTree<&Fabric::leaf_down_ports>)
      .optional("spines_per_su", &Fabric::spines_per_su, integer(0, kMaxCount),
                "Spines = sus × spines_per_su.")
      .optional("uplinks_per_leaf_spine", &Fabric::uplinks_per_leaf_spine, integer(1, kMaxPort),
                "Cables between each leaf and each of its spines.")
      .optional("cores", &Fabric::cores, integer(0, kMaxCount),
                "Core switches, a multiple of spines_per_su: a third level. Spine k of every SU "
                "goes to all cores of plane k.")
      .optional("uplinks_per_spine_core", &Fabric::uplinks_per_spine_core, integer(1, kMaxPort),
                "Cables between each spine and each of its cores.")
      .prints([](const Fabric& fabric, const Printer&) -> Json {
        return fabric.cores > 0 ? Json(fabric.uplinks_per_spine_core) : Json();
      })
      .optional("switch_ports", &Fabric::switch_ports, integer(2, kMaxPort), "Ports of a switch.")
      .optional("link", &Fabric::link, text(kLink),
                "Width and speed of every cable, as ibnetdiscover writes it.")
      .optional("link_node_leaf", &Fabric::link_node_leaf, text(kLink),
                "The same of the shape's cables between nodes and leaves; absent: link.")
      .optional("link_leaf_spine", &Fabric::link_leaf_spine, text(kLink),
                "Of those between leaves and spines; absent: link.")
      .optional("link_spine_core", &Fabric::link_spine_core, text(kLink),
                "Of those between spines and cores; absent: link.")
      .custom("places", false, listOf(text(kPlaces), 1),
              "Which node has which place of the shape, SU by SU: hostlists; - is an empty place, "
              "\"3 free\" are three. Then a node that "
              "leaves, or comes, moves no other's cables. Absent: nodes take places in the order "
              "of the inventory.",
              readPlaces)
      .prints([](const Fabric& fabric, const Printer&) -> Json { return fabric.places; })
      .optional("cables", &Fabric::cables, listOf(object(cableSpec)),
                "Every cable, for the shape explicit; with another shape what it does not know: "
                "storage, UFM, gateways.")
      .custom("cables_file", false, text(kPath),
              "The same as a CSV file with the columns from, from_port, to, to_port, role, link.",
              readCableFile)
      .custom("topology_file", false, text(kPath),
              "Instead of cables, for the shape explicit: ibnetdiscover's output of the fabric as "
              "it should be.",
              readTopologyFile)
      .optional("switches", &Fabric::switches, listOf(object(switchesSpec)),
                "Racks of the switches, for the cabling sheet, and firmware that differs from "
                "switch_firmware.")
      .optional("switch_prefix", &Fabric::switch_prefix, text(kSwitchPrefix),
                "Put before the names that the shape gives to switches (st- makes "
                "st-leaf-su1-r0), so that two fabrics have no switch in common.")
      .optional("switch_firmware", &Fabric::switch_firmware, text(kSwitchFirmware),
                "The firmware that must run on InfiniBand switches; absent: it is not compared.")
      .optional("exclude", &Fabric::exclude, listOf(object(exclusionSpec)),
                "What is known to be out.")
      .optional("routing", &Fabric::routing, text(kRouting),
                "OpenSM's routing engine, or several in order of preference (ftree,updn): the "
                "first that can route the fabric is used, and each of them is as declared.")
      .optional("subnet_managers", &Fabric::subnet_managers, listOf(text(kHostName)),
                "Who runs the subnet manager: controller, then nodes that stand by. None: UFM or a "
                "managed switch runs one, and muster checks it.")
      .optional("controller_hca", &Fabric::controller_hca, text(kRdmaDevice),
                "The controller's HCA on this fabric, by which muster looks at it and runs its "
                "subnet manager. Every InfiniBand fabric has another one.")
      .optional("partitions", &Fabric::partitions, mapOf(object(partitionSpec), kEntryName),
                "The partitions.")
      .optional("roce", &Fabric::roce, object(roceSpec),
                "Present: an Ethernet fabric with RoCE v2, without a subnet manager.")
      .optional("nvlink_domains", &Fabric::nvlink_domains,
                mapOf(object(nvlinkDomainSpec), kEntryName), "NVLink domains, by name.")
      .printsAlways({"shape", "sus", "nodes_per_su", "rails", "leaves_per_su", "leaf_down_ports",
                     "spines_per_su", "uplinks_per_leaf_spine", "uplinks_per_spine_core",
                     "switch_ports", "link", "routing", "subnet_managers", "partitions", "cables"})
      .derives([](const Fabric& fabric, Json& out, const Printer&) {
        if (!fabric.topology.empty()) out["topology_sha256"] = io::sha256Hex(fabric.topology);
      })
      .check(checkFabric)
      .spec();
}
}  // namespace

MUSTER_SPEC(railSpec)
MUSTER_SPEC(fabricSpec)

}  // namespace muster::inventory
