// SPDX-License-Identifier: Apache-2.0
#include "bmc/bulk_operation.h"

#include "base/async/await_all.h"
#include "base/io/process.h"
#include "bmc/arbiter.h"

#include <fmt/format.h>

namespace muster::bmc {
namespace {

constexpr std::chrono::seconds kSignLimit{120};

struct BulkOperation {
  BulkOperationReport report;
  AsyncSemaphore places{kBulkOperationAtOnce};
  std::function<Async<void>(NodeName)> work;
  std::function<void(const NodeName&, const Result<void>&)> told;
};

Task<void> one(std::shared_ptr<BulkOperation> all, NodeName node) {
  auto permit = co_await all->places.enter();
  if (all->report.failed.size() >= kBulkOperationFailures) {
    all->report.not_started.push_back(node);
    co_return;
  }
  const auto ended = co_await all->work(node);
  if (ended)
    all->report.done.push_back(node);
  else
    all->report.failed.emplace(node, ended.error());
  all->told(node, ended);
}

}  // namespace

Async<BulkOperationReport> runBulkOperation(
    std::vector<NodeName> nodes, std::function<Async<void>(NodeName)> work,
    std::function<void(const NodeName&, const Result<void>&)> told) {
  auto all = std::make_shared<BulkOperation>();
  all->work = std::move(work);
  all->told = std::move(told);
  if (nodes.empty()) co_return std::move(all->report);
  co_await one(all, nodes.front());
  if (!all->report.failed.empty()) {
    all->report.not_started.assign(nodes.begin() + 1, nodes.end());
    co_return std::move(all->report);
  }
  std::vector<Task<void>> others;
  for (std::size_t i = 1; i < nodes.size(); ++i) others.push_back(one(all, nodes[i]));
  co_await async::awaitAll(std::move(others));
  co_return std::move(all->report);
}

CertificateSigner signBy(std::vector<std::string> words, io::ProcessRunner& processes) {
  return [words = std::move(words), &processes](std::string request) -> Async<std::string> {
    io::Command command;
    command.program = words.front();
    command.args.assign(words.begin() + 1, words.end());
    command.stdin_text = std::move(request);
    command.timeout = kSignLimit;
    const auto shown = command.program;
    CO_TRY(ended, co_await processes.run(std::move(command)));
    if (ended.code == 0) co_return std::move(ended.out);
    while (!ended.err.empty() && ended.err.back() == '\n') ended.err.pop_back();
    co_return fail(ErrorCode::Unavailable,
                   fmt::format("{} did not sign: it ended with {}: {}", shown, ended.code,
                               ended.err.substr(ended.err.rfind('\n') + 1)));
  };
}

Async<void> certify(Bmc& bmc, CertificateSubject subject, CertificateSigner sign) {
  CO_TRY(request, co_await bmc.certificateRequest(std::move(subject)));
  CO_TRY(certificate, co_await sign(std::move(request)));
  if (certificate.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    co_return fail(
        ErrorCode::Corrupt,
        "whoever signs answered no certificate in PEM; nothing was sent to " + bmc.address());
  co_return co_await bmc.installCertificate(std::move(certificate));
}

}  // namespace muster::bmc
