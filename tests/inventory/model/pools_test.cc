// SPDX-License-Identifier: Apache-2.0
// Pools: a Kubernetes cluster is declared completely or refused, with what to write instead.
#include "tests/inventory/inventory_fixture.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"

#include <nlohmann/json.hpp>

namespace muster::inventory {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PoolsTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    auto identity = io::selfSigned("api", {"127.0.0.1"});
    ASSERT_TRUE(identity);
    write("pki/ca.crt", identity->certificate_pem);
    write("pki/muster.crt", identity->certificate_pem);
    write("pki/muster.key", identity->key_pem.reveal());
    write("secrets/k8s", "token\n");
    for (const char* secret : {"secrets/k8s", "pki/muster.key"})
      std::filesystem::permissions(folder_ / secret, std::filesystem::perms::owner_read |
                                                         std::filesystem::perms::owner_write);
  }

  std::vector<std::string> declaring(const std::string& pool) {
    return complaints("{slurm: {partition: gpu}}", pool);
  }
};

constexpr const char* kGood =
    "{kubernetes: {server: \"https://10.20.0.2:6443\", ca: pki/ca.crt, token: {file: "
    "secrets/k8s}}}";

TEST_F(PoolsTest, readsAKubernetesClusterWithSafeDefaults) {
  auto loaded = loadYaml(with("{slurm: {partition: gpu}}", kGood));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const Pool& pool = loaded.cluster->pools.at("batch");
  EXPECT_FALSE(pool.slurm);
  ASSERT_TRUE(pool.kubernetes);
  EXPECT_EQ(pool.kubernetes->ca, folder_ / "pki/ca.crt");
  EXPECT_EQ(pool.kubernetes->token.read()->reveal(), "token");
  EXPECT_EQ(pool.kubernetes->taint, "muster/out:NoSchedule");
  EXPECT_EQ(pool.kubernetes->evict.jobs, JobPods::Wait);
  EXPECT_EQ(pool.kubernetes->evict.empty_dir, FragilePods::Hold);
  EXPECT_EQ(pool.kubernetes->evict.unmanaged, FragilePods::Hold);
  EXPECT_FALSE(pool.drain.deadline_minutes);
  EXPECT_EQ(pool.drain.on_timeout, OnTimeout::Wait);
}

TEST_F(PoolsTest, readsEveryKey) {
  auto loaded = loadYaml(with(
      "{slurm: {partition: gpu}}",
      "{kubernetes: {server: \"https://k8s.example/c/1\", pin: " + std::string(64, 'a') +
          ", client_certificate: pki/muster.crt, client_key: pki/muster.key, domain: hall.example, "
          "taint: \"example.com/out=muster:NoSchedule\", labels: {example.com/hall: two}, "
          "evict: {jobs: evict, empty_dir: evict, unmanaged: evict}}, drain: {deadline_minutes: "
          "90, on_timeout: delete-pods}}"));
  EXPECT_THAT(lines(loaded), IsEmpty());
  ASSERT_TRUE(loaded.cluster);
  const Pool& pool = loaded.cluster->pools.at("batch");
  EXPECT_EQ(pool.kubernetes->client_key, folder_ / "pki/muster.key");
  EXPECT_EQ(pool.kubernetes->domain, "hall.example");
  EXPECT_EQ(pool.kubernetes->labels.at("example.com/hall"), "two");
  EXPECT_EQ(pool.kubernetes->evict.jobs, JobPods::Evict);
  EXPECT_EQ(pool.drain.deadline_minutes, 90);
  EXPECT_EQ(pool.drain.on_timeout, OnTimeout::DeletePods);
}

TEST_F(PoolsTest, checksOfIdleNodesAreQuickOnesOfSlurm) {
  const auto declared = [this](const std::string& keys, const std::string& level) {
    return complaints("pools:\n", "  mine: {level: " + level +
                                      "}\npools:\n  other: {slurm: {partition: gpu, "
                                      "active_checks: {" +
                                      keys + "}}}\n");
  };
  EXPECT_THAT(declared("gate: mine", "quick"), IsEmpty());
  EXPECT_THAT(declared("gate: mine, every_hours: 6, nodes: 4, idle_percent: 10", "quick"),
              IsEmpty());
  EXPECT_THAT(declared("gate: mine", "medium"),
              ElementsAre(AllOf(HasSubstr("gate mine takes too long for idle nodes"),
                                HasSubstr("name a gate of level quick"))));
  EXPECT_THAT(declared("every_hours: 6", "quick"), ElementsAre(HasSubstr("\"gate\" is missing")));
  EXPECT_THAT(declared("gate: mine, nodes: 0", "quick"), SizeIs(1));
  EXPECT_THAT(declared("gate: other", "quick"), ElementsAre(HasSubstr("other")));
}

