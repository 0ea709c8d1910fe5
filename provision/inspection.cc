// SPDX-License-Identifier: Apache-2.0
#include "provision/inspection.h"

#include "base/io/crypto.h"
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/disk_layout.h"
#include "inventory/model/hardware.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "wire/disk_rule.h"
#include "wire/task_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

using wire::Disk;
using wire::Gpu;
using wire::Hardware;

namespace {

constexpr std::chrono::seconds kLldpLimit{32};  ///< switches send every 30 s
constexpr double kGib = 1024.0 * 1024 * 1024;
/// The kernel reports what firmware and its own image leave over.
constexpr double kUsableMemory = 0.93;
/// Makers of machines that have no GPU on a PCI bus although their profile expects some: muster's
/// own twin. On any other machine an empty bus is a fault.
constexpr std::string_view kTwinMakers[] = {"muster", "QEMU"};

bool isTwin(const Hardware& hardware) {
  return std::ranges::find(kTwinMakers, hardware.manufacturer) != std::end(kTwinMakers);
}

/// NVML knows a UUID; what is only seen on the bus has none.
bool isNamed(const Gpu& gpu) { return !gpu.uuid.empty() || !gpu.serial.empty(); }

void evaluateGpus(const inventory::Expectation& expect, const Hardware& hardware, Inspection& out) {
  const auto seen = static_cast<int>(hardware.gpus.size());
  const bool named = seen > 0 && std::ranges::all_of(hardware.gpus, isNamed);
  if (expect.gpus && seen == 0 && *expect.gpus > 0 && isTwin(hardware)) {
    out.notes.push_back(
        fmt::format("{} GPUs are expected, and none can be seen without the driver on a virtual "
                    "machine: the gates count them",
                    *expect.gpus));
  } else if (expect.gpus && seen != *expect.gpus) {
    nlohmann::json places = nlohmann::json::array();
    for (const auto& gpu : hardware.gpus) places.push_back(gpu.pci.empty() ? gpu.uuid : gpu.pci);
    out.mismatches.push_back({fmt::format("{} GPUs seen, {} expected", seen, *expect.gpus),
                              jsonText(nlohmann::json{{"expected", *expect.gpus},
                                                      {"seen", seen},
                                                      {"by", named ? "NVML" : "PCI"},
                                                      {"at", places}}),
                              "compare the places with a healthy machine of this kind; reseat or "
                              "replace the missing GPU or its riser"});
  }
  if (expect.gpu_model.empty() || seen == 0) return;
  if (!named) {
    out.notes.push_back(
        fmt::format("the GPU model \"{}\" is checked by the gates when the driver is installed",
                    expect.gpu_model));
    return;
  }
  for (const auto& gpu : hardware.gpus) {
    if (gpu.model.find(expect.gpu_model) != std::string::npos) continue;
    out.mismatches.push_back(
        {fmt::format("GPU {} is a \"{}\", expected is a \"{}\"", gpu.uuid, gpu.model,
                     expect.gpu_model),
         jsonText(
             nlohmann::json{{"expected", expect.gpu_model}, {"seen", gpu.model}, {"pci", gpu.pci}}),
         "replace the GPU, or give the node a profile of its own"});
  }
}

void evaluateAmount(std::string_view what, std::optional<double> wanted, double seen,
                    Inspection& out, std::string_view advice) {
  if (!wanted || seen >= *wanted) return;
  out.mismatches.push_back(
      {fmt::format("{:.4g} {} seen, at least {:.4g} expected", seen, what, *wanted),
       jsonText(nlohmann::json{{"expected", *wanted}, {"seen", seen}}), std::string(advice)});
}

/// RDMA NICs are counted exactly, as GPUs are. Without their driver (the RAM OS, the first boot)
/// none shows itself; then the gates count.
void evaluateRdmaNics(const inventory::Expectation& expect, const Hardware& hardware,
                      Inspection& out) {
  if (!expect.nics) return;
  const auto seen = static_cast<int>(hardware.rdma_devices.size());
  if (seen == 0 && *expect.nics > 0) {
    out.notes.push_back(fmt::format(
        "{} RDMA NICs are expected, and none can be seen without its driver: the gates count them",
        *expect.nics));
  } else if (seen != *expect.nics) {
    out.mismatches.push_back(
        {fmt::format("{} RDMA NICs seen, {} expected", seen, *expect.nics),
         jsonText(nlohmann::json{{"expected", *expect.nics}, {"seen", hardware.rdma_devices}}),
         "compare the devices with a healthy machine of this kind; reseat or replace the missing "
         "NIC, or correct the profile"});
  }
}

void evaluateArchitecture(const inventory::Profile& profile, const Hardware& hardware,
                          Inspection& out) {
  const std::string wanted = traitsOf(profile.arch).name;
  if (hardware.arch.empty() || hardware.arch == wanted) return;
  out.mismatches.push_back(
      {fmt::format("its processor is {}, profile {} is of {}", hardware.arch, profile.name, wanted),
       jsonText(nlohmann::json{{"expected", wanted}, {"seen", hardware.arch}}),
       "give the node a profile of its processor (arch), with an image for it"});
}

void evaluateIdentity(const inventory::Node& node, const Hardware& hardware, Inspection& out) {
  if (!node.serial.empty() && hardware.serial != node.serial) {
    out.mismatches.push_back(
        {fmt::format("its serial is \"{}\", the inventory says \"{}\"", hardware.serial,
                     node.serial),
         jsonText(nlohmann::json{{"expected", node.serial}, {"seen", hardware.serial}}),
         "find out whether machines were swapped in the rack, then correct the inventory or the "
         "rack"});
  }
  const auto has_mac = [&](const wire::Nic& nic) {
    const auto mac = Mac::parse(nic.mac);
    return mac && *mac == node.mac;
  };
  if (std::ranges::none_of(hardware.nics, has_mac)) {
    nlohmann::json seen = nlohmann::json::array();
    for (const auto& nic : hardware.nics) seen.push_back(nic.mac);
    out.mismatches.push_back(
        {"no NIC has the provisioning MAC " + node.mac.str(),
         jsonText(nlohmann::json{{"expected", node.mac.str()}, {"seen", seen}}),
         "correct the MAC in the inventory"});
  }
}

void evaluateDisk(const inventory::Profile& profile, const Hardware& hardware, Inspection& out) {
  if (profile.image.empty()) return;
  const auto disks = systemDisks(profile, hardware);
  const std::size_t wanted = profile.root ? static_cast<std::size_t>(profile.root->count) : 1;
  if (disks.size() == wanted) return;
  nlohmann::json seen = nlohmann::json::array();
  for (const auto& disk : hardware.disks)
    seen.push_back({{"path", disk.path},
                    {"serial", disk.serial},
                    {"wwn", disk.wwn},
                    {"size_bytes", disk.size_bytes}});
  const auto text =
      disks.empty() ? fmt::format("no disk fits the rule \"{}\"", profile.disk)
      : wanted > 1
          ? fmt::format("the rule \"{}\" fits {} disks, the system is to lie on {}", profile.disk,
                        disks.size(), wanted)
          : fmt::format(
                "there are {} disks and the profile does not say which one holds the system",
                disks.size());
  out.mismatches.push_back(
      {text, jsonText(seen),
       fmt::format("set disk of profile {} to serial:…, wwn:…, smallest or size:LOW-HIGH",
                   profile.name)});
}

}  // namespace

