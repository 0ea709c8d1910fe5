// SPDX-License-Identifier: Apache-2.0
#include "inventory/schema/json.h"

#include "base/json_output.h"
#include "inventory/inventory.h"

#include <nlohmann/json.hpp>

#include <array>

namespace muster::inventory {

namespace {

using nlohmann::json;

constexpr int kIndent = 2;

std::string_view word(DhcpMode mode) {
  switch (mode) {
    case DhcpMode::Authoritative:
      return "authoritative";
    case DhcpMode::Proxy:
      return "proxy";
    case DhcpMode::Relay:
      return "relay";
    case DhcpMode::None:
      return "none";
  }
  return "none";
}
std::string_view word(GateLevel level) {
  switch (level) {
    case GateLevel::Quick:
      return "quick";
    case GateLevel::Medium:
      return "medium";
    case GateLevel::Long:
      return "long";
    case GateLevel::Soak:
      return "soak";
  }
  return "long";
}

std::string_view word(FragilePods rule) { return rule == FragilePods::Hold ? "hold" : "evict"; }

std::string_view word(OnTimeout what) {
  switch (what) {
    case OnTimeout::Wait:
      return "wait";
    case OnTimeout::Undrain:
      return "undrain";
    case OnTimeout::DeletePods:
      break;
  }
  return "delete-pods";
}

std::string_view word(HealthAction action) {
  constexpr std::array<std::string_view, kHealthActions> kWords = {"watch",  "drain",      "reset",
                                                                   "reboot", "quarantine", "rma"};
  return kWords.at(static_cast<std::size_t>(action));
}

std::string_view word(Rung rung) {
  constexpr std::array<std::string_view, 6> kWords = {"retry",       "new-session", "bmc-reset",
                                                      "power-cycle", "ac-cycle",    "quarantine"};
  return kWords.at(static_cast<std::size_t>(rung));
}

json partJson(const PartRule& part) {
  constexpr std::array<std::string_view, 4> kKinds = {"dimm", "nvme", "nic", "gpu"};
  json out = {{"kind", kKinds.at(static_cast<std::size_t>(part.kind))},
              {"model", part.model},
              {"firmware", part.firmware}};
  if (part.count) out["count"] = *part.count;
  if (part.size_gib) out["size_gib"] = *part.size_gib;
  return out;
}

class Writer {
 public:
  explicit Writer(const Cluster& cluster) : cluster_(cluster) {}

  json all() const {
    json out = {{"name", cluster_.name},
                {"certificates", {{"lifetime_hours", cluster_.certificates.lifetime.count()}}}};
    if (cluster_.bmc_trust == BmcTrustPolicy::Declared) out["bmc_trust"] = word(cluster_.bmc_trust);
    for (const char* section : {"networks", "credentials", "images", "drivers", "firmware",
                                "fabric", "gates", "pools", "profiles"})
      out[section] = json::object();
    for (const auto& network : cluster_.networks) out["networks"][network.name] = write(network);
    for (const auto& [name, credential] : cluster_.credentials) {
      out["credentials"][name] = {{"username", credential.username},
                                  {"password", write(credential.password)}};
      if (credential.rotate_to.declared())
        out["credentials"][name]["rotate_to"] = write(credential.rotate_to);
    }
    for (const auto& [name, image] : cluster_.images) out["images"][name] = write(image);
    for (const auto& [name, driver] : cluster_.drivers) out["drivers"][name] = write(driver);
    for (const auto& [name, baseline] : cluster_.firmware) out["firmware"][name] = write(baseline);
    for (const auto& [name, fabric] : cluster_.fabrics) out["fabric"][name] = fabricJson(fabric);
    for (const auto& [name, gate] : cluster_.gates) {
      out["gates"][name] = {
          {"level", word(gate.level)}, {"groups", gate.groups}, {"isolate", gate.isolate}};
      if (!gate.checks.empty()) out["gates"][name]["checks"] = gate.checks;
    }
    for (const auto& [name, pool] : cluster_.pools) out["pools"][name] = write(pool);
    for (const auto& [name, profile] : cluster_.profiles) out["profiles"][name] = write(profile);
    out["monitor"] = write(cluster_.monitor);
    if (const auto limits = write(cluster_.limits); !limits.empty()) out["limits"] = limits;
    if (!cluster_.certificates.may_override.empty())
      out["certificates"]["may_override"] = cluster_.certificates.may_override;
    for (const auto& [name, rack] : cluster_.racks) {
      out["racks"][name] = {{"power_watts", rack.power_watts}};
      if (rack.cooling_watts) out["racks"][name]["cooling_watts"] = *rack.cooling_watts;
    }
    for (const auto& [name, system] : cluster_.file_systems)
      out["file_systems"][name] = write(system);
    if (const auto& found = cluster_.discovery;
        !found.ranges.empty() || !found.credentials.empty() || !found.rules.empty())
      out["discovery"] = write(found);
    const LabSpec& lab = cluster_.lab;
    out["lab"] = {{"memory_mib", lab.memory_mib},
                  {"vcpus", lab.vcpus},
                  {"disk_gib", lab.disk_gib},
                  {"gpus", lab.gpus},
                  {"gpu_model", lab.gpu_model}};
    if (lab.bmc != LabSpec{}.bmc) out["lab"]["bmc"] = lab.bmc;
    json nodes = json::array();
    for (const Node& node : cluster_.nodes) nodes.push_back(write(node));
    out["nodes"] = std::move(nodes);
    return out;
  }

