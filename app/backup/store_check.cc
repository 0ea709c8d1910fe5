// SPDX-License-Identifier: Apache-2.0
#include "app/backup/backup.h"
#include "app/records/audit.h"
#include "app/site/effective_cluster.h"
#include "app/site/site_keys.h"
#include "app/site/state_folder.h"
#include "base/io/trusted_keys.h"
#include "lifecycle/store/store_copy.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::app {

Result<std::vector<StoreCheckLine>> checkStore(const Options& options) {
  std::vector<StoreCheckLine> out;
  TRY_OK(requireUsed(options));
  TRY(examined, lifecycle::examineStore(options.storeUrl()));
  out.push_back(
      {"schema", true,
       fmt::format("{} (this muster works with {})", examined.schema, lifecycle::knownSchema())});
  std::string problems;
  for (const auto& problem : examined.problems)
    problems += (problems.empty() ? "" : "; ") + problem;
  out.push_back({"integrity", examined.problems.empty(),
                 problems.empty() ? "every page and index was read"
                                  : problems + "; restore a backup: docs/backup.md"});
  if (examined.schema != lifecycle::knownSchema()) {
    out.push_back({"journal", true, "not read: the store is migrated when muster next works"});
    return out;
  }
  const auto audit = verifyAudit(options, {});
  out.push_back({"journal", audit && audit->ok(),
                 !audit        ? audit.error().str()
                 : audit->ok() ? "its chain of hashes is whole"
                               : "its chain is broken: muster audit verify"});
  TRY(store, openStoreForReading(options));
  for (const auto& row : kKeyPurposes) {
    StoreCheckLine line{fmt::format("key {}", row.name), true, ""};
    const auto key = publicKeyOf(options.state, row.purpose);
    TRY(agreed, store->getValue(std::string(row.agreed)));
    if (!key) {
      const bool never = key.error().code() == ErrorCode::NotFound && !agreed;
      line.ok = never;
      line.text = never ? "none yet" : key.error().str();
    } else {
      const auto ids = io::publicKeyIds(*key);
      line.ok = !agreed || std::ranges::find(ids, *agreed) != ids.end();
      line.text = line.ok ? fmt::format("{}", ids.empty() ? "?" : ids.front())
                          : fmt::format(
                                "{} here, but the site's is {}: copy keys/{} from the host "
                                "that served last",
                                ids.empty() ? "?" : ids.front(), *agreed, row.file);
    }
    out.push_back(std::move(line));
  }
  return out;
}

}  // namespace muster::app
