// SPDX-License-Identifier: Apache-2.0
#include "lab/fleet/sim_node.h"

#include "base/log.h"
#include "lab/vbmc/messages.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace muster::lab::fleet {

namespace {

constexpr std::uint64_t kDiskBytes = 1ull << 40;
constexpr std::uint64_t kMemoryBytes = 2ull << 40;
constexpr int kCpus = 192;
constexpr std::chrono::seconds kBootFileTimeout{10};

/// The value of KEY=VALUE in a boot script's kernel command line.
std::string argumentOf(const std::string& script, const std::string& key) {
  const auto at = script.find(key + "=");
  if (at == std::string::npos) return {};
  const auto begin = at + key.size() + 1;
  return script.substr(begin, script.find_first_of(" \t\r\n", begin) - begin);
}

}  // namespace

SimNode::SimNode(const World& world, NodeSpec spec)
    : world_(world),
      spec_(std::move(spec)),
      random_(world.conditions.seed ^ std::hash<std::string>()(spec_.name)) {}

SimNode::~SimNode() {
  if (agent_) agent_->stop();
  if (service_) service_->stop();
}

Result<std::unique_ptr<SimNode>> SimNode::make(const World& world, NodeSpec spec) {
  std::unique_ptr<SimNode> node(new SimNode(world, std::move(spec)));
  auto* raw = node.get();
  TRY(identity, io::selfSigned(raw->spec_.name + "-bmc", {raw->spec_.bmc_address}));
  raw->listener_.address = raw->spec_.bmc_address;
  raw->listener_.port = raw->spec_.bmc_port;
  raw->listener_.identity = std::move(identity);
  TRY(tls, io::makeServerTls(raw->listener_));
  raw->tls_ = std::move(tls);
  vbmc::ServiceOptions options;
  options.identity = {raw->spec_.name, raw->spec_.serial, raw->spec_.serial, {raw->spec_.mac}};
  options.vendor_profile = world.vendor_profile;
  options.account = world.account;
  options.timings.flash_step = world.conditions.flash_step.draw(raw->random_);
  options.timings.flash_steps = 2;
  options.timings.reset_delay = std::chrono::milliseconds(0);
  options.timings.reset_duration = world.conditions.bmc_reset.draw(raw->random_);
  options.went_away = [raw] { raw->server_.reset(); };
  options.came_back = [raw] {
    if (auto up = raw->listen(); !up)
      logWarning("fleet", "{}: {}", raw->spec_.name, up.error().str());
  };
  TRY(service, vbmc::RedfishService::make(world.clock, world.workers, *raw, std::move(options)));
  raw->service_ = std::move(service);
  TRY_OK(raw->listen());
  asio::co_spawn(world.executor, raw->service_->run(), asio::detached);
  return node;
}

Result<void> SimNode::listen() {
  io::forgetSessions(*tls_);
  TRY(server, io::startHttpServer(world_.executor, listener_, tls_));
  server->addRoutes(routes());
  listener_.port = server->port();  // it comes back where it was
  server_ = std::move(server);
  return {};
}

std::vector<io::Route> SimNode::routes() {
  auto handler = [this](io::ServerRequest request) { return answer(std::move(request)); };
  return {{"*", "/redfish", handler}, {"*", "/redfish/", handler}, {"*", "/lab/", handler}};
}

Task<io::ServerResponse> SimNode::answer(io::ServerRequest request) {
  if (const auto takes = world_.conditions.redfish.draw(random_); takes.count() > 0) {
    co_await world_.clock.sleep(takes);
  }
  if (happens(world_.conditions.redfish_busy, random_))
    co_return vbmc::redfishError(503, "Base.1.8.ServiceTemporarilyUnavailable", "The BMC is busy.",
                                 "Try again.");
  auto response = co_await service_->handle(std::move(request));
  co_return response;
}

