// SPDX-License-Identifier: Apache-2.0
// The audit log and the keys: each command prints what a use case of app/ answers, and answers the
// exit status. A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/records/audit.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

#include <filesystem>
#include <string>

namespace muster::cli {

struct AuditVerifyArgs {
  std::filesystem::path archive;  ///< instead of the log in the store
  app::AuditRequest request;
};
int auditVerify(const app::Options& options, const AuditVerifyArgs& args);
int auditHead(const app::Options& options);
struct AuditArchiveArgs {
  std::string before;
  std::filesystem::path to;
};
int auditArchive(const app::Options& options, const AuditArchiveArgs& args);
int keyList(const app::Options& options);
struct KeyShowArgs {
  std::string purpose;
};
int keyShow(const app::Options& options, const KeyShowArgs& args);
struct KeyRotateArgs {
  std::string purpose;
  bool finish = false;  ///< end the rotation instead of beginning one
  bool lost = false;    ///< its file is gone: make another
  bool force = false;   ///< although nodes still hold certificates of the key before
};
int keyRotate(const app::Options& options, const KeyRotateArgs& args);

}  // namespace muster::cli
