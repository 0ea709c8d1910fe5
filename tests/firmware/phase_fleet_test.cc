// SPDX-License-Identifier: Apache-2.0
// A fleet of emulated GB200-like nodes to a baseline of twenty components, with update faults,
// while muster is killed again and again: the real engine, phase, Redfish client and emulators, in
// virtual time and memory. MUSTER_FIRMWARE_NODES (default 12; `ctest -R firmware_fleet_long` 200;
// the figure is for 1,000), MUSTER_FIRMWARE_SEED.
#include "bmc/fleet.h"
#include "firmware/baselines.h"
#include "firmware/firmware.h"
#include "lab/vbmc/firmware_file.h"
#include "lab/vbmc/redfish_service.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/model/quarantine.h"
#include "tests/fakes/fake_machine.h"
#include "tests/fakes/memory_store.h"
#include "tests/idle_workers.h"
#include "tests/run_async.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <deque>
#include <random>

namespace muster::firmware {
namespace {

using namespace std::chrono_literals;
using lab::vbmc::UpdateFault;

constexpr double kFaultShare = 0.02;  ///< of uploads
constexpr double kBusyShare = 0.005;  ///< of requests
constexpr int kMaxLives = 400;
constexpr const char* kVendorProfile = "gb200";

constexpr std::size_t kMaxWordsKept = 400;  ///< of events, by node
constexpr int kMaxStoriesTold = 4;          ///< of nodes that went wrong

int numberOf(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::max(1, std::atoi(text)) : otherwise;
}

std::string hostOf(int number) { return fmt::format("bmc{:04}", number); }

/// A machine and its BMC; what went wrong with it on purpose.
struct EmulatedMachine {
  lab::vbmc::FakeMachine machine;
  std::unique_ptr<lab::vbmc::RedfishService> service;
  std::vector<UpdateFault> faults;
  int uploads_at_once = 0, most_uploads_at_once = 0;
  std::deque<std::string> story;  ///< what muster said of it
};

/// What outlives muster: the machines, the clock, what is stored, the files.
class World {
 public:
  explicit World(int nodes) {
    const auto& vendor_profile = **lab::vbmc::findVendorProfile(kVendorProfile);
    declare(vendor_profile, nodes);
    for (int i = 0; i < nodes; ++i) {
      auto node = std::make_unique<EmulatedMachine>();
      auto* raw = node.get();
      node->machine.on = true;
      lab::vbmc::ServiceOptions options;
      options.identity.node = hostOf(i);
      options.identity.serial = hostOf(i);
      options.vendor_profile = &vendor_profile;
      options.account = account_;
      options.timings = {.flash_step = 2s,
                         .flash_steps = 4,
                         .reset_delay = 200ms,
                         .reset_duration = 60s,
                         .lost_duration = 180s,
                         .copy_duration = 90s};
      options.draw_fault = [this, raw] {
        if (std::uniform_real_distribution<double>()(random) >= kFaultShare)
          return UpdateFault::None;
        auto kinds = lab::vbmc::allUpdateFaults();
        std::erase(kinds, UpdateFault::StuckMode);  // OpenBMC has no such mode
        const auto drawn = kinds[random() % kinds.size()];
        raw->faults.push_back(drawn);
        return drawn;
      };
      node->service = std::move(
          *lab::vbmc::RedfishService::make(clock, workers, node->machine, std::move(options)));
      asio::co_spawn(io, node->service->run(), asio::detached);
      by_host[hostOf(i)] = std::move(node);
    }
  }
  ~World() {
    for (auto& [host, node] : by_host) node->service->stop();
    io.restart();
    io.poll();
  }

  const inventory::FirmwareBaseline& baseline() const { return cluster.firmware.at("b"); }
  void keep(const lifecycle::Event& event) {
    const auto node = by_host.find(event.subject.str());
    if (node == by_host.end()) return;
    node->second->story.push_back(
        fmt::format("{} {} {}", muster::toString(event.at), event.action_id, event.text));
    if (node->second->story.size() > kMaxWordsKept) node->second->story.pop_front();
  }

  FakeClock clock;
  asio::io_context io;
  Workers workers{1};
  std::mt19937_64 random{static_cast<std::uint64_t>(numberOf("MUSTER_FIRMWARE_SEED", 20261120))};
  std::map<std::string, std::unique_ptr<EmulatedMachine>> by_host;
  inventory::Cluster cluster;
  std::shared_ptr<test::MemoryStore::Data> stored = std::make_shared<test::MemoryStore::Data>();
  test::TempFolder folder;
  std::uint64_t requests = 0;

