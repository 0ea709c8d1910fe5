// SPDX-License-Identifier: Apache-2.0
#include "app/doctor.h"

#include "app/dhcp_rival.h"
#include "app/leadership.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/fabric.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using enum DoctorVerdict;

constexpr std::uintmax_t kStateNeedsBytes = std::uintmax_t{1} << 30;
constexpr std::uintmax_t kCacheNeedsBytes = std::uintmax_t{20} << 30;
constexpr std::size_t kMostBmcs = 512;  ///< connections at one time; a larger fleet is sampled
constexpr std::chrono::milliseconds kBmcPatience{3000};
constexpr std::size_t kNamed = 8;
constexpr int kTcpListen = 0x0A, kUdpBound = 0x07;  ///< of /proc/net/{tcp,udp}

using Lines = std::vector<DoctorLine>;

void ok(Lines& out, std::string what, std::string text) {
  out.push_back({std::move(what), Ok, std::move(text), {}, {}});
}

// ---- programs

struct NeededProgram {
  const char* program;
  const char* package;
  const char* why;
};
constexpr std::array<NeededProgram, 10> kAlways{{
    {"dnsmasq", "dnsmasq-base", "nodes get no address and no boot file"},
    {"ip", "iproute2", "addresses of this host cannot be read"},
    {"mmdebstrap", "mmdebstrap", "no image and no RAM OS can be built"},
    {"mksquashfs", "squashfs-tools", "no RAM OS can be built"},
    {"mkfs.ext4", "e2fsprogs", "no image can be built"},
    {"cpio", "cpio", "no initrd can be made"},
    {"xz", "xz-utils", "no image can be imported or built"},
    {"zstd", "zstd", "kernels' modules cannot be unpacked"},
    {"ldd", "libc-bin", "the agent's libraries cannot be found"},
    {"openssl", "openssl", "certificates of BMCs cannot be shown"},
}};

bool isInstalled(const std::string& program) {
  std::string folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  if (const char* path = std::getenv("PATH")) folders = std::string(path) + ":" + folders;
  while (!folders.empty()) {
    const auto end = std::min(folders.find(':'), folders.size());
    if (end > 0 && ::access((folders.substr(0, end) + "/" + program).c_str(), X_OK) == 0)
      return true;
    folders.erase(0, std::min(end + 1, folders.size()));
  }
  return false;
}

struct Missing {
  std::vector<std::string> packages, programs, why;
  void add(const char* program, const char* package, const char* reason) {
    programs.emplace_back(program);
    packages.emplace_back(package);
    why.emplace_back(reason);
  }
};

void lookAtPrograms(const Options& options, const inventory::Cluster* cluster, Lines& out) {
  Missing missing;
  for (const auto& needed : kAlways)
    if (!isInstalled(needed.program)) missing.add(needed.program, needed.package, needed.why);
  if (::access("/usr/lib/ipxe", R_OK) != 0)
    missing.add("/usr/lib/ipxe", "ipxe", "nodes find no boot loader");
  if (!options.store.empty() && !isInstalled("pg_dump"))
    missing.add("pg_dump", "postgresql-client", "muster backup cannot copy the store");
  if (cluster) {
    const bool runs_sm = std::ranges::any_of(cluster->fabrics, [](const auto& named) {
      return std::ranges::find(named.second.subnet_managers, "controller") !=
             named.second.subnet_managers.end();
    });
    if (runs_sm && !isInstalled("opensm"))
      missing.add("opensm", "opensm", "the fabric has no subnet manager");
    const bool secure = std::ranges::any_of(
        cluster->profiles, [](const auto& named) { return named.second.secure_boot; });
    if (secure && ::access("/usr/lib/shim/shimx64.efi.signed", R_OK) != 0)
      missing.add("shim", "shim-signed grub-efi-amd64-signed",
                  "nodes with Secure Boot do not boot");
    const bool ipmi = std::ranges::any_of(cluster->nodes, [](const inventory::Node& node) {
      return node.bmc.url.starts_with("ipmi:");
    });
    if (ipmi && !isInstalled("ipmitool"))
      missing.add("ipmitool", "ipmitool", "BMCs without Redfish cannot be reached");
  }
  if (missing.packages.empty()) return ok(out, "programs", "all are here");
  out.push_back({"programs", Bad, fmt::format("missing: {}", fmt::join(missing.programs, ", ")),
                 fmt::format("{}", fmt::join(missing.why, "; ")),
                 fmt::format("apt install {}", fmt::join(missing.packages, " "))});
}

