#include "agent/tasks/write_image.h"

#include "agent/writer/writer.h"

namespace muster::agent {
namespace {

/// The key of the installed system is made here, on the node; only its request leaves it.
Async<InstalledIdentity> identityFor(Certify certify, std::string hostname) {
  CO_TRY(made, io::makeKeyAndRequest(hostname));
  auto ask = certify(made.csr_pem);
  CO_TRY(answer, co_await std::move(ask));
  co_return InstalledIdentity{made.key_pem, answer.certificate_pem};
}

Async<nlohmann::json> write(TaskTools tools, Certify certify, nlohmann::json json, TaskContextPtr context) {
  CO_TRY(params, parseWriteImageParams(json.dump()));
  WriterDeps deps{[] { return io::makeHttpClient(); }, tools.workers, tools.clock,
                  [certify, hostname = params.hostname] { return identityFor(certify, hostname); },
                  [context](double fraction, const std::string& text) { context->progress(fraction, text); }, tools.provisioning_mac};
  auto work = writeImage(params, std::move(deps), context->deadline());
  CO_TRY(report, co_await std::move(work));
  co_return nlohmann::json::parse(report.json());
}

}  // namespace

TaskHandler imageHandler(TaskTools tools, Certify certify) {
  return [tools, certify = std::move(certify)](nlohmann::json params, TaskContextPtr context) {
    return write(tools, certify, std::move(params), std::move(context));
  };
}

std::function<Result<std::string>(const std::filesystem::path&)> diskContent() { return describeDiskContent; }

}  // namespace muster::agent
