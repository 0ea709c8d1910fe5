// SPDX-License-Identifier: Apache-2.0
#include "provision/netboot/netboot.h"

#include "base/ip_address.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/log.h"
#include "base/log_limit.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/leases.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/netboot/boot_medium.h"
#include "provision/netboot/boot_script.h"
#include "provision/netboot/dnsmasq_config.h"
#include "provision/netboot/grub_script.h"
#include "provision/netboot/host_files.h"
#include "provision/netboot/supervisor.h"
#include "provision/netboot/tftp_folder.h"

#include <fmt/format.h>
#include <boost/asio/steady_timer.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <csignal>

namespace muster::provision {

namespace {

constexpr std::size_t kMaxLeaseBytes = 8u << 20;

/// The interface that carries the address; empty when none does.
std::string interfaceOf(Ipv4 address) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const auto* i = all; i; i = i->ifa_next) {
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET) continue;
    const auto* in = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
    if (ntohl(in->sin_addr.s_addr) == address.value()) return i->ifa_name;
  }
  return {};
}

constexpr const char* kMediaRoute = "/media/";

std::string mediumUrl(std::string_view scheme, Ipv4 host, std::uint16_t port) {
  return fmt::format("{}://{}:{}{}", scheme, host.str(), port, kMediaRoute);
}

Task<io::ServerResponse> ipxeForUefi() {
  co_return io::ServerResponse::file(
      {std::filesystem::path(kIpxeFolder) / kIpxeUefi, "application/efi"});
}

class DnsmasqNetboot final : public Netboot {
 public:
  DnsmasqNetboot(const inventory::Cluster& cluster, const ImageStore& images,
                 gateway::GatewayServer& gateway, io::ProcessRunner& processes,
                 asio::any_io_executor executor, NetbootOptions options)
      : cluster_(&cluster),
        images_(images),
        gateway_(gateway),
        options_(std::move(options)),
        hosts_(options_.hosts_folder),
        tftp_(options_.tftp_folder, options_.dnsmasq_unit ? options_.dnsmasq_unit->name : ""),
        media_(std::make_shared<BootMedia>(options_.media_folder)),
        processes_(processes),
        dnsmasq_(executor, SupervisorOptions{"dnsmasq"}),
        old_(executor) {
    index();
  }

  Result<void> start() override { return goOn({}); }
  void stop() override { dnsmasq_.stop(); }
  Result<void> goOn(RunningDnsmasq earlier) override;
  RunningDnsmasq release() override;
  Result<void> follow(const inventory::Cluster& cluster) override;
  Result<void> arm(const NodeName& node) override;
  void disarm(const NodeName& node) override;
  bool usesMedium(const NodeName& node) const override;
  Async<std::vector<std::string>> armMedium(NodeName node) override;
  bool isOwnMedium(const std::string& image) const override;
  std::vector<io::Route> routes() override {
    std::vector<io::Route> routes{
        {"GET", "/boot/ipxe",
         [this](io::ServerRequest request) { return answer(std::move(request)); }},
        {"GET", kIpxeUefiRoute, [](io::ServerRequest) { return ipxeForUefi(); }},
        {"GET", kMediumRoute,
         [this](io::ServerRequest request) { return answerHttpBoot(std::move(request)); }}};
    for (auto& route : mediumRoutes()) routes.push_back(std::move(route));
    return routes;
  }
  std::vector<io::Route> mediumRoutes() override {
    return {{"GET", kMediaRoute,
             [this](io::ServerRequest request) { return answerMedium(std::move(request)); }}};
  }

 private:
  void index();
  Result<Daemon> dnsmasqDaemon();
  Task<io::ServerResponse> answer(io::ServerRequest request);
  Task<io::ServerResponse> answerMedium(io::ServerRequest request);
  Task<io::ServerResponse> answerHttpBoot(io::ServerRequest request);
  Async<BootMedium> mediumFor(NodeName node);
  const std::string* signedScriptOf(const io::ServerRequest& request) const;
  Result<RamBoot> ramBootOf(const inventory::Node& node, const std::string& live);
  std::string scriptFor(const io::ServerRequest& request);
  /// As NetbootOptions::is_on_its_way says.
  void armOnItsWay(const inventory::Node& node, const std::string& from);
  bool mayBe(const inventory::Node& node, const std::string& remote_address) const;
  std::string stayOnDisk(const io::ServerRequest& request, const std::string& reason);

