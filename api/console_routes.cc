// SPDX-License-Identifier: Apache-2.0
// What consoles have shown: the boots that are recorded, and the one that is being recorded, part
// by part. Who types into a console does so with `muster console` (docs/console.md).
#include "app/nodes/console.h"

#include "api/answers.h"
#include "api/schema.h"

namespace muster::api {
namespace {

constexpr std::int64_t kMostBoots = 1'000'000'000;
constexpr std::int64_t kAnyPlace = std::int64_t{1} << 53;
constexpr std::size_t kPartBytes = 256u << 10;
const Field kBoot{"boot", Kind::Integer, "One of the recorded boots", true, 0, kMostBoots};

Reply boots(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  TRY(kept, app::recordedBoots(reader.options(), node->name));
  auto items = nlohmann::json::array();
  for (const auto& boot : kept)
    items.push_back(
        {{"boot", boot.number}, {"began", muster::toString(boot.began)}, {"why", boot.why}});
  return list(std::move(items));
}

Reply output(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const auto boot = call.integer("boot", -1);
  if (boot < 0 || boot > kMostBoots)
    return std::unexpected(Problem(404, "not-found", "a boot has a number",
                                   "the node's boots are at /nodes/{name}/boots"));
  TRY(part, app::recordedPart(reader.options(), node->name, static_cast<int>(boot),
                              static_cast<std::uint64_t>(call.integer("after", 0)), kPartBytes));
  Answer out;
  out.headers["Content-Type"] = "application/octet-stream";
  out.headers["Cache-Control"] = "no-store";  // it may show passwords
  out.headers["Muster-From"] = std::to_string(part.from);
  out.headers["Muster-Next"] = std::to_string(part.next);
  out.plain = std::move(part.bytes);
  return out;
}

}  // namespace

void addConsoleRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back({"GET",
                    "/nodes/{name}/boots",
                    Verb::Console,
                    Reach::Scoped,
                    "The boots of which the console is recorded, oldest first",
                    {kNameField},
                    {},
                    {},
                    listOf("RecordedBoot"),
                    200,
                    boots});
  routes.back().needs_serving_host = true;  // each host keeps what it has recorded itself
  routes.push_back(
      {"GET",
       "/nodes/{name}/boots/{boot}/output",
       Verb::Console,
       Reach::Scoped,
       "What a boot has shown from a place on, as it came: at most 256 KiB; the header "
       "Muster-Next has the place behind it, Muster-From where it begins",
       {kNameField, kBoot},
       {{"after", Kind::Integer, "`Muster-Next` of the part before", false, 0, kAnyPlace}},
       {},
       nlohmann::json(),
       200,
       output,
       false,
       "application/octet-stream"});
  routes.back().needs_serving_host = true;
}

}  // namespace muster::api