// ---- addresses

struct HostAddress {
  std::string interface;
  Ipv4 address;
};

struct HostNetwork {
  std::vector<HostAddress> addresses;
  std::vector<std::string> interfaces;  ///< without lo
};

HostNetwork networkOfHost() {
  HostNetwork out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const auto* i = all; i; i = i->ifa_next) {
    const std::string name = i->ifa_name;
    if ((i->ifa_flags & IFF_LOOPBACK) == 0 &&
        std::ranges::find(out.interfaces, name) == out.interfaces.end())
      out.interfaces.push_back(name);
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
      out.addresses.push_back(
          {name, Ipv4(ntohl(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr))});
  }
  return out;
}

/// The interface of the provisioning network; empty: this host is not on it.
std::string lookAtAddress(const inventory::Network& network, const HostNetwork& host, Lines& out) {
  const auto wanted = inventory::controllersOf(network);
  for (const auto& each : host.addresses)
    if (std::ranges::find(wanted, each.address) != wanted.end()) {
      ok(out, "address", fmt::format("{} on {}", each.address.str(), each.interface));
      return each.interface;
    }
  // An interface that is on the network already, with another address; else the first one.
  std::string interface = host.interfaces.empty() ? "INTERFACE" : host.interfaces.front();
  for (const auto& each : host.addresses)
    if (network.cidr.contains(each.address)) interface = each.interface;
  std::vector<std::string> texts;
  for (const auto address : wanted) texts.push_back(address.str());
  out.push_back(
      {"address", Bad,
       fmt::format("no interface of this host has {} (controller of the provisioning network)",
                   fmt::join(texts, " or ")),
       "nodes cannot reach muster, and dnsmasq does not start",
       fmt::format("ip address add {}/{} dev {}   (interfaces here: {})", wanted.front().str(),
                   network.cidr.prefix_bits, interface, fmt::join(host.interfaces, ", "))});
  return {};
}

// ---- ports

struct Bound {
  Ipv4 address;
  std::uint16_t port = 0;
  unsigned long inode = 0;
};

/// proc(5): lines of /proc/net/tcp and udp; addresses are hexadecimal, in the byte order of the
/// machine.
std::vector<Bound> boundPorts(const char* file, int state) {
  std::vector<Bound> out;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    unsigned address = 0, port = 0, found = 0;
    unsigned long inode = 0;
    if (std::sscanf(line.c_str(), " %*d: %8X:%4X %*8X:%*4X %2X %*s %*s %*s %*d %*d %lu", &address,
                    &port, &found, &inode) == 4 &&
        static_cast<int>(found) == state)
      out.push_back({Ipv4(ntohl(address)), static_cast<std::uint16_t>(port), inode});
  }
  return out;
}

/// Who has it open: "dnsmasq (4711)"; empty where that may not be seen.
std::string ownerOf(unsigned long inode) {
  const auto wanted = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (const auto& process : fs::directory_iterator("/proc", error)) {
    const auto pid = process.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code hidden;
    for (const auto& fd : fs::directory_iterator(process.path() / "fd", hidden)) {
      if (fs::read_symlink(fd.path(), hidden) != wanted) continue;
      std::string name;
      std::ifstream comm(process.path() / "comm");
      std::getline(comm, name);
      return fmt::format("{} ({})", name, pid);
    }
  }
  return {};
}

