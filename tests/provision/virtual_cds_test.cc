// SPDX-License-Identifier: Apache-2.0
// Boots by a medium in the virtual CD of a BMC in memory: what is inserted, what is left alone, and
// what a controller that was killed has left; and who may read such a medium, when, and what is on
// it.
#include "provision/virtual_cds.h"

#include "provision/facets.h"
#include "provision/restart.h"
#include "tests/provision/netboot/netboot_site.h"
#include "tests/provision/phase_rack.h"

#include <nlohmann/json.hpp>

namespace muster::provision {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr const char* kPersons = "nfs://10.20.0.9/firmware-tools.iso";

class VirtualCdsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    bmc().media = {{"Cd", "", false}};
    netboot.by_medium = {kNode};
  }
  test::FakeBmc& bmc() { return fleet.fake(kNode); }
  Result<bmc::BootTarget> insert() { return muster::test::runAsync(cds.insert(kNode)); }
  Result<void> eject() { return muster::test::runAsync(cds.eject(kNode)); }
  std::optional<InsertedMedium> left() { return log->medium(kNode).value_or(std::nullopt); }
  /// The RAM OS calls as soon as the machine has started from its CD.
  void startsFromItsCd() {
    bmc().on_power = [this](bmc::PowerState state) {
      if (state == bmc::PowerState::On && bmc().booted_from == bmc::BootTarget::Cd)
        agents.boot(kNode, wire::Mode::Ram, "boot-1");
    };
  }
  /// Until it no longer waits, or fails.
  Result<void> intoRam(Restarts& restarts) {
    for (int turn = 0; turn < 2000; ++turn) {
      auto step = muster::test::runAsync(restarts.intoRam(kNode, Restarts::Work::None));
      if (!step) return std::unexpected(step.error());
      if (!*step) return {};
      clock.advance((*step)->after);
    }
    return fail(ErrorCode::Timeout, "it waits for ever");
  }

  FakeClock clock;
  muster::test::FakeBmcFleet fleet;
  muster::test::FakeAgentGateway agents;
  muster::test::FakeNetboot netboot;
  muster::test::MemoryStore store;
  std::unique_ptr<BootLog> log = makeBootLog(store);
  VirtualCds cds{fleet, netboot, log.get()};
  Restarts restarts{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
};

TEST_F(VirtualCdsTest, theNodeBootsFromItsMediumAndThenItIsTakenOut) {
  startsFromItsCd();
  ASSERT_TRUE(intoRam(restarts));
  EXPECT_THAT(bmc().calls, Contains(StartsWith("insertMedia http://10.20.0.1:8080/media/")));
  EXPECT_THAT(bmc().calls, Contains("bootOnce Cd"));
  EXPECT_THAT(bmc().calls, Not(Contains("bootOnce Pxe")));
  EXPECT_FALSE(bmc().media[0].inserted);
  EXPECT_FALSE(left());
  EXPECT_THAT(netboot.armed, IsEmpty());
}

TEST_F(VirtualCdsTest, aBootThatIsGivenUpLeavesNothingBehindAndNamesTheCd) {
  const auto failed = intoRam(restarts);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::Timeout);
  EXPECT_THAT(failed.error().str(), HasSubstr("does it boot from its virtual CD"));
  EXPECT_EQ(bmc().count("insertMedia"), kMaxBoots);
  EXPECT_FALSE(bmc().media[0].inserted);
  EXPECT_FALSE(left());
}

TEST_F(VirtualCdsTest, anOverrideThatIsRefusedTakesTheMediumOutAgain) {
  bmc().failNext("bootOnce", Error(ErrorCode::InvalidInput, "no Cd here").retryable(false));
  EXPECT_FALSE(intoRam(restarts));
  EXPECT_FALSE(bmc().media[0].inserted);
  EXPECT_FALSE(left());
}

