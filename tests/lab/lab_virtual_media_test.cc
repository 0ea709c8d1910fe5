// SPDX-License-Identifier: Apache-2.0
// A virtual node with UEFI firmware boots into the RAM OS from its BMC's virtual CD: the twin's BMC
// reads muster's boot medium by HTTP, its machine starts from it, the agent enrolls, and the medium
// is taken out. DHCP gives the node its address and nothing to boot from. Controller, BMC driver,
// virtual BMC, libvirt, firmware, loaders and RAM OS are the real ones.
#include "base/async/task.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "bmc/bmc.h"
#include "bmc/fleet.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/lab.h"
#include "inventory/model/profile.h"
#include "lab/lab.h"
#include "lifecycle/store/store.h"
#include "provision/boot_log.h"
#include "provision/facets.h"
#include "provision/images/image_store.h"
#include "provision/images/packed_image.h"
#include "provision/images/ramos.h"
#include "provision/provision.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/lab/lab_cluster.h"
#include "tests/paths.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

namespace muster::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::minutes kLimit{25};  // 90 s on an idle machine, by emulation

class VirtualMediaBoot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: it makes network namespaces and a machine";
    if (!io::runBlocking({.program = "xorriso", .args = {"-version"}}))
      GTEST_SKIP() << "needs xorriso";
    ::setenv("MUSTER_LAB_TEST_PASSWORD", "secret-1", 1);
    cluster_ = labCluster(fmt::format("v{}", ::getpid()));
    cluster_.nodes.resize(1);
    cluster_.lab->memory_mib = 2048;
    auto& profile = cluster_.profiles.at("uefi-node");
    profile.boot_source = inventory::BootSource::VirtualMedia;
    const auto say = [](std::string_view text) { std::cout << "  " << text << std::endl; };
    images_ = provision::openImageStore(
        {cacheFolder(), test::binFolder() / "muster-agent", *io::SigningKey::generate()});
    const auto ramos = images_->buildRamOs(Architecture::Amd64, say);
    ASSERT_TRUE(ramos) << ramos.error().str();
    auto made = up(cluster_, folder_ / "lab", say);
    ASSERT_TRUE(made) << made.error().str();
    lab_ = *made;
    home_ = io::Fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    const auto entered = enter(lab_);
    ASSERT_TRUE(entered) << entered.error().str();
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
    startController();
  }

  void startController() {
    ca_.emplace(*io::CertificateAuthority::loadOrCreate(folder_ / "ca", "test root"));
    store_ = *lifecycle::openSqliteStore(folder_ / "muster.db");
    log_ = provision::makeBootLog(*store_);
    gateway_ = gateway::makeGatewayServer(cluster_, *ca_, *store_, clock_, *evidence_);
    bmcs_ = bmc::makeBmcFleet(cluster_, *store_, clock_, workers_);
    provision::NetbootOptions options{
        folder_ / "run", 8080, 8443, ca_->fingerprint(), folder_ / "hosts", folder_ / "tftp"};
    options.workers = &workers_;
    netboot_ = provision::makeNetboot(cluster_, *images_, *gateway_, *processes_,
                                      io_.get_executor(), std::move(options));
    io::ServerOptions plain, tls;
    plain.port = 8080;
    tls.port = 8443;
    tls.identity = *ca_->issueServer("controller", {"10.77.0.1"}, std::chrono::hours(1));
    tls.client_ca_pem = ca_->certificatePem();
    for (auto* server : {&plain, &tls}) server->address = "10.77.0.1";
    auto http = io::startHttpServer(io_.get_executor(), plain),
         https = io::startHttpServer(io_.get_executor(), tls);
    ASSERT_TRUE(http && https);
    http_ = std::move(*http);
    https_ = std::move(*https);
    http_->addRoutes(netboot_->routes());
    https_->addRoutes(gateway_->routes());
    const auto started = netboot_->start();
    ASSERT_TRUE(started) << started.error().str();
    phase_ = provision::makeProvisionPhase({.cluster = cluster_,
                                            .bmcs = *bmcs_,
                                            .agents = *gateway_,
                                            .images = *images_,
                                            .netboot = *netboot_,
                                            .clock = clock_,
                                            .controller_http_url = "http://10.77.0.1:8080",
                                            .controller_https_url = "https://10.77.0.1:8443",
                                            .agent_ca_pem = ca_->certificatePem(),
                                            .signing_public_pem = "",
                                            .boots = log_.get()});
  }

  void TearDown() override {
    const auto console = io::readFile(folder_ / "lab/console/gpu001.log").value_or("");
    if (HasFailure())
      std::cerr << io::readFile(folder_ / "run/dnsmasq.log").value_or("no log").substr(0, 4000)
                << "\n---- console\n"
                << console.substr(console.size() - std::min<std::size_t>(console.size(), 6000))
                << "\n---- BMC\n"
                << io::readFile(folder_ / "lab/log/vbmc.log").value_or("") << "\n";
    phase_.reset();
    if (netboot_) netboot_->stop();
    netboot_.reset();
    http_.reset();
    https_.reset();
    if (bmcs_) (void)test::runAsync(io_, bmcs_->close(), std::chrono::seconds(60));
    if (home_.valid()) ::setns(home_.get(), CLONE_NEWNET);
    EXPECT_TRUE(down(folder_ / "lab", [](std::string_view) {}));
  }

  Async<lifecycle::Outcome> actToEnd(std::string facet_name) {
    lifecycle::Action action;
    action.facet = {lifecycle::Subject(node_), provision::facet(facet_name)};
    action.id = action.facet.str();
    const auto start = clock_.steady();
    std::string waiting;
    for (;;) {
      CO_TRY(outcome, co_await phase_->act(action, context_));
      const auto* again = std::get_if<lifecycle::Again>(&outcome);
      if (!again) co_return outcome;
      if (again->waiting_for != waiting)
        std::cout << fmt::format("  [{:.1f} s] waits for {}",
                                 std::chrono::duration<double>(clock_.steady() - start).count(),
                                 waiting = again->waiting_for)
                  << std::endl;
      if (clock_.steady() - start > kLimit)
        co_return fail(ErrorCode::Timeout, "still waits for " + waiting);
      co_await clock_.sleep(again->after);
    }
  }

  asio::io_context io_;
  test::TempFolder folder_;
  SystemClock clock_;
  Workers workers_{2};
  inventory::Cluster cluster_;
  NodeName node_{"gpu001"};
  LabHandle lab_;
  io::Fd home_;
  std::unique_ptr<provision::ImageStore> images_;
  std::optional<io::CertificateAuthority> ca_;
  std::unique_ptr<lifecycle::Store> store_;
  std::unique_ptr<provision::BootLog> log_;
  std::unique_ptr<gateway::NetworkEvidence> evidence_ =
      gateway::makeNetworkEvidence(provision::dnsmasqLeaseFile(folder_ / "run"));
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<provision::Netboot> netboot_;
  std::unique_ptr<io::HttpServer> http_, https_;
  test::FakeActContext context_;
  std::unique_ptr<lifecycle::Phase> phase_;
};

