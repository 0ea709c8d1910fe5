// SPDX-License-Identifier: Apache-2.0
#include "agent/network/network_files.h"

#include "base/io/crypto.h"
#include "base/io/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kDigestDigits = 16;
constexpr unsigned kSecretMode = 0600;
constexpr std::string_view kNetworkd = "etc/systemd/network", kNetplan = "etc/netplan",
                           kKeyfiles = "etc/NetworkManager/system-connections";
constexpr const char* kAside = ".before-muster";
constexpr const char* kCloudInit = "etc/cloud/cloud.cfg.d/99-muster-network.cfg";

bool isThere(const fs::path& root, std::initializer_list<const char*> places) {
  std::error_code error;
  return std::any_of(places.begin(), places.end(),
                     [&](const char* place) { return fs::exists(root / place, error); });
}

/// Whether a file of this folder is one of ours.
bool isOwn(std::string_view folder, const std::string& name) {
  if (folder == kNetworkd) return name.starts_with("10-muster-") || name.starts_with("90-muster-");
  if (folder == kNetplan) return name == "90-muster.yaml";
  return name.starts_with("muster-") && name.ends_with(".nmconnection");
}

/// netplan merges all of its files, so another one could give a NIC a second configuration.
Result<void> putAside(const fs::path& root) {
  std::error_code error;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(root / kNetplan, error))
    if (entry.path().extension() == ".yaml" && !isOwn(kNetplan, entry.path().filename()))
      others.push_back(entry.path());
  for (const auto& other : others) {
    fs::rename(other, other.string() + kAside, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot put {} aside: {}", other.string(), error.message()));
  }
  return {};
}

}  // namespace

std::string_view toString(NetworkStack stack) {
  constexpr std::array<std::string_view, 3> kWords{"systemd-networkd", "netplan", "NetworkManager"};
  return kWords[static_cast<std::size_t>(stack)];
}

NetworkStack networkStackOf(const fs::path& root) {
  if (isThere(root, {"usr/sbin/netplan", "usr/bin/netplan"}) &&
      isThere(root, {"usr/libexec/netplan/generate", "usr/lib/netplan/generate",
                     "lib/netplan/generate", "usr/libexec/netplan/configure"}))
    return NetworkStack::Netplan;
  if (!isThere(root, {"usr/lib/systemd/systemd-networkd", "lib/systemd/systemd-networkd"}) &&
      isThere(root, {"usr/sbin/NetworkManager"}))
    return NetworkStack::NetworkManager;
  return NetworkStack::Networkd;
}

std::vector<NetworkFile> networkFiles(const wire::NodeNetwork& network, NetworkStack stack) {
  auto files = stack == NetworkStack::Netplan    ? netplanFiles(network)
               : stack == NetworkStack::Networkd ? networkdFiles(network)
                                                 : keyfiles(network);
  for (auto& file : linkFiles(network)) files.push_back(std::move(file));
  std::sort(files.begin(), files.end(),
            [](const NetworkFile& a, const NetworkFile& b) { return a.path < b.path; });
  return files;
}

std::vector<NetworkFile> linkFiles(const wire::NodeNetwork& network) {
  std::vector<NetworkFile> files;
  for (const auto& link : network.links) {
    if (link.kind != wire::LinkKind::Ethernet) continue;
    // The permanent address: VLANs and bonds over a NIC have its address too, and must not be
    // renamed.
    const auto match = link.mac.empty() ? fmt::format("Path=pci-{}\n", link.pci)
                                        : fmt::format("PermanentMACAddress={}\n", link.mac);
    files.push_back({fmt::format("{}/10-muster-{}.link", kNetworkd, link.name),
                     fmt::format("[Match]\n{}\n[Link]\nName={}\n", match, link.name)});
  }
  return files;
}

std::vector<std::string> ownNetworkFiles(const fs::path& root) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto folder : {kNetworkd, kNetplan, kKeyfiles})
    for (const auto& entry : fs::directory_iterator(root / folder, error))
      if (isOwn(folder, entry.path().filename()))
        out.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
  std::sort(out.begin(), out.end());
  return out;
}

std::string digestOf(const std::vector<NetworkFile>& files) {
  std::string all;
  for (const auto& file : files)
    all += fmt::format("{} {}\n{}", file.path, file.content.size(), file.content);
  return io::sha256Hex(all).substr(0, kDigestDigits);
}

