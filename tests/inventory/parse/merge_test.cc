// SPDX-License-Identifier: Apache-2.0
#include "tests/inventory/inventory_fixture.h"

#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"

namespace muster::inventory {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MergeTest : public InventoryTest {
 protected:
  static std::string including(std::string_view files, std::string text = std::string(kSmall)) {
    return with("cluster: {name: small}\n",
                "cluster: {name: small}\ninclude: [" + std::string(files) + "]\n", std::move(text));
  }
  Loaded withProfiles(std::string_view more) {
    return loadYaml(with("nodes:\n", std::string(more) + "nodes:\n"));
  }
};

TEST_F(MergeTest, aProfileExtendsAnother) {
  const auto loaded = withProfiles(
      "  spare: {extends: gpu-node, pool: other, drivers: []}\n"
      "  third: {extends: spare, boot: bios}\n");
  EXPECT_THAT(lines(loaded), ElementsAre(HasSubstr("\"other\" is not declared under pools")))
      << "said once, though third has it too";
  const auto good = loadYaml(with("batch: {slurm: {partition: gpu}}\n",
                                  "batch: {slurm: {partition: gpu}}\n  other: {slurm: {partition: "
                                  "spare}}\n",
                                  with("nodes:\n",
                                       "  spare: {extends: gpu-node, pool: other, drivers: []}\n"
                                       "  third: {extends: spare, boot: bios}\nnodes:\n")));
  ASSERT_TRUE(good.cluster) << testing::PrintToString(lines(good));
  const auto& third = good.cluster->profiles.at("third");
  EXPECT_EQ(third.image, "noble");
  EXPECT_EQ(third.pool, "other");
  EXPECT_EQ(third.boot, BootMode::Bios);
  EXPECT_THAT(third.drivers, IsEmpty()) << "a key replaces the other's whole";
  EXPECT_EQ(third.expect.gpus, 8);
  EXPECT_EQ(good.cluster->profiles.at("gpu-node").pool, "batch");
}

TEST_F(MergeTest, profilesInACircleAndUnknownOnesAreRefused) {
  EXPECT_THAT(
      lines(withProfiles("  a: {extends: b, image: noble}\n  b: {extends: a, image: noble}\n")),
      Contains(HasSubstr("profiles extend each other in a circle: a → b → a")));
  EXPECT_THAT(lines(withProfiles("  a: {extends: a, image: noble}\n")),
              Contains(HasSubstr("in a circle: a → a")));
  EXPECT_THAT(lines(withProfiles("  a: {extends: gpu-nod, image: noble}\n")),
              ElementsAre(AllOf(HasSubstr("profile gpu-nod is not declared"),
                                HasSubstr("did you mean \"gpu-node\"?"))));
  EXPECT_THAT(lines(withProfiles("  a: {extends: [gpu-node], image: noble}\n")),
              Contains(HasSubstr("cluster.yaml:")));
}

TEST_F(MergeTest, anInventoryIsSplitOverFiles) {
  write("parts/pools.yaml", "include: [more.yaml]\npools:\n  spare: {slurm: {partition: spare}}\n");
  write(
      "more.yaml",
      "profiles:\n  spare: {extends: gpu-node, pool: spare}\nnodes:\n  - {names: login2, profile: "
      "spare, mac: \"52:54:00:20:01:02\", address: 10.20.2.2, bmc: \"libvirt:login2\"}\n");
  const auto loaded = loadYaml(including("parts/pools.yaml, more.yaml"));
  ASSERT_TRUE(loaded.cluster) << testing::PrintToString(lines(loaded));
  EXPECT_EQ(loaded.cluster->nodes.size(), 4u) << "more.yaml is named twice and read once";
  EXPECT_EQ(loaded.cluster->profiles.at("spare").pool, "spare");
  const auto before = loaded.cluster->digest;
  write("parts/pools.yaml", "include: [more.yaml]\npools:\n  spare: {slurm: {partition: other}}\n");
  EXPECT_NE(loadYaml(including("parts/pools.yaml, more.yaml")).cluster->digest, before);
}

TEST_F(MergeTest, mistakesNameTheFileThatTheyAreIn) {
  write("pools.yaml", "pools:\n  spare: {slurm: {partitoin: spare}}\n");
  EXPECT_THAT(lines(loadYaml(including("pools.yaml"))), Contains(HasSubstr("pools.yaml:2:")));
  write("pools.yaml", "pools:\n  batch: {slurm: {partition: spare}}\ncluster: {name: other}\n");
  EXPECT_THAT(lines(loadYaml(including("pools.yaml"))),
              AllOf(Contains(AllOf(HasSubstr("pools.yaml:2:3: error: batch of pools is also "
                                             "declared at cluster.yaml:"))),
                    Contains(HasSubstr("pools.yaml:3:11: error: name of cluster is also"))));
}

TEST_F(MergeTest, circlesAndFilesElsewhereAreRefused) {
  write("a.yaml", "include: [b.yaml]\n");
  write("b.yaml", "include: [a.yaml]\n");
  EXPECT_THAT(lines(loadYaml(including("a.yaml"))),
              Contains(HasSubstr("b.yaml:1:11: error: files include each other in a circle: a.yaml "
                                 "→ b.yaml → a.yaml")));
  EXPECT_THAT(lines(loadYaml(including("cluster.yaml"))),
              Contains(HasSubstr("circle: cluster.yaml → cluster.yaml")));
  EXPECT_FALSE(loadYaml(including("nosuch.yaml")).cluster);
  EXPECT_FALSE(loadYaml(including("../../../../../../etc/passwd")).cluster);
  write("list.yaml", "[1, 2]\n");
  EXPECT_THAT(lines(loadYaml(including("list.yaml"))),
              Contains(HasSubstr("is no part of an inventory")));
  write("wide.yaml", std::string("\xFF\xFEp\0o\0", 6));
  EXPECT_THAT(lines(loadYaml(including("wide.yaml"))), Contains(HasSubstr("the file is UTF-16")));
  write("secret.yaml", "hunter2: [\n");
  const auto foreign = lines(loadYaml(including("secret.yaml")));
  EXPECT_THAT(foreign, Contains(HasSubstr("secret.yaml is no part of an inventory")));
  EXPECT_THAT(foreign, testing::Each(testing::Not(HasSubstr("hunter2")))) << "it may be a secret";
  EXPECT_FALSE(
      loadYaml(with("cluster: {name: small}\n", "cluster: {name: small}\ninclude: pools.yaml\n"))
          .cluster);
}

}  // namespace
}  // namespace muster::inventory
