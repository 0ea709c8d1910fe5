// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/write_image.h"

#include "agent/imaging/live.h"
#include "agent/imaging/writer.h"
#include "agent/peers/peer_client.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "wire/task_reason.h"

namespace muster::agent {
namespace {

/// The key of the installed system is made here, on the node; only its request leaves it.
Async<InstalledIdentity> identityFor(Certify certify, std::string hostname) {
  CO_TRY(made, io::makeKeyAndRequest(hostname));
  CO_TRY(answer, co_await certify(made.csr_pem));
  co_return InstalledIdentity{made.key_pem, answer.certificate_pem};
}

constexpr const char* kPeerProgram = "muster-peer";  ///< beside the agent

/// Nullptr where the task names no peers.
std::unique_ptr<PeerSource> peersOf(const TaskTools& tools, const wire::WriteImageParams& params) {
  if (!params.peers) return nullptr;
  std::vector<std::string> urls{params.pack_url};
  urls.insert(urls.end(), params.mirror_urls.begin(), params.mirror_urls.end());
  PeerOptions options;
  std::error_code error;
  const auto self = std::filesystem::read_symlink(tools.self, error);
  options.swarm.program = (error ? tools.self : self).parent_path() / kPeerProgram;
  return std::make_unique<PeerSource>(*params.peers, std::move(urls), std::move(options),
                                      tools.processes, tools.clock,
                                      [] { return io::makeHttpClient(); });
}

nlohmann::json describe(const PeerReport& report) {
  return {{"joined", report.joined},
          {"why_not", report.why_not},
          {"served_bytes", report.served_bytes},
          {"asked_servers_bytes", report.asked_servers_bytes},
          {"shared_bytes", report.shared_bytes},
          {"from_peers_bytes", report.status.from_peers},
          {"uploaded_bytes", report.status.uploaded},
          {"wrong_pieces", report.status.wrong_pieces},
          {"banned_peers", report.status.banned},
          {"corrupt_mirrors", report.corrupt_mirrors}};
}

WriterDeps depsFor(const TaskTools& tools, Certify certify, const wire::WriteImageParams& params,
                   PeerSource* peers, TaskContextPtr context) {
  WriterDeps deps{
      [peers] { return peers ? peers->client() : io::makeHttpClient(); },
      tools.workers,
      tools.clock,
      [certify, hostname = params.hostname] { return identityFor(certify, hostname); },
      [context](double fraction, const std::string& text) { context->progress(fraction, text); },
      tools.provisioning_mac};
  if (peers)
    deps.scanned = [peers](const wire::PackIndex& index, const std::vector<char>& right) {
      peers->scanned(index, right);
    };
  return deps;
}

Async<nlohmann::json> write(TaskTools tools, Certify certify, nlohmann::json json,
                            TaskContextPtr context) {
  auto parsed = wire::parseWriteImageParams(jsonText(json));
  if (!parsed) co_return wire::untouched(std::move(parsed).error());
  const wire::WriteImageParams& params = *parsed;
  const auto peers = peersOf(tools, params);
  auto deps = depsFor(tools, std::move(certify), params, peers.get(), context);
  CO_TRY(report, co_await writeImage(params, std::move(deps), context->deadline()));
  auto result = jsonOrNone(report.json(), kKeptJson);
  if (peers) result["peers"] = describe(peers->report());
  co_return result;
}

Async<nlohmann::json> start(TaskTools tools, Certify certify, nlohmann::json json,
                            TaskContextPtr context) {
  CO_TRY(params, wire::parseWriteImageParams(jsonText(json)));
  const auto peers = peersOf(tools, params);
  auto deps = depsFor(tools, std::move(certify), params, peers.get(), context);
  CO_TRY(report, co_await startLive(params, std::move(deps), LivePlaces{}, context->deadline()));
  auto result = jsonOrNone(report.json(), kKeptJson);
  if (peers) result["peers"] = describe(peers->report());
  co_return result;
}

}  // namespace

TaskHandler imageHandler(TaskTools tools, Certify certify) {
  return [tools, certify = std::move(certify)](nlohmann::json params, TaskContextPtr context) {
    return write(tools, certify, std::move(params), std::move(context));
  };
}

TaskHandler liveHandler(TaskTools tools, Certify certify) {
  return [tools, certify = std::move(certify)](nlohmann::json params, TaskContextPtr context) {
    return start(tools, certify, std::move(params), std::move(context));
  };
}

std::function<Result<DiskContent>(const std::filesystem::path&)> diskContent() {
  return describeDiskContent;
}

}  // namespace muster::agent