/// Whether it is a process of this muster: the monitor, or the dnsmasq with its configuration.
bool isOurs(const std::string& owner, const fs::path& state) {
  if (owner.starts_with("muster")) return true;
  const auto pid = owner.substr(std::min(owner.find('(') + 1, owner.size()));
  std::ifstream in("/proc/" + pid.substr(0, pid.find(')')) + "/cmdline");
  std::string line((std::istreambuf_iterator<char>(in)), {});
  return line.find((fs::absolute(state) / "run").string()) != std::string::npos;
}

struct NeededPort {
  const char* name;
  std::uint16_t port;
  bool udp, dhcp;
};
constexpr std::array<NeededPort, 4> kPorts{{{"DHCP", 67, true, true},
                                            {"TFTP", 69, true, false},
                                            {"HTTP", 8080, false, false},
                                            {"HTTPS of agents", 8443, false, false}}};

void lookAtPorts(const Options& options, const inventory::Network& network, Lines& out) {
  const auto udp = boundPorts("/proc/net/udp", kUdpBound);
  const auto tcp = boundPorts("/proc/net/tcp", kTcpListen);
  bool all_free = true;
  for (const auto& needed : kPorts) {
    if (needed.dhcp && network.dhcp_mode == inventory::DhcpMode::None) continue;
    for (const auto& bound : needed.udp ? udp : tcp) {
      // On another address it is in nobody's way.
      if (bound.port != needed.port ||
          (bound.address.value() != 0 && bound.address != network.controller))
        continue;
      const auto owner = ownerOf(bound.inode);
      if (isOurs(owner, options.state)) continue;
      all_free = false;
      const auto name = owner.substr(0, owner.find(' '));
      out.push_back(
          {"ports", Bad,
           fmt::format("port {} ({}, {}) is taken by {}", needed.port, needed.udp ? "UDP" : "TCP",
                       needed.name, owner.empty() ? "a process that this user cannot see" : owner),
           "muster cannot serve it",
           owner.empty()
               ? fmt::format("ss -lnp 'sport = :{}' as root says whose it is", needed.port)
               : fmt::format("systemctl status {0}; systemctl disable --now {0}", name)});
      break;
    }
  }
  if (all_free) ok(out, "ports", "67, 69, 8080 and 8443 are free, or muster's own");
}

// ---- DHCP servers of others

void lookForDhcp(const inventory::Network& network, const std::string& interface, Lines& out) {
  const auto servers = dhcpServersOn(interface);
  if (!servers) {
    out.push_back({"dhcp", Warning, fmt::format("not looked for: {}", servers.error().str()),
                   "another DHCP server would give nodes other addresses and boot files",
                   servers.error().code() == ErrorCode::Denied
                       ? "run muster doctor as root"
                       : fmt::format("end the DHCP client on {} for a moment", interface)});
    return;
  }
  std::vector<std::string> others;
  for (const auto server : *servers)
    if (!inventory::isController(network, server)) others.push_back(server.str());
  const bool proxy = network.dhcp_mode == inventory::DhcpMode::Proxy;
  const auto named = fmt::format("{}", fmt::join(others, ", "));
  if (network.dhcp_mode == inventory::DhcpMode::None)
    return ok(out, "dhcp", others.empty() ? "nobody answers" : "answers: " + named);
  if (proxy && !others.empty()) return ok(out, "dhcp", fmt::format("{} gives addresses", named));
  if (proxy) {
    out.push_back({"dhcp", Bad, fmt::format("no DHCP server answers on {}", interface),
                   "mode proxy gives no addresses: nodes need another server for them",
                   "start that server, or set networks.provisioning.dhcp to {mode: authoritative, "
                   "range: …}"});
    return;
  }
  if (others.empty())
    return ok(out, "dhcp", fmt::format("no other server answers on {}", interface));
  out.push_back(
      {"dhcp", Bad, fmt::format("another DHCP server answers on {}: {}", interface, named),
       "nodes take the offer that comes first, so some boot elsewhere or not at all",
       fmt::format("find it (ip neighbour show {}), and end it on this network; or let it "
                   "give the addresses: dhcp: {{mode: proxy}}",
                   others.front())});
}