 private:
  void declare(const lab::vbmc::VendorProfile& vendor_profile, int nodes) {
    auto& baseline = cluster.firmware["b"];
    baseline.name = "b";
    for (const auto& row : vendor_profile.components) {
      inventory::FirmwareComponent component{std::string(row.name), "100.2"};
      component.file = folder / (component.name + ".fw");
      const auto bytes = lab::vbmc::makeFirmware(component.name, component.version, 1024);
      if (!io::writeFileAtomic(component.file, bytes)) std::abort();
      component.sha256 = io::sha256Hex(bytes);
      component.activation =
          static_cast<inventory::FirmwareActivation>(1 + static_cast<int>(row.becomes));
      baseline.components.push_back(component);
      baseline.order.push_back(component.name);
    }
    for (const char* text : {"HGX_FW_GPU_* >= 100 needs HGX_FW_CPU_0 >= 100",
                             "HGX_FW_ERoT_FPGA_0 >= 100 needs HGX_FW_FPGA_0 >= 100",
                             "HGX_FW_CPLD_0 >= 100 excludes HGX_PCIeSwitchConfig_0 < 100"})
      baseline.constraints.push_back(*inventory::FirmwareConstraint::parse(text));
    ::setenv("MUSTER_FIRMWARE_TEST_PASSWORD", "right", 1);
    inventory::Credential credential{"bmc", "admin", {}};
    credential.password.env = "MUSTER_FIRMWARE_TEST_PASSWORD";
    cluster.credentials["bmc"] = credential;
    inventory::Profile profile;
    profile.name = "p";
    profile.firmware = "b";
    cluster.profiles["p"] = profile;
    cluster.digest = "fleet";
    for (int i = 0; i < nodes; ++i) {
      inventory::Node node;
      node.name = NodeName(hostOf(i));
      node.profile = "p";
      node.bmc.url = "https://" + hostOf(i);
      cluster.nodes.push_back(node);
    }
  }
  lab::vbmc::Account account_ = lab::vbmc::Account::make("admin", "right");
};

/// A wire between muster's loop and the machines' own. When muster is gone, answers fall to the
/// floor.
class Wire final : public io::HttpClient {
 public:
  explicit Wire(World& world) : world_(world) {}

  Async<io::HttpResponse> send(io::HttpRequest request) override {
    struct Answer {
      explicit Answer(const asio::any_io_executor& executor)
          : bell(executor, asio::steady_timer::time_point::max()) {}
      asio::steady_timer bell;
      std::optional<Result<io::HttpResponse>> response;
    };
    const auto executor = co_await asio::this_coro::executor;
    auto answer = std::make_shared<Answer>(executor);
    asio::co_spawn(world_.io, serve(world_, std::move(request)),
                   [weak = std::weak_ptr<Answer>(answer)](std::exception_ptr,
                                                          Result<io::HttpResponse> response) {
                     if (auto alive = weak.lock()) {
                       alive->response = std::move(response);
                       alive->bell.cancel();
                     }
                   });
    if (!answer->response) {
      boost::system::error_code rung;
      co_await answer->bell.async_wait(asio::redirect_error(asio::use_awaitable, rung));
    }
    if (!answer->response) co_return fail(ErrorCode::Timeout, "called off");
    co_return std::move(*answer->response);
  }
  Async<io::HttpResponse> fetch(io::HttpRequest,
                                std::function<Result<void>(std::string_view)>) override {
    co_return fail(ErrorCode::Internal, "not here");
  }
  std::string peerFingerprint() const override { return std::string(64, 'a'); }

