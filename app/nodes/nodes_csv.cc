// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/nodes_csv.h"

#include "app/site/service_user.h"
#include "base/io/files.h"
#include "inventory/model/discovery.h"

#include <fmt/format.h>

namespace muster::app {

std::string errorsOf(const inventory::Loaded& loaded) {
  std::string out;
  for (const auto& one : loaded.diagnostics.all())
    if (one.severity == Severity::Error) out += "\n" + one.str();
  return out;
}

std::filesystem::path csvPath(const std::filesystem::path& given,
                              const inventory::Cluster& cluster) {
  std::error_code ignored;
  auto here = std::filesystem::absolute(given, ignored).lexically_normal();
  const auto beside = (cluster.folder / given).lexically_normal();
  for (const auto& group : cluster.node_files)
    if (group.path == here || group.path == beside) return group.path;
  return here;
}

Result<void> replaceCsv(const Options& options, const std::filesystem::path& file,
                        const std::string& text) {
  inventory::LoadOptions with;
  with.texts[file] = text;
  with.rows_may_miss = true;
  const auto loaded = inventory::load(options.inventory, with);
  if (!loaded.cluster)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the inventory would not be valid with these rows; {} is as it was:{}",
                            file.string(), errorsOf(loaded)));
  std::error_code ignored;
  const auto mode =
      static_cast<unsigned>(std::filesystem::status(file, ignored).permissions()) & 0777u;
  auto written = io::writeNamedFile(file, text, mode);
  if (written || written.error().code() != ErrorCode::Denied || !isServiceUser()) return written;
  const auto rows = file.parent_path() / "rows";
  return fail(Error(written.error())
                  .within(fmt::format("commands of root write as user {0}; give that user a folder "
                                      "for the rows, `install -d -o {0} {1}`, move the file there, "
                                      "and name it in the inventory: from: rows/{2}",
                                      kServiceUser, rows.string(), file.filename().string())));
}

}  // namespace muster::app
