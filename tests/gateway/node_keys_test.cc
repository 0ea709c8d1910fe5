// SPDX-License-Identifier: Apache-2.0
// Whose key is listened to, of several lives of one node.
#include "base/io/key_id.h"
#include "gateway/enrollment.h"
#include "gateway/refused_agents.h"
#include "inventory/model/cluster.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "tests/agent/site.h"
#include "tests/fakes/memory_store.h"
#include "tests/gateway/one_node.h"

#include <boost/asio/co_spawn.hpp>

#include <gmock/gmock.h>

namespace muster::agent {
namespace {

using namespace test;
using ::testing::HasSubstr;

class KeysTest : public ::testing::Test {
 protected:
  /// One answer at once, whatever waits.
  Result<io::HttpResponse> call(const io::TlsIdentity& who, wire::Mode mode,
                                const std::vector<wire::AgentTaskReport>& reports = {}) {
    wire::PollRequest poll;
    poll.mode = mode;
    poll.boot_id = fmt::format("{}-{}", toString(mode), boot_);
    poll.sequence = ++sequence_;
    wire::AgentTaskReport busy;
    busy.id = "other";
    busy.phase = wire::TaskPhase::Running;
    poll.reports.push_back(busy);
    poll.reports.insert(poll.reports.end(), reports.begin(), reports.end());
    return site.post("/agent/v1/poll", toJson(poll), who);
  }
  /// The order to write goes out; its id.
  std::string orderedToWrite(const io::TlsIdentity& ram) {
    handOver(wire::TaskKind::WriteImage, "{}");
    const auto id = "order-" + std::to_string(sequence_);
    EXPECT_THAT(call(ram, wire::Mode::Ram)->body, HasSubstr(id));
    return id;
  }
  static wire::AgentTaskReport failed(const std::string& id, const std::string& text,
                                      std::vector<wire::TaskReason> reasons = {}) {
    wire::AgentTaskReport report;
    report.id = id;
    report.phase = wire::TaskPhase::Failed;
    report.code = ErrorCode::Denied;
    report.text = text;
    report.reasons = std::move(reasons);
    return report;
  }
  int polls(const io::TlsIdentity& who, wire::Mode mode) {
    return call(who, mode).value_or(io::HttpResponse{}).status;
  }
  /// The answer to a request for a certificate, as an identity; empty where it was refused.
  io::TlsIdentity ask(const std::string& path, const std::optional<io::TlsIdentity>& who,
                      const std::string& enrollment = {}) {
    auto made = io::makeKeyAndRequest("gpu001");
    auto answer = site.post(
        path,
        toJson(wire::EnrollRequest{enrollment, made->csr_pem, enrollment.empty() ? "" : kMac1}),
        who);
    if (!answer || answer->status != 200) return {};
    return {made->key_pem, wire::parseEnrollResponse(answer->body)->certificate_pem};
  }
  io::TlsIdentity enroll() {
    ++boot_;
    return ask("/agent/v1/enrol", {}, *site.gateway().openEnrollment(kNode, *Mac::parse(kMac1)));
  }
  io::TlsIdentity certify(const io::TlsIdentity& who) { return ask("/agent/v1/certificate", who); }
  bool refused(const io::TlsIdentity& identity) { return identity.certificate_pem.empty(); }
  /// A node with an installed system whose agent is known.
  io::TlsIdentity installed() {
    auto disk = certify(enroll());
    EXPECT_EQ(polls(disk, wire::Mode::Disk), 200);
    return disk;
  }
  void handOver(wire::TaskKind kind, const std::string& params) {
    ASSERT_TRUE(site.gateway().submit(
        kNode, wire::AgentTask{"order-" + std::to_string(++sequence_), kind, params, 1h}));
  }
  /// The node is off, and started anew after.
  void silence() {
    site.clock.advance(wire::kAgentTimeout + 1s);
    ++boot_;
  }