TEST_F(VirtualCdsTest, aPersonsMediumIsNeverEjectedAndNothingIsBootedBesideIt) {
  bmc().media = {{"Cd", "", false}, {"Cd2", kPersons, true}};
  const auto refused = intoRam(restarts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_FALSE(refused.error().canRetry());
  EXPECT_THAT(refused.error().str(), AllOf(HasSubstr("Cd2"), HasSubstr(kPersons),
                                           HasSubstr("muster bmc media gpu001 --eject")));
  EXPECT_TRUE(bmc().media[1].inserted);
  EXPECT_EQ(bmc().count("ejectMedia"), 0);
  EXPECT_EQ(bmc().count("power"), 0);
  EXPECT_THAT(netboot.armings, IsEmpty());
}

/// A person has put his own in after a start of muster's that nobody cleared up.
TEST_F(VirtualCdsTest, whatCameInThePlaceOfOursIsAPersonsToo) {
  ASSERT_TRUE(insert());
  bmc().media[0].image = kPersons;
  ASSERT_TRUE(eject());
  EXPECT_TRUE(bmc().media[0].inserted);
  EXPECT_FALSE(left()) << "ours is out, whoever took it";
  EXPECT_EQ(insert().error().code(), ErrorCode::Conflict);
}

TEST_F(VirtualCdsTest, aBmcThatShowsNoUrlIsBelievedForTheDriveThatItNamedOnly) {
  bmc().shows_images = false;
  bmc().media = {{"Cd", "", false}, {"Cd2", "", false}};
  ASSERT_TRUE(insert());
  EXPECT_EQ(left()->drive, "Cd");
  bmc().media[1].inserted = true;  // a person's, of which nothing is shown either
  ASSERT_TRUE(eject());
  EXPECT_FALSE(bmc().media[0].inserted);
  EXPECT_TRUE(bmc().media[1].inserted);
}

TEST_F(VirtualCdsTest, aBmcWithoutVirtualMediaIsRefusedWithWhatToDo) {
  bmc().media.clear();
  const auto refused = insert();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::NotFound);
  EXPECT_FALSE(refused.error().canRetry());
  EXPECT_THAT(refused.error().str(), HasSubstr("write boot_source: pxe"));
  EXPECT_FALSE(left());
}

TEST_F(VirtualCdsTest, aMediumOfAnEarlierStartMakesRoom) {
  ASSERT_TRUE(insert());
  const auto first = bmc().media[0].image;
  ASSERT_TRUE(insert());
  EXPECT_TRUE(bmc().media[0].inserted);
  EXPECT_NE(bmc().media[0].image, first) << "each arming has an id of its own";
  EXPECT_EQ(left()->urls.front(), bmc().media[0].image);
}

TEST_F(VirtualCdsTest, whatTheBmcDoesNotLetGoOfStaysWrittenDown) {
  startsFromItsCd();
  bmc().failNext("ejectMedia", Error(ErrorCode::Unavailable, "busy"));
  ASSERT_TRUE(intoRam(restarts)) << "the RAM OS is there all the same";
  ASSERT_TRUE(left());
  ASSERT_TRUE(eject());
  EXPECT_FALSE(left());
  EXPECT_FALSE(bmc().media[0].inserted);
}

TEST_F(VirtualCdsTest, anInsertionThatFailedAfterAllIsTakenBack) {
  bmc().media = {{"Cd", "", false}};
  bmc().failNext("insertMedia", Error(ErrorCode::Unavailable, "the image cannot be reached"));
  EXPECT_EQ(insert().error().code(), ErrorCode::Unavailable);
  EXPECT_FALSE(left());
}

TEST_F(VirtualCdsTest, aProfileThatWentBackToPxeStartsWithoutIt) {
  ASSERT_TRUE(insert());
  netboot.by_medium.clear();
  bmc().on_power = [this](bmc::PowerState state) {
    if (state == bmc::PowerState::On && bmc().booted_from == bmc::BootTarget::Pxe)
      agents.boot(kNode, wire::Mode::Ram, "boot-1");
  };
  ASSERT_TRUE(intoRam(restarts));
  EXPECT_FALSE(bmc().media[0].inserted);
  EXPECT_FALSE(left());
}

