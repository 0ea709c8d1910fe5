// SPDX-License-Identifier: Apache-2.0
// Every key and value that was renamed is refused at its place, with its new name.
#include "inventory/schema/renamed.h"

#include "inventory/parse/change.h"
#include "inventory/schema/change_spec.h"
#include "inventory/schema/spec.h"
#include "tests/inventory/inventory_fixture.h"

#include <fmt/format.h>

#include <functional>
#include <set>

namespace muster::inventory {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// Where an old name may stand: an object of the small inventory, or of a change.
struct Place {
  const char *object, *old_text, *new_text;  ///< in new_text @ stands for "KEY: VALUE"
};
constexpr Place kPlaces[] = {
    {"inventory", "cluster: {name: small}", "cluster: {name: small}\n@"},
    {"monitor", "cluster: {name: small}", "cluster: {name: small}\nmonitor: {@}"},
    {"symptom", "cluster: {name: small}",
     "cluster: {name: small}\nmonitor: {symptoms: {xid.13: {action: drain, @}}}"},
    {"drain", "{slurm: {partition: gpu}}",
     "{slurm: {partition: gpu}, drain: {deadline_minutes: 5, @}}"},
    {"credential", "password: {file: secrets/bmc}", "password: {file: secrets/bmc}, @"},
    {"gate", "{level: quick, groups: [host, gpu]}", "{level: quick, @}"},
    {"firmware-component", "{version: 2.1.0}", "{version: 2.1.0, @}"},
    {"file-system", "cluster: {name: small}",
     "cluster: {name: small}\nfile_systems: {home: {kind: nfs, source: \"s:/h\", @}}"},
    {"regression", "", "profiles: {gpu-node: {image: noble}}\nrollout: {regression: {@}}"},
};
constexpr std::pair<std::string_view, std::string_view> kValuesOfKeys[] = {
    {"keep", "{}"},   {"at_least", "3"}, {"next", "{file: secrets/bmc}"},
    {"on", "[host]"}, {"via", "[]"},     {"at", "/home"},
};

class Renamed : public InventoryTest {
 protected:
  const Place* placeOf(std::string_view object) {
    for (const Place& place : kPlaces)
      if (object == place.object) return &place;
    ADD_FAILURE() << "the test knows no place of " << object;
    return nullptr;
  }

  static std::string filled(std::string text, const std::string& entry) {
    return text.replace(text.find('@'), 1, entry);
  }

  /// What loading says, with places.
  std::vector<Diagnostic> saying(const Place& place, const std::string& entry, std::string& yaml) {
    if (place.object == std::string_view("regression")) {
      auto loaded = loadYaml(kSmall);
      yaml = filled(place.new_text, entry);
      return loadChangeText(yaml, folder_ / "change.yaml", *loaded.cluster).diagnostics.all();
    }
    yaml = with(place.old_text, filled(place.new_text, entry));
    return loadYaml(yaml).diagnostics.all();
  }

  void expectRefusal(const Place& place, const std::string& entry, std::string_view old_word,
                     std::string_view new_word) {
    std::string yaml;
    for (const Diagnostic& one : saying(place, entry, yaml)) {
      if (one.text.find("is now called") == std::string::npos) continue;
      EXPECT_THAT(one.text, HasSubstr(fmt::format("\"{}\"", old_word)));
      EXPECT_THAT(one.text, HasSubstr(fmt::format("is now called \"{}\"", new_word)));
      EXPECT_THAT(one.suggestion, HasSubstr(std::string(new_word)));
      std::istringstream lines(yaml);
      std::string line;
      for (int i = 0; i < one.where.line; ++i) std::getline(lines, line);
      EXPECT_TRUE(std::string_view(line)
                      .substr(static_cast<std::size_t>(one.where.column - 1))
                      .starts_with(old_word))
          << one.where.str() << ": " << line;
      return;
    }
    ADD_FAILURE() << entry << " is not refused:\n" << yaml;
  }
};

TEST_F(Renamed, keysAreRefusedWithTheirNewName) {
  for (const RenamedKey& row : renamedKeys()) {
    std::string value = "1";
    for (const auto& [key, fitting] : kValuesOfKeys)
      if (key == row.old_key) value = fitting;
    for (const RenamedValue& other : renamedValues())
      if (other.object == row.object && other.key == row.new_key) value = other.new_value;
    if (const Place* place = placeOf(row.object))
      expectRefusal(*place, fmt::format("{}: {}", row.old_key, value), row.old_key, row.new_key);
  }
}

TEST_F(Renamed, valuesAreRefusedWithTheirNewName) {
  for (const RenamedValue& row : renamedValues())
    if (const Place* place = placeOf(row.object))
      expectRefusal(*place, fmt::format("{}: {}", row.key, row.old_value), row.old_value,
                    row.new_value);
}

TEST_F(Renamed, anOldKeyIsTheOnlyThingThatIsSaidOfAGoodEntry) {
  EXPECT_THAT(complaints("groups: [host, gpu]", "on: [host, gpu]"),
              ::testing::ElementsAre(HasSubstr("cluster.yaml:23:27: error: gate: the key \"on\" is "
                                               "now called \"groups\" (write groups: …)")));
  EXPECT_THAT(complaints("cluster: {name: small}",
                         "cluster: {name: small}\nfile_systems: {home: {kind: nfs, source: "
                         "\"s:/h\", at: /home}}"),
              ::testing::ElementsAre(HasSubstr("is now called \"mount\"")))
      << "not that mount is missing";
}

/// The table must not speak of keys that are gone, nor of keys that are there still.
TEST(RenamedTable, leadsToKeysThatThereAre) {
  std::map<std::string_view, const ObjectSpec*> specs;
  const std::function<void(const ObjectSpec&)> add = [&](const ObjectSpec& spec) {
    if (!specs.emplace(spec.name, &spec).second) return;
    for (const FieldSpec& field : spec.fields)
      for (const Shape* shape = &field.shape; shape; shape = shape->item.get())
        if (shape->kind == Shape::Kind::Object) add(*shape->object());
  };
  add(*clusterSpec());
  add(*changeSpec());
  for (const RenamedKey& row : renamedKeys()) {
    ASSERT_TRUE(specs.contains(row.object)) << row.object;
    EXPECT_FALSE(specs.at(row.object)->find(row.old_key)) << row.old_key;
    EXPECT_TRUE(specs.at(row.object)->find(row.new_key)) << row.new_key;
  }
  for (const RenamedValue& row : renamedValues()) {
    ASSERT_TRUE(specs.contains(row.object)) << row.object;
    const FieldSpec* field = specs.at(row.object)->find(row.key);
    ASSERT_TRUE(field) << row.key;
    EXPECT_THAT(field->shape.choices, Contains(row.new_value));
    EXPECT_THAT(field->shape.choices, ::testing::Not(Contains(row.old_value)));
  }
}

}  // namespace
}  // namespace muster::inventory
