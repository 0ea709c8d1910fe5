// SPDX-License-Identifier: Apache-2.0
// WriteImage and StartImage: join the disk writer and the live starter to the agent.
#pragma once

#include "agent/tasks/tasks.h"

namespace muster::agent {

using Certify = std::function<Async<wire::EnrollResponse>(std::string csr_pem)>;

TaskHandler imageHandler(TaskTools tools, Certify certify);
/// StartImage: brings a live image into memory, so that it can take over.
TaskHandler liveHandler(TaskTools tools, Certify certify);
/// What a block device holds, as the writer sees it.
std::function<Result<DiskContent>(const std::filesystem::path&)> diskContent();

}  // namespace muster::agent