  Site site;
  std::uint64_t sequence_ = 0;
  int boot_ = 0;
};

TEST_F(KeysTest, aReImageEndsTheKeyOfTheLifeBefore) {
  const auto before = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  EXPECT_EQ(polls(before, wire::Mode::Disk), 409)
      << "the RAM OS is heard: whoever calls is not its installed system";
  const auto now = certify(ram);
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403) << "handed out, not yet used";
  silence();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403);
  EXPECT_TRUE(refused(certify(before))) << "nor does it renew";
  EXPECT_EQ(polls(now, wire::Mode::Disk), 200);
  EXPECT_EQ(polls(ram, wire::Mode::Ram), 403) << "the RAM OS is over too";
  EXPECT_TRUE(refused(certify(ram)));
  site.restartController();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403);
  EXPECT_EQ(polls(now, wire::Mode::Disk), 200);
  const auto findings = site.store->findings(nullptr);
  ASSERT_FALSE(findings->empty());
  EXPECT_THAT(findings->front().text, HasSubstr("of an earlier installation of the node"));
}

TEST_F(KeysTest, theKeyEndsWhenTheOrderToWriteGoesOutNotWhenItIsDone) {
  const auto before = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  handOver(wire::TaskKind::WriteImage, "{}");
  const auto answer = call(ram, wire::Mode::Ram);
  ASSERT_THAT(answer->body, HasSubstr("order-"));
  silence();  // the power goes while it writes
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403)
      << "it would say that it is what was to be written";
}

TEST_F(KeysTest, anOrderThatIsRefusedBeforeTheFirstByteGivesTheKeyBack) {
  const auto before = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  const auto refusal =
      failed(orderedToWrite(ram), "/dev/sdb holds ext4; it is not overwritten",
             {wire::TaskReason::SystemWipeDenied, wire::TaskReason::DisksUntouched});
  site.restartController();  // whoever hears it
  ASSERT_EQ(call(ram, wire::Mode::Ram, {refusal})->status, 200);
  silence();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 200) << "its system is what it was";
  const auto again = enroll();
  ASSERT_EQ(polls(again, wire::Mode::Ram), 200);
  const auto next = orderedToWrite(again);
  ASSERT_EQ(call(again, wire::Mode::Ram, {refusal})->status, 200)
      << "the report of before is still listed";
  silence();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403) << "the other order may be writing";
}

TEST_F(KeysTest, whatMayHaveWrittenGivesNothingBack) {
  for (const std::string& text :
       {std::string("/dev/sda: input/output error"),
        std::string("no disk was touched: an agent of before, which says it in words alone")}) {
    SCOPED_TRACE(text);
    const auto before = installed();
    const auto ram = enroll();
    ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
    ASSERT_EQ(call(ram, wire::Mode::Ram, {failed(orderedToWrite(ram), text)})->status, 200);
    silence();
    EXPECT_EQ(polls(before, wire::Mode::Disk), 403);
  }
}

TEST_F(KeysTest, anOrderThatWentOutTwiceGivesNothingBack) {
  const auto before = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  const auto order = orderedToWrite(ram);
  ASSERT_THAT(call(ram, wire::Mode::Ram)->body,
              HasSubstr(order));  // an agent that was restarted may have written before
  ASSERT_EQ(call(ram, wire::Mode::Ram,
                 {failed(order, "no such image", {wire::TaskReason::DisksUntouched})})
                ->status,
            200);
  silence();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403);
}

TEST_F(KeysTest, theNextRamOsGivesNothingBackOfTheOneBefore) {
  const auto before = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  const auto order = orderedToWrite(ram);
  silence();  // the power goes while it writes
  const auto next = enroll();
  ASSERT_EQ(call(next, wire::Mode::Ram,
                 {failed(order, "no such image", {wire::TaskReason::DisksUntouched})})
                ->status,
            200);
  silence();
  EXPECT_EQ(polls(before, wire::Mode::Disk), 403);
}

TEST_F(KeysTest, aLookInTheRamOsEndsNothingOfTheInstalledSystem) {
  const auto disk = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  handOver(wire::TaskKind::Inspect, "{}");
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  silence();
  EXPECT_EQ(polls(disk, wire::Mode::Disk), 200);
  const auto again = enroll();
  EXPECT_EQ(polls(ram, wire::Mode::Ram), 403) << "but the RAM OS of before is over";
  EXPECT_EQ(polls(again, wire::Mode::Ram), 200);
}