  const inventory::Cluster* cluster_;
  const ImageStore& images_;
  gateway::GatewayServer& gateway_;
  NetbootOptions options_;
  HostFiles hosts_;
  TftpFolder tftp_;
  std::shared_ptr<BootMedia> media_;
  io::ProcessRunner& processes_;
  Supervisor dnsmasq_;
  std::map<Mac, const inventory::Node*> by_mac_;
  std::map<Ipv4, const inventory::Node*> by_address_;
  std::string tftpKey(const inventory::Node& node) const;
  Result<std::optional<PackedImage>> liveImageOf(const inventory::Profile& profile) const;

  LogLimit log_limit_;         ///< of requests, which anybody may make
  std::string configuration_;  ///< of the dnsmasq that runs
  struct Armed {
    std::string script;  ///< iPXE's
    std::chrono::steady_clock::time_point since;
  };
  std::map<NodeName, Armed> armed_;
  struct ArmedMedium {
    NodeName node;
    std::filesystem::path image;
    std::shared_ptr<const io::FileOverlay> parameters;
    std::chrono::steady_clock::time_point since;
    bool asked_for = false;
  };
  std::map<std::string, ArmedMedium> armed_media_;  ///< by the id in its URL
  struct ArmedFolder {
    std::string key;
    std::string script;  ///< GRUB's
    std::chrono::steady_clock::time_point since;
  };
  std::map<NodeName, ArmedFolder> armed_tftp_;  ///< nodes with Secure Boot
  asio::steady_timer old_;  ///< nobody tells when dnsmasq is asked: who waits no more is looked for
  void lookForOld();
};

Result<void> DnsmasqNetboot::goOn(RunningDnsmasq earlier) {
  const auto& network = cluster_->provisioning();
  if (network.dhcp_mode == inventory::DhcpMode::None) return {};
  DnsmasqSite site{
      .interface = interfaceOf(network.controller),
      .run_folder = options_.dnsmasq_unit ? options_.dnsmasq_unit->folder : options_.run_folder,
      .hosts_folder = options_.hosts_folder,
      .http_port = options_.http_port,
      .tftp_root = tftp_.root()};
  if (site.interface.empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("no interface of this machine has the controller's address {}; give it "
                            "to one, or correct "
                            "networks.provisioning.controller",
                            network.controller.str()));
  }
  for (const auto* file : {kIpxeBios, kIpxeUefi}) {
    const auto original = std::filesystem::path(kIpxeFolder) / file;
    if (!std::filesystem::exists(original))
      return fail(ErrorCode::NotFound,
                  fmt::format("{} is missing; install the package ipxe", original.string()));
  }
  TRY_OK(io::makeDirs(options_.run_folder, 0700));
  configuration_ = renderDnsmasq(*cluster_, site);
  TRY(change, hosts_.write(renderHosts(*cluster_)));
  TRY_OK(hosts_.checkAnybodyCanRead());
  TRY_OK(tftp_.start());
  if (earlier.configuration != configuration_) earlier.child.reset();  // ends it
  const auto before = earlier.child ? earlier.child->pid() : 0;
  TRY(daemon, dnsmasqDaemon());
  auto started = dnsmasq_.adopt(std::move(earlier.child), std::move(daemon));
  if (!started) return std::unexpected(std::move(started).error().within("starting dnsmasq"));
  if (before != 0 && change.mustReread()) dnsmasq_.signal(SIGHUP);
  logInfo("netboot", "dnsmasq {} {} on {}", before != 0 ? "goes on serving" : "serves",
          network.cidr.str(), site.interface);
  return {};
}

