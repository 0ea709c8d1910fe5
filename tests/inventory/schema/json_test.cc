// SPDX-License-Identifier: Apache-2.0
// The canonical JSON, byte for byte: the digest is over it, and approvals are over the digest. A
// change of a golden file is a change of every digest; UPDATE_GOLDEN=1 writes them anew.
#include "inventory/schema/json.h"
#include "inventory/model/cluster.h"

#include "base/json_output.h"
#include "inventory/parse/document.h"
#include "inventory/schema/spec.h"
#include "tests/inventory/inventory_fixture.h"
#include "tests/paths.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <set>

namespace muster::inventory {
namespace {

using ::testing::IsEmpty;

constexpr const char* kSecretVariable = "MUSTER_TEST_SECRET";  // of golden/everything

class CanonicalJson : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    ASSERT_EQ(::setenv(kSecretVariable, "x", 1), 0);
  }

  static std::filesystem::path golden(const std::string& name) {
    return test::sourceFolder() / "tests/inventory/golden" / name;
  }

  void expectGolden(const Loaded& loaded, const std::string& name) {
    ASSERT_TRUE(loaded.cluster) << checkText(loaded);
    auto json = declaredJson(*loaded.cluster);
    json["digest"] = loaded.cluster->digest;
    const auto text = jsonText(json, 2) + "\n";
    if (std::getenv("UPDATE_GOLDEN")) std::ofstream(golden(name), std::ios::binary) << text;
    EXPECT_EQ(text, read(golden(name)));
  }
};

TEST_F(CanonicalJson, holdsEveryKey) {
  expectGolden(load(golden("everything/cluster.yaml")), "everything.json");
}

TEST_F(CanonicalJson, ofTheExample) {
  for (const char* file : {"cluster.yaml", "racks.csv"})
    write(file, read(test::sourceFolder() / "examples/lab" / file));
  expectGolden(load(folder_ / "cluster.yaml"), "lab.json");
}

TEST_F(CanonicalJson, ofTheSmallInventory) { expectGolden(loadYaml(kSmall), "small.json"); }

/// Keys of the tables that the document does not have.
class Coverage {
 public:
  void see(const Shape& shape, const Value& value) {
    if (shape.kind == Shape::Kind::Object) see(*shape.object(), value);
    for (const Value& item : value.items)
      if (shape.kind == Shape::Kind::List) see(*shape.item, item);
    for (const auto& [key, item] : value.entries)
      if (shape.kind == Shape::Kind::Map) see(*shape.item, item);
  }
  void see(const ObjectSpec& spec, const Value& map) {
    for (const FieldSpec& field : spec.fields) {
      const auto key = std::string(spec.name) + "." + std::string(field.key);
      missing_.insert(key);
      if (const Value* value = map.find(field.key)) {
        met_.insert(key);
        see(field.shape, *value);
      }
    }
  }
  std::set<std::string> missing() const {
    std::set<std::string> out;
    for (const auto& key : missing_)
      if (!met_.contains(key)) out.insert(key);
    return out;
  }

 private:
  std::set<std::string> missing_, met_;
};

TEST_F(CanonicalJson, theGoldenInventoryHasEveryKeyOfTheTables) {
  Diagnostics problems;
  const auto root = parseYaml(read(golden("everything/cluster.yaml")), "cluster.yaml", problems);
  ASSERT_TRUE(root);
  Coverage coverage;
  coverage.see(*clusterSpec(), *root);
  EXPECT_THAT(coverage.missing(), IsEmpty());
}

/// A key that is read and not printed would be no part of the digest: approvals would not see it.
TEST(PrintedKeys, areAllButThoseThatOthersHold) {
  std::set<std::string> silent;
  std::set<const ObjectSpec*> seen;
  const std::function<void(const ObjectSpec&)> see = [&](const ObjectSpec& spec) {
    if (!seen.insert(&spec).second) return;
    for (const FieldSpec& field : spec.fields) {
      if (!field.print) silent.insert(std::string(spec.name) + "." + std::string(field.key));
      for (const Shape* shape = &field.shape; shape; shape = shape->item.get())
        if (shape->kind == Shape::Kind::Object) see(*shape->object());
    }
  };
  see(*clusterSpec());
  EXPECT_THAT(silent, ::testing::UnorderedElementsAre(
                          "inventory.cluster",         // name and bmc_trust stand at the top
                          "inventory.include",         // their sections are joined
                          "profile.extends",           // its keys are the profile's own then
                          "driver.preset",             // it filled other keys
                          "firmware-baseline.signer",  // the signature was verified with it
                          "fabric.cables_file",        // cables
                          "fabric.topology_file"));    // topology_sha256
}

}  // namespace
}  // namespace muster::inventory
