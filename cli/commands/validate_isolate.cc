// SPDX-License-Identifier: Apache-2.0
// validate isolate and validate run.
#include "app/validation/isolation.h"
#include "app/validation/validate_run.h"
#include "base/json_output.h"
#include "cli/commands/validate.h"
#include "cli/view/console_progress.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {

int validateIsolate(const app::Options& options, const app::IsolationRequest& request) {
  ConsoleProgress progress(options.json, ShowEvents::No);
  const auto done = app::isolateNodes(options, request, progress);
  if (!done) return report(done.error());
  auto document = toJson(done->run);
  document.erase("rounds_run");
  std::cout << (options.json ? jsonText(document, 2) + "\n"
                             : toText(done->run.begun.site, done->run.verdict));
  std::cerr << "every test is in " << done->document.string() << '\n';
  return done->isClear() ? kOk : kFailed;
}

int validateRun(const app::Options& options, const app::ValidateRunRequest& request) {
  ConsoleProgress progress(options.json, ShowEvents::Yes);
  const auto done = app::runGates(options, request, progress);
  progress.finish();
  if (!done) return report(done.error());
  return done->passed ? kOk : kFailed;
}

}  // namespace muster::cli