TEST_F(VirtualCdsTest, whatTheStoreSaysOfAMediumIsReadOrRefused) {
  const InsertedMedium medium{{"http://a/media/1/m.iso", "https://a/media/1/m.iso"}, "Cd"};
  ASSERT_TRUE(log->mediumGoesIn(kNode, medium));
  EXPECT_EQ(makeBootLog(store)->medium(kNode).value(), std::optional(medium));
  for (const auto* text : {"x", "[]", R"({"urls":[]})", R"({"urls":[],"drive":""})",
                           R"({"urls":"a","drive":"b"})", R"({"urls":[1],"drive":"b"})"}) {
    ASSERT_TRUE(store.putValue("boot-medium.gpu001", text));
    EXPECT_EQ(log->medium(kNode).error().code(), ErrorCode::Corrupt) << text;
  }
}

/// Killed after each call that changes something: the next controller finds what was left, does not
/// take it out while a machine starts from it, and then does.
class KilledBesideAMedium : public VirtualCdsTest,
                            public ::testing::WithParamInterface<const char*> {};
TEST_P(KilledBesideAMedium, theNextControllerTakesItOut) {
  bmc().crash_after = GetParam();
  EXPECT_THROW((void)intoRam(restarts), test::FakeCrash);
  bmc().crash_after.clear();
  const bool inserted = bmc().media[0].inserted;
  EXPECT_EQ(left().has_value(), true) << "written down before the BMC is told";
  Restarts anew{fleet, agents, netboot, clock, [](const NodeName&) {}, log.get()};
  for (int turn = 0; turn < 2000 && left(); ++turn) {
    const auto step = muster::test::runAsync(anew.removeMedium(kNode));
    ASSERT_TRUE(step) << step.error().str();
    if (*step) {
      EXPECT_TRUE(log->underWay(kNode).value()) << "it waits for nothing but a start";
      clock.advance((*step)->after);
    }
  }
  EXPECT_FALSE(left());
  EXPECT_FALSE(bmc().media[0].inserted) << inserted;
}
INSTANTIATE_TEST_SUITE_P(All, KilledBesideAMedium,
                         ::testing::Values("insertMedia", "bootOnce", "power On"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, ' ');
                           return name;
                         });

// ---- the facet

class PhaseOfMedia : public ProvisionPhaseTest {
 protected:
  void SetUp() override {
    ProvisionPhaseTest::SetUp();
    cluster.profiles.at("uefi").boot_source = inventory::BootSource::VirtualMedia;
    bmc().media = {{"Cd", "", false}};
    netboot.by_medium = {kNode};
    log = makeBootLog(store);
    phase = makeProvisionPhase({.cluster = cluster,
                                .bmcs = fleet,
                                .agents = agents,
                                .images = images,
                                .netboot = netboot,
                                .clock = clock,
                                .controller_http_url = "http://10.20.0.1:8080",
                                .controller_https_url = "https://10.20.0.1:8443",
                                .agent_ca_pem = "CA",
                                .signing_public_pem = "KEY",
                                .boots = log.get()});
  }
  FactSet observed() {
    FactSet facts;
    const auto seen = muster::test::runAsync(phase->observe(Subject(kNode)));
    EXPECT_TRUE(seen) << seen.error().str();
    for (const auto& fact : seen.value_or(std::vector<lifecycle::Fact>())) facts.put(fact);
    return facts;
  }
  bool wantsItOut(const FactSet& facts) {
    const auto goals = phase->goals(cluster, Subject(kNode), facts);
    return std::ranges::any_of(
        goals, [](const auto& goal) { return goal.facet.facet == facet(kBootMedium); });
  }
  std::unique_ptr<BootLog> log;
};

