// SPDX-License-Identifier: Apache-2.0
// The schema says what the reader does, and docs/inventory.md says what the tables do.
#include "inventory/parse/document.h"
#include "tests/inventory/inventory_fixture.h"

#include "base/io/process.h"
#include "tests/paths.h"

#include <nlohmann/json.hpp>

namespace muster::inventory {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPython = "/usr/bin/python3";
constexpr std::string_view kReferenceMark =
    "<!-- reference: generated, UPDATE_GOLDEN=1 build/bin/inventory_test -->";

/// YAML 1.2's reading of a value: what an editor that knows the schema sees.
nlohmann::json toCoreJson(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null:
      return nullptr;
    case Value::Kind::List: {
      auto out = nlohmann::json::array();
      for (const Value& item : value.items) out.push_back(toCoreJson(item));
      return out;
    }
    case Value::Kind::Map: {
      auto out = nlohmann::json::object();
      for (const auto& [key, item] : value.entries) out[key.text] = toCoreJson(item);
      return out;
    }
    case Value::Kind::Scalar:
      break;
  }
  if (value.style == Value::Style::Plain) {
    if (looksLikeBoolean(value.text)) return value.text[0] == 't' || value.text[0] == 'T';
    if (value.text.starts_with("0x")) return std::stoll(value.text.substr(2), nullptr, 16);
    if (looksLikeNumber(value.text)) return nlohmann::json::parse(value.text, nullptr, false);
  }
  return value.text;
}

class SchemaTest : public InventoryTest {
 protected:
  void SetUp() override {
    InventoryTest::SetUp();
    auto probe = io::runBlocking(
        {.program = kPython, .args = {"-c", "import jsonschema; jsonschema.Draft202012Validator"}});
    if (!probe || probe->code != 0) GTEST_SKIP() << "python3-jsonschema is not installed";
    write("schema.json", schemaJson());
  }

  struct Case {
    std::string yaml;
    std::string expected;  ///< in the schema's answer; empty: valid
  };

  /// Validates all of them in one run of python: starting it costs more than the rest.
  void check(const std::vector<Case>& cases) {
    auto documents = nlohmann::json::array();
    for (const Case& one : cases) {
      Diagnostics problems;
      auto root = parseYaml(one.yaml, "cluster.yaml", problems);
      ASSERT_TRUE(root) << one.yaml;
      documents.push_back(toCoreJson(*root));
    }
    auto path = write("documents.json", documents.dump());
    constexpr const char* kScript =
        "import json, sys, jsonschema\n"
        "schema = json.load(open(sys.argv[1]))\n"
        "jsonschema.Draft202012Validator.check_schema(schema)\n"
        "v = jsonschema.Draft202012Validator(schema)\n"
        "say = lambda d: ''.join('/'.join(map(str, e.absolute_path)) + ': ' + e.message + '; ' for "
        "e in v.iter_errors(d))\n"
        "print(json.dumps([say(d) for d in json.load(open(sys.argv[2]))]))\n";
    auto done = io::runBlocking(
        {.program = kPython,
         .args = {"-c", kScript, (folder_ / "schema.json").string(), path.string()}});
    ASSERT_TRUE(done);
    ASSERT_EQ(done->code, 0) << done->err;
    auto answers = nlohmann::json::parse(done->out);
    ASSERT_EQ(answers.size(), cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
      std::string answer = answers[i];
      if (cases[i].expected.empty())
        EXPECT_EQ(answer, "") << cases[i].yaml;
      else
        EXPECT_THAT(answer, HasSubstr(cases[i].expected));
    }
  }
};

TEST_F(SchemaTest, acceptsAndRefusesWhatTheReaderDoes) {
  check({
      {read(test::sourceFolder() / "examples/lab/cluster.yaml"), ""},
      {std::string(kSmall), ""},
      {with("rails: 2", "rials: 2"), "'rials' was unexpected"},
      {with("rails: 2", "rails: two"), "fabric/ib/rails"},
      {with("rails: 2", "rails: 0"), "minimum"},
      {with("rails: 2", "rails: 2\n    places: [login1, \"-\", 2 free, \"gpu[001-002]\"]"), ""},
      {with("rails: 2", "rails: 2\n    places: [\"gpu/1\"]"), "fabric/ib/places/0"},
      {with("version: 1.4.2", "version: 1.10"), "firmware/base/components/BIOS/version"},
      {with("{file: secrets/bmc}", "hunter2"), "credentials/bmc/password"},
      {with("file: secrets/bmc", "file: secrets/bmc, env: HOME"), "credentials/bmc/password"},
      {with("level: quick", "level: quik"), "gates/burn-in/level"},
      {with("pkey: 0x10", "pkey: 0x8010"), "maximum"},
      {with("provisioning:", "provision:"), "'provisioning' is a required property"},
      {with("image: noble, ", ""), "'image' is a required property"},
      {with("{version: 1.4.2}", "{version: 1.4.2, file: racks.csv}"),
       "'sha256' is a dependency of 'file'"},
      {with("names: login1", "names: \"login/1\""), "nodes/1/names"},
      {with("10.30.0.0/16", "10.30.0.0"), "networks/storage/cidr"},
      {with("libvirt:login1", "http://10.0.0.1"), "nodes/1/bmc"},
      {with("52:54:00:20:01:01", "52:54:00:20:01"), "nodes/1/mac"},
      {with("10.20.240.1-10.20.247.254", "10.20.240.1"), "networks/provisioning/dhcp/range"},
      {with("image: noble", "disk: /dev/sda, image: noble"), "profiles/gpu-node/disk"},
  });
}

TEST_F(SchemaTest, everyKeyHasATitleAndAMeaningAndNothingElseIsAllowed) {
  std::size_t objects = 0;
  std::function<void(const nlohmann::json&)> walk = [&](const nlohmann::json& part) {
    if (part.is_object() && part.contains("properties")) {
      ++objects;
      EXPECT_EQ(part.value("additionalProperties", true), false) << part["title"];
      for (const auto& [key, property] : part["properties"].items()) {
        EXPECT_FALSE(property.value("title", "").empty()) << key;
        EXPECT_FALSE(property.value("description", "").empty()) << key;
      }
    }
    for (const auto& inner : part)
      if (inner.is_structured()) walk(inner);
  };
  walk(nlohmann::json::parse(schemaJson()));
  EXPECT_GT(objects, 20u);
}

TEST(Reference, docsHoldTheTables) {
  std::filesystem::path path = test::sourceFolder() / "docs/inventory.md";
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  std::string text = content.str();
  auto mark = text.find(kReferenceMark);
  ASSERT_NE(mark, std::string::npos) << path << " has lost its mark";
  std::string wanted =
      text.substr(0, mark) + std::string(kReferenceMark) + "\n" + referenceMarkdown();
  if (std::getenv("UPDATE_GOLDEN")) {
    std::ofstream(path, std::ios::binary) << wanted;
    return;
  }
  EXPECT_TRUE(text == wanted)
      << "docs/inventory.md is behind the tables: UPDATE_GOLDEN=1 build/bin/inventory_test";
}

}  // namespace
}  // namespace muster::inventory