 private:
  static Async<io::HttpResponse> serve(World& world, io::HttpRequest request) {
    ++world.requests;
    auto& node = *world.by_host.at(request.url.host);
    if (node.service->away()) co_return fail(ErrorCode::Unavailable, "connection refused");
    if (std::uniform_real_distribution<double>()(world.random) < kBusyShare)
      co_return io::HttpResponse{503, {}, "{}"};
    const bool upload = request.attachment != nullptr;
    if (upload)
      node.most_uploads_at_once = std::max(node.most_uploads_at_once, ++node.uploads_at_once);
    io::ServerRequest received;
    received.method = request.method;
    received.target = request.url.target;
    received.headers = request.headers;
    received.body =
        request.body + (upload ? *request.attachment : std::string()) + request.body_end;
    Result<io::HttpResponse> out = fail(ErrorCode::Unavailable, "the connection broke");
    try {
      auto response = co_await node.service->handle(std::move(received));
      auto* text = std::get_if<std::string>(&response.body);
      out = io::HttpResponse{response.status, response.headers, text ? *text : std::string()};
    } catch (const boost::system::system_error&) {
    }
    if (upload) --node.uploads_at_once;
    co_return out;
  }
  World& world_;
};

/// Of provision only that nodes are enrolled.
class Enrolled final : public lifecycle::Phase {
 public:
  std::string_view name() const override { return "provision"; }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster&, const lifecycle::Subject& subject,
                                     const lifecycle::FactSet&) const override {
    if (subject.isCluster()) return {};
    lifecycle::Goal goal;
    goal.facet = {subject, FacetName("enrolled")};
    goal.want = "yes";
    goal.deadline = 60s;
    return {goal};
  }
  Async<std::vector<lifecycle::Fact>> observe(lifecycle::Subject subject) override {
    std::vector<lifecycle::Fact> facts;
    if (!subject.isCluster())
      facts.push_back({subject, FacetName("enrolled"), "yes", {}, "test", {}});
    co_return facts;
  }
  Async<lifecycle::Outcome> act(lifecycle::Action, lifecycle::ActContext&) override {
    co_return lifecycle::Done{};
  }
  Async<std::vector<lifecycle::Fact>> verify(lifecycle::Action action) override {
    co_return co_await observe(action.facet.subject);
  }
};

/// One process of muster. Destroying it is kill -9.
class Life {
 public:
  explicit Life(World& world)
      : world_(world),
        store_(world.stored),
        bmcs_(bmc::makeBmcFleet(
            world.cluster, store_, world.clock, workers_,
            [&world](io::TlsTrust) { return std::make_unique<Wire>(world); }, "")),
        phase_(makeFirmwarePhase(world.cluster, *bmcs_, world.clock, workers_)),
        engine_(world.cluster, {&enrolled_, phase_.get()}, store_, world.clock,
                [&world](const lifecycle::Event& event) { world.keep(event); }) {}

  /// True when nothing is left to do; false when its time was over first.
  bool run(std::optional<std::chrono::milliseconds> lifetime) {
    bool done = false;
    asio::co_spawn(io_, work(), [&done](std::exception_ptr thrown, Result<void> ended) {
      if (thrown) std::rethrow_exception(thrown);
      if (!ended) throw std::runtime_error(ended.error().str());
      done = true;
    });
    const auto until = world_.clock.steady() + lifetime.value_or(100h);
    while (!done) {
      if (ready() > 0) continue;
      if (done) break;
      if (world_.clock.steady() >= until) return false;
      if (!world_.clock.advanceToNext())
        throw std::runtime_error("everybody waits for something that never comes");
    }
    return true;
  }

 private:
  std::size_t ready() {
    std::size_t ran = 0;
    for (auto* io : {&io_, &world_.io}) {
      io->restart();
      ran += io->poll();
    }
    for (auto* workers : {&workers_, &world_.workers}) test::waitUntilIdle(*workers);
    for (auto* io : {&io_, &world_.io}) {
      io->restart();
      ran += io->poll();
    }
    return ran;
  }

  /// As `muster apply` and `muster monitor` do: plan, carry out, hold what failed, again.
  Async<void> work() {
    while (true) {
      lifecycle::Quarantine quarantine(store_);
      CO_TRY(held, quarantine.entries());
      CO_TRY(policy, policyOf(store_, {}));
      for (const auto& node : world_.cluster.nodes)
        if (!held.contains(node.name)) policy.only.insert(lifecycle::Subject(node.name));
      if (policy.only.empty()) co_return Result<void>();
      CO_TRY(facts, co_await engine_.observe(policy));
      CO_TRY(plan, makePlan(world_.cluster, facts, policy, {&enrolled_, phase_.get()}));
      if (plan.empty()) co_return Result<void>();
      CO_TRY(report, co_await engine_.apply(plan));
      for (const auto& problem : report.problems) {
        if (problem.find("not started, because") != std::string::npos) continue;
        const NodeName node(problem.substr(0, problem.find('/')));
        auto hold = quarantine.add(node, {world_.clock.now(), "muster monitor", problem, ""});
        if (!hold) co_return fail(hold.error());
      }
    }
  }

