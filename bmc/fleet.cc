// SPDX-License-Identifier: Apache-2.0
// All BMCs of the cluster, made when they are first asked for.
#include "bmc/fleet.h"
#include "bmc/arbiter.h"
#include "bmc/ipmi/ipmi_bmc.h"
#include "bmc/ipmi/pdu.h"
#include "bmc/libvirt/libvirt_bmc.h"
#include "bmc/raid_tool.h"
#include "bmc/redfish/redfish_bmc.h"
#include "bmc/trust.h"
#include "inventory/model/access.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/hardware_raid.h"
#include "inventory/model/limits.h"
#include "inventory/model/profile.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kCloseLimit = 4s;

// Of all BMCs together; what the management network and the controller bear is found by trying
// (lifecycle/executor/adaptive_limit.h).
constexpr lifecycle::AdaptiveLimit::Bounds kRequests{
    .floor = 16, .start = 64, .ceiling = 1'024, .shows_backlog = true};
constexpr lifecycle::AdaptiveLimit::Bounds kUploads{.floor = 2, .start = 16, .ceiling = 128};

/// A BMC that cannot be talked to; every call says why.
class NoBmc final : public Bmc {
 public:
  NoBmc(std::string address, std::string why)
      : address_(std::move(address)), why_(std::move(why)) {}
  std::string address() const override { return address_; }
  Async<SystemInfo> system() override { return no<SystemInfo>(); }
  Async<void> power(PowerAction) override { return no<void>(); }
  Async<void> bootOnce(BootTarget) override { return no<void>(); }
  Async<std::vector<FirmwareItem>> firmware() override { return no<std::vector<FirmwareItem>>(); }
  Async<std::string> startUpdate(FirmwareUpdate) override { return no<std::string>(); }
  Async<TaskStatus> task(std::string) override { return no<TaskStatus>(); }
  Async<TaskList> tasks() override { return no<TaskList>(); }
  Async<void> resetBmc() override { return no<void>(); }
  Async<EventLog> eventLog(std::size_t) override { return no<EventLog>(); }
  Async<PowerSupplies> powerSupplies() override { return no<PowerSupplies>(); }
  Async<SerialConsoleEndpoint> serialConsole() override { return no<SerialConsoleEndpoint>(); }
  Async<void> acCycle() override { return no<void>(); }

 private:
  template <class T>
  Async<T> no() {
    co_return fail(ErrorCode::InvalidInput, why_);
  }
  std::string address_, why_;
};

class Fleet final : public BmcFleet {
 public:
  Fleet(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock, Workers& workers,
        HttpClientFactory make_client, std::string libvirt_uri)
      : cluster_(cluster),
        store_(store),
        clock_(clock),
        workers_(workers),
        make_client_(std::move(make_client)),
        libvirt_uri_(std::move(libvirt_uri)),
        requests_(clock, kRequests.under(cluster.limits->bmc_requests)),
        uploads_(clock, kUploads.under(cluster.limits->uploads)),
        images_(workers) {}

  Bmc& at(const NodeName& node) override {
    auto& slot = bmcs_[node];
    if (!slot) slot = make(node);
    return *slot;
  }

  EventSource* eventsOf(const NodeName& node) override {
    at(node);
    const auto found = sources_.find(node);
    return found == sources_.end() ? nullptr : found->second;
  }

  Bmc* ipmiOf(const NodeName& name) override {
    const inventory::Node* node = cluster_.findNode(name);
    if (!node || !cluster_.profileOf(*node).ipmi || !node->bmc.url.starts_with("https://"))
      return nullptr;
    auto& slot = ipmi_[name];
    if (!slot) slot = arbitrate(makeIpmiBmc(ipmiOptions(*node), *processes_, clock_), clock_);
    return slot.get();
  }

  Async<void> close() override {
    auto all = logoutAll();
    co_return co_await withDeadline<void>(clock_, kCloseLimit, "logging out of the BMCs",
                                          std::move(all));
  }

 private:
  std::unique_ptr<Bmc> make(const NodeName& name) {
    const inventory::Node* node = cluster_.findNode(name);
    if (!node) return std::make_unique<NoBmc>("", "the inventory has no node " + name.str());
    const std::string& url = node->bmc.url;
    if (url.rfind("libvirt:", 0) == 0)
      return arbitrate(makeLibvirtBmc(url.substr(8), libvirt_uri_, clock_, workers_), clock_);
    if (url.rfind("https://", 0) != 0) {
      return std::make_unique<NoBmc>(
          url, "the BMC address \"" + url + "\" of " + name.str() +
                   " is neither https://… nor libvirt:DOMAIN; correct bmc.url in the inventory");
    }
    const auto& profile = cluster_.profileOf(*node);
    const auto& account = inventory::bmcCredentialOf(cluster_, *node);
    auto credential = cluster_.credentials.find(account);
    if (credential == cluster_.credentials.end()) {
      return std::make_unique<NoBmc>(
          url, "the inventory has no credential \"" + account + "\" for the BMC of " + name.str());
    }
    RedfishSession::Options options;
    options.node = name;
    options.base_url = url;
    options.username = node->bmc.username_override.empty() ? credential->second.username
                                                           : node->bmc.username_override;
    options.password = [ref = credential->second.password] { return ref.read(); };
    if (const auto& next = credential->second.rotate_to; next.declared())
      options.next_password = [next] { return next.read(); };
    options.declared = inventory::bmcTrustOf(cluster_, *node);
    options.policy = cluster_.bmc_trust;
    options.requests = &requests_;
    options.uploads = &uploads_;
    options.recent = &recent_;
    options.rank = static_cast<std::size_t>(
        node - cluster_.nodes.data());  // plans begin with the first of the inventory
    auto session = std::make_unique<RedfishSession>(std::move(options), store_, clock_,
                                                    make_client_, &journal_);
    auto redfish = std::make_unique<RedfishBmc>(std::move(session), profile.boot, clock_, images_,
                                                node->bmc.system);
    redfish_.push_back(redfish.get());
    sources_[name] = &redfish->eventSource();
    std::unique_ptr<Bmc> driver = std::move(redfish);
    if (profile.ipmi) driver = withIpmi(std::move(driver), *ipmiOf(name));
    if (profile.pdu) {
      const auto& hook = *profile.pdu;
      driver = withPdu(std::move(driver),
                       {argumentsFor(*node, hook.off), argumentsFor(*node, hook.on),
                        std::chrono::seconds(hook.seconds_off)},
                       *processes_, clock_);
    }
    if (profile.raid && profile.raid->tool) {
      const auto& tool = *profile.raid->tool;
      driver = withRaidTool(std::move(driver),
                            {argumentsFor(*node, tool.show), argumentsFor(*node, tool.create),
                             argumentsFor(*node, tool.remove)},
                            *processes_);
    }
    return arbitrate(std::move(driver), clock_);
  }

  /// The same account as Redfish's, and the same memory: a password that one was refused is not
  /// tried by the other.
  IpmiOptions ipmiOptions(const inventory::Node& node) const {
    const auto& profile = cluster_.profileOf(node);
    const auto account = cluster_.credentials.find(inventory::bmcCredentialOf(cluster_, node));
    const bool known = account != cluster_.credentials.end();
    IpmiOptions options;
    options.host = hostOf(node.bmc.url);
    options.port = profile.ipmi->port;
    options.cipher_suite = profile.ipmi->cipher_suite;
    options.username = !node.bmc.username_override.empty() ? node.bmc.username_override
                       : known                             ? account->second.username
                                                           : std::string();
    auto* store = &store_;
    options.password = [known, store, name = node.name, user = options.username,
                        credential =
                            known ? account->second : inventory::Credential()]() -> Result<Secret> {
      if (!known)
        return fail(ErrorCode::NotFound,
                    "the inventory has no credential for the BMC of " + name.str());
      return passwordOf(credential, user, TrustMemory(*store, name));
    };
    options.may_try = [store, name = node.name, host = options.host,
                       user = options.username](const Secret& password) {
      return TrustMemory(*store, name).mayTry(host, user, password);
    };
    options.refused = [store, name = node.name, user = options.username](const Secret& password) {
      if (auto kept = TrustMemory(*store, name).rememberRefusal(user, password); !kept)
        logWarning("bmc", "{}: {}", name.str(), kept.error().str());
    };
    return options;
  }

  /// All at once: a thousand BMCs, one of them silent, must not add up.
  Async<void> logoutAll() {
    auto executor = co_await asio::this_coro::executor;
    struct Pending {
      explicit Pending(const asio::any_io_executor& e)
          : bell(e, asio::steady_timer::time_point::max()) {}
      asio::steady_timer bell;
      std::size_t open = 0;
    };
    auto pending = std::make_shared<Pending>(executor);
    pending->open = redfish_.size();
    if (redfish_.empty()) co_return Result<void>();
    for (RedfishBmc* bmc : redfish_) {
      asio::co_spawn(executor, bmc->logout(), [pending](std::exception_ptr, Result<void>) {
        if (--pending->open == 0) pending->bell.cancel();
      });
    }
    boost::system::error_code ignored;
    co_await pending->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return Result<void>();
  }

  const inventory::Cluster& cluster_;
  lifecycle::Store& store_;
  Clock& clock_;
  Workers& workers_;
  HttpClientFactory make_client_;
  std::string libvirt_uri_;
  lifecycle::Journal journal_{store_};
  lifecycle::AdaptiveSemaphore requests_, uploads_;
  RecentReads recent_;
  FirmwareImages images_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::map<NodeName, std::unique_ptr<Bmc>> ipmi_;
  std::map<NodeName, std::unique_ptr<Bmc>> bmcs_;
  std::map<NodeName, EventSource*> sources_;  ///< likewise
  std::vector<RedfishBmc*> redfish_;          ///< owned by their arbiters in bmcs_
};

}  // namespace

std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store,
                                       Clock& clock, Workers& workers,
                                       HttpClientFactory make_client, std::string libvirt_uri) {
  return std::make_unique<Fleet>(cluster, store, clock, workers, std::move(make_client),
                                 std::move(libvirt_uri));
}

std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store,
                                       Clock& clock, Workers& workers) {
  return makeBmcFleet(
      cluster, store, clock, workers,
      [](io::TlsTrust trust) { return io::makeHttpClient(std::move(trust)); }, std::string());
}

}  // namespace muster::bmc
