#include "cli/commands/commands.h"

#include "cli/controller.h"

#include <iostream>

namespace muster::cli {

int fabricDiff(const Options& options) {
  const auto cluster = loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto lab = lab::find(options.labFolder(*cluster));
  if (!lab) return report(lab.error());
  if (*lab)
    if (const auto entered = lab::enter(**lab); !entered) return report(entered.error());
  asio::io_context context;
  const auto processes = io::makeProcessRunner();
  int code = fabric::DiffReport::kNoAnswer;
  asio::co_spawn(context, fabric::diff(*cluster, *processes, fabricOptions(options, *lab)),
                 [&](std::exception_ptr broken, const Result<fabric::DiffReport>& found) {
                   if (broken) std::rethrow_exception(broken);
                   if (!found) {
                     report(found.error());
                     return;
                   }
                   std::cout << (options.json ? toJson(*found) + "\n" : toText(*found));
                   code = found->exitCode();
                 });
  context.run();
  return code;
}

}  // namespace muster::cli
