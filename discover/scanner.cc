#include "discover/scanner.h"

#include "base/deadline.h"
#include "bmc/json_view.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::discover {
namespace {

using namespace std::chrono_literals;

constexpr auto kRootLimit = 5s;
constexpr auto kSurveyLimit = 180s;  ///< DGX H100 takes 180 s for some collections
constexpr std::size_t kMaxRootBytes = 1u << 20;
constexpr std::uint16_t kHttps = 443;
constexpr std::size_t kMaxNoteBytes = 2048;

struct Scan {
  Scan(ScanDeps d, std::vector<Ipv4> a, std::function<void(Machine)> s, asio::any_io_executor executor)
      : deps(std::move(d)), addresses(std::move(a)), seen(std::move(s)), bell(executor, asio::steady_timer::time_point::max()) {}
  ScanDeps deps;
  std::vector<Ipv4> addresses;
  std::function<void(Machine)> seen;
  ScanReport report;
  std::size_t next = 0, running = 0;
  asio::steady_timer bell;
};

/// The service's root, read without a login. nullopt: nobody there, or something else than Redfish.
Task<std::optional<bmc::Json>> readRoot(Scan& scan, std::string url) {
  auto parsed = io::Url::parse(url + "/redfish/v1/");
  if (!parsed) co_return std::nullopt;
  auto client = scan.deps.make_client(io::TlsTrust{.accept_first = true});
  io::HttpRequest request{.url = *parsed, .timeout = kRootLimit, .max_body_bytes = kMaxRootBytes};
  request.headers["Accept"] = "application/json";
  auto send = client->send(std::move(request));
  auto bounded = withDeadline<io::HttpResponse>(scan.deps.clock, kRootLimit, url, std::move(send));
  auto answer = co_await std::move(bounded);
  if (!answer || answer->status != 200) co_return std::nullopt;
  auto root = bmc::parseLenient(answer->body);
  if (bmc::textAt(root, "RedfishVersion").empty() && bmc::textAt(root, "@odata.type").find("ServiceRoot") == std::string::npos) co_return std::nullopt;
  co_return std::optional(std::move(root));
}

void take(Machine& machine, bmc::Survey survey) {
  machine.vendor = survey.system.manufacturer.empty() ? machine.vendor : survey.system.manufacturer;
  machine.model = survey.system.model;
  machine.serial = survey.system.serial;
  if (!survey.system.uuid.empty()) machine.uuid = survey.system.uuid;
  machine.macs = std::move(survey.system.macs);
  machine.bmc_macs = std::move(survey.bmc_macs);
  machine.bmc_version = survey.bmc_version;
  for (auto& gpu : survey.gpus) machine.gpus.push_back({std::move(gpu.model), std::move(gpu.serial)});
}

Async<bmc::Survey> surveyStranger(Scan& scan, bmc::StrangerBmc who) {
  auto& deps = scan.deps;
  auto stranger = bmc::makeStranger(std::move(who), deps.store, deps.clock, deps.workers, deps.make_client);
  auto work = stranger->bmc().survey();
  auto bounded = withDeadline<bmc::Survey>(deps.clock, kSurveyLimit, "the survey", std::move(work));
  auto survey = co_await std::move(bounded);
  auto end = stranger->close();
  (void)co_await std::move(end);
  co_return survey;
}

/// Tries the declared credentials; says in the machine's note what came of it.
Task<void> tryCredentials(Scan& scan, Machine& machine) {
  const auto& cluster = scan.deps.cluster;
  std::set<std::string> refused_accounts;
  std::string refused, left;
  for (const auto& name : cluster.discovery.credentials) {
    const auto credential = cluster.credentials.find(name);
    if (credential == cluster.credentials.end()) continue;
    bmc::StrangerBmc who{strangerKey(machine.bmc, name), machine.bmc, credential->second};
    const auto known = bmc::isRefused(scan.deps.store, who);
    if (!known) {
      machine.note = fmt::format("credential {}: {}", name, known.error().str());
      co_return;
    }
    if (*known) {
      refused += (refused.empty() ? "" : ", ") + name;
      continue;
    }
    if (refused_accounts.contains(who.credential.username)) {
      left += (left.empty() ? "" : ", ") + name;
      continue;
    }
    auto work = surveyStranger(scan, who);
    auto survey = co_await std::move(work);
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
    refused_accounts.insert(who.credential.username);
    refused += (refused.empty() ? "" : ", ") + name;
  }
  if (cluster.discovery.credentials.empty()) machine.note = "discovery.credentials names no account to ask with";
  if (!refused.empty()) machine.note = "its BMC refuses " + refused + ", and muster does not try that again";
  if (!left.empty()) machine.note += fmt::format("; {} has the same account name and is tried by the next scan, so that no account is locked", left);
}

/// Whoever answers has chosen all of it: no escape sequence goes on to a terminal.
void clean(Machine& machine) {
  for (auto* text : {&machine.vendor, &machine.model, &machine.serial, &machine.uuid, &machine.bmc_version}) *text = printable(*text);
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

Task<void> look(Scan& scan, Ipv4 address) {
  const auto url = "https://" + address.str() + (scan.deps.port == kHttps ? "" : fmt::format(":{}", scan.deps.port));
  auto read = readRoot(scan, url);
  auto root = co_await std::move(read);
  if (!root) co_return;
  ++scan.report.services;
  Machine machine;
  machine.bmc = url;
  machine.vendor = bmc::vendorOf(*root);
  machine.model = bmc::textAt(*root, "Product");
  machine.seen_by = {"redfish"};
  if (const auto* node = declaredAt(scan.deps.cluster, url)) {
    auto work = scan.deps.bmcs.at(node->name).survey();
    auto bounded = withDeadline<bmc::Survey>(scan.deps.clock, kSurveyLimit, "the survey of " + node->name.str(), std::move(work));
    auto survey = co_await std::move(bounded);
    if (survey) {
      take(machine, std::move(*survey));
      ++scan.report.surveyed;
    } else {
      machine.note = survey.error().str();
    }
  } else {
    auto tried = tryCredentials(scan, machine);
    co_await std::move(tried);
  }
  clean(machine);
  if (!machine.note.empty()) scan.report.problems.push_back(address.str() + ": " + machine.note);
  scan.seen(std::move(machine));
}

Task<void> worker(Scan& scan) {
  while (scan.next < scan.addresses.size()) {
    auto one = look(scan, scan.addresses[scan.next++]);
    co_await std::move(one);
  }
}

}  // namespace

NodeName strangerKey(const std::string& url, const std::string& credential) {
  return NodeName(fmt::format("stranger/{}/{}", url.substr(url.find("//") == std::string::npos ? 0 : url.find("//") + 2), credential));
}

Async<ScanReport> scan(ScanDeps deps, Ranges ranges, std::function<void(Machine)> seen) {
  auto executor = co_await asio::this_coro::executor;
  auto state = std::make_shared<Scan>(std::move(deps), ranges.addresses(), std::move(seen), executor);
  state->report.addresses = state->addresses.size();
  state->running = std::min(kMaxConcurrent, state->addresses.size());
  auto broken = std::make_shared<std::exception_ptr>();
  const auto workers = state->running;
  for (std::size_t i = 0; i < workers; ++i) {
    asio::co_spawn(executor, worker(*state), [state, broken](std::exception_ptr thrown) {
      if (thrown) *broken = thrown;
      if (--state->running == 0) state->bell.cancel();
    });
  }
  while (state->running > 0) {
    boost::system::error_code ignored;
    auto ring = state->bell.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_await std::move(ring);
  }
  if (*broken) std::rethrow_exception(*broken);
  co_return state->report;
}

}  // namespace muster::discover
