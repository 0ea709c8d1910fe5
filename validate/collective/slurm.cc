// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/slurm.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>

#include <charconv>
#include <memory>

namespace muster::collective {
namespace {

constexpr const char* kMeant =
    "run it as one task a node: srun --nodes N --ntasks-per-node 1 --exclusive muster-collective "
    "--slurm";

Result<int> numberOf(const std::map<std::string, std::string>& environment,
                     std::initializer_list<const char*> names) {
  for (const auto* name : names) {
    const auto found = environment.find(name);
    if (found == environment.end()) continue;
    int number = -1;
    const auto* end = found->second.data() + found->second.size();
    if (const auto read = std::from_chars(found->second.data(), end, number);
        read.ec == std::errc() && read.ptr == end && number >= 0)
      return number;
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is '{}', which is not a number", name, found->second));
  }
  return fail(ErrorCode::InvalidInput, fmt::format("{} is not set: this is not a step of Slurm; {}",
                                                   *names.begin(), kMeant));
}

bool isAddress(const std::string& text) {
  in_addr ignored{};
  return ::inet_pton(AF_INET, text.c_str(), &ignored) == 1;
}

}  // namespace

Result<SlurmStep> slurmStepOf(const std::map<std::string, std::string>& environment) {
  SlurmStep step;
  TRY(job, numberOf(environment, {"SLURM_JOB_ID"}));
  TRY(number, numberOf(environment, {"SLURM_STEP_ID"}));
  TRY(nodes, numberOf(environment, {"SLURM_STEP_NUM_NODES", "SLURM_NNODES"}));
  TRY(tasks, numberOf(environment, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}));
  TRY(node, numberOf(environment, {"SLURM_NODEID"}));
  if (nodes < 1 || node >= nodes)
    return fail(ErrorCode::InvalidInput, fmt::format("node {} of {} makes no sense", node, nodes));
  if (tasks != nodes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("the step has {} tasks on {} nodes; {}", tasks, nodes, kMeant));
  const auto list = environment.contains("SLURM_STEP_NODELIST")
                        ? environment.find("SLURM_STEP_NODELIST")
                        : environment.find("SLURM_JOB_NODELIST");
  if (list == environment.end())
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("SLURM_STEP_NODELIST is not set: this is not a step of Slurm; {}", kMeant));
  TRY(first, firstHost(list->second));
  step.id = fmt::format("slurm-{}.{}", job, number), step.nodes = nodes, step.node = node,
  step.first = first;
  return step;
}

Result<std::string> firstHost(std::string_view list) {
  std::string name;
  for (std::size_t at = 0; at < list.size() && list[at] != ',';) {
    if (list[at] != '[') {
      name += list[at++];
      continue;
    }
    const auto end = list.find(']', at);
    const auto first =
        end == std::string_view::npos
            ? std::string_view()
            : list.substr(at + 1, std::min(list.find_first_of("-,]", at + 1), end) - at - 1);
    if (first.empty() || first.find_first_not_of("0123456789") != std::string_view::npos)
      return fail(ErrorCode::InvalidInput, fmt::format("'{}' is not a list of hosts", list));
    name += first;
    at = end + 1;
  }
  if (name.empty() || name.find(']') != std::string::npos)
    return fail(ErrorCode::InvalidInput, fmt::format("'{}' is not a list of hosts", list));
  return name;
}

Result<std::string> addressOf(std::string_view scontrol_output, const std::string& node) {
  constexpr std::string_view kKey = "NodeAddr=";
  const auto at = scontrol_output.find(kKey);
  if (at == std::string_view::npos)
    return fail(ErrorCode::NotFound, fmt::format("scontrol reports no address of {}", node));
  const auto begin = at + kKey.size();
  const std::string name(scontrol_output.substr(
      begin,
      std::min(scontrol_output.find_first_of(" \n", begin), scontrol_output.size()) - begin));
  std::string address = name;
  if (!isAddress(name)) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET, hints.ai_socktype = SOCK_STREAM;
    if (const int code = ::getaddrinfo(name.c_str(), nullptr, &hints, &found); code != 0)
      return fail(
          ErrorCode::NotFound,
          fmt::format(
              "{} of {} does not resolve: {}; name the meeting place: --meeting ADDRESS:PORT", name,
              node, ::gai_strerror(code)));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, ::freeaddrinfo);
    char text[INET_ADDRSTRLEN] = {};
    sockaddr_in seen{};
    std::copy_n(reinterpret_cast<const char*>(all->ai_addr), sizeof seen,
                reinterpret_cast<char*>(&seen));
    ::inet_ntop(AF_INET, &seen.sin_addr, text, sizeof text);
    address = text;
  }
  if (address.starts_with("127."))
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is {} here, where every host meets itself; give NodeAddr in "
                            "slurm.conf, or --meeting ADDRESS:PORT",
                            name, address));
  return address;
}

Job partOf(const SlurmStep& step, const std::string& first_address, int port, Job wanted) {
  wanted.group = step.id;
  wanted.meeting = fmt::format("{}:{}", first_address, port);
  wanted.ranks = step.nodes * wanted.local_ranks;
  wanted.first_rank = step.node * wanted.local_ranks;
  return wanted;
}

}  // namespace muster::collective