/// Leases that a dnsmasq of this process's own has given go along to the unit's first one.
Result<Daemon> DnsmasqNetboot::dnsmasqDaemon() {
  const auto pid_file = dnsmasqPidFile(options_.run_folder);
  if (const auto& unit = options_.dnsmasq_unit) {
    io::DaemonFiles files{{kDnsmasqConf, configuration_}};
    const auto leases = dnsmasqLeaseFile(options_.run_folder);
    if (auto earlier = io::readFile(leases, kMaxLeaseBytes))
      files[leases.filename()] = std::move(*earlier);
    return Daemon{[unit = *unit, files = std::move(files)] { return io::startInUnit(unit, files); },
                  unit->journal(), pid_file, false};
  }
  const auto file = options_.run_folder / kDnsmasqConf;
  TRY_OK(io::writeFileAtomic(file, configuration_, 0600));
  return childDaemon(processes_, {.program = "dnsmasq", .args = dnsmasqArguments(file)},
                     options_.run_folder / "dnsmasq.log", pid_file);
}

RunningDnsmasq DnsmasqNetboot::release() {
  while (!armed_.empty()) disarm(NodeName(armed_.begin()->first));
  while (!armed_tftp_.empty()) disarm(NodeName(armed_tftp_.begin()->first));
  armed_media_.clear();
  return {dnsmasq_.release(), configuration_};
}

void DnsmasqNetboot::index() {
  by_mac_.clear();
  by_address_.clear();
  for (const auto& node : cluster_->nodes) {
    by_mac_[node.mac] = &node;
    by_address_[node.address] = &node;
  }
}

Result<void> DnsmasqNetboot::follow(const inventory::Cluster& cluster) {
  const auto &now = cluster_->provisioning(), &next = cluster.provisioning();
  if (now.cidr.str() != next.cidr.str() || now.controller != next.controller ||
      now.controllers != next.controllers || now.dhcp_mode != next.dhcp_mode ||
      now.dhcp_range != next.dhcp_range || now.gateway != next.gateway || now.dns != next.dns ||
      now.subnets != next.subnets || now.boot_servers != next.boot_servers) {
    return fail(ErrorCode::Conflict,
                "the provisioning network of the inventory has changed; start muster again, it "
                "cannot follow that as it runs");
  }
  if (next.dhcp_mode != inventory::DhcpMode::None) {
    TRY(change, hosts_.write(renderHosts(cluster)));
    if (change.mustReread()) dnsmasq_.signal(SIGHUP);
    logInfo("netboot", "dnsmasq follows the inventory: {} nodes added, {} changed, {} removed",
            change.added, change.replaced, change.removed);
  }
  for (const auto& node : cluster_->nodes) {
    const auto* after = cluster.findNode(node.name);
    const bool same =
        after && node.mac == after->mac && node.address == after->address &&
        cluster_->profileOf(node).secure_boot == cluster.profileOf(*after).secure_boot &&
        cluster_->profileOf(node).boot_source == cluster.profileOf(*after).boot_source &&
        cluster_->profileOf(node).arch == cluster.profileOf(*after).arch;
    if (!same) disarm(node.name);
  }
  cluster_ = &cluster;
  index();
  return {};
}

Result<void> DnsmasqNetboot::arm(const NodeName& name) {
  const auto* node = cluster_->findNode(name);
  if (!node)
    return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", name.str()));
  if (const auto why = dnsmasq_.gaveUp())
    return fail(ErrorCode::Unavailable, "machines cannot boot from the network: " + *why);
  const auto& profile = cluster_->profileOf(*node);
  TRY(ram_os, images_.findRamOs(profile.arch));
  if (!ram_os) return fail(ErrorCode::NotFound, noRamOs(profile.arch));
  TRY(live, liveImageOf(profile));
  TRY(boot, ramBootOf(*node, live ? live->digest : ""));
  disarm(name);
  if (bootsBySignedLoaders(profile)) {
    TRY(script, ramGrubScript(*node, profile, boot));
    const auto key = tftpKey(*node);
    TRY_OK(tftp_.arm(key, script, *ram_os, live ? &*live : nullptr));
    armed_tftp_[name] = {key, script, options_.steady()};
    if (armed_tftp_.size() == 1) lookForOld();
  } else {
    TRY(script, ramBootScript(*node, profile, boot));
    armed_[name] = {script, options_.steady()};
  }
  return {};
}

