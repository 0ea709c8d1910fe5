// SPDX-License-Identifier: Apache-2.0
// A controller and nodes in one test: the real gateway behind a real HTTPS server on loopback, real
// agents that dial it. Controller and agents have an io_context each, so that either can die at any
// moment; nothing is said to anybody then.
#pragma once

#include "agent/core/agent.h"
#include "agent/core/agent_clock.h"
#include "base/ids.h"
#include "base/io/files.h"
#include "base/result.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fwd.h"
#include "inventory/model/gates.h"
#include "inventory/model/networks.h"
#include "lifecycle/store/store.h"
#include "tests/fakes/fake_network_evidence.h"
#include "tests/run_async.h"
#include "tests/slowed_clock.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <optional>
#include <thread>

namespace muster::test {

using namespace std::chrono_literals;

inline const char* kMac1 = "52:54:00:00:00:01";
inline const char* kMac2 = "52:54:00:00:00:02";
inline const NodeName kNode("gpu001");

inline wire::AgentTask task(std::string id, wire::TaskKind kind,
                            std::chrono::seconds deadline = 600s) {
  return {std::move(id), kind, "{}", deadline};
}

/// A step that a test opens by hand.
class Gate {
 public:
  void open() {
    open_ = true;
    changed_.notify();
  }
  Task<void> pass(Clock& clock) {
    while (!open_) {
      co_await changed_.waitFor(clock, changed_.version(), 1h);
    }
  }

 private:
  bool open_ = false;
  async::ChangeNotifier changed_;
};

/// One life of the controller.
struct Controller {
  asio::io_context io;  // outlives the gateway, whose journal hands its answers over to it
  std::unique_ptr<gateway::GatewayServer> gateway;
  std::unique_ptr<io::HttpServer> server;

  /// `port` 0: any that is free, and from then on that one.
  void serve(std::unique_ptr<gateway::GatewayServer> served, const io::CertificateAuthority& ca,
             std::uint16_t& port) {
    gateway = std::move(served);
    io::ServerOptions options;
    options.identity = *ca.issueServer("controller", {"127.0.0.1"}, std::chrono::hours(1));
    options.client_ca_pem = ca.certificatePem();
    options.admit_expired_clients = true;  // as serve does
    options.port = port;
    auto started = io::startHttpServer(io.get_executor(), options);
    if (!started) throw std::runtime_error(started.error().str());
    server = std::move(*started);
    server->addRoutes(gateway->routes());
    port = server->port();
  }
};

/// One life of an agent. Destroying it is kill -9.
struct Node {
  agent::AgentOptions options;
  std::map<std::string, int> runs;  ///< task id → how often its handler was entered
  int reboots = 0, gave_way = 0, looks = 0;
  std::vector<std::string> said = {""};             ///< bodies of its requests
  std::function<std::string(std::string)> rewrite;  ///< of answers, before the agent reads them
  agent::AgentClock clock;
  std::unique_ptr<agent::Agent> agent;
  asio::io_context io;
};

/// A client that is listened to.
class Overheard final : public io::HttpClient {
 public:
  Overheard(std::unique_ptr<io::HttpClient> client, Node& node)
      : client_(std::move(client)), node_(node) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override {
    node_.said.push_back(request.body);
    auto answer = co_await client_->send(std::move(request));
    if (answer && node_.rewrite) answer->body = node_.rewrite(std::move(answer->body));
    co_return answer;
  }
  Async<io::HttpResponse> fetch(io::HttpRequest request,
                                std::function<Result<void>(std::string_view)> sink) override {
    return client_->fetch(std::move(request), std::move(sink));
  }
  std::string peerFingerprint() const override { return client_->peerFingerprint(); }

 private:
  std::unique_ptr<io::HttpClient> client_;
  Node& node_;
};

class Site {
 public:
  explicit Site(int nodes = 2) {
    auto made = io::CertificateAuthority::loadOrCreate(folder / "ca", "test root");
    if (!made) throw std::runtime_error(made.error().str());
    ca.emplace(std::move(*made));
    auto opened = lifecycle::openSqliteStore(folder / "muster.db");
    if (!opened) throw std::runtime_error(opened.error().str());
    store = std::move(*opened);
    for (int number = 1; number <= nodes; ++number) {
      inventory::Node node;
      node.name = NodeName(fmt::format("gpu{:03}", number));
      node.mac = *Mac::parse(fmt::format("52:54:00:00:00:{:02x}", number));
      cluster.nodes.push_back(node);
      network.show("127.0.0.1", node.mac.str());
    }
    startController();
  }

