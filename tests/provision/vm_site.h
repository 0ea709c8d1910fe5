// SPDX-License-Identifier: Apache-2.0
// A controller and one virtual machine on a network of their own: dnsmasq, HTTP and HTTPS, the
// gateway, the image store and the phase are real, and so is all that runs in the machine. Only the
// BMC is a fake: its power switch starts and ends QEMU.
#pragma once

#include "base/ids.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fwd.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "lifecycle/store/store.h"
#include "provision/facets.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/provision.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_bmc.h"
#include "tests/paths.h"
#include "tests/provision/clusters.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

namespace muster::provision {

inline std::filesystem::path imageCache() {
  if (const char* cache = std::getenv("MUSTER_CACHE")) return cache;
  return std::filesystem::path(std::getenv("HOME")) / ".cache/muster";
}

class VmSite : public ::testing::Test {
 protected:
  /// What the node runs; nothing: it is not imaged.
  virtual std::optional<inventory::Image> image() = 0;
  virtual void declare(inventory::Profile&) {}
  virtual Architecture architecture() { return Architecture::Amd64; }
  /// What emulates its processor, and the words for its board.
  virtual io::Command emulator() {
    io::Command command{.program = "qemu-system-x86_64"};
    command.args = {"-machine", "q35,accel=tcg,smm=on", "-cpu", "max", "-smp", "2"};
    return command;
  }
  /// QEMU's words for the machine's disks and firmware.
  virtual std::vector<std::string> parts() { return {}; }

  void SetUp() override {
    if (std::getenv("MUSTER_VM_TESTS") == nullptr || ::geteuid() != 0)
      GTEST_SKIP() << "takes minutes: set MUSTER_VM_TESTS=1, as root";
    const auto say = [](std::string_view text) { std::cout << text << std::endl; };
    cluster_.nodes.resize(1);
    auto& profile = cluster_.profiles.at("uefi");
    profile.drivers.clear();
    profile.expect = {};
    profile.arch = architecture();
    const auto wanted = image();
    if (wanted) cluster_.images["bookworm"] = *wanted;
    declare(profile);
    key_ = *io::SigningKey::generate();
    images_ = openImageStore({imageCache(), test::binFolder() / "muster-agent", key_});
    const auto ramos = images_->buildRamOs(architecture(), say);
    ASSERT_TRUE(ramos) << ramos.error().str();
    if (wanted) {
      const auto built = images_->build(*wanted, say);
      ASSERT_TRUE(built) << built.error().str();
      image_ = *built;
    }

    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (::unshare(CLONE_NEWNET) != 0)
      GTEST_SKIP() << "network namespaces cannot be made here: " << std::strerror(errno);
    ASSERT_TRUE(
        io::runChecked({.program = "sh",
                        .args = {"-c",
                                 "ip link set lo up && ip tuntap add tap0 mode tap && ip addr add "
                                 "10.20.0.1/16 dev tap0 && ip link set tap0 up"}}));
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    startController();
  }

