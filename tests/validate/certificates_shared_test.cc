// SPDX-License-Identifier: Apache-2.0
// Certificates and revocations of one store that two hosts share, each with a state folder of its
// own; and how the files of a muster from before come into it. On SQLite and on a PostgreSQL that
// the test starts.
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/certificate_keys.h"
#include "tests/lifecycle/postgres_server.h"
#include "validate/certificate_migration.h"
#include "validate/validate.h"
#include "validate/validation_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>

namespace muster::validate {
namespace {

using lifecycle::Fact;
using lifecycle::Subject;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const NodeName kNode{"gpu001"}, kOther{"gpu002"};

class SharedCertificates : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgres") {
      if (!test::postgresServer().whyNot().empty()) GTEST_SKIP() << test::postgresServer().whyNot();
      url_ = test::postgresServer().createDatabase();
    } else {
      url_ = "sqlite:" + (folder_ / "muster.db").string();
    }
    cluster_.profiles["p"].name = "p";
    for (const auto& name : {kNode, kOther}) {
      inventory::Node node;
      node.name = name;
      node.profile = "p";
      cluster_.nodes.push_back(node);
      ASSERT_TRUE(open()->putFacts({Fact{Subject(name), FacetName("hw.serial"), "S-" + name.str(),
                                         clock_.now(), "test", ""}}));
    }
  }

  std::unique_ptr<lifecycle::Store> open() { return lifecycle::openStore(url_).value(); }
  fs::path state(const std::string& host) { return folder_ / host / "certificates"; }

  /// A process of a host: a connection of its own, its host's folder.
  struct Host {
    std::unique_ptr<lifecycle::Store> store;
    std::unique_ptr<CertificateStore> certificates;
    fs::path folder;
    CertificateStore* operator->() const { return certificates.get(); }
  };
  Host host(const std::string& name) { return host(name, key_); }
  Host host(const std::string& name, const io::SigningKey& key) {
    Host out{open(), nullptr, state(name)};
    out.certificates = makeCertificateStore(cluster_, *out.store, clock_, key, out.folder);
    return out;
  }
  Certificate unsignedOf(const NodeName& node) {
    const auto facts = *open()->facts();
    Certificate out;
    out.node = node;
    out.scope_hash = validationScopeHash(cluster_, *cluster_.findNode(node), facts);
    out.bound = boundFacts(*cluster_.certificates, node, facts);
    out.inventory_digest = declarationDigest(cluster_, *cluster_.findNode(node));
    out.proven_at = clock_.now();
    return out;
  }
  static std::string voidBecause(const Host& host, const NodeName& node = kNode) {
    const auto valid = host->requireValid(node);
    return valid ? "" : valid.error().text();
  }

  /// What a muster from before left in its state folder.
  Certificate leaveCertificate(const std::string& host, const NodeName& node) {
    auto elsewhere = lifecycle::openStore("sqlite:" + (folder_ / "elsewhere.db").string()).value();
    const auto made =
        makeCertificateStore(cluster_, *elsewhere, clock_, key_, folder_ / "elsewhere")
            ->issue(unsignedOf(node))
            .value();
    leave(host, node.str() + ".json", made.toJson());
    return made;
  }
  std::string leaveRevocations(const std::string& host, const std::vector<std::string>& reasons,
                               const NodeName& node = kOther) {
    RevocationList list;
    for (const auto& reason : reasons)
      list.revoked.push_back(
          {"", node, clock_.now() + std::chrono::seconds(++list.number), "ann@" + host, reason});
    list.issued_at = list.revoked.back().at;
    leave(host, std::string(Revocations::kFile), *list.signedJson(key_));
    return *list.signedJson(key_);
  }
  void leave(const std::string& host, const std::string& name, const std::string& text) {
    ASSERT_TRUE(io::makeDirs(state(host)));
    ASSERT_TRUE(io::writeFileAtomic(state(host) / name, text));
  }
  Result<void> migrate(const std::string& host) {
    return migrateCertificates(*open(), key_, state(host));
  }
  std::string exported(const std::string& host) {
    const auto to = folder_ / ("out-" + host);
    EXPECT_TRUE(this->host(host)->exportTo(to));
    return io::readFile(to / Revocations::kFile).value_or(std::string());
  }
  RevocationList listOf(const std::string& text) {
    return RevocationList::fromJson(text, key_.public_pem).value();
  }

  test::TempFolder folder_;
  std::string url_;
  FakeClock clock_;
  io::SigningKey key_ = *io::SigningKey::generate();
  inventory::Cluster cluster_;
};