/// Opens an enrollment: what an earlier arming has given out is worth nothing from now on.
Result<RamBoot> DnsmasqNetboot::ramBootOf(const inventory::Node& node, const std::string& live) {
  TRY(enrollment, gateway_.openEnrollment(node.name, node.mac));
  const auto& network = cluster_->provisioning();
  const auto* server = inventory::bootServerOf(network, node.rack, node.address);
  return RamBoot{server && !server->http.empty()
                     ? server->http
                     : fmt::format("http://{}:{}", network.controller.str(), options_.http_port),
                 inventory::agentUrls(network, options_.https_port), options_.ca_fingerprint,
                 enrollment, live};
}

bool DnsmasqNetboot::usesMedium(const NodeName& name) const {
  const auto* node = cluster_->findNode(name);
  return node && cluster_->profileOf(*node).boot_source == inventory::BootSource::VirtualMedia;
}

bool DnsmasqNetboot::isOwnMedium(const std::string& image) const {
  const auto& network = cluster_->provisioning();
  auto hosts = network.controllers;
  hosts.push_back(network.controller);
  return std::ranges::any_of(hosts, [&](Ipv4 host) {
    return image.starts_with(mediumUrl("http", host, options_.http_port)) ||
           image.starts_with(mediumUrl("https", host, options_.https_port));
  });
}

Async<BootMedium> DnsmasqNetboot::mediumFor(NodeName name) {
  const auto* node = cluster_->findNode(name);
  if (!node)
    co_return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", name.str()));
  const auto& profile = cluster_->profileOf(*node);
  CO_TRY(ram_os, images_.findRamOs(profile.arch));
  if (!ram_os) co_return fail(ErrorCode::NotFound, noRamOs(profile.arch));
  CO_TRY(live, liveImageOf(profile));
  const std::function<Result<BootMedium>()> make =
      [media = media_, parts = mediumParts(profile.arch, *ram_os, live ? &*live : nullptr)] {
        return media->make(parts);
      };
  auto made =
      options_.workers ? co_await offload<Result<BootMedium>>(*options_.workers, make) : make();
  if (!made) co_return fail(std::move(made).error().within("making the boot medium"));
  co_return made;
}

Async<std::vector<std::string>> DnsmasqNetboot::armMedium(NodeName name) {
  CO_TRY(made, co_await mediumFor(name));
  const auto* node = cluster_->findNode(name);  // the inventory may be another one by now
  if (!node)
    co_return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", name.str()));
  CO_TRY(live, liveImageOf(cluster_->profileOf(*node)));
  CO_TRY(boot, ramBootOf(*node, live ? live->digest : ""));
  CO_TRY(script, ramGrubScript(*node, cluster_->profileOf(*node), boot));
  CO_TRY(parameters, mediumParameters(made, script));
  disarm(name);
  const auto id = io::randomToken(16);
  armed_media_[id] = {name, made.image,
                      std::make_shared<const io::FileOverlay>(std::move(parameters)),
                      options_.steady()};
  const auto host = cluster_->provisioning().controller;
  const auto file = fmt::format("{}/muster-{}.iso", id, name.str());
  co_return std::vector<std::string>{mediumUrl("http", host, options_.http_port) + file,
                                     mediumUrl("https", host, options_.https_port) + file};
}

/// The medium holds no secret, and its id is not to be guessed: whoever has it may read. Which
/// address a BMC reads from nobody knows.
Task<io::ServerResponse> DnsmasqNetboot::answerMedium(io::ServerRequest request) {
  const auto path = request.path();
  const auto rest = std::string_view(path).substr(std::string_view(kMediaRoute).size());
  const auto slash = rest.find('/');
  const auto armed = armed_media_.find(std::string(rest.substr(0, slash)));
  const bool known =
      armed != armed_media_.end() && slash != std::string_view::npos &&
      rest.substr(slash + 1) == fmt::format("muster-{}.iso", armed->second.node.str()) &&
      options_.steady() - armed->second.since <= options_.window();
  if (!known) co_return io::ServerResponse::text(404, "there is no such medium, or not any more\n");
  if (!armed->second.asked_for)
    logInfo("netboot", "{} reads the boot medium of {}", request.remote_address,
            armed->second.node.str());
  armed->second.asked_for = true;
  co_return io::ServerResponse::file(
      {armed->second.image, "application/octet-stream", armed->second.parameters});
}

