// SPDX-License-Identifier: Apache-2.0
// Makes a site for the tests of the page: an inventory, and a store that the real store code fills
// with what the inventory's own goals want, and with what goes wrong at a site. And changes one, as
// a monitor beside the server would.
//   web_site_maker make FOLDER NODES
//   web_site_maker change FOLDER NODE FACET VALUE TEXT
//   web_site_maker events FOLDER COUNT
//   web_site_maker serve FOLDER [MS]         carries runs out on machines that do as they are told,
//                                            each act in so many milliseconds (4000)
//   web_site_maker gate FOLDER NODE GATE     what is read on stdin (`muster-agent tool checks`) is
//                                            what the gate's checks have answered now
//   web_site_maker console FOLDER NODE       what is read on stdin is what a new boot shows
#include "app/controller/controller.h"
#include "app/nodes/wipe.h"
#include "app/site/effective_cluster.h"
#include "app/site/options.h"
#include "app/site/session.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "base/main_guard.h"
#include "bmc/console/boot_log.h"
#include "bmc/health_watch.h"
#include "fabric/discovery/discovery.h"
#include "fabric/fabric_diff.h"
#include "fabric/kept_report.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/quarantine.h"
#include "lifecycle/model/unread.h"
#include "lifecycle/store/measurements.h"
#include "lifecycle/store/store.h"
#include "tests/fabric/found_text.h"
#include "tests/web/simulated_fleet.h"
#include "validate/gates.h"
#include "wire/messages.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <span>

namespace {

using namespace muster;
using namespace std::chrono_literals;
using lifecycle::Event;
using lifecycle::EventKind;
using lifecycle::FacetRef;
using lifecycle::Fact;
using lifecycle::Subject;

constexpr int kRounds = 3, kPerRack = 8, kDevices = 8, kMeasuredNodes = 64, kMeasurements = 24;
constexpr std::size_t kFactsAtOnce = 20'000;

constexpr std::string_view kHead = R"(cluster: {{name: {}}}
networks:
  provisioning: {{cidr: 10.0.0.0/8, dhcp: {{mode: authoritative, range: 10.255.0.1-10.255.240.254}}}}
credentials:
  bmc: {{username: admin, password: {{file: bmc-password}}}}
images:
  bookworm-gpu: {{build: {{suite: bookworm, packages: [linux-image-amd64]}}}}
pools:
  batch: {{slurm: {{partition: gpu}}}}
  debug: {{slurm: {{partition: debug}}}}
  login: {{slurm: {{partition: login}}, maintenance: [{{days: [sat, sun], from: "22:00", minutes: 240, time_zone: Europe/Berlin}}]}}
racks:
  r001: {{power_watts: 70000, cooling_watts: 60000}}
  r002: {{power_watts: 90000}}
profiles:
  hgx-h100: {{expect: {{gpus: 8, gpu_model: H100}}, image: bookworm-gpu, gates: [burn-in], pool: batch{}}}
  hgx-h200: {{expect: {{gpus: 8, gpu_model: H200}}, image: bookworm-gpu, gates: [burn-in], pool: debug{}}}
gates:
  burn-in: {{level: quick, groups: [host]}}
{}nodes:
  - {{names: "gpu[{}]", profile: hgx-h100, from: nodes.csv}}
  - {{names: "gpu[{}]", profile: hgx-h200, from: nodes.csv}}
)";
/// Of a site that is no larger than this also firmware, a fabric, drivers and a window.
constexpr int kMostWithFabric = 256;
constexpr std::string_view kFabric = R"(firmware:
  hgx-2026.1:
    order: [BMC, CPLD, BIOS]
    constraints: ["CPLD >= 0x14 needs BMC >= 3.0"]
    components:
      BMC: {{version: "3.2", file: bmc.bin, sha256: {}, intermediate: [{{version: "3.0", file: bmc.bin, sha256: {}}}]}}
      CPLD: {{version: "0x14", file: cpld.bin, sha256: {}}}
      BIOS: {{version: "2.7.1", file: bios.bin, sha256: {}}}
