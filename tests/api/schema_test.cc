// SPDX-License-Identifier: Apache-2.0
#include "api/schema.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace muster::api {
namespace {

void expectRefsResolve(const nlohmann::json& value, const std::string& where) {
  if (value.is_object() && value.contains("$ref")) {
    const std::string prefix = "#/components/schemas/";
    const std::string target = value["$ref"];
    ASSERT_EQ(target.substr(0, prefix.size()), prefix) << where;
    EXPECT_TRUE(schemas().contains(target.substr(prefix.size()))) << where << ": " << target;
  }
  if (value.is_structured())
    for (const auto& [name, member] : value.items()) expectRefsResolve(member, where + "/" + name);
}

TEST(Schemas, areObjectsWhoseReferencesResolve) {
  EXPECT_GT(schemas().size(), 25u);
  for (const auto& [name, schema] : schemas().items()) {
    EXPECT_EQ(schema["type"], "object") << name;
    EXPECT_FALSE(schema["required"].empty()) << name;
    expectRefsResolve(schema, name);
  }
}

TEST(Schemas, aListNamesItsItemsAndWhatElseItHas) {
  const auto list = listOf("Node", {{"as_of", {{"type", "string"}}}});
  EXPECT_EQ(list["properties"]["items"]["items"], refTo("Node"));
  EXPECT_THAT(list["required"].get<std::vector<std::string>>(),
              ::testing::ElementsAre("items", "as_of"));
}

}  // namespace
}  // namespace muster::api