/// What GRUB gets of an armed node, asked for from its own address; nullptr: this is none.
const std::string* DnsmasqNetboot::signedScriptOf(const io::ServerRequest& request) const {
  const auto from = Ipv4::parse(request.remote_address);
  const auto node = from ? by_address_.find(*from) : by_address_.end();
  if (node == by_address_.end()) return nullptr;
  const auto armed = armed_tftp_.find(node->second->name);
  const bool counts =
      armed != armed_tftp_.end() && options_.steady() - armed->second.since <= options_.window();
  return counts ? &armed->second.script : nullptr;
}

/// UEFI's HTTP boot takes an ISO image into a RAM disk and starts it, by the loaders that are
/// signed: GRUB by itself does not know where it came from when HTTP brought it. Who has nothing to
/// do here is told so at once, and its firmware goes on. Source: UEFI 2.10, 24.7.3.1 (RAM disk,
/// application/vnd.efi-iso)
Task<io::ServerResponse> DnsmasqNetboot::answerHttpBoot(io::ServerRequest request) {
  constexpr const char* kNothing = "there is nothing to boot here\n";
  const auto from = Ipv4::parse(request.remote_address);
  if (!signedScriptOf(request)) co_return io::ServerResponse::text(404, kNothing);
  const NodeName name = by_address_.at(*from)->name;
  const auto medium = co_await mediumFor(name);
  const auto* script = signedScriptOf(request);  // it may have been disarmed meanwhile
  if (!medium || !script) {
    if (!medium)
      logWarning("netboot", "{} cannot boot by HTTP: {}", name.str(), medium.error().str());
    co_return io::ServerResponse::text(404, kNothing);
  }
  auto parameters = mediumParameters(*medium, *script);
  if (!parameters) co_return io::ServerResponse::text(404, kNothing);
  logInfo("netboot", "{} ({}) loads the boot medium by HTTP", name.str(), request.remote_address);
  co_return io::ServerResponse::file(
      {medium->image, "application/vnd.efi-iso",
       std::make_shared<const io::FileOverlay>(std::move(*parameters))});
}

/// The image whose kernel this node starts with. One that is not built yet is not waited for: the
/// RAM OS can do all else on its own.
Result<std::optional<PackedImage>> DnsmasqNetboot::liveImageOf(
    const inventory::Profile& profile) const {
  if (!cluster_->isLive(profile)) return std::optional<PackedImage>();
  TRY(image, images_.find(cluster_->images.at(profile.image)));
  if (image && image->kernel.empty()) image.reset();
  return image;
}

void DnsmasqNetboot::disarm(const NodeName& node) {
  armed_.erase(node);
  std::erase_if(armed_media_, [&node](const auto& each) { return each.second.node == node; });
  if (const auto folder = armed_tftp_.extract(node)) tftp_.disarm(folder.mapped().key);
  if (armed_tftp_.empty()) old_.cancel();
}

/// A script by HTTP looks at its age when it is asked for; a folder has nobody who would.
void DnsmasqNetboot::lookForOld() {
  old_.expires_after(options_.look_for_old);
  old_.async_wait([this](boost::system::error_code stopped) {
    if (stopped || armed_tftp_.empty()) return;
    std::vector<NodeName> old;
    for (const auto& [node, folder] : armed_tftp_)
      if (options_.steady() - folder.since > options_.window()) old.push_back(node);
    for (const auto& node : old) {
      logInfo("netboot", "the arming of {} has expired: it finds nothing to start by TFTP any more",
              node.str());
      disarm(node);
    }
    if (!armed_tftp_.empty()) lookForOld();
  });
}