// ---- the host

void lookAtTime(Lines& out) {
  timex now{};
  if (::adjtimex(&now) >= 0 && (now.status & STA_UNSYNC) == 0)
    return ok(out, "time", "synchronized");
  out.push_back({"time", Warning, "this host's clock is not synchronized",
                 "certificates of agents and nodes count by it; logs of two hosts do not fit",
                 "apt install systemd-timesyncd && timedatectl set-ntp true"});
}

/// Free bytes where the folder is, or will be.
std::optional<std::uintmax_t> freeAt(fs::path folder) {
  std::error_code unknown;
  while (!fs::exists(folder, unknown) && folder.has_parent_path() && folder != folder.parent_path())
    folder = folder.parent_path();
  struct statvfs space{};
  if (::statvfs(folder.c_str(), &space) != 0) return std::nullopt;
  return static_cast<std::uintmax_t>(space.f_bavail) * space.f_frsize;
}

void lookAtSpace(const std::string& what, const fs::path& folder, std::uintmax_t needed,
                 const char* why, Lines& out) {
  const auto free = freeAt(fs::absolute(folder));
  if (free && *free >= needed)
    return ok(out, what, fmt::format("{} GiB are free at {}", *free >> 30, folder.string()));
  out.push_back({what, Warning,
                 free ? fmt::format("{} MiB are free at {}, {} GiB are wanted", *free >> 20,
                                    folder.string(), needed >> 30)
                      : fmt::format("{} cannot be looked at", folder.string()),
                 why, fmt::format("df -h {0}; du -xh --max-depth=2 {0}", folder.string())});
}

void lookAtState(const Options& options, Lines& out) {
  struct stat status{};
  const auto text = options.state.string();
  if (::stat(options.state.c_str(), &status) != 0)
    return ok(out, "state", fmt::format("{} is made when muster first works", text));
  if (status.st_uid != ::geteuid()) {
    out.push_back(
        {"state", Bad,
         fmt::format("{} belongs to user {}, this is user {}", text, status.st_uid, ::geteuid()),
         "muster does not work in a folder that another user could change",
         status.st_uid == 0 ? std::string("sudo muster …")
                            : fmt::format("chown -R {} {}", ::geteuid(), text)});
    return;
  }
  if ((status.st_mode & 0077) == 0) return ok(out, "state", fmt::format("{} is private", text));
  out.push_back({"state", Bad, fmt::format("{} has mode {:04o}", text, status.st_mode & 07777),
                 "other users could read the site's keys", fmt::format("chmod 700 {}", text)});
}

void lookAtSecrets(const inventory::Cluster& cluster, Lines& out) {
  std::vector<std::string> open;
  for (const auto& [name, credential] : cluster.credentials)
    for (const auto* secret : {&credential.password, &credential.rotate_to})
      if (const auto* file = std::get_if<fs::path>(&secret->source)) {
        struct stat status{};
        if (::stat(file->c_str(), &status) == 0 && (status.st_mode & 0077) != 0)
          open.push_back(file->string());
      }
  std::ranges::sort(open);
  open.erase(std::unique(open.begin(), open.end()), open.end());
  if (open.empty()) return ok(out, "secrets", "readable by their owner alone");
  out.push_back({"secrets", Bad, fmt::format("other users can read {}", fmt::join(open, ", ")),
                 "who reads it has every BMC", fmt::format("chmod 600 {}", fmt::join(open, " "))});
}

void lookAtKvm(Lines& out) {
  if (::access("/dev/kvm", R_OK | W_OK) == 0) return ok(out, "kvm", "/dev/kvm can be used");
  if (!isInstalled("qemu-system-x86_64")) return;  // who has no twin needs none
  out.push_back({"kvm", Warning, "/dev/kvm cannot be used",
                 "the twin's machines are emulated: about ten times slower",
                 "modprobe kvm_intel || modprobe kvm_amd; as a guest: nested virtualization"});
}