  void startController() {
    controller.emplace();
    controller->serve(
        gateway::makeGatewayServer(cluster, authority ? *authority : signer::Authority(*ca), *store,
                                   place, network, {}, health_rules),
        *ca, port);
  }
  void restartController() {
    controller.reset();
    startController();
  }
  gateway::GatewayServer& gateway() { return *controller->gateway; }

  std::string url() const { return "https://127.0.0.1:" + std::to_string(port); }

  agent::AgentOptions ramOptions(const std::string& name, const std::string& boot = "ram-1") {
    auto root = folder / (name + "-" + boot);
    setBoot(root, boot);
    agent::AgentOptions options;
    options.mode = wire::Mode::Ram;
    options.url = *io::Url::parse(url());
    options.node = name;
    options.mac = cluster.findNode(NodeName(name))->mac.str();
    options.ca_fingerprint = ca->fingerprint();
    options.enrollment = *gateway().openEnrollment(NodeName(name), *Mac::parse(options.mac));
    options.root = root;
    options.state_folder = root / "run/muster";
    return options;
  }
  static void setBoot(const std::filesystem::path& root, const std::string& boot) {
    (void)io::makeDirs(root / "proc/sys/kernel/random");
    (void)io::writeFileAtomic(root / "proc/sys/kernel/random/boot_id", boot + "\n");
  }

  /// Handlers: Probe answers at once, RunChecks never ends by itself, InstallDriver passes `gate`
  /// first, WriteImage never ends by itself.
  std::unique_ptr<Node> startNode(agent::AgentOptions options) {
    auto node = std::make_unique<Node>();
    node->options = options;
    Node* raw = node.get();
    agent::TaskHandlers handlers;
    handlers[wire::TaskKind::Probe] = [raw](nlohmann::json, agent::TaskContextPtr context) {
      return answer(raw, context->id());
    };
    handlers[wire::TaskKind::RunChecks] = [this, raw](nlohmann::json,
                                                      agent::TaskContextPtr context) {
      return answerUnlessLeft(raw, never, context);
    };
    handlers[wire::TaskKind::Reboot] = [raw](nlohmann::json, agent::TaskContextPtr context) {
      return answer(raw, context->id());
    };
    handlers[wire::TaskKind::InstallDriver] = [this, raw](nlohmann::json,
                                                          agent::TaskContextPtr context) {
      return answerBehind(raw, gate, context);
    };
    if (options.mode == wire::Mode::Ram) {
      handlers[wire::TaskKind::WriteImage] = [this, raw](nlohmann::json,
                                                         agent::TaskContextPtr context) {
        return answerBehind(raw, never, context);
      };
      handlers[wire::TaskKind::StartImage] = [raw](nlohmann::json, agent::TaskContextPtr context) {
        return answer(raw, context->id());
      };
    }
    handlers[wire::TaskKind::EraseDisks] = [](nlohmann::json, agent::TaskContextPtr) {
      return breaksOff();
    };
    agent::MachineAccess senses;
    senses.hardware = [raw] { return hardware(++raw->looks); };
    senses.probes = [](std::set<std::string> watched) { return probes(std::move(watched)); };
    if (health) senses.health = [this]() -> Task<wire::HealthReport> { co_return *health; };
    senses.reboot = [raw] { ++raw->reboots; };
    senses.give_way = [raw] { ++raw->gave_way; };
    senses.clients = [raw](io::TlsTrust trust) {
      return agent::heedSlowness(
          std::make_unique<Overheard>(io::makeHttpClient(std::move(trust)), *raw), raw->clock);
    };
    auto created =
        agent::Agent::create(options, std::move(handlers), std::move(senses), raw->clock);
    if (!created) throw std::runtime_error(created.error().str());
    node->agent = std::move(*created);
    asio::co_spawn(node->io, node->agent->run(), asio::detached);
    nodes.push_back(raw);
    return node;
  }
  void kill(std::unique_ptr<Node>& node) {
    std::erase(nodes, node.get());
    node.reset();
  }

  /// Lets everybody run until `holds`. Real time passes only while nobody has anything to do.
  template <class Condition>
  bool until(Condition holds, std::chrono::seconds limit = 60s) {
    auto end = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::size_t done = 0;
      controller->io.restart();
      done += controller->io.poll();
      for (auto* node : nodes) {
        node->io.restart();
        done += node->io.poll();
      }
      for (auto* other : others) {
        other->restart();
        done += other->poll();
      }
      if (done == 0) std::this_thread::sleep_for(200us);
    }
    return true;
  }