std::string Inspection::value(const std::string& digest) const {
  if (mismatches.empty()) return "match:" + digest;
  std::string out;
  for (const auto& mismatch : mismatches)
    out += (out.empty() ? "mismatch: " : "; ") + mismatch.text;
  return out;
}

std::string inspectParams(const inventory::Cluster& cluster, const NodeName& name) {
  const auto* node = cluster.findNode(name);
  const bool cabled = node && declaresCabling(*node);
  return toJson(wire::InspectParams{cabled ? kLldpLimit : std::chrono::seconds(0)});
}

/// Of the text of a JSON object, its keys in order. Written as text: goals are asked for at each
/// action of a node, and for every node of a plan.
std::string expectationDigest(const inventory::Node& node, const inventory::Profile& profile) {
  const auto& expect = profile.expect;
  std::string text = "{";
  const auto key = [&text](std::string_view name) {
    if (text.size() > 1) text += ',';
    appendJsonText(text, name);
    text += ':';
  };
  const auto word = [&](std::string_view name, std::string_view value) {
    key(name);
    appendJsonText(text, value);
  };
  const auto number = [&](std::string_view name, std::optional<int> value) {
    if (!value) return;
    key(name);
    text += std::to_string(*value);
  };
  if (profile.arch != Architecture::Amd64) word("arch", traitsOf(profile.arch).name);
  if (!node.switch_name.empty() || !node.switch_port.empty()) {
    key("cable");
    text += jsonText(nlohmann::json::array({node.switch_name, node.switch_port}));
  }
  if (node.links && !node.links->ports.empty()) word("cables", str(node.links->ports));
  number("cpus_min", expect.cpus_min);
  word("disk", profile.disk);
  word("gpu_model", expect.gpu_model);
  number("gpus", expect.gpus);
  word("mac", node.mac.str());
  number("memory_gib_min", expect.memory_gib_min);
  number("nics", expect.nics);
  if (!expect.parts.empty()) {
    auto parts = nlohmann::json::array();
    for (const auto& part : expect.parts)
      parts.push_back({static_cast<int>(part.kind), part.model, part.count.value_or(-1),
                       part.size_gib.value_or(-1), part.firmware});
    key("parts");
    text += jsonText(parts);
  }
  if (profile.root) number("root_disks", static_cast<int>(profile.root->count));
  word("serial", node.serial);
  text += '}';
  return io::sha256Hex(text).substr(0, 16);
}