std::string firstLine(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

void lookAtFabric(const inventory::Cluster& cluster, Lines& out) {
  const bool runs_sm = std::ranges::any_of(cluster.fabrics, [](const auto& named) {
    return std::ranges::find(named.second.subnet_managers, "controller") !=
           named.second.subnet_managers.end();
  });
  if (!runs_sm) return;
  std::vector<std::string> seen;
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none))
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      if (firstLine(port.path() / "link_layer") != "InfiniBand") continue;
      const auto name = fmt::format("{} port {}", device.path().filename().string(),
                                    port.path().filename().string());
      const auto state = firstLine(port.path() / "phys_state");  // "5: LinkUp"
      if (state.starts_with("5:")) return ok(out, "fabric", name + " has a link");
      seen.push_back(fmt::format("{} ({})", name, state));
    }
  out.push_back({"fabric", Bad,
                 seen.empty() ? "this host has no InfiniBand port"
                              : fmt::format("no link: {}", fmt::join(seen, ", ")),
                 "subnet_managers names the controller, whose opensm needs a port",
                 seen.empty() ? "apt install rdma-core and look at lspci; or name nodes in "
                                "fabric.….subnet_managers"
                              : "look at the cable, then: ibstat"});
}

// ---- BMCs

struct BmcPlace {
  std::string node, host, port;
};

std::optional<BmcPlace> placeOf(const inventory::Node& node) {
  const std::string_view url = node.bmc.url;
  const auto scheme = url.find("://");
  if (scheme == std::string_view::npos || !url.starts_with("http")) return std::nullopt;
  auto rest = url.substr(scheme + 3);
  rest = rest.substr(0, rest.find('/'));
  BmcPlace out{node.name.str(), std::string(rest), url.starts_with("https") ? "443" : "80"};
  if (rest.starts_with('[')) {
    const auto end = rest.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    out.host = std::string(rest.substr(1, end - 1));
    rest.remove_prefix(end + 1);
    if (rest.starts_with(':')) out.port = std::string(rest.substr(1));
  } else if (const auto colon = rest.find(':'); colon != std::string_view::npos) {
    out.host = std::string(rest.substr(0, colon));
    out.port = std::string(rest.substr(colon + 1));
  }
  return out;
}

struct Attempt {
  BmcPlace place;
  io::Fd fd;
  std::string trouble;  ///< empty while it is not decided, and when it is connected
  bool done = false;
};

