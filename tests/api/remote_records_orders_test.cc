// SPDX-License-Identifier: Apache-2.0
// Permissions, breakers, receivers, machines and overrides: listed and ordered by this process and
// by a server alike.
#include "app/nodes/discovery.h"
#include "app/records/notifications.h"
#include "app/site/site_records.h"
#include "app/validation/certificates.h"
#include "discovery/machine_registry.h"
#include "monitor/breakers.h"
#include "tests/api/site_clients.h"

#include <gmock/gmock.h>

namespace muster::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Who may override is root, who asks by the socket, and a person anna.
class OrdersSite : public SiteClientSite {
 protected:
  OrdersSite() {
    std::string site(kSite);
    site.insert(site.find("pools:"),
                "certificates: {may_override: [" + app::userName() +
                    ", anna]}\nnotifications:\n  oncall: {url: "
                    "\"https://hooks.example.org/muster\", secret: {file: hook-key}}\n");
    site_.write("cluster.yaml", site);
    site_.write("hook-key", "whsec_" + std::string(43, 'A') + "=\n");
    fill();
    // What a certificate is bound to.
    EXPECT_TRUE(
        site_.store()->putFacts({{lifecycle::Subject(NodeName("gpu001")), FacetName("image"),
                                  "bookworm@aaaa", SystemClock().now(), "test", ""}}));
  }
  void seeMachines() {
    const auto store = site_.store();
    ASSERT_TRUE(discovery::updateRegistry(*store, [](auto& registry) -> Result<void> {
      discovery::Machine one, two;
      one.bmc = "https://10.20.250.7";
      one.serial = "S-7";
      one.macs = {"52:54:00:20:00:77"};
      two.bmc = "https://10.20.250.8";
      two.serial = "S-8";
      two.macs = {"52:54:00:20:00:78"};
      for (auto* each : {&one, &two}) {
        each->seen_by = {"redfish"};
        TRY_OK(registry.note(*each, SystemClock().now()));
      }
      return {};
    }));
  }
};

class RecordOrders : public OrdersSite, public ::testing::WithParamInterface<How> {
 protected:
  void SetUp() override {
    start();
    asked_ = client(GetParam());
    ASSERT_NE(asked_, nullptr);
  }
  app::SiteRecords& site() { return asked_->records(); }
  ErrorCode codeOf(const auto& result) {
    EXPECT_FALSE(result);
    return result ? ErrorCode::Internal : result.error().code();
  }

 private:
  std::unique_ptr<app::SiteClient> asked_;
};

TEST_P(RecordOrders, whatMayBeWipedIsListed) {
  EXPECT_THAT(*site().wipeGrants(), ElementsAre(NodeName("gpu003"))) << "as fill() permits";
  ASSERT_TRUE(site_.store()->grantWipe(NodeName("gpu001"), "new image", SystemClock().now()));
  const auto granted = site().wipeGrants();
  ASSERT_TRUE(granted) << granted.error().str();
  EXPECT_THAT(*granted, ::testing::UnorderedElementsAre(NodeName("gpu001"), NodeName("gpu003")));
}

TEST_P(RecordOrders, openBreakersAreListedUntilAPersonClosesThem) {
  EXPECT_THAT(*site().breakers(), IsEmpty());
  const auto store = site_.store();
  ASSERT_TRUE(monitor::Breakers(*store).trip(
      {.pool = "batch", .nodes = {NodeName("gpu001"), NodeName("gpu002")}}, SystemClock().now()));
  const auto open = site().breakers();
  ASSERT_TRUE(open) << open.error().str();
  ASSERT_THAT(*open, SizeIs(1));
  EXPECT_EQ(open->front().pool, "batch");
  EXPECT_THAT(open->front().nodes, ElementsAre(NodeName("gpu001"), NodeName("gpu002")));
  ASSERT_TRUE(site().acknowledgeBreakers("the switch was rebooted"));
  EXPECT_THAT(*site().breakers(), IsEmpty());
}

TEST_P(RecordOrders, receiversAreShownWithWhatHoldsThemUp) {
  const auto expected = app::notificationReceivers(site_.options());
  ASSERT_TRUE(expected) << expected.error().str();
  const auto found = site().receivers();
  ASSERT_TRUE(found) << found.error().str();
  ASSERT_THAT(*found, SizeIs(1));
  const auto& one = found->front();
  EXPECT_EQ(one.name, "oncall");
  EXPECT_EQ(one.url, "https://hooks.example.org") << "the rest of it may be a secret";
  EXPECT_EQ(one.format, expected->front().format);
  EXPECT_EQ(one.trouble, expected->front().trouble);
  EXPECT_FALSE(one.is_told);
  EXPECT_EQ(one.waiting, 0u);
}