 private:
  /// As seen from the inventory's folder when inside it, so that a copy of the folder has the same
  /// digest.
  std::string path(const std::filesystem::path& value) const {
    if (value.empty() || cluster_.folder.empty()) return value.string();
    std::string inside = value.lexically_relative(cluster_.folder).string();
    return inside.empty() || inside.starts_with("..") ? value.string() : inside;
  }

  static json write(const Network& network) {
    json out = {{"cidr", network.cidr.str()},
                {"controller", network.controller.str()},
                {"dhcp", {{"mode", word(network.dhcp_mode)}}},
                {"dns", json::array()}};
    if (!network.controllers
             .empty()) {  // the same on every host: `controller` is the one of this host
      out.erase("controller");
      for (const Ipv4 controller : network.controllers)
        out["controllers"].push_back(controller.str());
    }
    if (network.dhcp_range)
      out["dhcp"]["range"] =
          network.dhcp_range->first.str() + "-" + network.dhcp_range->second.str();
    if (network.gateway) out["gateway"] = network.gateway->str();
    for (Ipv4 server : network.dns) out["dns"].push_back(server.str());
    if (!network.image_mirrors.empty()) out["image_mirrors"] = network.image_mirrors;
    if (network.image_peers) out["image_peers"] = true;
    for (const auto& server : network.boot_servers)
      out["boot_servers"][server.name] = write(server);
    for (const auto& subnet : network.subnets) out["subnets"][subnet.name] = write(subnet);
    return out;
  }

  static json write(const BootServer& server) {
    json out = {{"racks", server.racks}, {"http", server.http}};
    if (server.tftp) out["tftp"] = server.tftp->str();
    return out;
  }

  static json write(const Subnet& subnet) {
    json out = {{"cidr", subnet.cidr.str()},
                {"gateway", subnet.gateway.str()},
                {"boot_server", subnet.boot_server},
                {"racks", subnet.racks},
                {"dns", json::array()},
                {"image_mirrors", subnet.image_mirrors}};
    if (subnet.dhcp_range)
      out["range"] = subnet.dhcp_range->first.str() + "-" + subnet.dhcp_range->second.str();
    for (Ipv4 server : subnet.dns) out["dns"].push_back(server.str());
    return out;
  }

  /// Says where the secret comes from; of a command only the program, for its arguments may hold
  /// anything.
  json write(const SecretRef& secret) const {
    if (!secret.env.empty()) return {{"env", secret.env}};
    if (const auto* file = std::get_if<std::filesystem::path>(&secret.source))
      return {{"file", path(*file)}};
    if (const auto* line = std::get_if<std::string>(&secret.source))
      return {{"command", line->substr(0, line->find(' '))}};
    return json::object();
  }

  json write(const Pool& pool) const {
    json out;
    if (pool.slurm)
      out["slurm"] = {{"partition", pool.slurm->partition}, {"config", path(pool.slurm->config)}};
    if (pool.kubernetes) out["kubernetes"] = write(*pool.kubernetes);
    if (pool.drain.deadline_minutes)
      out["drain"] = {{"deadline_minutes", *pool.drain.deadline_minutes},
                      {"on_timeout", word(pool.drain.on_timeout)}};
    return out;
  }

