// SPDX-License-Identifier: Apache-2.0
#include "discovery/scanner.h"

#include "base/ip_address.h"

#include "base/async/deadline.h"
#include "bmc/redfish/json_view.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <set>

namespace muster::discovery {
namespace {

using namespace std::chrono_literals;

constexpr auto kRootLimit = 5s;
constexpr auto kSurveyLimit = 180s;  ///< DGX H100 takes 180 s for some collections
constexpr std::size_t kMaxRootBytes = 1u << 20;
constexpr std::uint16_t kHttps = 443;
constexpr std::size_t kMaxNoteBytes = 2048;

struct Scan {
  Scan(ScanDeps d, std::vector<Ipv4> a, std::function<void(Machine)> s,
       asio::any_io_executor executor)
      : deps(std::move(d)),
        addresses(std::move(a)),
        seen(std::move(s)),
        bell(executor, asio::steady_timer::time_point::max()) {}
  ScanDeps deps;
  std::vector<Ipv4> addresses;
  std::function<void(Machine)> seen;
  struct Found {
    std::string url;
    bmc::Json root;
    std::string certificate;
  };
  ScanReport report;
  std::vector<Found> found;                     ///< Redfish services, in no order
  std::map<std::string, std::string> approved;  ///< BMC → by whom
  std::size_t next = 0, running = 0;
  asio::steady_timer bell;
};

/// The service's root, read without a login. nullopt: nobody there, or something else than Redfish.
Task<std::optional<Scan::Found>> readRoot(Scan& scan, std::string url) {
  auto parsed = io::Url::parse(url + "/redfish/v1/");
  if (!parsed) co_return std::nullopt;
  auto client = scan.deps.make_client(io::TlsTrust{.accept_first = true});
  io::HttpRequest request{.url = *parsed, .timeout = kRootLimit, .max_body_bytes = kMaxRootBytes};
  request.headers["Accept"] = "application/json";
  auto send = client->send(std::move(request));
  auto answer =
      co_await withDeadline<io::HttpResponse>(scan.deps.clock, kRootLimit, url, std::move(send));
  if (!answer || answer->status != 200) co_return std::nullopt;
  auto root = bmc::parseLenient(answer->body);
  if (bmc::textAt(root, "RedfishVersion").empty() &&
      bmc::textAt(root, "@odata.type").find("ServiceRoot") == std::string::npos)
    co_return std::nullopt;
  co_return Scan::Found{std::move(url), std::move(root), client->peerFingerprint()};
}

void take(Machine& machine, bmc::Survey survey) {
  machine.vendor = survey.system.manufacturer.empty() ? machine.vendor : survey.system.manufacturer;
  machine.model = survey.system.model;
  machine.serial = survey.system.serial;
  if (!survey.system.uuid.empty()) machine.uuid = survey.system.uuid;
  machine.macs = std::move(survey.system.macs);
  machine.bmc_macs = std::move(survey.bmc_macs);
  machine.bmc_version = survey.bmc_version;
  for (auto& gpu : survey.gpus)
    machine.gpus.push_back({std::move(gpu.model), std::move(gpu.serial)});
}

Async<bmc::Survey> surveyUndeclared(Scan& scan, bmc::UndeclaredBmcOptions who) {
  auto& deps = scan.deps;
  auto undeclared = bmc::makeUndeclaredBmc(std::move(who), deps.store, deps.clock, deps.workers,
                                           deps.make_client);
  auto work = undeclared->bmc().survey();
  auto survey =
      co_await withDeadline<bmc::Survey>(deps.clock, kSurveyLimit, "the survey", std::move(work));
  (void)co_await undeclared->close();
  co_return survey;
}

/// Tries the declared credentials; says in the machine's note what came of it.
Task<void> tryCredentials(Scan& scan, Machine& machine) {
  const auto& cluster = scan.deps.cluster;
  std::set<std::string> refused_accounts;
  std::string refused, left;
  for (const auto& name : cluster.discovery->credentials) {
    const auto credential = cluster.credentials.find(name);
    if (credential == cluster.credentials.end()) continue;
    const bmc::UndeclaredBmcOptions who{undeclaredBmcKey(machine.bmc, name), machine.bmc,
                                        credential->second, machine.certificate,
                                        !machine.certificate_approved_by.empty()};
    const auto known = bmc::isRefused(scan.deps.store, who);
    if (!known) {
      machine.note = fmt::format("credential {}: {}", name, known.error().str());
      co_return;
    }
    if (*known) {
      refused += (refused.empty() ? "" : ", ") + name;
      continue;
    }
    if (refused_accounts.contains(who.credential->username)) {
      left += (left.empty() ? "" : ", ") + name;
      continue;
    }
    auto survey = co_await surveyUndeclared(scan, who);
    if (survey) {
      take(machine, std::move(*survey));
      machine.credential = name;
      machine.note.clear();
      ++scan.report.surveyed;
      co_return;
    }
    const auto now_refused = bmc::isRefused(scan.deps.store, who);
    if (!now_refused || !*now_refused) {  // not the password's fault: another one would not help
      machine.note = survey.error().str();
      co_return;
    }
    refused_accounts.insert(who.credential->username);
    refused += (refused.empty() ? "" : ", ") + name;
  }
  if (cluster.discovery->credentials.empty())
    machine.note = "discovery.credentials names no account to ask with";
  if (!refused.empty())
    machine.note = "its BMC refuses " + refused + ", and muster does not try that again";
  if (!left.empty())
    machine.note += fmt::format(
        "; {} has the same account name and is tried by the next scan, so that no account is "
        "locked",
        left);
}

/// Whoever answers has chosen all of it: no escape sequence goes on to a terminal.
void clean(Machine& machine) {
  for (auto* text :
       {&machine.vendor, &machine.model, &machine.serial, &machine.uuid, &machine.bmc_version})
    *text = printable(*text);
  for (auto* list : {&machine.macs, &machine.bmc_macs})
    for (auto& mac : *list) mac = printable(mac);
  for (auto& gpu : machine.gpus) gpu = {printable(gpu.model), printable(gpu.serial)};
  machine.note = printable(machine.note, kMaxNoteBytes);
}

const inventory::Node* declaredAt(const inventory::Cluster& cluster, const std::string& url) {
  for (const auto& node : cluster.nodes)
    if (node.bmc.url == url) return &node;
  return nullptr;
}

Task<void> meet(Scan& scan, std::size_t index) {
  const auto url = "https://" + scan.addresses[index].str() +
                   (scan.deps.port == kHttps ? "" : fmt::format(":{}", scan.deps.port));
  auto root = co_await readRoot(scan, url);
  if (!root) co_return;
  ++scan.report.services;
  scan.found.push_back(std::move(*root));
}

/// Everything that a machine says after a login; the login's own client insists on the certificate
/// that was seen.
Task<void> survey(Scan& scan, std::size_t index) {
  const auto& found = scan.found[index];
  const auto& cluster = scan.deps.cluster;
  Machine machine;
  machine.bmc = found.url;
  machine.vendor = bmc::vendorOf(found.root);
  machine.model = bmc::textAt(found.root, "Product");
  machine.certificate = found.certificate;
  machine.seen_by = {"redfish"};
  if (const auto approved = scan.approved.find(machine.bmc); approved != scan.approved.end())
    machine.certificate_approved_by = approved->second;
  if (const auto* node = declaredAt(cluster, found.url)) {
    auto work = scan.deps.bmcs.at(node->name).survey();
    auto told = co_await withDeadline<bmc::Survey>(
        scan.deps.clock, kSurveyLimit, "the survey of " + node->name.str(), std::move(work));
    if (told) {
      take(machine, std::move(*told));
      ++scan.report.surveyed;
    } else {
      machine.note = told.error().str();
    }
  } else if (cluster.bmc_trust == inventory::BmcTrustPolicy::Declared &&
             machine.certificate_approved_by.empty()) {
    ++scan.report.unapproved;
    machine.note = fmt::format(
        "its BMC shows the certificate {}, which nobody has approved: no password was sent",
        found.certificate);
  } else {
    co_await tryCredentials(scan, machine);
  }
  clean(machine);
  if (!machine.note.empty())
    scan.report.problems.push_back(machine.bmc.substr(machine.bmc.find("//") + 2) + ": " +
                                   machine.note);
  scan.seen(std::move(machine));
}

using Step = Task<void> (*)(Scan&, std::size_t);

Task<void> worker(Scan& scan, std::size_t count, Step step) {
  while (scan.next < count) co_await step(scan, scan.next++);
}

/// The step for each index, some at a time.
Task<void> forAll(std::shared_ptr<Scan> scan, std::size_t count, Step step) {
  auto executor = co_await asio::this_coro::executor;
  scan->next = 0;
  scan->bell.expires_at(asio::steady_timer::time_point::max());
  const auto workers = scan->running = std::min(kMaxConcurrent, count);
  auto broken = std::make_shared<std::exception_ptr>();
  for (std::size_t i = 0; i < workers; ++i) {
    asio::co_spawn(executor, worker(*scan, count, step), [scan, broken](std::exception_ptr thrown) {
      if (thrown) *broken = thrown;
      if (--scan->running == 0) scan->bell.cancel();
    });
  }
  while (scan->running > 0) {
    boost::system::error_code ignored;
    co_await scan->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (*broken) std::rethrow_exception(*broken);
}

/// In the order of the addresses, those of nodes left out: the inventory says what holds for them.
std::vector<Contact> contactsOf(Scan& scan) {
  std::vector<Contact> out;
  for (const auto& found : scan.found)
    if (!declaredAt(scan.deps.cluster, found.url))
      out.push_back({found.url, printable(bmc::vendorOf(found.root)),
                     printable(bmc::textAt(found.root, "Product")), found.certificate});
  return out;
}

}  // namespace

NodeName undeclaredBmcKey(const std::string& url, const std::string& credential) {
  return NodeName(fmt::format(
      "undeclared/{}/{}", url.substr(url.find("//") == std::string::npos ? 0 : url.find("//") + 2),
      credential));
}

Async<ScanReport> scan(ScanDeps deps, Ranges ranges, std::function<void(Machine)> seen) {
  auto executor = co_await asio::this_coro::executor;
  auto state =
      std::make_shared<Scan>(std::move(deps), ranges.addresses(), std::move(seen), executor);
  state->report.addresses = state->addresses.size();
  co_await forAll(state, state->addresses.size(), meet);
  std::sort(state->found.begin(), state->found.end(),
            [](const auto& a, const auto& b) { return inventory::naturalLess(a.url, b.url); });
  if (state->deps.approve) state->approved = state->deps.approve(contactsOf(*state));
  co_await forAll(state, state->found.size(), survey);
  co_return state->report;
}

}  // namespace muster::discovery
