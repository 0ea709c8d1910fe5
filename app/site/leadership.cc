// SPDX-License-Identifier: Apache-2.0
#include "app/site/leadership.h"

#include "base/ip_address.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/io/trusted_keys.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "inventory/model/networks.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/netboot/netboot.h"
#include "signer/key_files.h"

#include <fmt/ranges.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <iostream>

namespace muster::app {
namespace {

constexpr std::chrono::milliseconds kPatience{
    5'000};  ///< of one renewal with a server that is away
constexpr std::chrono::milliseconds kPollInterval{1'000};
constexpr const char* kCa = "site/ca";

std::string addressOf(const inventory::Cluster& cluster) {
  return cluster.provisioning().controller.str();
}

/// What to do on a host that has not the site's keys.
std::string howToCopy(const Options& options) {
  return fmt::format(
      "copy {0}/ca and {0}/keys, and nothing else of that folder, from a host that has them (as "
      "root: rsync -a HOST:{0}/ca HOST:{0}/keys {0}/; where the signer holds keys, those of "
      "/var/lib/muster-signer in the same way, and then "
      "/usr/lib/muster/own-state); docs/two-hosts.md",
      options.state.string());
}

/// `known`: this host's own, and before it those that it has replaced by a rotation.
Result<void> requireAgreed(const Options& options, lifecycle::Store& store, const std::string& key,
                           const std::vector<std::string>& known, std::string_view what) {
  const auto& mine = known.front();
  TRY(agreed, lifecycle::agreedSiteValue(store, key, mine));
  if (agreed == mine) return {};
  if (std::find(known.begin(), known.end(), agreed) != known.end()) {
    TRY(changed, store.exchangeValue(key, agreed, mine));
    if (changed) return {};
  }
  return fail(
      ErrorCode::Denied,
      fmt::format(
          "the {} of this host is {}, the site's is {}: agents would not listen to this host. {}",
          what, mine, agreed, howToCopy(options)));
}

Result<Keys> localKeys(const Options& options, lifecycle::Store& store, bool serves) {
  TRY(keys, Keys::loadOrCreate(options.state));
  if (!serves || options.store.empty()) return std::move(keys);
  std::vector<std::pair<std::string, std::string>> all{{kCa, keys.ca.fingerprint()}};
  for (const auto& row : kKeyPurposes)
    all.emplace_back(row.agreed, io::publicKeyIds(keys.publicPem(row.purpose)).front());
  for (const auto& [key, mine] : all) {
    TRY(stored, store.getValue(key));
    if (stored != mine) TRY_OK(store.putValue(key, mine));
  }
  return std::move(keys);
}

}  // namespace

bool hasSeveralControllers(const inventory::Cluster& cluster) {
  return !cluster.networks.empty() && cluster.provisioning().controllers.size() > 1;
}

std::vector<Ipv4> addressesOfHost() {
  std::vector<Ipv4> out;
  const char* chosen = std::getenv("MUSTER_ADDRESS");
  const auto only = Ipv4::parse(chosen ? chosen : "");
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const auto* i = all; i; i = i->ifa_next)
    if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET)
      out.emplace_back(ntohl(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr));
  if (only) std::erase_if(out, [&only](Ipv4 address) { return address != *only; });
  return out;
}

Result<void> checkCanServe(const Options& options, const inventory::Cluster& cluster) {
  if (options.store.empty())
    return fail(ErrorCode::InvalidInput,
                "several controllers share one PostgreSQL store: give --store postgresql://… (or "
                "MUSTER_STORE), or declare one controller");
  const auto here = addressesOfHost();
  if (std::find(here.begin(), here.end(), cluster.provisioning().controller) != here.end())
    return {};
  std::vector<std::string> declared;
  for (const auto address : inventory::controllersOf(cluster.provisioning()))
    declared.push_back(address.str());
  return fail(
      ErrorCode::NotFound,
      fmt::format("this machine has none of the addresses of networks.provisioning.controllers "
                  "({}); give it one, or work on a host that has one",
                  fmt::join(declared, ", ")));
}

Result<Keys> siteKeys(const Options& options, bool several, lifecycle::Store& store, bool serves) {
  if (!several || !serves) return localKeys(options, store, serves);
  TRY(held, signer::signerOf(options.state));  // holds two of them
  std::vector<std::pair<std::string, std::string>> files{{kCa, held ? "ca/ca.crt" : "ca/ca.key"}};
  for (const auto& row : kKeyPurposes)
    files.emplace_back(row.agreed, held && row.purpose == KeyPurpose::Certificates
                                       ? "keys/signing.pub"
                                       : fmt::format("keys/{}", row.file));
  for (const auto& [key, file] : files) {
    TRY(agreed, store.getValue(key));
    std::error_code ignored;
    if (agreed && !std::filesystem::exists(options.state / file, ignored))
      return fail(ErrorCode::Denied,
                  fmt::format("the site has its keys already, and {} is not here: {}",
                              (options.state / file).string(), howToCopy(options)));
  }
  TRY(keys, Keys::loadOrCreate(options.state));
  TRY_OK(requireAgreed(options, store, kCa, {keys.ca.fingerprint()}, "CA (SHA-256 of ca/ca.crt)"));
  for (const auto& row : kKeyPurposes)
    TRY_OK(requireAgreed(options, store, std::string(row.agreed),
                         io::publicKeyIds(keys.publicPem(row.purpose)),
                         fmt::format("key for {} (keys/{})", row.name, row.file)));
  return std::move(keys);
}

Result<void> agreeOnImages(const Options& options, const inventory::Cluster& cluster,
                           const provision::ImageStore& images, lifecycle::Store& store,
                           const std::string& holder) {
  for (const auto& [name, image] : cluster.images) {
    const auto found = images.find(image);
    if (!found || !*found) continue;  // the plan says that it is not built
    const auto key = "site/image/" + name;
    const auto mine = fmt::format("{} {}", (*found)->digest, holder);
    TRY(stored, store.getValue(key));
    if (stored && stored->substr(0, stored->find(' ')) != (*found)->digest &&
        stored->substr(stored->find(' ') + 1) != holder)
      return fail(ErrorCode::Denied,
                  fmt::format("image {} is {} here, the site's is {}: every node would be taken "
                              "for wrong. Copy {}/images from {} (docs/two-hosts.md)",
                              name, (*found)->digest, stored->substr(0, stored->find(' ')),
                              options.cache.string(), stored->substr(stored->find(' ') + 1)));
    if (!stored || *stored != mine) TRY_OK(store.putValue(key, mine));
  }
  return {};
}

// ---- serving

Leadership::Leadership(std::unique_ptr<lifecycle::Store> store, std::filesystem::path state,
                       std::string holder, std::string address, std::string api_url)
    : store_(std::move(store)),
      state_(std::move(state)),
      lease_(*store_, clock_, std::move(holder), std::move(address), std::move(api_url)) {}

Result<std::unique_ptr<Leadership>> Leadership::acquire(const Options& options,
                                                        const inventory::Cluster& cluster,
                                                        const std::string& holder) {
  TRY(store, lifecycle::openStore(options.storeUrl(), kPatience));
  std::unique_ptr<Leadership> leadership(
      new Leadership(std::move(store), options.state, holder, addressOf(cluster), options.api_url));
  for (bool told = false;; told = true) {
    TRY(now, leadership->lease_.take());
    if (now.ours) break;
    leadership->took_over_ = true;
    if (now.alive)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} serves the site, at {}: run the command there, or stop muster "
                              "there and wait {} s",
                              now.holder, now.address, lifecycle::kLeaderLease.count()));
    if (!told)
      std::cerr << fmt::format(
          "muster: {} has served the site, at {}; looking for {} s whether it still does\n",
          now.holder, now.address, lifecycle::kLeaderLease.count());
    std::this_thread::sleep_for(kPollInterval);
  }
  leadership->renewing_ = std::thread([raw = leadership.get()] { raw->renewLoop(); });
  return leadership;
}