  json write(const KubernetesPool& pool) const {
    json out = {{"server", pool.server},
                {"domain", pool.domain},
                {"taint", pool.taint},
                {"labels", pool.labels},
                {"evict",
                 {{"jobs", pool.evict.jobs == JobPods::Wait ? "wait" : "evict"},
                  {"empty_dir", word(pool.evict.empty_dir)},
                  {"unmanaged", word(pool.evict.unmanaged)}}}};
    if (!pool.ca.empty()) out["ca"] = path(pool.ca);
    if (!pool.pin.empty()) out["pin"] = pool.pin;
    if (pool.token.declared()) out["token"] = write(pool.token);
    if (!pool.client_key.empty())
      out.update(json{{"client_certificate", path(pool.client_certificate)},
                      {"client_key", path(pool.client_key)}});
    return out;
  }

  json archivesOf(const std::vector<PackageArchive>& archives) const {
    json out = json::object();
    for (const auto& archive : archives)
      out[archive.name] = {{"url", archive.url},
                           {"suite", archive.suite},
                           {"components", archive.components},
                           {"key", path(archive.key)}};
    return out;
  }

  json write(const ImageBuild& build) const {
    json out = {{"suite", build.suite}, {"packages", build.packages}, {"mirror", build.mirror}};
    if (!build.release.empty()) out["release"] = build.release;
    if (!build.archives.empty()) out["archives"] = archivesOf(build.archives);
    return out;
  }

  json write(const Image& image) const {
    json out = {{"authorized_keys", image.authorized_keys}};
    if (image.kind == ImageKind::Disk) out["kind"] = "disk";
    if (image.kind == ImageKind::Live) out["kind"] = "live";
    if (const auto* build = std::get_if<ImageBuild>(&image.source))
      out["build"] = write(*build);
    else if (const auto* import = std::get_if<ImageImport>(&image.source))
      out.update(json{{"import", path(import->path)}, {"sha256", import->sha256}});
    return out;
  }

  json write(const Driver& driver) const {
    json out = {{"packages", driver.packages},
                {"repository", path(driver.repository)},
                {"modules", driver.modules},
                {"verify", driver.verify}};
    if (!driver.archives.empty()) out["archives"] = archivesOf(driver.archives);
    if (driver.build != ModuleBuild::Packaged)
      out["build"] = driver.build == ModuleBuild::Dkms ? "dkms" : "precompiled";
    if (!driver.kernel.empty()) out["kernel"] = driver.kernel;
    if (!driver.module_options.empty()) out["module_options"] = driver.module_options;
    if (!driver.sysctl.empty()) out["sysctl"] = driver.sysctl;
    if (!driver.kernel_args.empty()) out["kernel_args"] = driver.kernel_args;
    if (!driver.services.empty()) out["services"] = driver.services;
    if (!driver.fabric_manager.empty()) out["fabric_manager"] = driver.fabric_manager;
    return out;
  }

  json write(const FirmwareComponent& component) const {
    constexpr std::array<std::string_view, 5> kActivations = {"auto", "none", "bmc-reset",
                                                              "power-cycle", "ac-cycle"};
    json out = {{"version", component.version},
                {"file", path(component.file)},
                {"sha256", component.sha256}};
    for (const auto& image : component.intermediate)
      out["intermediate"].push_back(
          {{"version", image.version}, {"file", path(image.file)}, {"sha256", image.sha256}});
    if (component.activation != FirmwareActivation::Auto)
      out["activation"] = kActivations.at(static_cast<std::size_t>(component.activation));
    if (!component.device.empty()) out["device"] = component.device;
    if (component.minutes > 0) out["minutes"] = component.minutes;
    return out;
  }

  json write(const FirmwareBaseline& baseline) const {
    json out = {{"components", json::object()}, {"order", baseline.order}};
    for (const auto& component : baseline.components)
      out["components"][component.name] = write(component);
    for (const auto& constraint : baseline.constraints)
      out["constraints"].push_back(constraint.str());
    if (!baseline.signature.empty()) out["signature"] = baseline.signature;
    return out;
  }