TEST_F(KeysTest, anErasureEndsTheKeyOfTheSystemThatItTakes) {
  auto use = wire::DiskUse::System;
  const auto erase = [this, &use](const std::string& params) {
    const auto disk = installed();
    const auto ram = enroll();
    wire::PollRequest poll;
    poll.mode = wire::Mode::Ram;
    poll.boot_id = "ram-boot-" + std::to_string(++sequence_);
    poll.sequence = sequence_;
    wire::Hardware hardware;
    hardware.disks = {{.path = "/dev/sda",
                       .serial = "SYSTEM",
                       .wwn = {},
                       .model = {},
                       .content = "a system installed by muster",
                       .size_bytes = 1,
                       .use = use},
                      {.path = "/dev/sdb",
                       .serial = "DATA",
                       .wwn = {},
                       .model = {},
                       .content = "none",
                       .size_bytes = 1,
                       .use = wire::DiskUse::Empty}};
    poll.hardware = toJson(hardware);
    poll.session = "";
    wire::AgentTaskReport busy;
    busy.id = "other";
    busy.phase = wire::TaskPhase::Running;
    poll.reports.push_back(busy);
    EXPECT_EQ(site.post("/agent/v1/poll", toJson(poll), ram)->status, 200);
    EXPECT_TRUE(
        site.gateway().submit(kNode, wire::AgentTask{"erase-" + std::to_string(sequence_),
                                                     wire::TaskKind::EraseDisks, params, 1h}));
    poll.sequence = ++sequence_;
    EXPECT_THAT(site.post("/agent/v1/poll", toJson(poll), ram)->body, HasSubstr("erase-"));
    silence();
    return polls(disk, wire::Mode::Disk);
  };
  EXPECT_EQ(erase(R"({"disk_serials":[]})"), 403);
  EXPECT_EQ(erase(R"({"disk_serials":["SYSTEM"]})"), 403);
  EXPECT_EQ(erase(R"({"disk_serials":["DATA"]})"), 200) << "the system is still there";
  use = wire::DiskUse::Other;
  EXPECT_EQ(erase(R"({"disk_serials":["DATA"]})"), 403)
      << "which disk the system is on is not known";
  use = wire::DiskUse::Unknown;
  EXPECT_EQ(erase(R"({"disk_serials":["DATA"]})"), 403)
      << "an agent of before says it in words alone";
  site.cluster.profiles["sku"].disk = "serial:SYSTEM";
  site.cluster.nodes.front().profile = "sku";
  EXPECT_EQ(erase(R"({"disk_serials":["DATA"]})"), 200) << "the inventory knows";
  EXPECT_EQ(erase(R"({"disk_serials":["SYSTEM"]})"), 403);
}

TEST_F(KeysTest, whoIsRefusedIsKnownToRunUntilItIsSilent) {
  const auto before = installed();
  const auto* refusals = dynamic_cast<gateway::RefusedAgents*>(&site.gateway());
  ASSERT_NE(refusals, nullptr);
  ASSERT_TRUE(gateway::revokeKeys(*site.store, kNode));
  EXPECT_FALSE(refusals->isRefused(kNode));
  ASSERT_EQ(polls(before, wire::Mode::Disk), 403);
  EXPECT_TRUE(refusals->isRefused(kNode));
  silence();
  EXPECT_FALSE(refusals->isRefused(kNode));
  ASSERT_EQ(polls(before, wire::Mode::Disk), 403);
  ASSERT_TRUE(gateway::forgetKeys(*site.store, kNode));
  ASSERT_EQ(polls(before, wire::Mode::Disk), 200);
  EXPECT_FALSE(refusals->isRefused(kNode));
}

