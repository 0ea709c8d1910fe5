// SPDX-License-Identifier: Apache-2.0
// A capture of a real BMC, and the other end of a FakeHttp that serves it path by path: what it has
// with 200, everything else with 404. It knows nothing of Redfish.
//
// Captures are not part of this repository: MUSTER_REDFISH_CAPTURES names their folder (default:
// shared/captures/redfish beside the source). One is NAME.json.gz (an object: path → resource), or
// a folder NAME as the DMTF's Redfish-Mockup-Creator writes it (redfish/v1/…/index.json). Nothing
// of what they contain is printed or copied.
#pragma once

#include "base/io/files.h"
#include "base/io/process.h"
#include "bmc/redfish/json_view.h"
#include "tests/fakes/fake_http.h"
#include "tests/paths.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace muster::test {

inline std::filesystem::path captureFolder() {
  if (const char* named = std::getenv("MUSTER_REDFISH_CAPTURES"); named && *named) return named;
  return sourceFolder().parent_path() / "shared/captures/redfish";
}

/// Path → resource. Nothing: this capture is not here.
inline std::optional<bmc::Json> readCapture(const std::string& name) {
  constexpr std::size_t kMaxResourceBytes = 32u << 20;
  const auto packed = captureFolder() / (name + ".json.gz");
  if (std::filesystem::exists(packed)) {
    io::Command unpack;
    unpack.program = "gzip";
    unpack.args = {"-dc", packed.string()};
    auto text = io::runChecked(unpack);
    if (!text) return std::nullopt;
    auto resources = bmc::Json::parse(*text, nullptr, false);
    return resources.is_object() ? std::optional(std::move(resources)) : std::nullopt;
  }
  const auto folder = captureFolder() / name;
  if (!std::filesystem::is_directory(folder / "redfish")) return std::nullopt;
  auto resources = bmc::Json::object();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().filename() != "index.json") continue;
    const auto text = io::readFile(entry.path(), kMaxResourceBytes);
    auto resource = text ? bmc::Json::parse(*text, nullptr, false) : bmc::Json();
    const auto path = std::filesystem::relative(entry.path().parent_path(), folder);
    if (resource.is_object()) resources["/" + path.string()] = std::move(resource);
  }
  return resources;
}

/// The program that writes captures gathers all pages in the first, which still links the second.
inline bmc::Json withoutPages(bmc::Json resource) {
  const auto members = resource.find("Members");
  if (members != resource.end() &&
      bmc::numberAt(resource, "Members@odata.count") == static_cast<double>(members->size()))
    resource.erase("Members@odata.nextLink");
  return resource;
}

inline std::string noCapture(const std::string& name) {
  return "no capture " + name + "; set MUSTER_REDFISH_CAPTURES to their folder";
}

/// What $expand does with a collection (DSP0266): its members stand in it whole.
inline bmc::Json expandedCapture(const bmc::Json& resources, bmc::Json collection) {
  collection = withoutPages(std::move(collection));
  const auto members = collection.find("Members");
  if (members == collection.end() || !members->is_array()) return collection;
  for (auto& member : *members)
    if (const auto found = resources.find(bmc::linkAt(member, "@odata.id"));
        found != resources.end())
      member = *found;
  return collection;
}

/// Serves what `resources` holds; a session can be opened, nothing can be changed. `expand`: a
/// query is obeyed; else it is left out of account, as some services do.
inline FakeHttp::Handler captureHandler(const bmc::Json& resources, bool expand = false) {
  return [&resources, expand](io::HttpRequest request) -> Async<io::HttpResponse> {
    std::string path = request.url.target.substr(0, request.url.target.find('?'));
    const bool whole = expand && request.url.target.find("$expand=") != std::string::npos;
    if (request.method == "POST" && path.find("Sessions") != std::string::npos)
      co_return FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    if (request.method != "GET") co_return FakeHttp::json(405, "{}");
    if (path.size() > 1 && path.back() == '/') path.pop_back();
    const auto found = resources.find(path);
    co_return found == resources.end()
        ? FakeHttp::json(404, "{}")
        : FakeHttp::json(
              200, whole ? expandedCapture(resources, *found).dump() : withoutPages(*found).dump());
  };
}

}  // namespace muster::test