  static json write(const Profile& profile) {
    json expect = json::object();
    const Expectation& e = profile.expect;
    if (e.gpus) expect["gpus"] = *e.gpus;
    if (!e.gpu_model.empty()) expect["gpu_model"] = e.gpu_model;
    if (e.nics) expect["nics"] = *e.nics;
    if (e.memory_gib_min) expect["memory_gib_min"] = *e.memory_gib_min;
    if (e.cpus_min) expect["cpus_min"] = *e.cpus_min;
    for (const auto& part : e.parts) expect["parts"].push_back(partJson(part));
    json out = {{"expect", std::move(expect)},
                {"image", profile.image},
                {"drivers", profile.drivers},
                {"firmware", profile.firmware},
                {"gates", profile.gates},
                {"pool", profile.pool},
                {"fabric", profile.fabric},
                {"bmc_credential", profile.bmc_credential},
                {"boot", profile.boot == BootMode::Bios ? "bios" : "uefi"},
                {"kernel_args", profile.kernel_args},
                {"disk", profile.disk}};
    // Only where declared: what is not there must not change the digest of inventories that never
    // had it.
    if (!profile.rails.empty()) out["rails"] = railsJson(profile.rails);
    if (profile.root) out["root"] = write(*profile.root);
    if (!profile.storage.empty()) out["storage"] = write(profile.storage);
    if (!profile.user_data.empty()) out["user_data"] = profile.user_data;
    if (!profile.mounts.empty()) out["mounts"] = profile.mounts;
    if (!profile.bios.empty()) out["bios"] = profile.bios;
    if (profile.secure_boot) out["secure_boot"] = true;
    if (profile.power_watts) out["power_watts"] = *profile.power_watts;
    if (profile.console) out["console"] = write(*profile.console);
    if (profile.ipmi)
      out["ipmi"] = {{"port", profile.ipmi->port}, {"cipher_suite", profile.ipmi->cipher_suite}};
    if (profile.pdu)
      out["pdu"] = {{"off", profile.pdu->off},
                    {"on", profile.pdu->on},
                    {"seconds_off", profile.pdu->seconds_off}};
    if (profile.bmc_certificate) out["bmc_certificate"] = {{"sign", profile.bmc_certificate->sign}};
    write(profile.bmc_trust, out);
    if (profile.tpm)
      out["tpm"] = {{"pcrs", profile.tpm->pcrs}, {"ek_roots", profile.tpm->ek_roots_pem}};
    return out;
  }

  static std::string wordOf(RaidLevel raid) {
    const auto level = raidNumber(raid);
    return level ? fmt::format("raid{}", *level) : "none";
  }

  static json write(const RootLayout& root) {
    const char* key = root.encrypt == RootKey::Tpm    ? "tpm"
                      : root.encrypt == RootKey::File ? "keyfile"
                                                      : "none";
    return {{"count", root.count},
            {"raid", wordOf(root.raid)},
            {"encrypt", key},
            {"lvm_gib", root.lvm_gib}};
  }

  static json write(const std::vector<StorageSet>& sets) {
    json out = json::object();
    for (const auto& set : sets) {
      json volumes = json::array();
      for (const auto& volume : set.volumes)
        volumes.push_back({{"name", volume.name},
                           {"size_gib", volume.size_gib},
                           {"filesystem", volume.filesystem == FileSystem::Xfs ? "xfs" : "ext4"},
                           {"mount", volume.mount}});
      out[set.name] = {{"disks", set.disks},
                       {"count", set.count},
                       {"raid", wordOf(set.raid)},
                       {"encrypt", set.encrypt},
                       {"volumes", std::move(volumes)}};
      if (set.sector_bytes != 0) out[set.name]["sector_bytes"] = set.sector_bytes;
    }
    return out;
  }

  /// The content of a CA counts, not the path.
  static void write(const BmcTrust& trust, json& out) {
    if (!trust.pin.empty()) out["bmc_pin"] = trust.pin;
    if (!trust.ca_pem.empty()) out["bmc_ca"] = trust.ca_pem;
    if (!trust.ssh_key.empty()) out["bmc_ssh_key"] = trust.ssh_key;
  }

  static json write(const Node& node) {
    json out = {{"name", node.name.str()},
                {"profile", node.profile},
                {"mac", node.mac.str()},
                {"address", node.address.str()},
                {"bmc", node.bmc.url}};
    if (!node.bmc.username_override.empty()) out["bmc_username"] = node.bmc.username_override;
    if (!node.bmc.credential.empty()) out["bmc_credential"] = node.bmc.credential;
    write(node.bmc.trust, out);
    if (!node.rack.empty()) out["rack"] = node.rack;
    if (node.unit != 0) out["unit"] = node.unit;
    if (!node.serial.empty()) out["serial"] = node.serial;
    if (!node.switch_name.empty()) out["switch"] = node.switch_name;
    if (!node.switch_port.empty()) out["port"] = node.switch_port;
    return out;
  }