/// `names_fail`: no name server answers; each further name would cost its whole patience.
Attempt begin(BmcPlace place, bool& names_fail) {
  Attempt out{std::move(place), {}, {}, false};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (names_fail ? AI_NUMERICHOST : 0);
  addrinfo* found = nullptr;
  if (const int error =
          ::getaddrinfo(out.place.host.c_str(), out.place.port.c_str(), &hints, &found);
      error != 0) {
    out.trouble =
        names_fail ? "its name was not looked up: no name server answers" : ::gai_strerror(error);
    names_fail = names_fail || error == EAI_AGAIN;
    out.done = true;
    return out;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  out.fd = io::Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::connect(out.fd.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS) {
    out.trouble = std::strerror(errno);
    out.done = true;
  }
  return out;
}

void waitForAll(std::vector<Attempt>& attempts) {
  const auto end = std::chrono::steady_clock::now() + kBmcPatience;
  for (;;) {
    std::vector<pollfd> waiting;
    std::vector<Attempt*> of;
    for (auto& attempt : attempts)
      if (!attempt.done) {
        waiting.push_back({attempt.fd.get(), POLLOUT, 0});
        of.push_back(&attempt);
      }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (waiting.empty()) return;
    if (left.count() <= 0 ||
        ::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) {
      for (auto* attempt : of) {
        attempt->trouble = "no answer";
        attempt->done = true;
      }
      return;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents == 0) continue;
      int error = 0;
      socklen_t size = sizeof error;
      ::getsockopt(of[i]->fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      if (error != 0) of[i]->trouble = std::strerror(error);
      of[i]->done = true;
    }
  }
}

void lookAtBmcs(const inventory::Cluster& cluster, Lines& out) {
  std::vector<Attempt> attempts;
  std::size_t all = 0;
  bool names_fail = false;
  for (const auto& node : cluster.nodes) {
    auto place = placeOf(node);
    if (!place) continue;
    ++all;
    if (attempts.size() < kMostBmcs) attempts.push_back(begin(std::move(*place), names_fail));
  }
  if (attempts.empty()) return;
  waitForAll(attempts);
  std::vector<std::string> bad;
  std::size_t bad_count = 0;
  const Attempt* first = nullptr;
  for (const auto& attempt : attempts) {
    if (attempt.trouble.empty()) continue;
    if (!first) first = &attempt;
    if (++bad_count <= kNamed)
      bad.push_back(
          fmt::format("{} ({}: {})", attempt.place.node, attempt.place.host, attempt.trouble));
  }
  const auto looked = attempts.size() == all
                          ? fmt::format("{}", all)
                          : fmt::format("{} of {} (the first ones)", attempts.size(), all);
  if (!first) return ok(out, "bmcs", fmt::format("{} can be reached", looked));
  out.push_back(
      {"bmcs", Bad,
       fmt::format("{} of {} BMCs cannot be reached: {}{}", bad_count, looked, fmt::join(bad, ", "),
                   bad_count > kNamed ? ", …" : ""),
       "nodes are neither switched nor updated; their plan says the same",
       fmt::format("ip route get {0}; then: curl -k https://{0}/redfish/v1/", first->place.host)});
}

}  // namespace

std::string_view wordOf(DoctorVerdict verdict) {
  switch (verdict) {
    case Ok:
      return "ok";
    case Warning:
      return "warning";
    case Bad:
      return "bad";
  }
  return "bad";
}

std::vector<DoctorLine> examineHost(const Options& options, const DoctorRequest& request) {
  Lines out;
  std::error_code unknown;
  std::optional<inventory::Cluster> cluster;
  if (!fs::exists(options.inventory, unknown)) {
    out.push_back({"inventory", Bad, fmt::format("{} is not there", options.inventory.string()),
                   "muster does not know what the site should be", "muster init"});
  } else {
    auto loaded = loadDeclared(options);
    std::size_t errors = 0;
    for (const auto& diagnostic : loaded.diagnostics.all())
      errors += diagnostic.severity == Severity::Error ? 1 : 0;
    cluster = std::move(loaded.cluster);
    if (cluster)
      ok(out, "inventory",
         fmt::format("{}: {} nodes", options.inventory.string(), cluster->nodes.size()));
    else
      out.push_back({"inventory", Bad,
                     fmt::format("{} has {} errors", options.inventory.string(), errors),
                     "nothing is done with it",
                     fmt::format("muster inventory check -f {}", options.inventory.string())});
  }
  lookAtPrograms(options, cluster ? &*cluster : nullptr, out);
  lookAtState(options, out);
  lookAtSpace("state space", options.state, kStateNeedsBytes,
              "journal and consoles grow; a full disk stops everything", out);
  lookAtSpace("cache space", options.cache, kCacheNeedsBytes,
              "an image with its sources takes several GiB", out);
  lookAtTime(out);
  lookAtKvm(out);
  if (!cluster) return out;
  lookAtSecrets(*cluster, out);
  lookAtFabric(*cluster, out);
  if (cluster->networks.empty()) return out;
  const auto& network = cluster->provisioning();
  const auto interface = lookAtAddress(network, networkOfHost(), out);
  lookAtPorts(options, network, out);
  if (request.without_network) return out;
  if (!interface.empty()) lookForDhcp(network, interface, out);
  lookAtBmcs(*cluster, out);
  return out;
}

}  // namespace muster::app