TEST_F(PhaseOfMedia, aMediumThatWasLeftIsAFactAGoalAndTakenOut) {
  auto facts = observed();
  EXPECT_EQ(facts.value(Subject(kNode), facet(kBootMedium)), "none");
  EXPECT_FALSE(wantsItOut(facts));
  bmc().media[0] = {"Cd", "http://10.20.0.1:8080/media/7/muster-gpu001.iso", true};
  ASSERT_TRUE(log->mediumGoesIn(kNode, {{bmc().media[0].image}, "Cd"}));
  facts = observed();
  EXPECT_EQ(facts.value(Subject(kNode), facet(kBootMedium)), "inserted");
  ASSERT_TRUE(wantsItOut(facts));
  test::FakeActContext context;
  const auto done = muster::test::runAsync(phase->act(action(kBootMedium), context));
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_TRUE(std::holds_alternative<Done>(*done));
  const auto after = muster::test::runAsync(phase->verify(action(kBootMedium)));
  ASSERT_TRUE(after && after->size() == 1);
  EXPECT_EQ(after->front().value, "none");
  EXPECT_FALSE(bmc().media[0].inserted);
}

TEST_F(PhaseOfMedia, thePlanSaysHowTheRamOsStarts) {
  for (const auto& goal : phase->goals(cluster, Subject(kNode), FactSet()))
    if (goal.facet.facet == facet(kInspected))
      EXPECT_THAT(goal.why, HasSubstr("the RAM OS starts from virtual media"));
  for (const auto& goal : phase->goals(cluster, Subject(NodeName("gpu002")), FactSet()))
    EXPECT_THAT(goal.why, Not(HasSubstr("virtual media"))) << "of another profile";
}

// ---- the medium as the network boot serves it

class MediumTest : public NetbootTest {
 protected:
  void SetUp() override {
    NetbootTest::SetUp();
    if (!io::runBlocking({.program = "xorriso", .args = {"-version"}}))
      GTEST_SKIP() << "needs xorriso";
    cluster.profiles.at("uefi").boot_source = inventory::BootSource::VirtualMedia;
    cluster.profiles.at("uefi").kernel_args = {"console=ttyS1,115200"};
    for (const auto* name : {"vmlinuz", "initrd.img", "agent.img", "shim", "grub"})
      ASSERT_TRUE(io::writeFileAtomic(folder / name, name));
    images.ram_os = RamOs{folder / "vmlinuz", folder / "initrd.img", folder / "agent.img",
                          folder / "shim", folder / "grub"};
  }
  std::vector<std::string> arm() {
    auto urls = muster::test::runAsync(netboot().armMedium(NodeName("gpu001")));
    EXPECT_TRUE(urls) << urls.error().str();
    return urls.value_or(std::vector<std::string>{"", ""});
  }
  io::ServerResponse read(const std::string& url) {
    io::ServerRequest request;
    request.method = "GET";
    request.target = url.substr(std::min(url.find("/media/"), url.size()));
    request.remote_address = "10.20.250.1";
    return muster::test::runAsync(call(netboot().mediumRoutes().at(0).handle, request)).value();
  }
};

TEST_F(MediumTest, theBmcOfTheArmedNodeReadsItsMediumWithItsParameters) {
  const auto urls = arm();
  ASSERT_EQ(urls.size(), 2u);
  EXPECT_THAT(urls[0], ::testing::MatchesRegex("http://127.0.0.1:8080/media/.+/muster-gpu001.iso"));
  EXPECT_THAT(urls[1], ::testing::StartsWith("https://127.0.0.1:8443/media/"));
  for (const auto& url : urls) EXPECT_TRUE(netboot().isOwnMedium(url));
  EXPECT_FALSE(netboot().isOwnMedium("http://127.0.0.9:8080/media/1/muster-gpu001.iso"));
  EXPECT_FALSE(netboot().isOwnMedium(""));
  EXPECT_TRUE(netboot().usesMedium(NodeName("gpu001")));
  EXPECT_FALSE(netboot().usesMedium(NodeName("gpu002")));
  const auto answer = read(urls[0]);
  const auto* file = std::get_if<io::FileBody>(&answer.body);
  ASSERT_TRUE(file && file->overlay);
  EXPECT_THAT(
      file->overlay->bytes,
      AllOf(HasSubstr("muster.enrolment=enrollment-gpu001-1"), HasSubstr("muster.node=gpu001"),
            HasSubstr("'console=ttyS1,115200'"), HasSubstr("linux /ramos/vmlinuz")));
  EXPECT_GT(file->overlay->offset, 0u);
  EXPECT_THAT(ask("/boot/ipxe?mac=52:54:00:00:00:01"), Not(HasSubstr("muster.enrolment")))
      << "by the network it stays on its disk";
}