Async<void> SimNode::start(vbmc::StartOptions options) {
  if (std::exchange(on_, true)) co_return Result<void>();
  if (world_.tell_power) world_.tell_power(spec_.name, ++switches_, true);
  asio::co_spawn(world_.executor, boot(++boots_, options.first == vbmc::BootDevice::Network),
                 asio::detached);
  co_return Result<void>();
}

Async<void> SimNode::stop() {
  if (std::exchange(on_, false) && world_.tell_power)
    world_.tell_power(spec_.name, ++switches_, false);
  ++boots_;  // one that is under way is over
  if (agent_) std::exchange(agent_, nullptr)->stop();
  co_return Result<void>();
}

Task<void> SimNode::boot(std::uint64_t number, bool from_network) {
  if (const auto takes = world_.conditions.boot.draw(random_); takes.count() > 0) {
    co_await world_.clock.sleep(takes);
  }
  if (number != boots_ || happens(world_.conditions.boot_lost, random_)) co_return;
  SimBoot boot;
  if (from_network) {
    auto loaded = co_await netboot();
    if (!loaded)
      logWarning("fleet", "{} could not boot from the network: {}", spec_.name,
                 loaded.error().str());
    if (!loaded || number != boots_) co_return;
    boot = std::move(*loaded);
  } else {
    if (disk_.image_digest.empty()) co_return;  // nothing to start
    boot.mode = wire::Mode::Disk;
    boot.url = disk_.agent_url;
  }
  boot.mac = spec_.mac;
  boot.boot_id = fmt::format("{}-{}", spec_.name, number);
  agent_ = std::make_shared<SimAgent>(world_.clock, world_.conditions, random_, hardware(), disk_,
                                      std::move(boot),
                                      [this](const wire::AgentTask& task, wire::TaskPhase phase) {
                                        if (world_.tell) world_.tell(spec_.name, task, phase);
                                      });
  asio::co_spawn(world_.executor, agent_->run(), asio::detached);
}

/// Whichever of the controllers serves: on metal its DHCP server says so.
Async<SimBoot> SimNode::netboot() {
  Result<SimBoot> boot = fail(ErrorCode::NotFound, "no controller is named");
  for (std::size_t begin = 0; !boot && begin < world_.boot_url.size();) {
    const auto comma = std::min(world_.boot_url.find(',', begin), world_.boot_url.size());
    boot = co_await netbootFrom(world_.boot_url.substr(begin, comma - begin));
    begin = comma + 1;
  }
  co_return boot;
}

Async<SimBoot> SimNode::netbootFrom(std::string controller) {
  auto client = io::makeHttpClient();
  io::HttpRequest request;
  CO_TRY(url, io::Url::parse(controller + "/boot/ipxe?mac=" + spec_.mac));
  request.url = url;
  request.timeout = kBootFileTimeout;
  CO_TRY(response, co_await client->send(std::move(request)));
  SimBoot boot;
  boot.enrollment = argumentOf(response.body, "muster.enrolment");
  boot.ca_fingerprint = argumentOf(response.body, "muster.ca");
  boot.url = argumentOf(response.body, "muster.url");
  if (boot.enrollment.empty() || boot.url.empty())
    co_return fail(ErrorCode::NotFound, "the boot script does not lead into the RAM OS");
  co_return boot;
}

wire::Hardware SimNode::hardware() const {
  wire::Hardware hardware;
  hardware.manufacturer = "muster";
  hardware.product = "Simulated Node";
  hardware.serial = spec_.serial;
  hardware.cpus = kCpus;
  hardware.memory_bytes = kMemoryBytes;
  const bool empty = disk_.image_digest.empty();
  hardware.disks.push_back({"/dev/nvme0n1", spec_.serial + "-D0", "", "simulated",
                            empty ? "none" : "an image", kDiskBytes,
                            empty ? wire::DiskUse::Empty : wire::DiskUse::System});
  hardware.nics.push_back({"eth0", spec_.mac, "simulated"});
  return hardware;
}

}  // namespace muster::lab::fleet