/// It is not given back: the next process of this host goes on at once, and another host takes it
/// when it has stood still.
Leadership::~Leadership() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  if (renewing_.joinable()) renewing_.join();
}

void Leadership::renewLoop() {
  auto renewed = clock_.steady();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, lifecycle::kLeaderRenewal, [this] { return end_; })) {
    const auto before = clock_.steady();
    const auto done = lease_.renew();
    if (done) {
      renewed = before;
      continue;
    }
    if (done.error().code() == ErrorCode::Conflict) stepDown(done.error().str());
    logWarning("leadership", "the leadership of this host could not be renewed: {}",
               done.error().str());
    if (clock_.steady() - renewed >= lifecycle::kLeaderGivesUp)
      stepDown(fmt::format("the store has not answered for {} s: {}",
                           lifecycle::kLeaderGivesUp.count(), done.error().str()));
  }
}

void Leadership::stepDown(const std::string& why) {
  logWarning("leadership", "this host does not serve the site any more: {}", why);
  std::cerr << fmt::format(
                   "\nmuster: this host does not serve the site any more: {}; started again, "
                   "`muster monitor` stands by\n",
                   why)
            << std::flush;
  terminateOrphanedDnsmasq(state_);
  std::_Exit(kLostLeadership);
}

Result<bool> standBy(const Options& options, const inventory::Cluster& cluster,
                     const std::string& holder, const std::function<bool()>& asked,
                     const std::function<void(const lifecycle::Leader&)>& tell) {
  TRY(store, lifecycle::openStore(options.storeUrl(), kPatience));
  const SystemClock clock;
  lifecycle::LeaderLease lease(*store, clock, holder, addressOf(cluster), options.api_url);
  for (std::string told;;) {
    TRY(now, lease.take());
    if (now.ours) return true;
    terminateOrphanedDnsmasq(options.state);
    if (std::exchange(told, now.holder) != now.holder) tell(now);
    if (asked()) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::filesystem::path netbootFolder(const std::filesystem::path& state) {
  return state / "run" / "netboot";
}

void terminateOrphanedDnsmasq(const std::filesystem::path& state) {
  constexpr std::chrono::milliseconds kGrace{200};
  if (const auto ended =
          io::PidFile{provision::dnsmasqPidFile(netbootFolder(state))}.terminate(kGrace);
      !ended)
    logWarning("leadership", "a dnsmasq of this host may still answer: {}", ended.error().str());
}

}  // namespace muster::app