/// As dnsmasq names the folder of who asks. Beside another DHCP server nobody here knows the
/// addresses.
std::string DnsmasqNetboot::tftpKey(const inventory::Node& node) const {
  if (inventory::leasesAddresses(cluster_->provisioning())) return node.address.str();
  auto mac = node.mac.str();
  std::replace(mac.begin(), mac.end(), ':', '-');
  return mac;
}

Task<io::ServerResponse> DnsmasqNetboot::answer(io::ServerRequest request) {
  auto script = scriptFor(request);
  co_return io::ServerResponse::text(200, std::move(script));
}

void DnsmasqNetboot::armOnItsWay(const inventory::Node& node, const std::string& from) {
  const bool by_script = !bootsBySignedLoaders(cluster_->profileOf(node));
  if (!by_script || !mayBe(node, from) || !options_.is_on_its_way(node.name)) return;
  logInfo("netboot", "{} was started into the RAM OS by an earlier process; it is armed anew",
          node.name.str());
  if (const auto armed = arm(node.name); !armed)
    logWarning("netboot", "{} cannot start into the RAM OS: {}", node.name.str(),
               armed.error().str());
}

std::string DnsmasqNetboot::scriptFor(const io::ServerRequest& request) {
  const auto query = io::queryOf(request.target);
  const auto given = query.find("mac");
  const auto mac = Mac::parse(given == query.end() ? "" : given->second);
  if (!mac) return stayOnDisk(request, "no usable MAC in the request");
  const auto node = by_mac_.find(*mac);
  if (node == by_mac_.end()) return stayOnDisk(request, mac->str() + " is not in the inventory");
  const auto& name = node->second->name;
  if (!armed_.contains(name)) armOnItsWay(*node->second, request.remote_address);
  const auto armed = armed_.find(name);
  if (armed == armed_.end()) return stayOnDisk(request, name.str() + " has nothing to do here");
  if (!mayBe(*node->second, request.remote_address)) {
    if (log_limit_.mayWrite("netboot"))
      logWarning("netboot", "{} asked for the boot script of {} ({})", request.remote_address,
                 name.str(), node->second->address.str());
    return stayOnDisk(request, "the request for " + name.str() + " came from another machine");
  }
  if (options_.steady() - armed->second.since > options_.window()) {
    disarm(name);
    return stayOnDisk(request, "the arming of " + name.str() + " has expired");
  }
  logInfo("netboot", "{} ({}) boots into the RAM OS", name.str(), request.remote_address);
  return armed->second.script;
}

/// The script holds no secret. It is given to the node alone, so that no other machine boots into
/// the RAM OS by mistake: where the addresses are ours only the node's own will do; beside another
/// DHCP server any that is no other node's.
bool DnsmasqNetboot::mayBe(const inventory::Node& node, const std::string& remote_address) const {
  const auto from = Ipv4::parse(remote_address);
  if (inventory::leasesAddresses(cluster_->provisioning())) return from && *from == node.address;
  const auto sender = from ? by_address_.find(*from) : by_address_.end();
  return sender == by_address_.end() || sender->second == &node;
}

std::string DnsmasqNetboot::stayOnDisk(const io::ServerRequest& request,
                                       const std::string& reason) {
  if (log_limit_.mayWrite("netboot"))
    logInfo("netboot", "{}: {}: boots from disk", request.remote_address, reason);
  return diskBootScript(reason);
}

}  // namespace

Async<std::vector<std::string>> Netboot::armMedium(NodeName) {
  co_return fail(ErrorCode::Internal, "no boot media are made here");
}

std::unique_ptr<Netboot> makeNetboot(const inventory::Cluster& cluster, const ImageStore& images,
                                     gateway::GatewayServer& gateway, io::ProcessRunner& processes,
                                     asio::any_io_executor executor, NetbootOptions options) {
  return std::make_unique<DnsmasqNetboot>(cluster, images, gateway, processes, std::move(executor),
                                          std::move(options));
}

}  // namespace muster::provision