Result<void> writeNetworkFiles(const fs::path& root, const wire::NodeNetwork& network,
                               NetworkStack stack) {
  const auto files = networkFiles(network, stack);
  for (const auto& old : ownNetworkFiles(root)) {
    const bool kept = std::any_of(files.begin(), files.end(),
                                  [&](const NetworkFile& file) { return file.path == old; });
    std::error_code error;
    if (!kept) fs::remove(root / old, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot remove {}: {}", (root / old).string(), error.message()));
  }
  if (stack == NetworkStack::Netplan) TRY_OK(putAside(root));
  if (isThere(root, {"etc/cloud/cloud.cfg.d"}))
    TRY_OK(io::writeFileAtomic(root / kCloudInit, "network: {config: disabled}\n"));
  if (stack == NetworkStack::NetworkManager) {
    TRY_OK(io::makeDirs(root / "etc/NetworkManager/conf.d"));
    TRY_OK(io::writeFileAtomic(root / "etc/NetworkManager/conf.d/10-muster.conf",
                               "[main]\nno-auto-default=*\n"));
  }
  for (const auto& file : files) {
    TRY_OK(io::makeDirs((root / file.path).parent_path()));
    TRY_OK(io::writeFileAtomic(root / file.path, file.content, file.mode));
  }
  return {};
}

// ---- systemd-networkd

namespace {

bool isV6(std::string_view text) { return text.find(':') != std::string_view::npos; }

std::string networkdRoutes(const std::vector<wire::NetworkRoute>& routes) {
  std::string text;
  for (const auto& route : routes) {
    text += fmt::format("\n[Route]\nDestination={}\nGateway={}\n", route.to, route.via);
    if (route.metric != 0) text += fmt::format("Metric={}\n", route.metric);
  }
  return text;
}

std::string networkdNetwork(const wire::NodeNetwork& network, const wire::NetworkLink& link) {
  std::string text = fmt::format("[Match]\nName={}\n", link.name);
  if (link.mtu != 0) text += fmt::format("\n[Link]\nMTUBytes={}\n", link.mtu);
  const bool v6 = std::any_of(link.addresses.begin(), link.addresses.end(), isV6);
  text += fmt::format("\n[Network]\nLinkLocalAddressing={}\nIPv6AcceptRA=no\n", v6 ? "ipv6" : "no");
  if (const auto* bond = network.bondOf(link.name)) {
    text += fmt::format("Bond={}\n", bond->name);
    if (bond->bond.primary == link.name) text += "PrimarySlave=yes\n";
  }
  for (const auto& vlan : network.links)
    if (vlan.kind == wire::LinkKind::Vlan && vlan.parent == link.name)
      text += fmt::format("VLAN={}\n", vlan.name);
  // What lies on others is there before they have a carrier, so that what is missing is the
  // carrier.
  if (link.kind != wire::LinkKind::Ethernet) text += "ConfigureWithoutCarrier=yes\n";
  for (const auto& address : link.addresses) text += fmt::format("Address={}\n", address);
  for (const auto& server : link.dns) text += fmt::format("DNS={}\n", server);
  if (link.name == network.provisioning.link && !network.search.empty()) {
    text += "Domains=";
    for (std::size_t i = 0; i < network.search.size(); ++i)
      text += (i == 0 ? "" : " ") + network.search[i];
    text += "\n";
  }
  return text + networkdRoutes(link.routes);
}

std::string networkdNetdev(const wire::NetworkLink& link) {
  std::string text = fmt::format("[NetDev]\nName={}\nKind={}\n", link.name, toString(link.kind));
  if (link.kind == wire::LinkKind::Vlan)
    return text + fmt::format("\n[VLAN]\nId={}\n", link.vlan_id);
  if (!link.mac.empty()) text += fmt::format("MACAddress={}\n", link.mac);
  const auto& bond = link.bond;
  text += fmt::format("\n[Bond]\nMode={}\nMIIMonitorSec={}ms\n", toString(bond.mode), bond.mii_ms);
  if (bond.mode == wire::BondMode::Lacp)
    text += fmt::format("LACPTransmitRate={}\n", toString(bond.lacp_rate));
  if (wire::hashes(bond.mode)) text += fmt::format("TransmitHashPolicy={}\n", toString(bond.hash));
  if (bond.min_links != 0) text += fmt::format("MinLinks={}\n", bond.min_links);
  return text;
}

/// Sorted after all of ours: only a NIC that none of them fits gets it. By its permanent address:
/// what containers put over the NIC may have its address too, and must not get the node's.
NetworkFile networkdFallback(const wire::ProvisioningPath& path) {
  return {fmt::format("{}/90-muster-fallback.network", kNetworkd),
          fmt::format("# The NIC that boots, should it not have got its declared name.\n[Match]\n"
                      "PermanentMACAddress={}\n\n[Network]\nLinkLocalAddressing=no\n"
                      "IPv6AcceptRA=no\nAddress={}\n",
                      path.mac, path.address) +
              networkdRoutes(path.routes)};
}

}  // namespace

std::vector<NetworkFile> networkdFiles(const wire::NodeNetwork& network) {
  std::vector<NetworkFile> files;
  for (const auto& link : network.links) {
    const auto base = fmt::format("{}/10-muster-{}", kNetworkd, link.name);
    if (link.kind != wire::LinkKind::Ethernet)
      files.push_back({base + ".netdev", networkdNetdev(link)});
    files.push_back({base + ".network", networkdNetwork(network, link)});
  }
  files.push_back(networkdFallback(network.provisioning));
  return files;
}

// ---- netplan

namespace {

/// Strings of YAML's flow style, as of JSON.
std::string yamlText(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string yamlList(const std::vector<std::string>& items) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + yamlText(item);
  return "[" + out + "]";
}

std::string netplanLink(const wire::NodeNetwork& network, const wire::NetworkLink& link) {
  std::string text = fmt::format("    {}:\n", yamlText(link.name));
  const auto line = [&](std::string_view key, const std::string& value) {
    text += fmt::format("      {}: {}\n", key, value);
  };
  if (link.kind == wire::LinkKind::Bond) {
    line("interfaces", yamlList(link.members));
    if (!link.mac.empty()) line("macaddress", yamlText(link.mac));
    text += "      parameters:\n";
    const auto parameter = [&](std::string_view key, const std::string& value) {
      text += fmt::format("        {}: {}\n", key, value);
    };
    parameter("mode", yamlText(toString(link.bond.mode)));
    parameter("mii-monitor-interval", std::to_string(link.bond.mii_ms));
    if (link.bond.mode == wire::BondMode::Lacp)
      parameter("lacp-rate", yamlText(toString(link.bond.lacp_rate)));
    if (wire::hashes(link.bond.mode))
      parameter("transmit-hash-policy", yamlText(toString(link.bond.hash)));
    if (link.bond.min_links != 0) parameter("min-links", std::to_string(link.bond.min_links));
    if (!link.bond.primary.empty()) parameter("primary", yamlText(link.bond.primary));
  }
  if (link.kind == wire::LinkKind::Vlan) {
    line("id", std::to_string(link.vlan_id));
    line("link", yamlText(link.parent));
  }
  if (link.mtu != 0) line("mtu", std::to_string(link.mtu));
  line("accept-ra", "false");
  const bool v6 = std::any_of(link.addresses.begin(), link.addresses.end(), isV6);
  line("link-local", v6 ? "[ipv6]" : "[]");
  if (!link.addresses.empty()) line("addresses", yamlList(link.addresses));
  const bool searches = link.name == network.provisioning.link && !network.search.empty();
  if (!link.dns.empty() || searches) {
    text += "      nameservers:\n";
    if (!link.dns.empty()) text += fmt::format("        addresses: {}\n", yamlList(link.dns));
    if (searches) text += fmt::format("        search: {}\n", yamlList(network.search));
  }
  if (!link.routes.empty()) text += "      routes:\n";
  for (const auto& route : link.routes) {
    text += fmt::format("        - to: {}\n          via: {}\n", yamlText(route.to),
                        yamlText(route.via));
    if (route.metric != 0) text += fmt::format("          metric: {}\n", route.metric);
  }
  return text;
}

}  // namespace

std::vector<NetworkFile> netplanFiles(const wire::NodeNetwork& network) {
  std::string text =
      "# Written by muster from the inventory.\nnetwork:\n  version: 2\n  renderer: networkd\n";
  for (const auto& [kind, section] :
       {std::pair(wire::LinkKind::Ethernet, "ethernets"), std::pair(wire::LinkKind::Bond, "bonds"),
        std::pair(wire::LinkKind::Vlan, "vlans")}) {
    std::string links;
    for (const auto& link : network.links)
      if (link.kind == kind) links += netplanLink(network, link);
    if (!links.empty()) text += fmt::format("  {}:\n{}", section, links);
  }
  // netplan's own files are for root alone, and it warns where they are not.
  return {{fmt::format("{}/90-muster.yaml", kNetplan), text, kSecretMode},
          networkdFallback(network.provisioning)};
}

// ---- NetworkManager

namespace {

/// [ipv4] or [ipv6] of a keyfile.
std::string keyfileFamily(const wire::NodeNetwork& network, const wire::NetworkLink& link,
                          bool v6) {
  std::string text = v6 ? "\n[ipv6]\n" : "\n[ipv4]\n";
  int count = 0;
  for (const auto& address : link.addresses)
    if (isV6(address) == v6) text += fmt::format("address{}={}\n", ++count, address);
  if (count == 0) return text + "method=disabled\n";
  text += "method=manual\n";
  std::string servers;
  for (const auto& server : link.dns)
    if (isV6(server) == v6) servers += server + ";";
  if (!servers.empty()) text += fmt::format("dns={}\n", servers);
  if (!v6 && link.name == network.provisioning.link && !network.search.empty()) {
    text += "dns-search=";
    for (const auto& domain : network.search) text += domain + ";";
    text += "\n";
  }
  int routes = 0;
  for (const auto& route : link.routes)
    if (isV6(route.to) == v6)
      text += route.metric == 0
                  ? fmt::format("route{}={},{}\n", ++routes, route.to, route.via)
                  : fmt::format("route{}={},{},{}\n", ++routes, route.to, route.via, route.metric);
  return text;
}

std::string keyfile(const wire::NodeNetwork& network, const wire::NetworkLink& link) {
  std::string text = fmt::format(
      "[connection]\nid=muster-{0}\ntype={1}\ninterface-name={0}\nautoconnect-priority=100\n",
      link.name, toString(link.kind));
  const auto* bond = network.bondOf(link.name);
  if (bond) text += fmt::format("master={}\nslave-type=bond\n", bond->name);
  if (link.mtu != 0 || !link.mac.empty()) {
    std::string ethernet;
    if (link.mtu != 0) ethernet += fmt::format("mtu={}\n", link.mtu);
    if (link.kind == wire::LinkKind::Bond && !link.mac.empty())
      ethernet += fmt::format("cloned-mac-address={}\n", link.mac);
    if (!ethernet.empty()) text += "\n[ethernet]\n" + ethernet;
  }
  if (link.kind == wire::LinkKind::Bond) {
    text +=
        fmt::format("\n[bond]\nmode={}\nmiimon={}\n", toString(link.bond.mode), link.bond.mii_ms);
    if (link.bond.mode == wire::BondMode::Lacp)
      text += fmt::format("lacp_rate={}\n", toString(link.bond.lacp_rate));
    if (wire::hashes(link.bond.mode))
      text += fmt::format("xmit_hash_policy={}\n", toString(link.bond.hash));
    if (link.bond.min_links != 0) text += fmt::format("min_links={}\n", link.bond.min_links);
    if (!link.bond.primary.empty()) text += fmt::format("primary={}\n", link.bond.primary);
  }
  if (link.kind == wire::LinkKind::Vlan)
    text += fmt::format("\n[vlan]\nflags=1\nid={}\nparent={}\n", link.vlan_id, link.parent);
  if (bond) return text;  // a port has no addresses of its own
  return text + keyfileFamily(network, link, false) + keyfileFamily(network, link, true);
}

}  // namespace

std::vector<NetworkFile> keyfiles(const wire::NodeNetwork& network) {
  std::vector<NetworkFile> files;
  for (const auto& link : network.links)
    files.push_back({fmt::format("{}/muster-{}.nmconnection", kKeyfiles, link.name),
                     keyfile(network, link), kSecretMode});  // it takes no other mode
  const auto& path = network.provisioning;
  std::string fallback = fmt::format(
      "# The NIC that boots, should it not have got its declared name.\n[connection]\n"
      "id=muster-fallback\ntype=ethernet\nautoconnect-priority=-100\n\n[ethernet]\nmac-address={}\n"
      "\n[ipv4]\naddress1={}\nmethod=manual\n",
      path.mac, path.address);
  int count = 0;
  for (const auto& route : path.routes)
    fallback += fmt::format("route{}={},{}\n", ++count, route.to, route.via);
  files.push_back({fmt::format("{}/muster-fallback.nmconnection", kKeyfiles),
                   fallback + "\n[ipv6]\nmethod=disabled\n", kSecretMode});
  return files;
}

}  // namespace muster::agent