TEST_F(KeysTest, aRenewalLeavesBothUntilTheNewOneCalls) {
  const auto first = installed();
  const auto lost = certify(first);  // the answer never came
  EXPECT_EQ(polls(first, wire::Mode::Disk), 200);
  const auto second = certify(first);
  EXPECT_EQ(polls(first, wire::Mode::Disk), 200) << "the agent died before it stored it";
  EXPECT_EQ(polls(lost, wire::Mode::Disk), 403)
      << "of two that were handed out the later one counts";
  EXPECT_EQ(polls(second, wire::Mode::Disk), 200);
  EXPECT_EQ(polls(first, wire::Mode::Disk), 403);
  EXPECT_TRUE(refused(certify(first)));
  const auto third = certify(second);
  EXPECT_FALSE(refused(certify(third))) << "a first call may be the next renewal";
  EXPECT_EQ(polls(second, wire::Mode::Disk), 403);
}

TEST_F(KeysTest, anInstalledSystemCannotSpeakForTheRamOs) {
  const auto disk = installed();
  EXPECT_EQ(polls(disk, wire::Mode::Ram), 403) << "it would report an erasure that never was";
  EXPECT_TRUE(refused(ask("/agent/v1/renewal", disk)));
  const auto ram = enroll();
  EXPECT_EQ(polls(ram, wire::Mode::Disk), 403);
}

TEST_F(KeysTest, aRamOsThatRenewsItsOwnKeyLeavesTheInstalledSystemAlone) {
  const auto disk = installed();
  const auto ram = enroll();
  ASSERT_EQ(polls(ram, wire::Mode::Ram), 200);
  const auto next = ask("/agent/v1/renewal", ram);
  EXPECT_EQ(polls(ram, wire::Mode::Ram), 200);
  EXPECT_EQ(polls(next, wire::Mode::Ram), 200);
  EXPECT_EQ(polls(ram, wire::Mode::Ram), 403);
  silence();
  EXPECT_EQ(polls(disk, wire::Mode::Disk), 200);
}

TEST_F(KeysTest, aPersonRevokesAndForgets) {
  const auto disk = installed();
  ASSERT_TRUE(gateway::revokeKeys(*site.store, kNode));
  EXPECT_EQ(polls(disk, wire::Mode::Disk), 403) << "at once, of a controller that runs";
  EXPECT_FALSE(refused(certify(enroll()))) << "imaging it again is the way back";
  EXPECT_EQ(polls(disk, wire::Mode::Disk), 403);
  ASSERT_TRUE(gateway::forgetKeys(*site.store, kNode));
  EXPECT_EQ(polls(disk, wire::Mode::Disk), 200) << "the first to call";
  EXPECT_EQ(polls(site.identityOf("gpu001"), wire::Mode::Disk), 403);
}

TEST_F(KeysTest, aStoreOfAnEarlierVersionBelievesTheFirstOne) {
  const auto known = site.identityOf("gpu001"), other = site.identityOf("gpu001");
  EXPECT_EQ(polls(known, wire::Mode::Disk), 200);
  EXPECT_EQ(polls(other, wire::Mode::Disk), 403);
}

TEST_F(KeysTest, aPollThatWaitedIsNotHandedTheTasksOfTheNextLife) {
  const auto ram = enroll();
  wire::PollRequest poll;
  poll.mode = wire::Mode::Ram;
  poll.boot_id = "b";
  poll.sequence = 1;
  io::TlsTrust trust;
  trust.ca_pem = site.ca->certificatePem();
  trust.identity = ram;
  auto client = io::makeHttpClient(trust);
  io::HttpRequest request;
  request.method = "POST";
  request.url = *io::Url::parse(site.url() + "/agent/v1/poll");
  auto first = poll;
  request.body = toJson(first);
  const auto session = wire::parsePollResponse(site.post("/agent/v1/poll", toJson([&] {
                                                           auto stale = poll;
                                                           stale.session = "none";
                                                           return stale;
                                                         }()),
                                                         ram)
                                                   ->body)
                           ->session;
  poll.session = session;
  request.body = toJson(poll);
  std::optional<Result<io::HttpResponse>> answer;
  asio::co_spawn(
      site.controller->io, client->send(request),
      [&](std::exception_ptr, Result<io::HttpResponse> got) { answer = std::move(got); });
  ASSERT_TRUE(site.until([&] { return site.isThere("gpu001", wire::Mode::Ram); }));
  const auto next = enroll();
  ASSERT_FALSE(refused(next));
  handOver(wire::TaskKind::Probe, "{}");
  ASSERT_TRUE(site.until([&] { return answer.has_value(); }));
  EXPECT_EQ((*answer)->status, 403);
}

