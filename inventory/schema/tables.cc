// SPDX-License-Identifier: Apache-2.0
// The tables: what an inventory may say. A new key is a row here, and nothing else. The larger
// sections have files of their own.
#include "base/io/regular_file.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/sections.h"
#include "inventory/model/user_data.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

namespace {

using Json = nlohmann::json;

constexpr long long kMaxLifetimeHours = 24L * 366 * 5;
constexpr int kMaxAtOnce = 16'384;
constexpr int kMaxRackWatts = 10'000'000, kMaxNodeWatts = 1'000'000;
constexpr TextFormat kBiosAttribute{"a BIOS attribute", "^[A-Za-z0-9_.#-]{1,128}$",
                                    "SriovGlobalEnable"};

// ---- credentials

ObjectSpec make_credentialSpec() {
  return Table<Credential>("credential", "credential", "An account, for example of the BMCs.")
      .required("username", &Credential::username, text(kUserName), "The account's name.")
      .required("password", &Credential::password, object(secretSpec),
                "Where its password comes from.")
      .optional(
          "rotate_to", &Credential::rotate_to, object(secretSpec),
          "Where the password comes from that `muster bmc rotate` changes it to; docs/bmc.md.")
      .spec();
}
MUSTER_SPEC(credentialSpec)

// ---- gates, profiles

ObjectSpec make_gateSpec() {
  return Table<Gate>("gate", "gate", "A set of checks that a node must pass.")
      .optional("level", &Gate::level, choice({"quick", "medium", "long", "soak"}),
                "How thorough: at most a minute, a quarter of an hour, two hours of load; soak: "
                "twelve hours.")
      .custom(
          "groups", false,
          listOf(choice({"host", "gpu", "rdma", "gdr", "system", "disk", "dcgm", "nccl-tests",
                         "nccl-loopback", "nvidia-smi", "amd-smi", "gds", "bmc"}),
                 1),
          "Which groups of checks.",
          [](Gate& gate, const Value& value, const Shape& shape, Reader& reader) {
            if (!expectList(value, shape, reader)) return;
            for (const Value& item : value.items)
              if (auto index = readChoice(item, *shape.item, reader)) {
                std::string group(shape.item->choices[*index]);
                if (std::find(gate.groups.begin(), gate.groups.end(), group) != gate.groups.end())
                  reader.error(item, fmt::format("\"{}\" is listed twice", group), "remove one");
                gate.groups.push_back(std::move(group));
              }
          })
      .prints([](const Gate& gate, const Printer&) -> Json { return gate.groups; })
      .defaultIs(R"(["host","gpu","rdma"])")
      .optional("isolate", &Gate::isolate, boolean(),
                "Whether the finding of a failed pair test asks for `muster validate isolate`, "
                "which names the node, NIC, cable or switch.")
      .optional("checks", &Gate::checks,
                mapOf(mapOf(text(kCheckValue), kCheckParameter), kCheckName),
                "Parameters of checks, instead of what level and profile say: rdma.pair: "
                "{min_gbits: 380}. `muster validate checks` lists them.")
      .printsAlways({"level", "groups", "isolate"})
      .check([](Gate& gate, const Value& map, Reader& reader) {
        gate.where = reader.at(map);
        if (gate.groups.empty()) gate.groups = {"host", "gpu", "rdma"};
      })
      .spec();
}
MUSTER_SPEC(gateSpec)

ObjectSpec make_partSpec() {
  return Table<PartRule>("part", "part", "Parts of one kind and model that must be there.")
      .required("kind", &PartRule::kind, choice({"dimm", "nvme", "nic", "gpu"}),
                "What kind of part.")
      .optional("model", &PartRule::model, text(kText),
                "Glob of its model, upper and lower case alike; absent: all parts of the kind.")
      .optional("count", &PartRule::count, integer(0, 1024),
                "How many there are, exactly; absent: at least one.")
      .optional("size_gib", &PartRule::size_gib, integer(1, 1 << 20),
                "Of each DIMM exactly, of each NVMe disk at least.")
      .optional("firmware", &PartRule::firmware, text(kGlob),
                "Glob of the firmware that each of them runs.")
      .printsAlways({"model", "firmware"})
      .check([](PartRule& part, const Value& map, Reader& reader) {
        if (part.size_gib && part.kind != PartKind::Dimm && part.kind != PartKind::Nvme)
          reader.error(place(map, "size_gib"), "only DIMMs and NVMe disks have a size",
                       "remove it");
        if (!part.firmware.empty() && part.kind == PartKind::Dimm)
          reader.error(place(map, "firmware"), "a DIMM has no firmware", "remove it");
      })
      .spec();
}
MUSTER_SPEC(partSpec)

ObjectSpec make_expectSpec() {
  return Table<Expectation>("expect", "expect", "What the hardware must have. Less is a finding.")
      .optional("gpus", &Expectation::gpus, integer(0, 1024), "Number of GPUs, exactly.")
      .optional("gpu_model", &Expectation::gpu_model, text(kText),
                "Whole words of the model's name as NVML gives it: `H20` is no `NVIDIA H200`.")
      .optional("nics", &Expectation::nics, integer(0, 1024), "Number of RDMA NICs, exactly.")
      .optional("memory_gib_min", &Expectation::memory_gib_min, integer(1, 1 << 20),
                "Memory in GiB, at least.")
      .optional("cpus_min", &Expectation::cpus_min, integer(1, 1 << 16), "Logical CPUs, at least.")
      .optional("parts", &Expectation::parts, listOf(object(partSpec)),
                "DIMMs, NVMe disks, NICs, GPUs: count, size, model, firmware.")
      .spec();
}
MUSTER_SPEC(expectSpec)

constexpr TextFormat kStorageName{"a name of at most 20 lower-case letters, digits and '-'",
                                  "^[a-z0-9][a-z0-9-]{0,19}$", "scratch"};

/// The content counts, not the path: who changes the file has changed the declaration.
void readUserData(Profile& profile, const Value& value, const Shape& shape, Reader& reader) {
  std::filesystem::path path;
  const std::size_t errors = reader.errors;
  readInto(path, value, shape, reader);
  if (reader.errors != errors) return;
  auto content = io::readRegularFile(path, kMaxUserDataBytes).value_or("");
  if (content.empty() || content.size() > kMaxUserDataBytes)
    return reader.error(value,
                        fmt::format("{} cannot be read, is empty or has more than {} KiB",
                                    path.string(), kMaxUserDataBytes >> 10),
                        "name a file with user data");
  if (const auto kind = checkUserData(content); !kind)
    return reader.error(value, fmt::format("{}: {}", path.string(), kind.error().text()),
                        "see docs/images.md");
  profile.user_data = std::move(content);
}

void checkProfile(Profile& profile, const Value& map, Reader& reader) {
  if (!profile.pool.empty() && profile.gates.empty())
    reader.warning(
        place(map, "pool"),
        fmt::format("nodes of profile {} join a pool without passing any gate", profile.name),
        "add gates: […]");
  if (profile.arch == Architecture::Arm64 && profile.boot == BootMode::Bios)
    reader.error(place(map, "boot"), "machines with arm64 have UEFI firmware, no BIOS",
                 "write boot: uefi, or remove it");
  if (profile.boot_source == BootSource::VirtualMedia && profile.boot == BootMode::Bios)
    reader.error(place(map, "boot_source"), "muster's boot medium needs UEFI firmware",
                 "write boot: uefi, or boot_source: pxe");
  if (profile.secure_boot && profile.boot == BootMode::Bios)
    reader.error(place(map, "secure_boot"), "only UEFI firmware has Secure Boot",
                 "write boot: uefi, or remove secure_boot");
  for (const char* key : {"drivers", "gates", "mounts"}) {
    std::set<std::string> seen;
    for (const Value& item : place(map, key).items)
      if (!seen.insert(item.text).second)
        reader.error(item, fmt::format("\"{}\" is listed twice", shorten(item.text)), "remove one");
  }
}

/// Which of several is the compute fabric is known when all are read (rules/fabric_rules.cc).
void readFabrics(Profile& profile, const Value& value, const Shape& shape, Reader& reader) {
  if (value.kind != Value::Kind::List) return readInto(profile.fabric, value, shape, reader);
  if (value.items.empty())
    return reader.error(value, "an empty list of fabrics", "name one, or remove the key");
  std::map<std::string, const Value*> seen;
  for (const Value& item : value.items) {
    const auto name = readText(item, shape, reader);
    if (!name) continue;
    if (const auto [first, fresh] = seen.emplace(*name, &item); !fresh)
      reader.error(item, fmt::format("the fabric {} is listed twice", shorten(*name)),
                   "remove one");
  }
  for (const auto& [name, where] : seen)
    profile.fabric.empty() ? void(profile.fabric = name) : profile.other_fabrics.push_back(name);
}

ObjectSpec make_profileSpec() {
  return Table<Profile>("profile", "profile", "What a kind of node should be.")
      .optional("arch", &Profile::arch, choice({"amd64", "arm64"}),
                "Its processor; arm64 boots from the network by shim and GRUB, docs/netboot.md.")
      .optional("expect", &Profile::expect, object(expectSpec), "Its hardware.")
      .custom("extends", false, text(kEntryName),
              "Another profile, whose keys it has where it says nothing itself; a key that it has "
              "replaces the other's whole.",
              [](Profile&, const Value& value, const Shape& shape, Reader& reader) {
                std::string ignored;  // merged before it was read: parse/merge.h
                readInto(ignored, value, shape, reader);
              })
      .required("image", &Profile::image, reference("images"), "Its system.")
      .optional("drivers", &Profile::drivers, listOf(reference("drivers")),
                "Its drivers, in the order of installing.")
      .optional(
          "bios", &Profile::bios, mapOf(text(kText), kBiosAttribute),
          "BIOS attributes, as the BMC spells them; staged, applied by a restart, read again.")
      .optional("firmware", &Profile::firmware, reference("firmware"),
                "Its firmware baseline; absent: firmware is left alone.")
      .custom("fabric", false, referenceOrList("fabric"),
              "The fabric that it is cabled to, or several, exactly one of which is a compute "
              "fabric (`purpose`); absent: none.",
              readFabrics)
      .prints([](const Profile& profile, const Printer&) -> Json {
        if (profile.other_fabrics.empty()) return profile.fabric;
        return fabricsOf(profile);
      })
      .optional("rails", &Profile::rails, listOf(object(railSpec)),
                "Its HCAs on its fabrics, rail after rail; absent: mlx5_0, mlx5_1, … on the only "
                "one.")
      .optional("gates", &Profile::gates, listOf(reference("gates")),
                "The gates that it must pass, in order.")
      .optional("pool", &Profile::pool, reference("pools"),
                "The pool that it works in; absent: none.")
      .optional("bmc_credential", &Profile::bmc_credential, reference("credentials"),
                "The account of its BMC, where the node names no other.")
      .custom("bmc_pin", false, text(kFingerprint),
              "SHA-256 of the TLS certificate that its BMC shows, where the node says nothing: no "
              "other one gets the password.",
              [](Profile& profile, const Value& value, const Shape& shape, Reader& reader) {
                readBmcPin(*profile.bmc_trust, value, shape, reader);
              })
      .prints([](const Profile& profile, const Printer&) -> Json { return profile.bmc_trust->pin; })
      .custom("bmc_ca", false, text(kPath),
              "Or a PEM file of the root CA that its BMC's certificate must lead to, with the "
              "BMC's name or address in it; docs/bmc.md.",
              [](Profile& profile, const Value& value, const Shape& shape, Reader& reader) {
                readBmcCa(*profile.bmc_trust, value, shape, reader);
              })
      .prints([](const Profile& profile, const Printer&) -> Json {
        return profile.bmc_trust->ca_pem;  // the content counts, not the path
      })
      .optional("boot", &Profile::boot, choice({"bios", "uefi"}), "How its firmware boots.")
      .optional("boot_source", &Profile::boot_source, choice({"pxe", "virtual-media"}),
                "What the RAM OS is started from. pxe: the network, by PXE or UEFI HTTP boot. "
                "virtual-media: an image that its BMC reads from the controller and shows as a "
                "drive, where networks let nothing boot; docs/netboot.md.")
      .optional("secure_boot", &Profile::secure_boot, boolean(),
                "Whether its firmware checks signatures (UEFI Secure Boot): it boots by Debian's "
                "signed shim, GRUB and kernel; docs/netboot.md.")
      .optional("kernel_args", &Profile::kernel_args, listOf(text(kKernelArgument)),
                "Arguments of its kernel, in the RAM OS and installed.")
      .optional("network", &Profile::network, object(nodeNetworkSpec),
                "The whole network of its installed system; absent: the NIC that boots, with its "
                "provisioning address.")
      .optional("mounts", &Profile::mounts, listOf(reference("file_systems")),
                "The file systems that it mounts.")
      .optional("disk", &Profile::disk, text(kDisk),
                "The system disk: serial:…, wwn:…, smallest or size:LOW-HIGH. Absent: the only "
                "disk; several are refused.")
      .optional("root", &Profile::root, object(rootLayoutSpec),
                "How the system disk is made, where it is more than a partition of one disk.")
      .optional("storage", &Profile::storage, mapOf(object(storageSetSpec), kStorageName),
                "Its other disks, by name.")
      .optional("raid", &Profile::raid, object(hardwareRaidSpec),
                "What its RAID controllers show; absent: they are left as they are.")
      .custom("user_data", false, text(kPath),
              "A file for cloud-init (NoCloud) or Ignition, which the image must then have; "
              "${muster.hostname} and the like become the node's.",
              readUserData)
      .prints([](const Profile& profile, const Printer&) -> Json { return profile.user_data; })
      .optional(
          "console", &Profile::console, object(consoleSpec),
          "Its serial console; absent: that of the libvirt domain where its BMC is one, else none.")
      .optional("ipmi", &Profile::ipmi, object(ipmiSpec),
                "IPMI beside Redfish; absent: it is never used.")
      .optional("pdu", &Profile::pdu, object(pduSpec),
                "Who switches its outlets; absent: nobody but the BMC itself.")
      .optional("bmc_certificate", &Profile::bmc_certificate, object(bmcCertificateSpec),
                "Who signs its BMC's certificate; absent: this controller's own CA.")
      .optional("tpm", &Profile::tpm, object(tpmSpec),
                "What its TPM must prove; absent: no machine is asked.")
      .optional("power_watts", &Profile::power_watts, integer(1, kMaxNodeWatts),
                "Watts that a node draws under full load; absent: estimated from its GPUs, on the "
                "high side.")
      .printsAlways({"expect", "drivers", "firmware", "gates", "pool", "fabric", "bmc_credential",
                     "boot", "kernel_args", "disk"})
      .check(checkProfile)
      .spec();
}
MUSTER_SPEC(profileSpec)

// ---- the rest, and the whole

ObjectSpec make_labSpec() {
  return Table<LabSpec>("lab", "lab", "What the virtual twin gives each node.")
      .optional("memory_mib", &LabSpec::memory_mib, integer(256, 1 << 20), "Memory in MiB.")
      .optional("vcpus", &LabSpec::vcpus, integer(1, 512), "Virtual CPUs.")
      .optional("disk_gib", &LabSpec::disk_gib, integer(1, 1 << 16), "System disk in GiB.")
      .optional("gpus", &LabSpec::gpus, integer(0, 64), "Simulated GPUs.")
      .optional("gpu_model", &LabSpec::gpu_model, text(kText), "Their name.")
      .optional("bmc", &LabSpec::bmc, text(kEntryName),
                "Whose BMC the virtual ones play: muster, idrac, idrac-before-multipart, ilo, "
                "supermicro, dgx-h100, gb200, openbmc, simple-update.")
      .printsAlways({"memory_mib", "vcpus", "disk_gib", "gpus", "gpu_model"})
      .spec();
}
MUSTER_SPEC(labSpec)

ObjectSpec make_limitsSpec() {
  return Table<Limits>(
             "limits", "limits",
             "Ceilings of what is under way at once, in the whole cluster. Below them the number "
             "is found by trying; say one "
             "only where something outside (power, a boot server, a BMC network) bears no more.")
      .optional("bmc_requests", &Limits::bmc_requests, integer(1, kMaxAtOnce),
                "Requests to all BMCs together; 1024 where nothing is said.")
      .optional("uploads", &Limits::uploads, integer(1, kMaxAtOnce),
                "Firmware files on their way to BMCs; 128.")
      .optional("imagings", &Limits::imagings, integer(1, kMaxAtOnce),
                "Disks being written; 16384.")
      .optional("restarts", &Limits::restarts, integer(1, kMaxAtOnce),
                "Machines that go down and come up again; 16384.")
      .optional("max_unavailable", &Limits::max_unavailable, object(unavailabilitySpec),
                "How many nodes of a pool, rack, scalable unit or leaf switch one `muster apply` "
                "may take out of work; it refuses more, which is for `muster rollout`.")
      .optional(
          "per_run", &Limits::per_run, integer(1, kMaxAtOnce),
          "Nodes that one run may take out of work altogether, wherever they are, all waves of a "
          "rollout together; absent: no such limit.")
      .spec();
}
MUSTER_SPEC(limitsSpec)

void checkRack(Rack& rack, const Value& map, Reader& reader) {
  if (rack.cooling_watts && *rack.cooling_watts > rack.power_watts)
    reader.warning(place(map, "cooling_watts"), "more can be cooled away than the rack may draw",
                   "the smaller of the two counts");
}

ObjectSpec make_rackSpec() {
  return Table<Rack>("rack", "rack",
                     "A rack, by the name that nodes give. Load of nodes together stays within "
                     "what it may draw (`muster validate run`).")
      .required("power_watts", &Rack::power_watts, integer(1, kMaxRackWatts),
                "Watts that its nodes may draw together.")
      .optional("cooling_watts", &Rack::cooling_watts, integer(1, kMaxRackWatts),
                "Watts that can be cooled away; absent: as many as it may draw.")
      .check(checkRack)
      .spec();
}
MUSTER_SPEC(rackSpec)

ObjectSpec make_partPolicySpec() {
  const auto change = choice({"all-gates", "quick-gates", "nothing"});
  return Table<PartPolicy>("part-policy", "parts",
                           "What a node must pass again when parts of a kind were changed. "
                           "all-gates: every gate of its profile; quick-gates: those of level "
                           "quick, or every gate where there is none; nothing: a certificate is "
                           "not bound to them.")
      .optional("hca", &PartPolicy::hca, change, "RDMA adapters, by the serial of the board.")
      .optional("dimm", &PartPolicy::dimm, change, "Memory modules, by slot and serial.")
      .optional("nvswitch", &PartPolicy::nvswitch, change, "NVSwitches, by UUID.")
      .optional("nvme", &PartPolicy::nvme, change, "NVMe disks, by serial.")
      .optional("bmc", &PartPolicy::bmc, change, "The BMC, by the GUID that IPMI says.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(partPolicySpec)

ObjectSpec make_certificatesSpec() {
  return Table<CertificatePolicy>("certificates", "certificates",
                                  "How long a node's certificate is good for.")
      .optional("lifetime_hours", &CertificatePolicy::lifetime, integer(1, kMaxLifetimeHours),
                "Hours; then the gates must be passed again.")
      .optional("may_override", &CertificatePolicy::may_override, listOf(text(kUserName)),
                "Users who may give a node a certificate by their word, for three days at most "
                "(`muster cert override`); absent: nobody.")
      .optional("parts", &CertificatePolicy::parts, object(partPolicySpec),
                "What a change of parts asks for; docs/certificates.md.")
      .printsAlways({"lifetime_hours"})
      .spec();
}
MUSTER_SPEC(certificatesSpec)

ObjectSpec make_nameSpec() {
  return Table<Cluster>("cluster-name", "cluster", "The cluster.")
      .required("name", &Cluster::name, text(kClusterName), "Its name.")
      .optional("bmc_trust", &Cluster::bmc_trust, choice({"first-contact", "declared"}),
                "Which BMCs get a password. declared: only those whose certificate the inventory "
                "declares (bmc_pin, bmc_ca). first-contact: the others too; what they show first "
                "is pinned.")
      .spec();
}
MUSTER_SPEC(nameSpec)

using FileTable = Table<Declaration, Cluster>;

/// A key of the file that fills one member of the Cluster.
template <class M>
void section(FileTable& table, std::string_view key, bool required, Shape shape,
             std::string_view doc, M Cluster::* member) {
  table.custom(key, required, std::move(shape), doc,
               [member](Declaration& all, const Value& value, const Shape& inner, Reader& reader) {
                 readInto(all.cluster.*member, value, inner, reader);
               });
  table.prints(member);
}

ObjectSpec make_clusterSpec() {
  FileTable table("inventory", "inventory", "A cluster, as it should be.");
  table.custom("cluster", true, object(nameSpec), "Which cluster this is.",
               [](Declaration& all, const Value& value, const Shape& shape, Reader& reader) {
                 readObject(&all.cluster, value, *shape.object(), reader);
               });
  table.custom("include", false, listOf(text(kPath)),
               "Files with more of this inventory, relative to its folder: their sections are "
               "joined with those here.",
               [](Declaration&, const Value&, const Shape&, Reader&) {});
  table.derives([](const Cluster& cluster, Json& out, const Printer& printer) {
    out.update(printObject(&cluster, *nameSpec(), printer));  // without a level of their own
  });
  section(table, "networks", true, mapOf(object(networkSpec), kEntryName, {"provisioning"}),
          "The networks, by name.", &Cluster::networks);
  section(table, "credentials", false, mapOf(object(credentialSpec), kEntryName),
          "Accounts, by name.", &Cluster::credentials);
  section(table, "images", false, mapOf(object(imageSpec), kEntryName), "Systems, by name.",
          &Cluster::images);
  section(table, "ram_os", false, object(ramOsSpec),
          "What the system has that machines boot from the network while they are imaged.",
          &Cluster::ram_os);
  section(table, "drivers", false, mapOf(object(driverSpec), kEntryName), "Drivers, by name.",
          &Cluster::drivers);
  section(table, "firmware", false, mapOf(object(baselineSpec), kEntryName),
          "Firmware baselines, by name.", &Cluster::firmware);
  section(table, "fabric", false, mapOf(object(fabricSpec), kEntryName), "Fabrics, by name.",
          &Cluster::fabrics);
  section(table, "gates", false, mapOf(object(gateSpec), kEntryName), "Gates, by name.",
          &Cluster::gates);
  section(table, "pools", false, mapOf(object(poolSpec), kEntryName), "Pools, by name.",
          &Cluster::pools);
  section(table, "profiles", true, mapOf(object(profileSpec), kEntryName),
          "Kinds of nodes, by name.", &Cluster::profiles);
  section(table, "file_systems", false, mapOf(object(fileSystemSpec), kEntryName),
          "File systems that nodes mount, by name.", &Cluster::file_systems);
  section(table, "discovery", false, object(discoverySpec), "Machines that are not declared yet.",
          &Cluster::discovery);
  table.custom("nodes", false, listOf(object(nodeGroupSpec)), "The nodes.",
               [](Declaration& all, const Value& value, const Shape& shape, Reader& reader) {
                 if (!expectList(value, shape, reader)) return;
                 for (const Value& item : value.items) {
                   NodeGroup group;
                   group.good = readObject(&group, item, *nodeGroupSpec(), reader);
                   group.value = &item;
                   group.where = reader.at(place(item, "names"));
                   all.groups.push_back(std::move(group));
                 }
               });
  table.prints([](const Cluster& cluster, const Printer& printer) -> Json {
    auto nodes = Json::array();
    for (const Node& node : cluster.nodes)
      nodes.push_back(printObject(&node, *nodeRowSpec(), printer));
    return nodes;
  });
  section(table, "certificates", false, object(certificatesSpec), "Certificates.",
          &Cluster::certificates);
  section(table, "monitor", false, object(monitorSpec), "The long-running controller.",
          &Cluster::monitor);
  section(table, "notifications", false, mapOf(object(notificationSpec), kEntryName),
          "Who outside is told what happens, by name.", &Cluster::notifications);
  section(table, "limits", false, object(limitsSpec), "How much at once.", &Cluster::limits);
  section(table, "approvals", false, listOf(object(approvalSpec), 1),
          "Who must agree to a run besides its author.", &Cluster::approvals);
  section(table, "racks", false, mapOf(object(rackSpec), kText), "What racks may draw, by name.",
          &Cluster::racks);
  section(table, "lab", false, object(labSpec), "The virtual twin.", &Cluster::lab);
  table.printsAlways({"credentials", "images", "drivers", "firmware", "fabric", "gates", "pools",
                      "nodes", "certificates", "monitor", "lab"});
  return table.spec();
}

}  // namespace

MUSTER_SPEC(clusterSpec)

}  // namespace muster::inventory