drivers:
  nvidia-570: {{packages: [nvidia-open=570.124.06-1], build: packaged, verify: {{nvml.driver: "570.124.06"}}}}
  nvidia-575: {{packages: [nvidia-open=575.57.08-1], build: packaged, verify: {{nvml.driver: "575.57.08"}}}}
  nvidia-580: {{packages: [nvidia-open=580.65.06-1], build: packaged, verify: {{nvml.driver: "580.65.06"}}}}
fabric:
  ib: {{shape: rail-optimized, sus: 4, nodes_per_su: 33, rails: 2, spines_per_su: 4, switch_ports: 64, subnet_managers: [controller]}}
)";

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().str());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

std::string nameOf(int i, int nodes) {
  return fmt::format("gpu{:0{}}", i, std::to_string(nodes).size());
}

app::Options optionsOf(const std::filesystem::path& folder) {
  app::Options out;
  out.inventory = folder / "cluster.yaml";
  out.state = folder / "state";
  out.cache = folder / "cache";
  out.lab = folder / "no-lab";
  out.command_line = "muster plan";
  return out;
}

void writeInventory(const std::filesystem::path& folder, int nodes) {
  need(io::makeDirs(folder, 0700));
  need(io::writeFileAtomic(folder / "bmc-password", "calvin\n"));
  std::filesystem::permissions(folder / "bmc-password", std::filesystem::perms::owner_read |
                                                            std::filesystem::perms::owner_write);
  const auto width = std::to_string(nodes).size();
  const auto large = nodes - nodes / 16;  // so many have the first profile
  const bool has_fabric = nodes <= kMostWithFabric;
  std::map<std::string, std::string> digests;
  for (const std::string name : {"bmc", "cpld", "bios"}) {
    digests[name] = io::sha256Hex(name);
    need(io::writeFileAtomic(folder / (name + ".bin"), name));
  }
  const auto fabric =
      fmt::format(kFabric, digests["bmc"], digests["bmc"], digests["cpld"], digests["bios"]);
  need(io::writeFileAtomic(
      folder / "cluster.yaml",
      fmt::format(kHead, "hall-2", has_fabric ? ", firmware: hgx-2026.1, fabric: ib" : "",
                  has_fabric ? ", drivers: [nvidia-570]" : "", has_fabric ? fabric : "",
                  fmt::format("{:0{}}-{:0{}}", 1, width, large, width),
                  fmt::format("{:0{}}-{}", large + 1, width, nodes))));
  std::string csv = "name,rack,unit,mac,address,bmc,serial\n";
  for (int i = 1; i <= nodes; ++i)
    csv += fmt::format(
        "{},r{:03},{},52:54:00:{:02x}:{:02x}:{:02x},10.20.{}.{},https://10.21.{}.{},"
        "S{:07}\n",
        nameOf(i, nodes), (i - 1) / kPerRack + 1, (i - 1) % kPerRack * 5 + 2, i >> 16, i >> 8 & 255,
        i & 255, i / 250, i % 250 + 1, i / 250, i % 250 + 1, i);
  need(io::writeFileAtomic(folder / "nodes.csv", csv));
}

/// A value that a goal takes: it may be a glob.
std::string valueFor(std::string want) {
  std::erase(want, '*');
  for (auto& letter : want)
    if (letter == '?') letter = '0';
  return want.empty() ? "1" : want;
}

struct Maker {
  int nodes = 0;
  WallTime now = SystemClock().now();
  app::Session* session = nullptr;
  lifecycle::Store* store = nullptr;
  std::vector<Fact> facts;