INSTANTIATE_TEST_SUITE_P(Stores, SharedCertificates, testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(SharedCertificates, whatOneHostIssuesAndRevokesTheOtherSees) {
  const auto a = host("a"), b = host("b");
  EXPECT_THAT(voidBecause(b), HasSubstr("has no certificate"));
  const auto issued = a->issue(unsignedOf(kNode));
  ASSERT_TRUE(issued) << issued.error().str();
  EXPECT_EQ(voidBecause(b), "");
  EXPECT_EQ((*b->find(kNode))->toJson(), issued->toJson());
  clock_.advance(std::chrono::minutes(1));
  ASSERT_TRUE(a->revoke(kNode, "ann@a", "GPU 3 was replaced"));
  EXPECT_THAT(voidBecause(b), HasSubstr("GPU 3 was replaced"));
  EXPECT_EQ(*b->revokedAt(kNode), clock_.now());
  ASSERT_TRUE(b->revoke(kOther, "bob@b", "the other"));
  EXPECT_TRUE(*a->revokedAt(kOther));
  // The list to carry is the same from both, also the copies that lie there.
  EXPECT_EQ(listOf(exported("a")).number, 2);
  EXPECT_EQ(exported("a"), exported("b"));
  EXPECT_EQ(*io::readFile(state("b") / Revocations::kFile), exported("a"));
  EXPECT_EQ(*io::readFile(folder_ / "out-b" / "gpu001.json"), issued->toJson());
  EXPECT_FALSE(verifyOffline(*issued, key_.public_pem, clock_.now(), listOf(exported("b"))));
}

TEST_P(SharedCertificates, anUpgradeTakesTheFilesOverOnceAndLosesNothing) {
  const auto kept = leaveCertificate("a", kNode);
  const auto list = leaveRevocations("a", {"first", "second", "third"});
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ((*host("b")->find(kNode))->toJson(), kept.toJson());
  EXPECT_EQ(exported("b"), list) << "the same list under the same number";
  clock_.advance(std::chrono::hours(1));
  const auto newer = host("b")->issue(unsignedOf(kNode));
  ASSERT_TRUE(newer);
  ASSERT_TRUE(migrate("a"));
  leave("a", std::string(Revocations::kFile),
        list);  // the folder has changed: it is compared once more
  leave("a", "gpu001.json", kept.toJson());
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ((*host("a")->find(kNode))->toJson(), newer->toJson()) << "an older file is no news";
  EXPECT_EQ(listOf(exported("a")).number, 3);
}

TEST_P(SharedCertificates, whatAnOldProcessWritesAfterTheUpgradeIsTakenByTheNextStart) {
  ASSERT_TRUE(migrate("a"));  // there is no folder yet
  const auto first = leaveCertificate("a", kNode);
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ((*host("b")->find(kNode))->toJson(), first.toJson());
  const auto late = leaveCertificate("a", kOther);
  leaveRevocations("a", {"late"}, kNode);
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ((*host("b")->find(kOther))->toJson(), late.toJson());
  EXPECT_THAT(voidBecause(host("b")), HasSubstr("late"));
}

TEST_P(SharedCertificates, twoHostsUpgradeAtOnceAndNoNumberIsGivenTwice) {
  leaveCertificate("a", kNode);
  leaveCertificate("b", kOther);
  leaveRevocations("a", {"a1", "a2", "a3", "a4"});
  leaveRevocations("b", {"b1", "b2", "b3"});
  std::latch ready(4);
  std::vector<std::future<Result<void>>> hosts;
  for (const auto* name : {"a", "b", "a", "b"})
    hosts.push_back(std::async(std::launch::async, [this, name, &ready] {
      auto store = open();
      ready.arrive_and_wait();
      return migrateCertificates(*store, key_, state(name));
    }));
  for (auto& each : hosts) {
    const auto done = each.get();
    EXPECT_TRUE(done) << done.error().str();
  }
  const auto list = listOf(exported("a"));
  EXPECT_EQ(list.number, 7);
  EXPECT_EQ(list.revoked.size(), 7u);
  EXPECT_EQ(exported("a"), exported("b"));
  EXPECT_TRUE(*host("a")->find(kOther));
  EXPECT_TRUE(*host("b")->find(kNode));
}

TEST_P(SharedCertificates, aDamagedCertificateStopsTheUpgradeWithAWayOutAndNothingIsLost) {
  leaveCertificate("a", kNode);
  const auto good = leaveCertificate("a", kOther);
  leaveRevocations("a", {"first"});
  const auto file = state("a") / "gpu001.json";
  const auto text = *io::readFile(file);
  for (const auto& damaged : {text.substr(0, text.size() / 2), std::string(),
                              std::string(text).replace(text.find("S-gpu001"), 8, "S-gpu009")}) {
    leave("a", "gpu001.json", damaged);
    const auto refused = migrate("a");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::Corrupt);
    EXPECT_THAT(refused.error().str(),
                AllOf(HasSubstr(file.string()), HasSubstr("Nothing was taken"),
                      HasSubstr("move them away")));
    EXPECT_FALSE(*host("x")->find(kOther));
    EXPECT_EQ(listOf(exported("x")).number, 0);
    EXPECT_EQ(*io::readFile(file), damaged) << "it is left as it is";
  }
  fs::rename(file, file.string() + ".damaged");
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ((*host("b")->find(kOther))->toJson(), good.toJson());
  EXPECT_FALSE(*host("b")->find(kNode));
}

