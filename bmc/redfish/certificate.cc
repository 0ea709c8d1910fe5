// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/certificate.h"

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMaxCertificates = 16;
constexpr auto kRequestLimit = 120s;  ///< a BMC makes an RSA key
constexpr auto kHpeRequestLimit = 10min;
constexpr auto kHpeRequestPoll = 5s;
constexpr int kRsaBits = 3072;

/// What a BMC insists on; whoever signs decides what stands in the certificate.
Json subjectFields(const CertificateSubject& subject, const char* organization, const char* unit) {
  Json body = Json::object();
  body["CommonName"] = subject.common_name;
  for (const char* field : {organization, unit}) body[field] = "muster";
  for (const char* field : {"City", "State"}) body[field] = "-";  // DSP0266 requires them
  body["Country"] = "XX";
  return body;
}

/// Of the standard: the service makes the request, and replaces the certificate at its URI.
class ServiceCertificate : public CertificateStrategy {
 public:
  struct Uris {
    std::string collection, certificate;  ///< of the web server
    std::string request, replace;         ///< targets of the actions; "": not offered
  };
  ServiceCertificate(RedfishResources& resources, Uris uris)
      : resources_(resources), uris_(std::move(uris)) {}

  bool makesRequests() const override { return !uris_.request.empty(); }
  bool takesCertificates() const override {
    return !uris_.replace.empty() && !uris_.certificate.empty();
  }
  Async<std::string> request(CertificateSubject subject) override {
    Json body = subjectFields(subject, "Organization", "OrganizationalUnit");
    body["AlternativeNames"] = subject.names;
    body["CertificateCollection"]["@odata.id"] = uris_.collection;
    CO_TRY(reply,
           co_await resources_.session().post(uris_.request, std::move(body), kRequestLimit));
    co_return textAt(reply.body, "CSRString");
  }
  Async<RedfishReply> install(std::string pem) override {
    Json body = Json::object();
    body["CertificateString"] = std::move(pem);
    body["CertificateType"] = "PEM";
    body["CertificateUri"]["@odata.id"] = uris_.certificate;
    return resources_.session().postAny(uris_.replace, std::move(body));
  }

 protected:
  RedfishResources& resources_;
  Uris uris_;
};

/// The certificate itself makes the request, the service replaces it.
class RekeyedCertificate final : public ServiceCertificate {
 public:
  /// `info`: the ActionInfo of Certificate.Rekey; "": it has none.
  RekeyedCertificate(RedfishResources& resources, Uris uris, std::string info)
      : ServiceCertificate(resources, std::move(uris)), info_(std::move(info)) {}

  Async<std::string> request(CertificateSubject) override {
    Json body = Json::object();
    if (!info_.empty()) {
      CO_TRY(info, co_await resources_.session().get(info_));
      const auto* parameters = find(info.body, "Parameters");
      for (const auto& each : parameters && parameters->is_array() ? *parameters : Json::array()) {
        const auto name = textAt(each, "Name");
        if (name == "KeyPairAlgorithm") body[name] = "TPM_ALG_RSA";
        if (name == "KeyBitLength") body[name] = kRsaBits;
      }
    }
    CO_TRY(reply,
           co_await resources_.session().post(uris_.request, std::move(body), kRequestLimit));
    co_return textAt(reply.body, "CSRString");
  }

 private:
  std::string info_;
};

/// iLO has a resource of its own below its SecurityService. Source: capture of an iLO 5,
/// redfishdocs "iLO HTTPS certificate"
class HpeHttpsCertificate final : public CertificateStrategy {
 public:
  HpeHttpsCertificate(RedfishResources& resources, std::string certificate, std::string request,
                      std::string import)
      : resources_(resources),
        certificate_(std::move(certificate)),
        request_(std::move(request)),
        import_(std::move(import)) {}