Inspection inspect(const inventory::Node& node, const inventory::Profile& profile,
                   const Hardware& hardware, InspectionContext context) {
  static const std::vector<inventory::Node> kAlone;
  const auto& nodes = context.nodes ? *context.nodes : kAlone;
  const auto& expect = profile.expect;
  Inspection out;
  evaluateIdentity(node, hardware, out);
  evaluateArchitecture(profile, hardware, out);
  evaluateAmount("CPUs", expect.cpus_min, hardware.cpus, out,
                 "look for a disabled socket or cores in the firmware's setup");
  const auto memory_gib = static_cast<double>(hardware.memory_bytes) / kGib;
  const auto memory_wanted = expect.memory_gib_min
                                 ? std::optional<double>(*expect.memory_gib_min * kUsableMemory)
                                 : std::nullopt;
  evaluateAmount("GiB of memory", memory_wanted, memory_gib, out,
                 "look for a missing or mapped-out DIMM in the BMC's log");
  evaluateRdmaNics(expect, hardware, out);
  evaluateGpus(expect, hardware, out);
  if (!context.diskless) evaluateDisk(profile, hardware, out);
  for (const auto& mismatches :
       {evaluateParts(expect.parts, hardware),
        evaluateCabling(node, hardware, context.listened, nodes),
        evaluateFurtherCabling(node, profile, hardware, context.listened),
        context.identity_index ? evaluateMixUp(node, hardware, *context.identity_index)
                               : std::vector<Mismatch>()})
    out.mismatches.insert(out.mismatches.end(), mismatches.begin(), mismatches.end());
  return out;
}

std::vector<const Disk*> systemDisks(const inventory::Profile& profile, const Hardware& hardware) {
  const auto rule = wire::DiskRule::parse(profile.disk);
  // A rule that cannot be read must not hide what disks hold.
  return (rule ? *rule : wire::DiskRule()).fitting(hardware.disks);
}

std::string diskContent(const inventory::Profile& profile, const Hardware& hardware) {
  std::string held;
  for (const auto* disk : systemDisks(profile, hardware)) {
    if (disk->use == wire::DiskUse::Empty) continue;
    const bool unknown = disk->use == wire::DiskUse::Unknown;
    held += fmt::format("{}{}: {}{}{}", held.empty() ? "" : ", ", disk->path,
                        unknown ? "not known (an older agent says: " : "", disk->content,
                        unknown ? ")" : "");
  }
  return held.empty() ? "none" : held;
}

std::map<std::string, std::string> hardwareFacts(const inventory::Node& node,
                                                 const inventory::Profile& profile,
                                                 const Hardware& hardware) {
  std::map<std::string, std::string> facts;
  if (!hardware.serial.empty()) facts["hw.serial"] = hardware.serial;
  for (const auto& nic : hardware.nics) {
    if (const auto mac = Mac::parse(nic.mac); mac && *mac == node.mac) facts["hw.mac"] = mac->str();
  }
  int index = 0;
  for (const auto& gpu : hardware.gpus) {
    if (isNamed(gpu))
      facts[fmt::format("hw.gpu.{}", index++)] = gpu.serial.empty() ? gpu.uuid : gpu.serial;
  }
  // A GPU that is gone must not live on as an old fact. Without NVML nothing is known, and nothing
  // is said.
  if (index > 0) {
    for (; index < profile.expect.gpus.value_or(0); ++index)
      facts[fmt::format("hw.gpu.{}", index)] = "absent";
  }
  facts.merge(partFacts(hardware));
  return facts;
}

}  // namespace muster::provision