TEST_P(SharedCertificates, aDamagedListStopsTheUpgradeAndEveryRevocation) {
  leaveCertificate("a", kNode);
  auto text = leaveRevocations("a", {"first", "second"});
  leave("a", std::string(Revocations::kFile), text.replace(text.find("gpu002"), 6, "gpu003"));
  const auto refused = migrate("a");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().str(), AllOf(HasSubstr(std::string(Revocations::kFile)),
                                           HasSubstr("restore it from a backup")));
  EXPECT_FALSE(*host("b")->find(kNode)) << "no certificate before what revokes it";
  EXPECT_FALSE(host("a")->revoke(kNode, "ann", "would hide what the file had"));
  EXPECT_EQ(*io::readFile(state("a") / Revocations::kFile), text);
  leaveRevocations("a", {"first", "second"});  // from the backup
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ(listOf(exported("b")).number, 2);
}

TEST_P(SharedCertificates, aCopyThatIsDamagedLaterStopsNobody) {
  auto a = host("a");
  ASSERT_TRUE(migrate("a"));
  ASSERT_TRUE(a->issue(unsignedOf(kNode)));
  ASSERT_TRUE(a->revoke(kOther, "ann", "test"));
  leave("a", "gpu001.json", "{");
  leave("a", std::string(Revocations::kFile), "{");
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ(voidBecause(host("a")), "");
  ASSERT_TRUE(host("a")->exportTo(state("a")));
  EXPECT_TRUE(Certificate::fromJson(*io::readFile(state("a") / "gpu001.json")));
  EXPECT_EQ(listOf(*io::readFile(state("a") / Revocations::kFile)).number, 1);
}

TEST_P(SharedCertificates, aStoreThatWasLostOrRestoredGetsBackWhatTheCopiesHave) {
  {
    auto a = host("a");
    ASSERT_TRUE(a->issue(unsignedOf(kNode)));
    ASSERT_TRUE(a->revoke(kOther, "ann", "one"));
    ASSERT_TRUE(a->revoke(kOther, "ann", "two"));
  }
  const auto list = exported("a");
  url_ = "sqlite:" + (folder_ / "new.db").string();
  for (const auto& name : {kNode, kOther})
    ASSERT_TRUE(open()->putFacts({Fact{Subject(name), FacetName("hw.serial"), "S-" + name.str(),
                                       clock_.now(), "test", ""}}));
  ASSERT_TRUE(migrate("a"));
  EXPECT_EQ(voidBecause(host("b")), "");
  EXPECT_EQ(exported("b"), list);
}

TEST_P(SharedCertificates, manyRevokeAtOnceAndNoTwoListsHaveOneNumber) {
  constexpr int kEach = 12;
  std::latch ready(4);
  std::vector<std::future<std::vector<std::string>>> hosts;
  for (const std::string name : {"a", "b", "a", "b"})
    hosts.push_back(std::async(std::launch::async, [this, name, &ready] {
      auto store = open();
      Revocations revocations(*store, state(name), key_);
      ready.arrive_and_wait();
      std::vector<std::string> lists;
      for (int i = 0; i < kEach; ++i) {
        const auto done = revocations.add({"", kNode, clock_.now() + std::chrono::milliseconds(i),
                                           "ann@" + name, io::randomToken(6)});
        EXPECT_TRUE(done) << done.error().str();
        lists.push_back((*revocations.list())->signedJson(key_).value());
      }
      return lists;
    }));
  std::map<std::int64_t, std::string> by_number;
  for (auto& each : hosts)
    for (const auto& text : each.get()) {
      const auto [known, is_new] = by_number.emplace(listOf(text).number, text);
      EXPECT_EQ(known->second, text) << "two lists with number " << known->first;
    }
  const auto all = listOf(exported("a"));
  EXPECT_EQ(all.number, 4 * kEach);
  std::set<std::string> reasons;
  for (const auto& each : all.revoked) reasons.insert(each.reason);
  EXPECT_EQ(reasons.size(), 4u * kEach) << "none is lost, none occurs twice";
  const auto copied = [this](const std::string& name) {
    return listOf(*io::readFile(state(name) / Revocations::kFile)).number;
  };
  EXPECT_EQ(std::max(copied("a"), copied("b")), 4 * kEach)
      << "the copy of who came last is the newest list";
  EXPECT_EQ(exported("a"), exported("b"));
}