/// Counts who asks while it is away.
class AwayStore final : public MemoryStore {
 public:
  bool away = false;
  int asked = 0;
  Result<std::optional<std::string>> getValue(const std::string& key) override {
    ++asked;
    if (away) return fail(Error(ErrorCode::Unavailable, "the server is restarted").retryable(true));
    return MemoryStore::getValue(key);
  }
};

TEST(KeysWithoutAStore, whoCalledLastGoesOnAndTheControlThreadIsHeldUpOnce) {
  AwayStore store;
  TempFolder folder;
  FakeClock clock;
  const auto cluster = clusterOfOne();
  auto ca = *io::CertificateAuthority::loadOrCreate(folder / "ca", "test root");
  gateway::Enrollment enrollment(cluster, ca, store, clock, kNetwork);
  const auto admitted = [&](const std::string& key) {
    return runAsync(enrollment.admit(kNode, key, wire::Mode::Disk, false)).has_value();
  };
  ASSERT_TRUE(admitted("key"));
  store.away = true;
  EXPECT_TRUE(admitted("key"));
  EXPECT_FALSE(admitted("another")) << "nobody can say who that is";
  store.asked = 0;
  EXPECT_TRUE(admitted("key"));
  EXPECT_EQ(store.asked, 1) << "by the journal alone, which has a thread of its own";
  store.away = false;
  EXPECT_TRUE(admitted("key"));
  EXPECT_FALSE(admitted("another"));
}

// ---- as the store keeps them

TEST(NodeKeysText, isWhatEarlierVersionsWrote) {
  const std::string first =
      R"({"disk":{"next":"","now":"","open":true},"ram":{"next":"","now":"","open":true}})";
  EXPECT_EQ(gateway::NodeKeys{}.str(), first);
  gateway::NodeKeys keys;
  keys.enrolled("r");
  ASSERT_TRUE(keys.certified("r", "d"));
  const std::string installing =
      R"({"disk":{"next":"d","now":"","open":false},"ram":{"next":"","now":"r","open":false}})";
  EXPECT_EQ(keys.str(), installing);
  keys.endInstalled("order-1");
  const std::string ended =
      R"({"disk":{"next":"","now":"","open":false},"ended":{"order":"order-1",)"
      R"("seat":{"next":"d","now":"","open":false}},"ram":{"next":"","now":"r","open":false}})";
  EXPECT_EQ(keys.str(), ended);
  for (const auto& text : {first, installing, ended}) {
    const auto read = gateway::NodeKeys::parse(text);
    ASSERT_TRUE(read) << read.error().str();
    EXPECT_EQ(read->str(), text);
  }
  ASSERT_TRUE(keys.restoreInstalled("order-1"));
  EXPECT_EQ(keys.str(), installing);
}

TEST(NodeKeysText, withoutOpenOpensNothing) {
  const auto read =
      gateway::NodeKeys::parse(R"({"ram":{"now":"","next":""},"disk":{"now":"","next":""}})");
  ASSERT_TRUE(read) << read.error().str();
  EXPECT_FALSE(read->ram.open || read->disk.open);
  for (const char* bad :
       {"", "[]", "{}", R"({"ram":{"now":"","next":""}})",
        R"({"ram":7,"disk":{"now":"","next":""}})",
        R"({"ram":{"now":"","next":""},"disk":{"now":""}})",
        R"({"ram":{"open":1,"now":"","next":""},"disk":{"now":"","next":""}})",
        R"({"ram":{"now":"","next":""},"disk":{"now":"","next":""},"ended":{"order":"o"}})"})
    EXPECT_FALSE(gateway::NodeKeys::parse(bad)) << bad;
}

}  // namespace
}  // namespace muster::agent
