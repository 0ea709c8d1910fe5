// SPDX-License-Identifier: Apache-2.0
// cert: what a node's certificate says, whether it holds, and a person's decision about it.
#include "app/validation/certificates.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/cert.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

int verifyFile(const app::Options& options, const app::CertificateFile& file) {
  const auto certificate = app::verifyCertificateFile(file);
  if (!certificate) return report(certificate.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"node", certificate->node.str()},
                                         {"valid", true},
                                         {"expires_at", toString(certificate->expires_at)},
                                         {"revocations_checked", !file.revocations.empty()},
                                         {"override_by", certificate->override_by},
                                         {"override_reason", certificate->override_reason},
                                         {"bound", certificate->bound},
                                         {"peer_baseline", certificate->peer_baseline}},
                          2)
              << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "{}: signed, not expired (until {}){}{}\n", certificate->node.str(),
      toString(certificate->expires_at), file.revocations.empty() ? "" : ", not revoked",
      certificate->isOverride() ? fmt::format("; an OVERRIDE by {}: {}", certificate->override_by,
                                              certificate->override_reason)
                                : "");
  std::cout << "it was proven with, and counts only while the node still has:\n";
  for (const auto& [gate, words] : certificate->peer_baseline)
    std::cout << fmt::format("  gate {}: {}\n", gate, words);
  for (const auto& [facet, value] : certificate->bound)
    std::cout << fmt::format("  {:<32}{}\n", facet, value);
  if (file.revocations.empty())
    std::cout << "whether it was revoked was not checked, as --without-revocations says\n";
  return kOk;
}

}  // namespace

int certShow(const app::Options& options, const NodeArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto certificate = (*site)->records().certificate(args.node);
  if (!certificate) return report(certificate.error());
  std::cout << certificate->toJson();
  return kOk;
}

int certVerify(const app::Options& options, const app::CertificateFile& file) {
  if (!file.certificate.empty()) {
    const auto good = requireNoServer(options, "--file is verified by the site's key alone, here");
    return good ? verifyFile(options, file) : report(good.error());
  }
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto verdicts = (*site)->records().verifyCertificates(file.node);
  if (!verdicts) return report(verdicts.error());
  if (verdicts->empty())
    return report(Error(ErrorCode::NotFound,
                        "nothing was verified: no node is declared, or none is in your scope"));
  nlohmann::json out = nlohmann::json::array();
  for (const auto& each : *verdicts) {
    const auto why = each.valid ? std::string() : each.valid.error().str();
    if (options.json)
      out.push_back({{"node", each.node.str()},
                     {"valid", each.valid.has_value()},
                     {"why", why},
                     {"override_by", each.override_by}});
    else
      std::cout << fmt::format("{}: {}{}\n", each.node.str(), each.valid ? "valid" : "VOID: " + why,
                               each.override_by.empty()
                                   ? ""
                                   : fmt::format("; an OVERRIDE by {}, its gates have not passed",
                                                 printable(each.override_by)));
  }
  if (options.json) std::cout << jsonText(out, 2) << '\n';
  return std::all_of(verdicts->begin(), verdicts->end(),
                     [](const auto& each) { return each.valid.has_value(); })
             ? kOk
             : kFailed;
}

int certRevoke(const app::Options& options, const NodeReasonArgs& args) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto revoked = (*site)->records().revokeCertificate(args.node, args.reason);
  if (!revoked) return report(revoked.error());
  const auto list = revoked->list.string();
  if (options.json) {
    std::cout << jsonText(nlohmann::json{
                     {"node", args.node}, {"revoked", revoked->had_certificate}, {"list", list}})
              << '\n';
    return kOk;
  }
  if (!revoked->had_certificate) {
    std::cout << fmt::format(
        "{0} has no certificate; the gates that it has passed until now count no more all the "
        "same. `muster apply --nodes {0}` validates it\n",
        args.node);
    return kOk;
  }
  std::cout << fmt::format(
      "{0}: revoked for all controllers of the store; `muster monitor` drains it, `muster apply "
      "--nodes {0}` validates it again. To carry: {1}{2}\n",
      args.node, list, (*site)->isEmbedded() ? "" : " on the server's host");
  return kOk;
}

int certExport(const app::Options& options, const CertExportArgs& args) {
  const auto written = app::exportCertificates(options, args.to);
  if (!written) return report(written.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"folder", written->folder.string()},
                                         {"certificates", written->certificates},
                                         {"list_number", written->list_number}})
              << '\n';
    return kOk;
  }
  std::cout << fmt::format(
      "{}: {} certificates, {}\n", written->folder.string(), written->certificates,
      fmt::format("revocations {} in {}", written->list_number, validate::Revocations::kFile));
  return kOk;
}

int certOverride(const app::Options& options, const app::CertificateOverride& request) {
  const auto site = orderedSite(options);
  if (!site) return report(site.error());
  const auto until = (*site)->records().overrideCertificate(request);
  if (!until) return report(until.error());
  if (options.json) {
    std::cout << jsonText(nlohmann::json{{"node", request.node}, {"until", toString(*until)}})
              << '\n';
    return kOk;
  }
  std::cout << fmt::format("{0} may join until {1}; `muster apply --nodes {0}` lets it join\n",
                           request.node, toString(*until));
  return kOk;
}

}  // namespace muster::cli