  /// Runs on the controller while agents go on.
  template <class T>
  Result<T> await(Async<T> work) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    async::start(controller->io, async::answerInto(*answer, std::move(work)),
                 [answer](std::exception_ptr thrown) {
                   if (thrown) *answer = Result<T>(fail(ErrorCode::Internal, "thrown"));
                 });
    if (!until([&] { return answer->has_value(); }))
      return fail(ErrorCode::Timeout, "the test's coroutine did not finish");
    return std::move(**answer);
  }

  /// A POST as some machine would send it.
  Result<io::HttpResponse> post(const std::string& path, std::string body,
                                std::optional<io::TlsIdentity> identity = {}) {
    io::TlsTrust trust;
    trust.ca_pem = ca->certificatePem();
    trust.identity = std::move(identity);
    auto client = io::makeHttpClient(trust);
    io::HttpRequest request;
    request.method = "POST";
    request.url = *io::Url::parse(url() + path);
    request.body = std::move(body);
    return await(client->send(std::move(request)));
  }
  io::TlsIdentity identityOf(const std::string& name) {
    auto made = io::makeKeyAndRequest(name);
    return {made->key_pem, *ca->signClient(made->csr_pem, name, std::chrono::hours(1))};
  }
  /// The same key under a certificate that is valid, and under one that has expired.
  std::pair<io::TlsIdentity, io::TlsIdentity> agedIdentityOf(const std::string& name) {
    auto made = io::makeKeyAndRequest(name);
    return {{made->key_pem, *ca->signClient(made->csr_pem, name, std::chrono::hours(1))},
            {made->key_pem, *ca->signClient(made->csr_pem, name, std::chrono::hours(-1))}};
  }

  bool isThere(const std::string& name, wire::Mode mode) {
    auto state = gateway().state(NodeName(name));
    return state && state->mode == mode;
  }
  wire::TaskPhase phase(const std::string& name, const std::string& id) {
    auto report = gateway().report(NodeName(name), id);
    return report ? report->phase : wire::TaskPhase::Queued;
  }

  TempFolder folder;
  FakeClock clock;  ///< the controller's
  SlowedClock place{clock, 1};
  inventory::Cluster cluster;
  FakeNetworkEvidence network;  ///< shows all nodes at the address that they have in common
  std::optional<io::CertificateAuthority> ca;
  std::optional<signer::Authority> authority;  ///< in the place of `ca`, for whoever enrolls
  std::unique_ptr<lifecycle::Store> store;
  std::uint16_t port = 0;
  Gate gate, never;
  std::optional<wire::HealthReport> health;  ///< what agents see that are started from now on
  gateway::HealthRulesFor health_rules;      ///< of controllers that are started from now on
  std::vector<Node*> nodes;
  std::vector<asio::io_context*> others;  ///< what a test has put between them
  std::optional<Controller> controller;

 private:
  static Async<nlohmann::json> answer(Node* node, std::string id) {
    ++node->runs[id];
    co_return nlohmann::json{{"answer", id}};
  }
  static Async<nlohmann::json> answerBehind(Node* node, Gate& gate, agent::TaskContextPtr context) {
    ++node->runs[context->id()];
    context->progress(0.5, "half way");
    co_await gate.pass(node->clock);
    co_return nlohmann::json{{"answer", context->id()}};
  }
  /// Notes when it is left before its end.
  static Async<nlohmann::json> answerUnlessLeft(Node* node, Gate& gate,
                                                agent::TaskContextPtr context) {
    struct Left {
      Node* node;
      std::string id;
      bool ended = false;
      ~Left() {
        if (!ended) ++node->runs[id + " was left"];
      }
    } left{node, context->id()};
    ++node->runs[context->id()];
    co_await gate.pass(node->clock);
    left.ended = true;
    co_return nlohmann::json{{"answer", context->id()}};
  }
  static Async<nlohmann::json> breaksOff() {
    co_return fail(ErrorCode::Internal, "half of it is gone");
  }
  static Async<wire::Hardware> hardware(int look) {
    wire::Hardware hardware;
    hardware.serial = "SN-1";
    hardware.manufacturer = fmt::format("look {}", look);
    co_return hardware;
  }
  static Task<std::map<std::string, std::string>> probes(std::set<std::string> watched) {
    std::map<std::string, std::string> values = {{"kernel", "6.1.0"}};
    for (const auto& name : watched) values[name] = "seen";
    co_return values;
  }
};

}  // namespace muster::test