  World& world_;
  test::MemoryStore store_;
  Workers workers_{1};
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  Enrolled enrolled_;
  std::unique_ptr<lifecycle::Phase> phase_;
  lifecycle::Engine engine_;
  asio::io_context io_;  ///< last, so that what runs there is gone before what it uses
};

/// The words that an update fault which cannot be mended leaves behind.
const std::map<UpdateFault, std::string> kReasons = {
    {UpdateFault::TaskFails, "did not install"},
    {UpdateFault::CompletedNotInstalled, "is not active"},
    {UpdateFault::NoLicence, "licenses"},
    {UpdateFault::LeavesItWorse, "left it worse"},
    {UpdateFault::AdapterDead, "does not come up"}};

TEST(FirmwareFleet, allEndAtTheBaselineOrInQuarantineWithTheRightReasonHoweverOftenMusterDies) {
  const int nodes = numberOf("MUSTER_FIRMWARE_NODES", 12);
  World world(nodes);
  const auto begun = world.clock.steady();
  int lives = 1;
  for (;; ++lives) {
    ASSERT_LT(lives, kMaxLives);
    for (auto& [host, node] : world.by_host)
      node->story.push_back(
          fmt::format("{} ---- life {}", muster::toString(world.clock.now()), lives));
    Life life(world);
    const bool endless = lives > 30;
    if (life.run(endless
                     ? std::nullopt
                     : std::optional(std::chrono::milliseconds(3'000 + world.random() % 40'000))))
      break;
  }
  test::MemoryStore store(world.stored);
  const auto held = *lifecycle::Quarantine(store).entries();
  int at_baseline = 0, with_fault = 0;
  std::uint64_t flashes = 0;
  int told = 0;
  auto problems = [] {
    return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  };
  for (const auto& [host, node] : world.by_host) {
    const int problems_before = problems();
    std::string seen = host;
    for (const auto fault : node->faults) seen += fmt::format(", {}", toString(fault));
    SCOPED_TRACE(seen);
    const auto& state = node->service->state();
    EXPECT_THAT(state.violations, testing::IsEmpty());
    EXPECT_LE(node->most_uploads_at_once, 1);
    with_fault += !node->faults.empty();
    Versions versions;
    bool reached = true;
    for (const auto& component : world.baseline().components) {
      const auto& slot = state.slots.at(component.name);
      EXPECT_LE(slot.flashes, 1u) << component.name;
      flashes += slot.flashes;
      versions[component.name] = slot.version;
      reached = reached && slot.version == component.version && !slot.broken;
    }
    EXPECT_THAT(brokenConstraints(world.baseline(), versions), testing::IsEmpty());
    at_baseline += reached;
    const auto entry = held.find(NodeName(host));
    const bool adapter_lost = std::find(node->faults.begin(), node->faults.end(),
                                        UpdateFault::AdapterDead) != node->faults.end();
    EXPECT_TRUE(adapter_lost || (entry == held.end()) == reached);
    if (problems() > problems_before && told++ < kMaxStoriesTold)
      std::cout << fmt::format("{}\n  {}\n  {}\n", seen, fmt::join(node->story, "\n  "),
                               fmt::join(state.log, "\n  "));
    if (entry == held.end()) continue;
    const bool right =
        std::any_of(node->faults.begin(), node->faults.end(), [&](UpdateFault fault) {
          const auto reason = kReasons.find(fault);
          return reason != kReasons.end() &&
                 entry->second.reason.find(reason->second) != std::string::npos;
        });
    EXPECT_TRUE(right) << entry->second.reason;
    if (!right)
      for (const auto fault : node->faults)
        ADD_FAILURE() << "its update faults: " << toString(fault);
  }
  EXPECT_GT(at_baseline, nodes / 2);
  std::cout << fmt::format(
      "{} nodes, {} components: {} at the baseline, {} in quarantine, {} had update faults; {} "
      "flashes, "
      "{} deaths of muster, {} requests, {:.0f} min of virtual time\n",
      nodes, world.baseline().components.size(), at_baseline, held.size(), with_fault, flashes,
      lives - 1, world.requests,
      std::chrono::duration<double>(world.clock.steady() - begun).count() / 60);
}

}  // namespace
}  // namespace muster::firmware