  Subject subject(int i) const { return Subject(NodeName(nameOf(i, nodes))); }
  void put(Fact fact) {
    facts.push_back(std::move(fact));
    if (facts.size() >= kFactsAtOnce) flush();
  }
  void flush() {
    need(store->putFacts(facts));
    facts.clear();
  }
  /// As the inventory declares it. Goals of one stage come with the facts of those before.
  void asDeclared(const Subject& who, const std::vector<lifecycle::Goal>& goals, WallTime at) {
    for (const auto& goal : goals)
      put({who, goal.facet.facet, valueFor(goal.want), at, "agent " + who.str(),
           goal.facet.facet.str().starts_with("gate.") ? test::measuredEvidence(who.str(), false)
                                                       : ""});
  }
  void note(const Subject& who, EventKind kind, std::string text, double fraction, WallTime at) {
    need(store->addEvent({0, at, kind, who, "", std::move(text), fraction}));
  }
  void breakNode(int i) {
    const auto who = subject(i);
    const auto gpu = i % kDevices;
    const auto at = now - std::chrono::minutes(20 + i % 50 * 7);
    put({who, FacetName("pool"), "out", at, "slurm", ""});
    if (i % 3 != 0) {
      need(store->addFinding(
          {{who, FacetName("health.gpu")},
           Severity::Error,
           fmt::format("GPU {} has fallen off the bus (Xid 79)", gpu),
           fmt::format(R"({{"xid": 79, "gpu": {}, "pci": "0000:1b:00.0", )"
                       R"("console": ["NVRM: Xid (PCI:0000:1b:00): 79, GPU has )"
                       R"(fallen off the bus."]}})",
                       gpu),
           fmt::format("replace GPU {}, then `muster quarantine remove {}`", gpu, who.str()),
           at,
           "monitor"}));
    } else {
      put({who, FacetName("gate.burn-in"), "failed", at, "agent " + who.str(), ""});
      need(store->addFinding(
          {{who, FacetName("gate.burn-in")},
           Severity::Error,
           fmt::format("GPU {} reads its memory with 2,104 GB/s, 27 % below its peers", gpu),
           R"({"measured_gb_s": 2104, "peers_gb_s": 2893, "peers": 62})",
           fmt::format("reseat GPU {} and validate again; if it stays, replace it", gpu),
           at,
           "engine/validate"}));
    }
    note(who, EventKind::FindingRaised, "a finding was raised", -1, at);
  }
  void work(int i) {
    const auto who = subject(i);
    put({who, FacetName("image"), "none", now - 1h, "agent " + who.str(), ""});
    put({who, FacetName("pool"), "out", now - 1h, "slurm", ""});
    lifecycle::Intent intent;
    intent.action = {who.str() + "/image",
                     {who, FacetName("image")},
                     "provision",
                     "none",
                     "bookworm-gpu",
                     "profile hgx-h100 declares image bookworm-gpu",
                     lifecycle::Disruption::Wipe,
                     300s,
                     5400s};
    intent.id = intent.action.id + "#1";
    intent.plan_hash = "web";
    intent.opened_at = now - 3min;
    need(store->openIntent(intent));
    note(who, EventKind::ActionStarted, "writing bookworm-gpu", 0, now - 3min);
    note(who, EventKind::ActionProgress, "writing bookworm-gpu: 41 of 118 GiB", 0.35, now - 20s);
  }
  void measure(const app::Options& options) {
    const auto measurements = need(lifecycle::openMeasurements(options.storeUrl()));
    std::vector<lifecycle::MeasuredSet> sets;
    for (int i = 1; i <= std::min(nodes, kMeasuredNodes); ++i)
      for (int run = 0; run < kMeasurements; ++run) {
        lifecycle::MeasuredSet set{now - std::chrono::hours(70 * (kMeasurements - run)),
                                   NodeName(nameOf(i, nodes)),
                                   "gate.burn-in",
                                   "hgx-h100",
                                   fmt::format("r{:03}", (i - 1) / kPerRack + 1),
                                   {}};
        for (int gpu = 0; gpu < kDevices; ++gpu) {
          const double wave = std::sin(run * 0.7 + gpu * 1.9 + i * 0.37);
          const double slow = i % 5 == 3 && gpu == 3 && run > 15 ? 0.73 : 1;
          set.numbers[fmt::format("gpu.burn/hbm_gb_s@{}", gpu)] = (2893 + 14 * wave) * slow;
          set.numbers[fmt::format("gpu.burn/bf16_tflops@{}", gpu)] = 688 + 4 * wave;
        }
        set.numbers["host.stream/stream_gb_s"] = 412 + 3 * std::sin(run + i);
        sets.push_back(std::move(set));
      }
    need(measurements->add(sets));
  }
};

