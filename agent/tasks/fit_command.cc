// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/fit_command.h"

#include "agent/core/fitness.h"
#include "base/io/process.h"

#include <fmt/format.h>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>

namespace muster::agent {
namespace {

/// Slurm ends a health check after 60 s, and calls it on all nodes at once.
constexpr std::chrono::seconds kScontrolLimit{15};
constexpr std::size_t kMaxReasonBytes = 200, kMaxHostNameBytes = 256, kQuotedBytes = 200;
/// As the pool phase marks its own drains, which it undoes when the node is well again.
constexpr std::string_view kReasonPrefix = "muster: ";

std::string nodeNameOf(const FitCommand& command) {
  if (!command.node.empty()) return command.node;
  if (const char* said = std::getenv("SLURMD_NODENAME"); said && *said) return said;
  std::array<char, kMaxHostNameBytes> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string host(name.data());
  return host.substr(0, host.find('.'));
}

Result<io::ProcessExit> scontrol(std::vector<std::string> args) {
  io::Command command;
  command.program = "scontrol";
  command.args = std::move(args);
  command.timeout = kScontrolLimit;
  TRY(exit, io::runBlocking(command));
  if (exit.code != 0)
    return fail(ErrorCode::Unavailable,
                "scontrol says: " + (exit.err + exit.out).substr(0, kQuotedBytes));
  return exit;
}

/// "State=IDLE+DRAIN": the words between the signs.
bool isTakenOut(std::string_view record) {
  const auto at = record.find(" State=");
  if (at == std::string_view::npos) return false;
  auto state = record.substr(at + 7);
  state = state.substr(0, state.find_first_of(" \n"));
  for (const std::string_view word : {"DRAIN", "DOWN", "FAIL"})
    if (state.find(word) != std::string_view::npos) return true;
  return false;
}

/// Whose drain stands is not asked: words of others are never written over.
Result<bool> drainOnce(const std::string& node, const std::string& reason) {
  TRY(shown, scontrol({"show", "node", node, "-o"}));
  if (isTakenOut(shown.out)) return false;
  TRY_OK(scontrol({"update", "NodeName=" + node, "State=DRAIN",
                   "Reason=" + (std::string(kReasonPrefix) + reason).substr(0, kMaxReasonBytes)}));
  return true;
}

}  // namespace

int runFit(const FitCommand& command) {
  const auto fitness = readFitness(command.root, bootMilliseconds());
  std::cout << toString(fitness.state) << (fitness.reason.empty() ? "" : ": ") << fitness.reason
            << std::endl;
  if (fitness.state == FitnessState::Fit) return kFit;
  if (fitness.state == FitnessState::Unknown) return command.prolog ? kFit : kFitnessUnknown;
  if (!command.drain) return kUnfit;
  // Slurm starts its programs with hardly any environment.
  if (!std::getenv("PATH")) ::setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  const auto node = nodeNameOf(command);
  if (const auto drained = drainOnce(node, fitness.reason); !drained)
    std::cerr << fmt::format("{} could not be drained: {}\n", node, drained.error().str());
  return kUnfit;
}

}  // namespace muster::agent