  static json write(const Limits& limits) {
    json out = json::object();
    if (limits.bmc_requests) out["bmc_requests"] = *limits.bmc_requests;
    if (limits.uploads) out["uploads"] = *limits.uploads;
    if (limits.imagings) out["imagings"] = *limits.imagings;
    if (limits.restarts) out["restarts"] = *limits.restarts;
    return out;
  }

  static json write(const ConsoleSpec& console) {
    constexpr std::array<std::string_view, 5> kVia = {"none", "sol", "redfish", "libvirt",
                                                      "socket"};
    json out = {{"via", kVia.at(static_cast<std::size_t>(console.via))}};
    if (console.via == ConsoleVia::Sol) out["port"] = console.port.value_or(kIpmiPort);
    if (console.via == ConsoleVia::Redfish && console.port) out["port"] = *console.port;
    if (!console.command.empty()) out["command"] = console.command;
    if (!console.credential.empty()) out["credential"] = console.credential;
    if (!console.path.empty()) out["path"] = console.path;
    return out;
  }
  static json write(const MountedSystem& storage) {
    constexpr std::array<std::string_view, 3> kKinds = {"nfs", "lustre", "gpfs"};
    json out = {{"kind", kKinds.at(static_cast<std::size_t>(storage.kind))},
                {"source", storage.source},
                {"mount", storage.mount},
                {"options", storage.options},
                {"packages", storage.packages}};
    if (storage.read_mb_s) out["read_mb_s"] = *storage.read_mb_s;
    if (storage.write_mb_s) out["write_mb_s"] = *storage.write_mb_s;
    return out;
  }

  static json write(const DiscoveryPolicy& policy) {
    json rules = json::object();
    for (const auto& rule : policy.rules)
      rules[rule.name] = {{"match", rule.match},
                          {"profile", rule.profile},
                          {"names", rule.names},
                          {"rack", rule.rack},
                          {"approve", rule.approve}};
    return {{"ranges", policy.ranges},
            {"credentials", policy.credentials},
            {"rules", std::move(rules)}};
  }

  static json write(const MonitorPolicy& policy) {
    json symptoms = json::object(), repairs = json::array(), recovery = json::array();
    for (const auto& rule : policy.symptoms) {
      symptoms[rule.name] = {
          {"action", word(rule.action)}, {"min_count", rule.min_count}, {"advice", rule.advice}};
      if (rule.per_hour) symptoms[rule.name]["per_hour"] = *rule.per_hour;
    }
    for (const auto repair : policy.repairs)
      repairs.push_back(repair == Repair::Reset ? "reset" : "reboot");
    for (const auto rung : policy.recovery) recovery.push_back(word(rung));
    json out = {
        {"interval_seconds", policy.interval_seconds},
        {"on_config_change", policy.on_config_change == OnConfigChange::Drain ? "drain" : "ignore"},
        {"breaker", {{"percent", policy.breaker.percent}, {"nodes", policy.breaker.nodes}}},
        {"repairs", std::move(repairs)},
        {"reboots", policy.reboots},
        {"symptoms", std::move(symptoms)},
        {"recovery", std::move(recovery)}};
    if (policy.rejoin_minutes) out["rejoin_minutes"] = *policy.rejoin_minutes;
    return out;
  }

  const Cluster& cluster_;
};

}  // namespace

json declaredJson(const Cluster& cluster) { return Writer(cluster).all(); }

std::string toJson(const Cluster& cluster) {
  json out = declaredJson(cluster);
  out["digest"] = cluster.digest;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const Profile& profile = cluster.profileOf(cluster.nodes[i]);
    json& node = out["nodes"][i];
    node.update(json{{"image", profile.image},
                     {"drivers", profile.drivers},
                     {"firmware", profile.firmware},
                     {"fabric", profile.fabric},
                     {"gates", profile.gates},
                     {"pool", profile.pool}});
  }
  return jsonText(out, kIndent) + "\n";
}

}  // namespace muster::inventory