/// What looks at a fabric and tests between nodes leave behind: two cables whose ends are swapped,
/// one that is not there, one with errors, and a node that is slow with everybody.
void lookAtFabric(const app::Options& options, const inventory::Cluster& cluster) {
  const auto* declared_fabric = need(fabric::chosenFabric(cluster));
  const auto declared = need(fabric::declaredTopology(cluster, *declared_fabric));
  auto found = declared;
  const auto hangsAt = [](const fabric::Link& link, const std::string& hca) {
    return link.a.node == hca || link.b.node == hca;
  };
  std::erase_if(found.links, [&](const auto& link) { return hangsAt(link, "gpu005 mlx5_1"); });
  const auto at = [&](const std::string& hca) {
    return std::ranges::find_if(found.links, [&](const auto& link) { return hangsAt(link, hca); });
  };
  auto one = at("gpu010 mlx5_0"), other = at("gpu011 mlx5_0");
  std::swap(one->b, other->b);
  std::ranges::sort(found.links);
  const auto report = fabric::diff(cluster, fabric::test::foundText(found));
  if (!report.error.empty()) throw std::runtime_error(report.error);
  const auto folder =
      app::fabricOptions(options, std::nullopt, cluster, declared_fabric->name).run_folder;
  const auto now = SystemClock().now();
  need(fabric::keepReport(folder, fabric::KeptReportKind::Diff, now - 4min, toJson(report)));
  auto links = nlohmann::json::array();
  for (const auto& link : declared.links) {
    const bool is_bad = hangsAt(link, "gpu020 mlx5_0");
    auto ends = nlohmann::json::array();
    for (const auto& end : {link.a, link.b})
      ends.push_back(
          {{"device", end.node}, {"port", end.number}, {"complaints", nlohmann::json::array()}});
    if (is_bad)
      ends[0]["complaints"].push_back(
          {{"text", "bit error rate 3.1e-09, proven to be at least 1.2e-09; 1e-12 is allowed"}});
    links.push_back({{"grade", is_bad ? "bad" : "good"},
                     {"advice", is_bad ? "clean both ends, then replace the cable" : ""},
                     {"transceiver", is_bad ? "MT2231FT01234" : ""},
                     {"ends", std::move(ends)}});
  }
  need(fabric::keepReport(folder, fabric::KeptReportKind::Health, now - 1h,
                          jsonText(nlohmann::json{{"links", std::move(links)},
                                                  {"hints", nlohmann::json::array()},
                                                  {"window_seconds", {{"longest", 300.4}}}})));
  auto tests = nlohmann::json::array();
  for (int a = 1; a <= kMeasuredNodes / 2; ++a)
    for (int b = a + 1; b <= kMeasuredNodes / 2; ++b) {
      const double good = 388 + 4 * std::sin(a * 1.7 + b);
      tests.push_back({{"a", fmt::format("gpu{:03}", a)},
                       {"b", fmt::format("gpu{:03}", b)},
                       {"gbits", a == 13 || b == 13 ? 0.55 * good : good}});
    }
  need(io::makeDirs(options.state / "validation", 0700));
  need(io::writeFileAtomic(
      options.state / "validation/isolate-1790000000000.json",
      jsonText(nlohmann::json{{"typical_gbits", 390},
                              {"rounds_run", {{{"tests", std::move(tests)}}}}})));
}

constexpr std::string_view kBoot =
    "\x1b[2J\x1b[H\x1b[1mSystem BIOS 2.7.1\x1b[0m\r\nMemory test: 2048 GiB OK\r\n"
    "iPXE initialising devices...ok\r\n"
    "[    0.000000] Linux version 6.1.0-27-amd64 (debian-kernel@lists.debian.org)\r\n"
    "[    4.112231] nvme nvme0: 128/0/0 default/read/poll queues\r\n"
    "[\x1b[0;32m  OK  \x1b[0m] Reached target \x1b[0;1;39mnetwork.target\x1b[0m - Network.\r\n"
    "[\x1b[0;1;31mFAILED\x1b[0m] Failed to start \x1b[0;1;39mnvidia-fabricmanager\x1b[0m.\r\n"
    "[  212.771902] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus.\r\n";

void recordBoots(const app::Options& options, const NodeName& node) {
  bmc::BootLogArchive archive(bmc::keptConsoles(options.state), node);
  const auto now = SystemClock().now();
  for (const auto& [why, age] : {std::pair("installation", 26h), std::pair("power cycle", 3h)}) {
    auto log = need(archive.begin(now - age, why));
    need(log.append(kBoot));
  }
}

