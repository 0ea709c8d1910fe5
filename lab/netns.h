// SPDX-License-Identifier: Apache-2.0
// Network namespaces: make one with a bridge, look into it, empty it, enter it.
#pragma once

#include "lab/rack.h"

#include <sys/types.h>
#include <functional>

namespace muster::lab {

/// A file of that name that is no namespace (what an `ip netns` that was killed leaves) does not
/// count.
bool namespaceExists(const std::string& netns);
/// Namespace, bridge with the controller's address, and every BMC's address on it. What is there
/// already stays.
Result<void> makeNamespace(const Rack& rack);

/// A living network namespace that carries a lab's mark on its bridge. The mark is in the
/// namespace, so it is found also when its name in /run/netns or the lab's folder is gone, and no
/// other namespace is ever taken for it.
struct MarkedNamespace {
  std::string rack_id;
  std::filesystem::path folder;  ///< the lab's run folder
  pid_t member = 0;              ///< a process in it
};
std::vector<MarkedNamespace> markedNamespaces();
/// The mark of the namespace that has this name; nullopt: it has none, or there is no such
/// namespace.
std::optional<MarkedNamespace> markOf(const std::string& netns);
/// Gives the namespace its name in /run/netns again. Errors: Internal
Result<void> nameNamespace(const MarkedNamespace& marked, const std::string& netns);
/// As endProcessesIn, for a namespace that may have no name. Answers how many processes there were.
Result<std::size_t> endProcessesOf(const MarkedNamespace& marked, std::chrono::milliseconds grace);

/// Processes whose network namespace this is, without this process and its ancestors.
std::vector<pid_t> processesIn(const std::string& netns);
/// SIGTERM, and SIGKILL for what is left after `grace`. Errors: Internal when processes stay
Result<void> endProcessesIn(const std::string& netns, std::chrono::milliseconds grace);
Result<void> removeNamespace(const std::string& netns);

/// Moves this thread (the process, while it has one thread) into the namespace. Errors: NotFound,
/// Denied
Result<void> enterNamespace(const std::string& netns);
/// Runs `work` on a thread of its own inside the namespace.
Result<void> insideNamespace(const std::string& netns, const std::function<Result<void>()>& work);

}  // namespace muster::lab