  void startController() {
    ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "test root"));
    store_ = *lifecycle::openSqliteStore(folder_ / "muster.db");
    gateway_ = gateway::makeGatewayServer(cluster_, *ca_, *store_, clock_, *evidence_);
    netboot_ = makeNetboot(
        cluster_, *images_, *gateway_, *processes_, io_.get_executor(),
        {folder_ / "run", 8080, 8443, ca_->fingerprint(), folder_ / "hosts", folder_ / "tftp"});
    io::ServerOptions plain, tls;
    plain.port = 8080;
    tls.port = 8443;
    tls.identity = *ca_->issueServer("controller", {"10.20.0.1"}, std::chrono::hours(1));
    tls.client_ca_pem = ca_->certificatePem();
    for (auto* options : {&plain, &tls}) options->address = "10.20.0.1";
    auto http = io::startHttpServer(io_.get_executor(), plain),
         https = io::startHttpServer(io_.get_executor(), tls);
    ASSERT_TRUE(http && https);
    http_ = std::move(*http);
    https_ = std::move(*https);
    http_->addRoutes(netboot_->routes());
    http_->addRoutes(counted(images_->routes()));
    https_->addRoutes(gateway_->routes());
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
    bmc().info = {bmc::PowerState::Off, "QEMU", "virtual", "", "", {"52:54:00:00:00:01"},
                  bmc::BootTarget::None};
    bmc().on_power = [this](bmc::PowerState state) { power(state); };
    phase_ = makeProvisionPhase({cluster_, fleet_, *gateway_, *images_, *netboot_, clock_,
                                 "http://10.20.0.1:8080", "https://10.20.0.1:8443",
                                 ca_->certificatePem(), key_.public_pem});
  }

  void TearDown() override {
    power(bmc::PowerState::Off);
    phase_.reset();
    if (netboot_) netboot_->stop();
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    if (image_) std::filesystem::remove(image_->index);  // signed with the key of this test
    if (!HasFailure()) return;
    std::cerr << io::readFile(folder_ / "run/dnsmasq.log").value_or("no log").substr(0, 4000)
              << "\n";
    for (int boot = 1; boot <= boots_; ++boot) {
      const auto console = consoleOf(boot);
      std::cerr << "---- boot " << boot << "\n"
                << console.substr(console.size() - std::min<std::size_t>(console.size(), 6000))
                << "\n";
    }
  }

  test::FakeBmc& bmc() { return fleet_.fake(node_); }
  std::string consoleOf(int boot) const {
    return io::readFile(folder_ / fmt::format("console-{}", boot)).value_or("");
  }

  void power(bmc::PowerState state) {
    if (machine_) machine_->terminate(std::chrono::seconds(3));
    machine_.reset();
    if (state != bmc::PowerState::On) return;
    const auto& calls = bmc().calls;
    const auto last = std::find_if(calls.rbegin(), calls.rend(), [](const std::string& call) {
      return call.starts_with("bootOnce");
    });
    const bool network = last != calls.rend() && *last == "bootOnce Pxe";
    ++boots_;
    std::cout << "boot " << boots_ << (network ? " from the network" : " from the disk")
              << std::endl;
    auto command = emulator();
    for (auto& word : std::vector<std::string>{
             "-m", std::to_string(memory_mib_), "-display", "none", "-monitor", "none",
             "-no-reboot", "-serial",
             "file:" + (folder_ / fmt::format("console-{}", boots_)).string(), "-netdev",
             "tap,id=n,ifname=tap0,script=no,downscript=no", "-device",
             "virtio-net-pci,netdev=n,mac=52:54:00:00:00:01,bootindex=" +
                 std::string(network ? "0" : "9")})
      command.args.push_back(std::move(word));
    for (auto& word : parts()) command.args.push_back(std::move(word));
    auto started = processes_->start(command, folder_ / fmt::format("qemu-{}.log", boots_));
    ASSERT_TRUE(started) << started.error().str();
    machine_ = std::move(*started);
  }

  Async<lifecycle::Outcome> actToEnd(std::string facet_name, std::chrono::seconds limit) {
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(node_), facet(facet_name)};
    action.id = action.facet.str();
    const auto start = clock_.steady();
    std::string waiting;
    for (;;) {
      CO_TRY(outcome, co_await phase_->act(action, context_));
      const auto* again = std::get_if<lifecycle::Again>(&outcome);
      const auto seconds = std::chrono::duration<double>(clock_.steady() - start).count();
      if (!again) {
        std::cout << fmt::format("{}: over after {:.1f} s", facet_name, seconds) << std::endl;
        co_return outcome;
      }
      sayProgress(seconds);
      if (stop_at_ && !context_.progressed.empty() && context_.progressed.back().first >= *stop_at_)
        co_return fail(ErrorCode::Conflict, "far enough");
      if (!again->waiting_for.empty() && again->waiting_for != waiting)
        std::cout << fmt::format("[{:.1f} s] waits for {}", seconds, waiting = again->waiting_for)
                  << std::endl;
      if (clock_.steady() - start > limit)
        co_return fail(ErrorCode::Timeout, "still waits for " + waiting);
      co_await clock_.sleep(again->after);
    }
  }
  /// What the node says that it does: every new sentence, and every tenth of the way.
  void sayProgress(double seconds) {
    if (context_.progressed.empty()) return;
    const auto& [fraction, text] = context_.progressed.back();
    if (text == said_.second && std::abs(fraction - said_.first) < 0.1) return;
    said_ = context_.progressed.back();
    std::cout << fmt::format("[{:.1f} s] {:.0f} %: {}", seconds, fraction * 100, text) << std::endl;
  }
  /// An intent of its own; whatever it says that is not Done is a failure.
  void mustDo(std::string_view facet_name, std::chrono::seconds limit) {
    context_.intent = fmt::format("intent-{}-{}", facet_name, ++intents_);
    context_.recorded.clear();
    const auto outcome = test::runAsync(io_, actToEnd(std::string(facet_name), limit),
                                        limit + std::chrono::seconds(60));
    ASSERT_TRUE(outcome) << outcome.error().str();
    const auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome);
    ASSERT_TRUE(std::holds_alternative<lifecycle::Done>(*outcome)) << (blocked ? blocked->why : "");
  }
  /// The same, but muster dies when the node has come so far (0…1).
  void doUntil(std::string_view facet_name, double fraction, std::chrono::seconds limit) {
    context_.intent = fmt::format("intent-{}-{}", facet_name, ++intents_);
    context_.recorded.clear();
    context_.progressed.clear();
    stop_at_ = fraction;
    const auto outcome = test::runAsync(io_, actToEnd(std::string(facet_name), limit),
                                        limit + std::chrono::seconds(60));
    stop_at_.reset();
    ASSERT_FALSE(outcome);
    ASSERT_EQ(outcome.error().code(), ErrorCode::Conflict) << outcome.error().str();
  }
  /// What the node asks for of images.
  std::vector<io::Route> counted(std::vector<io::Route> routes) {
    for (auto& route : routes)
      route.handle = [this, inner = std::move(route.handle)](io::ServerRequest request) {
        const auto range = request.headers.find("Range");
        unsigned long long first = 0, last = 0;
        if (range != request.headers.end() &&
            std::sscanf(range->second.c_str(), "bytes=%llu-%llu", &first, &last) == 2)
          image_bytes_ += last - first + 1;
        return inner(std::move(request));
      };
    return routes;
  }
  std::optional<gateway::AgentState> state() { return gateway_->state(node_); }

  asio::io_context io_;
  test::TempFolder folder_;
  SystemClock clock_;
  inventory::Cluster cluster_ = twoNodes();
  NodeName node_{"gpu001"};
  io::SigningKey key_;
  std::unique_ptr<ImageStore> images_;
  std::optional<PackedImage> image_;
  io::Fd home_;
  std::optional<io::CertificateAuthority> ca_;
  std::unique_ptr<lifecycle::Store> store_;
  std::unique_ptr<gateway::NetworkEvidence> evidence_ =
      gateway::makeNetworkEvidence(dnsmasqLeaseFile(folder_ / "run"));
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<Netboot> netboot_;
  std::unique_ptr<io::HttpServer> http_, https_;
  test::FakeBmcFleet fleet_;
  test::FakeActContext context_;
  std::unique_ptr<lifecycle::Phase> phase_;
  std::unique_ptr<io::Child> machine_;
  std::pair<double, std::string> said_;
  std::optional<double> stop_at_;
  std::uint64_t image_bytes_ = 0;  ///< compressed, that were asked for
  int memory_mib_ = 2048, boots_ = 0, intents_ = 0;
};

}  // namespace muster::provision