TEST_P(RecordOrders, machinesAreApprovedAndForgotten) {
  seeMachines();
  app::ApproveRequest request;
  EXPECT_EQ(codeOf(site().approveMachines(request)), ErrorCode::InvalidInput) << "which?";
  request.machines = {"S-9"};
  EXPECT_EQ(codeOf(site().approveMachines(request)), ErrorCode::NotFound);
  request.machines = {"S-7"};
  request.profile = "gpu-node";
  request.rack = "r2";
  request.as = "gpu007";
  const auto approved = site().approveMachines(request);
  ASSERT_TRUE(approved) << approved.error().str();
  EXPECT_THAT(*approved, SizeIs(1));
  const auto found = app::discoveredMachines(site_.options());
  ASSERT_TRUE(found);
  ASSERT_THAT(found->machines, SizeIs(2));
  EXPECT_TRUE(found->machines[0].machine.approved());
  EXPECT_FALSE(found->machines[1].machine.approved());
  EXPECT_THAT(found->machines[0].machine.approved_by, HasSubstr(app::userName()));

  EXPECT_EQ(codeOf(site().forgetMachines({"S-9"}, false)), ErrorCode::NotFound);
  const auto one = site().forgetMachines({"S-8"}, false);
  ASSERT_TRUE(one) << one.error().str();
  EXPECT_THAT(app::discoveredMachines(site_.options())->machines, SizeIs(1));
  ASSERT_TRUE(site().forgetMachines({}, true));
  EXPECT_THAT(app::discoveredMachines(site_.options())->machines, IsEmpty());
}

TEST_P(RecordOrders, aPersonsWordLetsANodeJoinForAWhile) {
  EXPECT_EQ(codeOf(site().overrideCertificate({"gpu999", "delivery test", 24})),
            ErrorCode::NotFound);
  const auto before = SystemClock().now();
  const auto until = site().overrideCertificate({"gpu001", "delivery test", 2});
  ASSERT_TRUE(until) << until.error().str();
  EXPECT_GE(*until, before + std::chrono::minutes(119));
  EXPECT_LE(*until, SystemClock().now() + std::chrono::hours(2));
  const auto certificate = app::certificateOf(site_.options(), "gpu001");
  ASSERT_TRUE(certificate) << certificate.error().str();
  EXPECT_EQ(certificate->override_reason, "delivery test");
  EXPECT_THAT(certificate->override_by, HasSubstr(app::userName()));
}

TEST_P(RecordOrders, aRevocationSaysWhetherThereWasACertificate) {
  const auto none = site().revokeCertificate("gpu002", "board replaced");
  ASSERT_TRUE(none) << none.error().str();
  EXPECT_FALSE(none->had_certificate);
  EXPECT_THAT(site_.store()->lastEvents(1, nullptr)->back().text,
              AllOf(HasSubstr("it had no certificate"), HasSubstr("board replaced")));
  ASSERT_TRUE(app::overrideCertificate(site_.options(), {"gpu001", "delivery test", 24}));
  const auto one = site().revokeCertificate("gpu001", "board replaced");
  ASSERT_TRUE(one) << one.error().str();
  EXPECT_TRUE(one->had_certificate);
  EXPECT_EQ(one->list, app::revocationListOf(site_.options().state));
}

INSTANTIATE_TEST_SUITE_P(Both, RecordOrders, ::testing::Values(How::Embedded, How::Http),
                         [](const auto& one) {
                           return one.param == How::Embedded ? "embedded" : "http";
                         });

class RecordOrdersOfOthers : public OrdersSite {
 protected:
  Said orderOf(const std::string& token, const std::string& resource, const std::string& body) {
    return ask({.method = "POST",
                .target = "/api/v1" + resource,
                .headers = {"Content-Type: application/json"},
                .body = body,
                .token = token});
  }
};

/// The role is one half, the inventory's word the other.
TEST_F(RecordOrdersOfOthers, anOverrideNeedsTheRoleAndTheInventorysWord) {
  start();
  const auto anna = tokenOf("anna", Role::Admin), ben = tokenOf("ben", Role::Admin),
             watcher = tokenOf("vera", Role::Operator);
  const std::string body = R"({"reason": "delivery test", "hours": 1})";
  const auto resource = "/nodes/gpu001/certificate/override";
  EXPECT_EQ(orderOf(watcher, resource, body).status, 403) << "no role for it";
  const auto refused = orderOf(ben, resource, body);
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_THAT(refused.json["detail"].get<std::string>(), HasSubstr("does not name ben"));
  EXPECT_EQ(orderOf(anna, resource, R"({"reason": "", "hours": 1})").status, 400);
  EXPECT_EQ(orderOf(anna, resource, R"({"reason": "x", "hours": 73})").status, 400);
  const auto done = orderOf(anna, resource, body);
  ASSERT_EQ(done.status, 200) << done.body;
  const auto certificate = app::certificateOf(site_.options(), "gpu001");
  ASSERT_TRUE(certificate);
  EXPECT_THAT(certificate->override_by, HasSubstr("token:anna"));
}

TEST_F(RecordOrdersOfOthers, receiversAndMachinesAreAnAdministrators) {
  start();
  seeMachines();
  const auto viewer = tokenOf("vera", Role::Viewer);
  EXPECT_EQ(ask({.target = "/api/v1/receivers", .token = viewer}).status, 403);
  EXPECT_EQ(orderOf(viewer, "/discoveries/approve", R"({"machines": ["S-7"]})").status, 403);
  EXPECT_EQ(orderOf(viewer, "/discoveries/forget", R"({"all": true})").status, 403);
  EXPECT_EQ(post("/discoveries/forget", nlohmann::json::object()).status, 400) << "which?";
  EXPECT_EQ(post("/discoveries/forget", {{"all", true}, {"machines", {"S-7"}}}).status, 400);
  EXPECT_THAT(app::discoveredMachines(site_.options())->machines, SizeIs(2)) << "nothing was lost";
}

}  // namespace
}  // namespace muster::api