TEST_P(SharedCertificates, aRecordThatWasChangedLetsNothingPass) {
  auto a = host("a");
  ASSERT_TRUE(a->issue(unsignedOf(kNode)));
  for (const auto* reason : {"one", "two"}) ASSERT_TRUE(a->revoke(kOther, "ann", reason));
  EXPECT_EQ(voidBecause(host("b")), "");
  auto store = open();
  const auto text = **store->getValue("revocation.1");
  ASSERT_TRUE(
      store->putValue("revocation.1", std::string(text).replace(text.find("gpu002"), 6, "gpu009")));
  EXPECT_EQ(voidBecause(host("b")), "")
      << "it has a copy of the list as it was, and record 2 follows from that";
  EXPECT_THAT(voidBecause(host("c")), HasSubstr("revocation 1 of the store was changed"));
  EXPECT_FALSE(host("c")->revokedAt(kNode));
  EXPECT_FALSE(host("c")->revoke(kNode, "ann", "must not start an empty list"));
  ASSERT_TRUE(store->putValue("revocation.1", **store->getValue("revocation.2")));
  EXPECT_FALSE(host("c")->requireValid(kNode)) << "one in the place of another";
  ASSERT_TRUE(store->putValue("revocation.1", text));
  EXPECT_EQ(voidBecause(host("c")), "");
  ASSERT_TRUE(store->putValue("revocation.3", "{"));
  EXPECT_FALSE(host("b")->requireValid(kNode));
}

TEST_P(SharedCertificates, aHostWithAnotherKeyIsToldAndChangesNothing) {
  ASSERT_TRUE(host("a")->issue(unsignedOf(kNode)));
  const auto unknown = *io::SigningKey::generate();
  const auto refused = migrateCertificates(*open(), unknown, state("b"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(refused.error().str(),
              AllOf(HasSubstr(key_.id()), HasSubstr("Copy both from the other host")));
  EXPECT_FALSE(host("b", unknown)->issue(unsignedOf(kNode)));
  EXPECT_FALSE(host("b", unknown)->revoke(kNode, "bob", "test"));
  EXPECT_EQ(voidBecause(host("a")), "");
}

TEST_P(SharedCertificates, whoLostTheNodeIssuesNothingAndAPersonsWordIsFree) {
  auto a = host("a"), b = host("b");
  ASSERT_TRUE(a.store->signOn("a", std::chrono::hours(1)));
  ASSERT_TRUE(b.store->signOn("b", std::chrono::hours(1)));
  ASSERT_TRUE(a.store->claim(Subject(kNode))->ours);
  EXPECT_TRUE(a->issue(unsignedOf(kNode)));
  const auto by_a = (*a->find(kNode))->toJson();
  clock_.advance(std::chrono::minutes(1));
  const auto beside = b->issue(unsignedOf(kNode));
  ASSERT_FALSE(beside);
  EXPECT_EQ(beside.error().code(), ErrorCode::Conflict);
  auto again = host("a");  // a is restarted; what the process before still does comes too late
  ASSERT_TRUE(again.store->signOn("a", std::chrono::hours(1)));
  ASSERT_TRUE(again.store->claim(Subject(kNode))->ours);
  const auto late = a->issue(unsignedOf(kNode));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::Conflict);
  EXPECT_EQ((*b->find(kNode))->toJson(), by_a);
  auto word = unsignedOf(kNode);
  word.override_by = "ann@b", word.override_reason = "spare";
  EXPECT_TRUE(b->issue(word));
  EXPECT_TRUE(b->revoke(kNode, "ann@b", "and a revocation waits for nobody"));
  EXPECT_TRUE(again->issue(unsignedOf(kNode)));
}

}  // namespace
}  // namespace muster::validate