TEST_F(VirtualMediaBoot, theNodeEnrollsWithNothingToBootByDhcp) {
  const auto outcome = test::runAsync(io_, actToEnd(std::string(provision::kInspected)),
                                      kLimit + std::chrono::minutes(1));
  ASSERT_TRUE(outcome) << outcome.error().str();
  const auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome);
  ASSERT_TRUE(std::holds_alternative<lifecycle::Done>(*outcome)) << (blocked ? blocked->why : "");
  const auto state = gateway_->state(node_);
  ASSERT_TRUE(state);
  EXPECT_EQ(state->mode, wire::Mode::Ram);

  const auto console = io::readFile(folder_ / "lab/console/gpu001.log").value_or("");
  EXPECT_THAT(console, HasSubstr("muster: gpu001 boots into the RAM OS")) << "GRUB's words";
  EXPECT_THAT(console, Not(HasSubstr("iPXE")));
  // dnsmasq names each option that it sends: it leased the address, and named no file.
  const auto dhcp = io::readFile(folder_ / "run/dnsmasq.log").value_or("");
  EXPECT_THAT(dhcp, HasSubstr("DHCPACK"));
  EXPECT_THAT(dhcp, Not(HasSubstr("bootfile")));

  const auto media = test::runAsync(io_, bmcs_->at(node_).virtualMedia(), std::chrono::minutes(1));
  ASSERT_TRUE(media) << media.error().str();
  for (const auto& drive : *media) EXPECT_FALSE(drive.inserted) << drive.id << " " << drive.image;
  EXPECT_FALSE(log_->medium(node_).value());
  // libvirt's own word on the machine's drive.
  const auto drives = io::runChecked(
      {.program = "virsh", .args = {"-c", lab_.libvirt_uri, "domblklist", "gpu001", "--details"}});
  ASSERT_TRUE(drives) << drives.error().str();
  EXPECT_THAT(*drives, ::testing::ContainsRegex("cdrom +sda +-"))
      << "the running machine's is empty";
}

}  // namespace
}  // namespace muster::lab