/// Which versions some nodes have, before they were brought up.
void rememberOldFirmware(Maker& maker) {
  for (int i = 1; i <= maker.nodes; ++i) {
    const auto who = maker.subject(i);
    const auto at = maker.now - 2h;
    if (i % 40 == 7) maker.put({who, FacetName("firmware.BMC"), "2.9", at, "bmc", ""});
    if (i % 40 == 7 || i % 40 == 8)
      maker.put({who, FacetName("firmware.CPLD"), "0x12", at, "bmc", ""});
  }
  maker.flush();
}

/// As a monitor has read the BMCs; one of a rack did not answer.
void readPower(Maker& maker) {
  for (int i = 1; i <= maker.nodes; ++i) {
    if (i % kPerRack == 4) continue;
    maker.put({maker.subject(i), FacetName(std::string(bmc::kBmcHealthFacet)), "ok",
               maker.now - std::chrono::seconds(i % 240), "redfish",
               jsonText(nlohmann::json{
                   {"power", {{"watts", 6'400 + 37 * (i % 11)}, {"of", "6 power supplies"}}}})});
  }
  maker.flush();
}

void make(const std::filesystem::path& folder, int nodes) {
  writeInventory(folder, nodes);
  const auto options = optionsOf(folder);
  {
    const auto made = need(app::openStoreForWriting(options));
  }
  auto session = need(app::Session::openStored(options, need(app::effectiveCluster(options))));
  Maker maker{nodes};
  maker.session = session.get();
  auto store = need(app::openStoreForWriting(options));
  maker.store = store.get();
  // What is wanted depends on what was seen: a gate is of a hardware, an image, drivers.
  for (int round = 0; round < kRounds; ++round) {
    const auto facts = need(store->facts());
    for (int i = 1; i <= nodes; ++i) {
      const auto who = maker.subject(i);
      const auto at = maker.now - std::chrono::seconds(30 + i % 600);
      maker.put({who, FacetName("hw.gpus"), "8", at, "agent " + who.str(), R"({"model": "H100"})"});
      maker.asDeclared(who, session->controller->goals(who, facts), at);
      maker.put({who, FacetName("pool"), "in", at, "slurm", ""});
    }
    maker.flush();
  }
  for (int i = 1; i <= nodes; ++i) {
    // The small pool works, so that a rollout has room there.
    if (i % 41 == 3 && i <= nodes - nodes / 16) maker.breakNode(i);
    if (i % 37 == 6) maker.work(i);
    if (i % 29 == 11)
      maker.put(lifecycle::unreadFact(
          maker.subject(i), "firmware",
          Error(ErrorCode::Denied, "the BMC refused the account 'admin'"), maker.now - 3h));
    if (i % 53 == 14) {
      maker.put({maker.subject(i), FacetName("pool"), "drained", maker.now - 5h, "slurm", ""});
      need(lifecycle::Quarantine(*store).add(
          NodeName(nameOf(i, nodes)),
          {maker.now - 5h, "anna@ctl1", "NVLink errors since the move, ticket 4711", ""}));
    }
  }
  maker.flush();
  need(store->addFinding({{Subject::cluster(), FacetName("fabric.subnet-manager")},
                          Severity::Warning,
                          "two subnet managers say that they are master",
                          R"({"masters": ["sm1", "sm2"]})",
                          "stop opensm on sm2, or give it a lower priority",
                          maker.now - 40min,
                          "engine/fabric"}));
  need(store->grantWipe(NodeName(nameOf(2, nodes)), "new disks", maker.now - 2h));
  lifecycle::Request request{"web-1", maker.now - 3h, "anna",        "ctl1", "muster apply --yes",
                             "web",   "done",         maker.now - 2h};
  need(store->openRequest(request));
  need(store->closeRequest(request.id, request.outcome, request.ended_at));
  for (int i = 1; i <= std::min(nodes, 60); ++i)
    maker.note(maker.subject(i), EventKind::ActionDone, "gate.burn-in: 8 of 8 GPUs pass", -1,
               maker.now - std::chrono::minutes(120 - i));
  maker.measure(options);
  recordBoots(options, NodeName(nameOf(3, nodes)));
  if (nodes > kMostWithFabric) return;
  readPower(maker);
  rememberOldFirmware(maker);
  lookAtFabric(options, session->cluster());
}

/// Line by line, as a machine would talk.
void talk(const std::filesystem::path& folder, const std::string& node) {
  const auto options = optionsOf(folder);
  auto log = need(bmc::BootLogArchive(bmc::keptConsoles(options.state), NodeName(node))
                      .begin(SystemClock().now(), "restart"));
  for (std::string line; std::getline(std::cin, line);) need(log.append(line + "\r\n"));
}

/// As the gate's end is written down: the verdict, each answer as it came, a finding for each that
/// did not pass.
void concludeGate(const std::filesystem::path& folder, const std::string& node,
                  const std::string& gate) {
  const auto options = optionsOf(folder);
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  const auto results = need(wire::parseCheckResults(text));
  auto session = need(app::Session::openStored(options, need(app::effectiveCluster(options))));
  auto store = need(app::openStoreForWriting(options));
  const auto who = Subject(NodeName(node));
  const FacetName facet("gate." + gate);
  std::string passed;
  for (const auto& goal : session->controller->goals(who, need(store->facts())))
    if (goal.facet.facet == facet) passed = valueFor(goal.want);
  if (passed.empty()) throw std::runtime_error(node + " has no gate " + gate);
  const auto now = SystemClock().now();
  bool all_pass = !results.empty();
  for (const auto& result : results) {
    if (result.status == wire::CheckStatus::Pass) continue;
    all_pass = false;
    need(store->addFinding(
        {{who, facet},
         Severity::Error,
         fmt::format("{} {}: {}", result.id, wire::toString(result.status), result.text),
         result.evidence,
         std::string(validate::adviceFor(result.id, result.status)),
         now,
         "engine/validate"}));
  }
  need(store->putFacts({{who, facet, all_pass ? passed : "fail" + passed.substr(passed.find(':')),
                         now, "agent " + node, text}}));
  need(store->addEvent({0, now, EventKind::Observed, who, "",
                        fmt::format("gate.{} is '{}'", gate, all_pass ? "pass" : "fail"), -1}));
}

void change(const std::filesystem::path& folder, const std::string& node, const std::string& facet,
            const std::string& value, const std::string& text) {
  auto store = need(app::openStoreForWriting(optionsOf(folder)));
  const auto who = Subject(NodeName(node));
  const auto now = SystemClock().now();
  need(store->putFacts({{who, FacetName(facet), value, now, "test", ""}}));
  need(store->addEvent({0, now, EventKind::Observed, who, "", text, -1}));
}

void addEvents(const std::filesystem::path& folder, int count) {
  auto store = need(app::openStoreForWriting(optionsOf(folder)));
  for (int i = 0; i < count; ++i)
    need(store->addEvent({0, SystemClock().now(), EventKind::Note,
                          Subject(NodeName(fmt::format("gpu{:05}", i % 9'000 + 1))), "",
                          fmt::format("event {} of many", i), -1}));
}

int numberOf(const char* text) {
  int out = 0;
  const std::string_view word(text);
  std::from_chars(word.data(), word.data() + word.size(), out);
  return out;
}

int run(std::span<char*> words) {
  const std::string_view verb = words.size() > 1 ? words[1] : "";
  if (verb == "make" && words.size() == 4)
    make(words[2], numberOf(words[3]));
  else if (verb == "change" && words.size() == 7)
    change(words[2], words[3], words[4], words[5], words[6]);
  else if (verb == "events" && words.size() == 4)
    addEvents(words[2], numberOf(words[3]));
  else if (verb == "serve" && (words.size() == 3 || words.size() == 4))
    need(test::serveRuns(optionsOf(words[2]),
                         words.size() == 4 ? std::chrono::milliseconds(numberOf(words[3])) : 4s));
  else if (verb == "gate" && words.size() == 5)
    concludeGate(words[2], words[3], words[4]);
  else if (verb == "console" && words.size() == 4)
    talk(words[2], words[3]);
  else
    throw std::runtime_error(
        "make FOLDER NODES | change FOLDER NODE FACET VALUE TEXT | "
        "events FOLDER COUNT | serve FOLDER [MS] | gate FOLDER NODE GATE | console FOLDER NODE");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return muster::guardedMain("web_site_maker", [&] {
    return run(std::span<char*>(argv, static_cast<std::size_t>(argc)));
  });
}
