// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/netbox_import.h"

#include "app/controller/run_async.h"
#include "app/nodes/nodes_csv.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "base/io/system_roots.h"
#include "base/log.h"
#include "discovery/netbox.h"
#include "inventory/model/discovery.h"

#include <fmt/format.h>

#include <cstdlib>

namespace muster::app {
namespace {

constexpr const char* kTokenVariable = "NETBOX_TOKEN";
constexpr std::size_t kMaxTokenBytes = 4096, kMaxRootsBytes = 4u << 20;

Result<Secret> tokenOf(const NetboxRequest& request) {
  std::string text;
  if (!request.token_file.empty()) {
    TRY(read, io::readRegularFile(request.token_file, kMaxTokenBytes));
    text = read.substr(0, read.find_first_of("\r\n"));
  } else if (const char* said = std::getenv(kTokenVariable)) {
    text = said;
  }
  if (text.empty())
    return fail(ErrorCode::InvalidInput,
                fmt::format("no token: --token-file FILE, or the environment variable {}; NetBox "
                            "makes one under Admin, API Tokens",
                            kTokenVariable));
  if (text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") !=
      std::string::npos)
    return fail(ErrorCode::InvalidInput,
                "the token holds signs that no token of NetBox has: write it alone into the file");
  return Secret(std::move(text));
}

Result<io::Url> rootOf(const std::string& text) {
  TRY(url, io::Url::parse(text));
  if (text.find_first_of("?#") != std::string::npos)
    return fail(ErrorCode::InvalidInput, "name the root of NetBox: no '?' and no '#' in its URL");
  auto& path = url.target;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (path == "/api" || path.ends_with("/api"))
    return fail(ErrorCode::InvalidInput, "name the root of NetBox, without /api");
  return url;
}

Result<io::TlsTrust> trustOf(const NetboxRequest& request, const io::Url& root) {
  io::TlsTrust trust;
  if (root.scheme != "https") return trust;
  TRY(roots, request.ca.empty() ? io::systemRoots() : io::readFile(request.ca, kMaxRootsBytes));
  trust.ca_pem = std::move(roots);
  return trust;
}

Result<void> addRows(const Options& options, const std::filesystem::path& csv,
                     const std::vector<discovery::CsvFields>& rows) {
  TRY(before, io::readRegularFile(csv, kMaxCsvBytes));
  TRY(after, discovery::withRows(before, csv.string(), rows));
  return replaceCsv(options, csv, after);
}

}  // namespace

Result<NetboxImport> importFromNetbox(const Options& options, const NetboxRequest& request) {
  auto loaded = inventory::load(options.inventory, {.texts = {}, .rows_may_miss = true});
  if (!loaded.cluster) {
    loaded.diagnostics.sort();
    return fail(ErrorCode::InvalidInput, fmt::format("{} is not valid; NetBox was not asked:{}",
                                                     options.inventory.string(), errorsOf(loaded)));
  }
  TRY(root, rootOf(request.url));
  TRY(token, tokenOf(request));
  TRY(trust, trustOf(request, root));
  Loop loop;
  discovery::NetboxClient client(root, token, io::makeHttpClient(std::move(trust)));
  TRY(devices, loop.run(client.devices(request.query)));
  if (devices.empty())
    return fail(ErrorCode::NotFound,
                "NetBox lists no device there: look at the names (slugs) of sites, tags and roles, "
                "and at what the token's user may see");
  NetboxImport out;
  out.found = discovery::compareWithNetbox(devices, *loaded.cluster);
  if (request.csv.empty() || out.found.rows.empty()) return out;
  const auto csv = csvPath(request.csv, *loaded.cluster);
  TRY_OK(addRows(options, csv, out.found.rows));
  out.written = csv;
  return out;
}

}  // namespace muster::app
