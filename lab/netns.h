// Network namespaces: make one with a bridge, look into it, empty it, enter it.
#pragma once

#include "lab/rack.h"

#include <sys/types.h>
#include <functional>

namespace muster::lab {

bool namespaceExists(const std::string& netns);
/// Namespace, bridge with the controller's address, and every BMC's address on it. What is there already stays.
Result<void> makeNamespace(const Rack& rack);

/// Processes whose network namespace this is, without this process and its ancestors.
std::vector<pid_t> processesIn(const std::string& netns);
/// SIGTERM, and SIGKILL for what is left after `grace`. Errors: Internal when processes stay
Result<void> endProcessesIn(const std::string& netns, std::chrono::milliseconds grace);
Result<void> removeNamespace(const std::string& netns);

/// Moves this thread (the process, while it has one thread) into the namespace. Errors: NotFound, Denied
Result<void> enterNamespace(const std::string& netns);
/// Runs `work` on a thread of its own inside the namespace.
Result<void> insideNamespace(const std::string& netns, const std::function<Result<void>()>& work);

}  // namespace muster::lab
