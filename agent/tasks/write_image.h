// WriteImage: joins the disk writer to the agent.
#pragma once

#include "agent/tasks/tasks.h"

namespace muster::agent {

using Certify = std::function<Async<EnrolResponse>(std::string csr_pem)>;

TaskHandler imageHandler(TaskTools tools, Certify certify);
/// What a block device holds, as the writer sees it.
std::function<Result<std::string>(const std::filesystem::path&)> diskContent();

}  // namespace muster::agent