TEST_F(PoolsTest, theDigestKnowsThePoolButNotTheSecret) {
  auto digest = [this](const std::string& pool) {
    return loadYaml(with("{slurm: {partition: gpu}}", pool)).cluster->digest;
  };
  const auto plain = digest(kGood);
  write("secrets/k8s", "another\n");
  EXPECT_EQ(digest(kGood), plain);
  EXPECT_NE(digest("{kubernetes: {server: \"https://10.20.0.3:6443\", ca: pki/ca.crt, token: "
                   "{file: secrets/k8s}}}"),
            plain);
  EXPECT_NE(digest("{kubernetes: {server: \"https://10.20.0.2:6443\", ca: pki/ca.crt, token: "
                   "{file: secrets/k8s}, evict: {jobs: evict}}}"),
            plain);
}

TEST_F(PoolsTest, refusesWhatWouldNotWorkOrWouldHarm) {
  const std::string server = "server: \"https://10.20.0.2:6443\"", ca = "ca: pki/ca.crt",
                    token = "token: {file: secrets/k8s}";
  write("pki/empty.crt", "not a certificate\n");
  const std::vector<std::tuple<std::string, std::string, std::string>> mistakes{
      {"{}", "one of slurm, kubernetes is missing", ""},
      {"{slurm: {partition: gpu}, kubernetes: {" + server + ", " + ca + ", " + token + "}}",
       "only one of slurm, kubernetes", "remove the others"},
      {"{kubernetes: {" + ca + ", " + token + "}}", "the key \"server\" is missing", "add server"},
      {"{kubernetes: {server: \"http://10.20.0.2:6443\", " + ca + ", " + token + "}}",
       "is not the https URL", "send the token in clear"},
      {"{kubernetes: {server: \"https://10.20.0.2:6443/api/v1\", " + ca + ", " + token + "}}",
       "is not the https URL", "before /api"},
      {"{kubernetes: {" + server + ", " + token + "}}", "one of ca, pin is missing", ""},
      {"{kubernetes: {" + server + ", " + ca + "}}", "one of token, client_certificate is missing",
       ""},
      {"{kubernetes: {" + server + ", " + ca + ", token: abc}}",
       "a secret never stands in the inventory", "write {file:"},
      {"{kubernetes: {" + server + ", " + ca + ", " + token +
           ", client_certificate: pki/muster.crt, client_key: pki/muster.key}}",
       "only one of token, client_certificate", "remove the others"},
      {"{kubernetes: {" + server + ", " + ca + ", client_certificate: pki/muster.crt}}",
       "\"client_certificate\" needs \"client_key\"", "add client_key"},
      {"{kubernetes: {" + server + ", ca: pki/none.crt, " + token + "}}",
       "pki/none.crt cannot be read", "put a PEM file"},
      {"{kubernetes: {" + server + ", ca: pki/empty.crt, " + token + "}}",
       "holds no certificate in PEM form", "-----BEGIN CERTIFICATE-----"},
      {"{kubernetes: {" + server + ", " + ca + ", " + token + ", taint: \"muster/out:NoExecute\"}}",
       "is not a taint", "ends pods without asking their disruption budgets"},
      {"{kubernetes: {" + server + ", " + ca + ", " + token + ", labels: {muster/mine: x}}}",
       "muster/mine is muster's own", "another prefix"},
      {"{kubernetes: {" + server + ", " + ca + ", " + token + ", labels: {hall: \"two halls\"}}}",
       "is not the value of a Kubernetes label", ""},
      {"{kubernetes: {" + server + ", " + ca + ", " + token + ", evict: {jobs: kill}}}", "\"kill\"",
       "wait"},
      {"{kubernetes: {" + server + ", " + ca + ", " + token + "}, drain: {on_timeout: wait}}",
       "\"deadline_minutes\" is missing", ""},
      {"{slurm: {partition: gpu}, drain: {deadline_minutes: 5, on_timeout: delete-pods}}",
       "Slurm has no pods", "write wait or undrain"},
  };
  for (const auto& [pool, what, suggestion] : mistakes)
    EXPECT_THAT(declaring(pool),
                ElementsAre(AllOf(HasSubstr(": error: "), HasSubstr(what), HasSubstr(suggestion))))
        << pool;
}

}  // namespace
}  // namespace muster::inventory