  bool makesRequests() const override { return !request_.empty(); }
  bool takesCertificates() const override { return !import_.empty() && !certificate_.empty(); }
  /// iLO takes its time and shows the request when it is there; what it showed before is of an
  /// earlier key.
  Async<std::string> request(CertificateSubject subject) override {
    CO_TRY(old, co_await resources_.session().get(certificate_));
    CO_TRY_OK(co_await resources_.session().post(
        request_, subjectFields(subject, "OrgName", "OrgUnit"), kRequestLimit));
    const auto until = resources_.clock().steady() + kHpeRequestLimit;
    while (true) {
      CO_TRY(now, co_await resources_.session().get(certificate_));
      auto request = textAt(now.body, "CertificateSigningRequest");
      if (!request.empty() && request != textAt(old.body, "CertificateSigningRequest"))
        co_return request;
      if (resources_.clock().steady() >= until)
        co_return fail(ErrorCode::Timeout,
                       fmt::format("the BMC at {} shows no request {} min after it was ordered",
                                   resources_.address(), kHpeRequestLimit.count()));
      co_await resources_.clock().sleep(kHpeRequestPoll);
    }
  }
  Async<RedfishReply> install(std::string pem) override {
    Json body = Json::object();
    body["Certificate"] = std::move(pem);
    return resources_.session().postAny(import_, std::move(body));
  }

 private:
  RedfishResources& resources_;
  std::string certificate_, request_, import_;
};

/// Null: this is none.
Async<std::unique_ptr<CertificateStrategy>> findHpeCertificate(RedfishResources& resources,
                                                               Json manager) {
  std::unique_ptr<CertificateStrategy> found;
  const auto security = linkAt(manager, "Oem/Hpe/Links/SecurityService");
  if (security.empty()) co_return found;
  CO_TRY(service, co_await resources.session().get(security));
  const auto uri = linkAt(service.body, "Links/HttpsCert");
  if (uri.empty()) co_return found;
  CO_TRY(certificate, co_await resources.session().get(uri));
  found = std::make_unique<HpeHttpsCertificate>(
      resources, uri, linkAt(certificate.body, "Actions/#HpeHttpsCert.GenerateCSR/target"),
      linkAt(certificate.body, "Actions/#HpeHttpsCert.ImportCertificate/target"));
  co_return found;
}

}  // namespace

/// Of the web server: the first of the manager's HTTPS certificates. Where the CertificateService
/// makes no request, the certificate itself may.
Async<std::unique_ptr<CertificateStrategy>> findCertificate(RedfishResources& resources) {
  CO_TRY(at, co_await resources.uris());
  CO_TRY(manager, co_await resources.session().get(at.manager));
  CO_TRY(found, co_await findHpeCertificate(resources, manager.body));
  if (found) co_return std::move(found);
  CO_TRY(root, co_await resources.session().get("/redfish/v1/"));
  const auto service_path = linkAt(root.body, "CertificateService");
  if (service_path.empty())
    co_return fail(ErrorCode::NotFound, "the BMC at " + resources.address() +
                                            " has no CertificateService; install its certificate "
                                            "by its web page, then: muster bmc trust reset");
  CO_TRY(service, co_await resources.session().get(service_path));
  auto protocol_path = linkAt(manager.body, "NetworkProtocol");
  if (protocol_path.empty()) protocol_path = at.manager + "/NetworkProtocol";
  CO_TRY(protocol, co_await resources.session().get(protocol_path));
  ServiceCertificate::Uris uris;
  uris.collection = linkAt(protocol.body, "HTTPS/Certificates");
  if (uris.collection.empty()) uris.collection = protocol_path + "/HTTPS/Certificates";
  uris.request = linkAt(service.body, "Actions/#CertificateService.GenerateCSR/target");
  uris.replace = linkAt(service.body, "Actions/#CertificateService.ReplaceCertificate/target");
  CO_TRY(certificates, co_await resources.members(uris.collection, kMaxCertificates));
  if (!certificates.found.empty()) {
    const auto& own = certificates.found.front();
    uris.certificate = own.uri;
    if (const auto rekey = linkAt(own.json, "Actions/#Certificate.Rekey/target");
        uris.request.empty() && !rekey.empty()) {
      uris.request = rekey;
      found = std::make_unique<RekeyedCertificate>(
          resources, std::move(uris),
          linkAt(own.json, "Actions/#Certificate.Rekey/@Redfish.ActionInfo"));
      co_return std::move(found);
    }
  }
  found = std::make_unique<ServiceCertificate>(resources, std::move(uris));
  co_return std::move(found);
}

}  // namespace muster::bmc