TEST_F(MediumTest, nobodyReadsAMediumThatIsNotOrNotAnyMore) {
  const auto url = arm().front();
  for (const auto& wrong : {std::string("/media/"), std::string("/media/x/muster-gpu001.iso"),
                            url.substr(url.find("/media/"), url.rfind('/') - url.find("/media/")),
                            url + "x", url.substr(0, url.rfind('/')) + "/../muster-gpu001.iso"})
    EXPECT_EQ(read(wrong).status, 404) << wrong;
  clock.advance(gateway::kEnrollmentWindow);
  EXPECT_EQ(read(url).status, 200);
  clock.advance(std::chrono::seconds(1));
  EXPECT_EQ(read(url).status, 404) << "the RAM OS could not enroll any more";
  const auto second = arm().front();
  EXPECT_NE(second, url);
  EXPECT_EQ(read(second).status, 200);
  EXPECT_EQ(read(url).status, 404) << "an earlier arming is worth nothing";
  netboot().disarm(NodeName("gpu001"));
  EXPECT_EQ(read(second).status, 404);
}

TEST_F(MediumTest, aProfileThatGoesBackToPxeDisarmsItsNodes) {
  const auto url = arm().front();
  auto other = cluster;
  other.profiles.at("uefi").boot_source = inventory::BootSource::Pxe;
  ASSERT_TRUE(netboot().follow(other));
  EXPECT_EQ(read(url).status, 404);
}

TEST_F(MediumTest, firmwareThatBootsByHttpWithSignedLoadersGetsTheSameMedium) {
  cluster.profiles.at("uefi").boot_source = inventory::BootSource::Pxe;
  cluster.profiles.at("uefi").arch = Architecture::Arm64;
  const auto get = [this](const std::string& from) {
    io::ServerRequest request;
    request.method = "GET";
    request.target = "/boot/medium.iso";
    request.remote_address = from;
    const auto routes = netboot().routes();
    const auto route = std::ranges::find(routes, "/boot/medium.iso", &io::Route::path);
    EXPECT_NE(route, routes.end());
    return muster::test::runAsync(call(route->handle, request)).value();
  };
  EXPECT_EQ(get("10.20.1.1").status, 404) << "it is not armed: its firmware goes on";
  ASSERT_TRUE(netboot().arm(NodeName("gpu001")));
  const auto answer = get("10.20.1.1");
  const auto* file = std::get_if<io::FileBody>(&answer.body);
  ASSERT_TRUE(file && file->overlay);
  EXPECT_EQ(file->content_type, "application/vnd.efi-iso") << "or firmware takes it for a program";
  EXPECT_THAT(file->overlay->bytes, HasSubstr("muster.enrolment=enrollment-gpu001-1"));
  for (const auto* other : {"10.20.1.2", "10.20.240.9", "192.0.2.1", "junk", ""})
    EXPECT_EQ(get(other).status, 404) << other;
  clock.advance(gateway::kEnrollmentWindow + std::chrono::seconds(1));
  EXPECT_EQ(get("10.20.1.1").status, 404);
}

TEST_F(MediumTest, armingSaysWhatIsMissing) {
  images.ram_os.reset();
  EXPECT_THAT(muster::test::runAsync(netboot().armMedium(NodeName("gpu001"))).error().str(),
              HasSubstr("muster image build"));
}

}  // namespace
}  // namespace muster::provision
