// SPDX-License-Identifier: Apache-2.0
#include "base/io/http_routes.h"

#include <gmock/gmock.h>

namespace muster::io {
namespace {

using Parameters = std::map<std::string, std::string>;

std::optional<Parameters> match(std::string_view path_template, std::string_view path) {
  Parameters out;
  return matchesTemplate(path_template, path, out) ? std::optional(out) : std::nullopt;
}

TEST(RouteTemplate, takesWholeSegmentsOnly) {
  EXPECT_EQ(match("/nodes/{name}", "/nodes/gpu001"), (Parameters{{"name", "gpu001"}}));
  EXPECT_EQ(match("/a/{x}/b/{y}", "/a/1/b/2"), (Parameters{{"x", "1"}, {"y", "2"}}));
  EXPECT_EQ(match("/nodes/{name}", "/nodes/"), std::nullopt);
  EXPECT_EQ(match("/nodes/{name}", "/nodes"), std::nullopt);
  EXPECT_EQ(match("/nodes/{name}", "/nodes/a/b"), std::nullopt);
  EXPECT_EQ(match("/nodes/{name}", "/nodesx/a"), std::nullopt);
  EXPECT_EQ(match("/nodes/{name}/why", "/nodes/a/why/"), std::nullopt);
  EXPECT_EQ(match("/nodes/{name}/why", "/nodes/a/what"), std::nullopt);
}

TEST(RouteTemplate, aPathWinsOverATemplateAndThatOverWhatIsAbove) {
  Routes routes;
  routes.add({{"GET", "/n/", {}},
              {"GET", "/n/{name}", {}},
              {"GET", "/n/self", {}},
              {"POST", "/n/{name}/stop", {}}});
  EXPECT_EQ(routes.find("GET", "/n/self").route->path, "/n/self");
  const auto named = routes.find("HEAD", "/n/gpu001");
  EXPECT_EQ(named.route->path, "/n/{name}");
  EXPECT_EQ(named.parameters.at("name"), "gpu001");
  EXPECT_EQ(routes.find("GET", "/n/a/b").route->path, "/n/");
  EXPECT_EQ(routes.find("POST", "/n/a/stop").route->path, "/n/{name}/stop");
  const auto wrong = routes.find("DELETE", "/n/self");
  EXPECT_FALSE(wrong.route);
  EXPECT_TRUE(wrong.path_known);
}

}  // namespace
}  // namespace muster::io
