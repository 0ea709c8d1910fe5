// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/trust_service.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "lab/vbmc/resource_parts.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

namespace muster::lab::vbmc {

namespace {

/// Whether the first certificate is for this key.
bool fits(const std::string& certificate_pem, const Secret& key_pem) {
  const auto open = [](const std::string& text) {
    return std::unique_ptr<BIO, decltype(&BIO_free_all)>(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free_all);
  };
  const auto certificate_text = open(certificate_pem), key_text = open(key_pem.reveal());
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr), X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  return certificate && key && X509_check_private_key(certificate.get(), key.get()) == 1;
}

}  // namespace

std::optional<nlohmann::json> TrustService::resource(const std::string& path) const {
  const auto protocol = kManager + "/NetworkProtocol";
  const auto way = bmc_.options.vendor_profile->certificates;
  const bool by_vendor = way == CertificateMethod::HpeHttpsCert;
  if (by_vendor && path != protocol) return hpeResource(path);
  if (path == kCertificateService) {
    json result = head(path, "CertificateService.v1_0_3.CertificateService", "Certificate Service");
    for (const char* action : {"GenerateCSR", "ReplaceCertificate"})
      if (way == CertificateMethod::Service || std::string_view(action) != "GenerateCSR")
        result["Actions"][fmt::format("#CertificateService.{}", action)]["target"] =
            fmt::format("{}/Actions/CertificateService.{}", path, action);
    return result;
  }
  if (path == protocol) {
    json result =
        head(path, "ManagerNetworkProtocol.v1_5_0.ManagerNetworkProtocol", "Network Protocol");
    result["HTTPS"] = {{"ProtocolEnabled", true}, {"Port", 443}};
    if (!by_vendor) result["HTTPS"]["Certificates"] = linkTo(protocol + "/HTTPS/Certificates");
    return result;
  }
  if (path == protocol + "/HTTPS/Certificates")
    return collection(path, "CertificateCollection", {"1"});
  if (way == CertificateMethod::Rekey && path == kHttpsCertificate + "/RekeyActionInfo") {
    json result = head(path, "ActionInfo.v1_1_2.ActionInfo", "Rekey Action Info");
    result["Parameters"] = json::array({{{"Name", "KeyPairAlgorithm"},
                                         {"Required", true},
                                         {"DataType", "String"},
                                         {"AllowableValues", {"TPM_ALG_RSA"}}},
                                        {{"Name", "KeyBitLength"},
                                         {"Required", false},
                                         {"DataType", "Number"},
                                         {"MinimumValue", 1024},
                                         {"MaximumValue", 4096}}});
    return result;
  }
  if (path == kHttpsCertificate) {
    json result = head(path, "Certificate.v1_2_0.Certificate", "HTTPS Certificate");
    if (!certificate_pem_.empty()) {
      result["CertificateString"] = certificate_pem_;
      result["CertificateType"] = "PEM";
    }
    if (way == CertificateMethod::Rekey)
      result["Actions"]["#Certificate.Rekey"] = {
          {"target", path + "/Actions/Certificate.Rekey"},
          {"@Redfish.ActionInfo", path + "/RekeyActionInfo"}};
    return result;
  }
  return std::nullopt;
}

/// iLO: a resource of its own, which shows the request some time after it was ordered.
std::optional<nlohmann::json> TrustService::hpeResource(const std::string& path) const {
  if (path == kHpeSecurity) {
    json result = head(path, "HpeSecurityService.v2_3_1.HpeSecurityService", "Security Service");
    result["Links"]["HttpsCert"] = linkTo(kHpeHttpsCert);
    return result;
  }
  if (path != kHpeHttpsCert) return std::nullopt;
  json result = head(path, "HpeHttpsCert.v2_0_0.HpeHttpsCert", "HTTPS Certificate");
  for (const char* action : {"GenerateCSR", "ImportCertificate"})
    result["Actions"][fmt::format("#HpeHttpsCert.{}", action)]["target"] =
        fmt::format("{}/Actions/HpeHttpsCert.{}", path, action);
  result["CertificateSigningRequest"] = nullptr;
  if (!hpe_request_.empty() && hpe_request_reads_-- <= 0)
    result["CertificateSigningRequest"] = hpe_request_;
  return result;
}

std::optional<io::ServerResponse> TrustService::post(const io::ServerRequest& request,
                                                     const std::string& path) {
  const auto way = bmc_.options.vendor_profile->certificates;
  if (way == CertificateMethod::HpeHttpsCert) {
    if (path == kHpeHttpsCert + "/Actions/HpeHttpsCert.GenerateCSR")
      return generateHpeRequest(request);
    if (path == kHpeHttpsCert + "/Actions/HpeHttpsCert.ImportCertificate")
      return replaceCertificate(request, "Certificate");
    return std::nullopt;
  }
  if (way == CertificateMethod::Service &&
      path == kCertificateService + "/Actions/CertificateService.GenerateCSR")
    return generateRequest(request);
  if (way == CertificateMethod::Rekey && path == kHttpsCertificate + "/Actions/Certificate.Rekey")
    return rekey(request);
  if (path == kCertificateService + "/Actions/CertificateService.ReplaceCertificate")
    return replaceCertificate(request, "CertificateString");
  return std::nullopt;
}

Result<std::string> TrustService::makeRequest(const std::string& common_name) {
  TRY(made, io::makeKeyAndRequest(common_name));
  requested_key_ = made.key_pem;
  return made.csr_pem;
}

io::ServerResponse TrustService::rekey(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  if (!body.is_object() || body.value("KeyPairAlgorithm", "") != "TPM_ALG_RSA")
    return redfishError(400, "Base.1.8.ActionParameterMissing", "KeyPairAlgorithm is missing.");
  const auto made = makeRequest(bmc_.options.identity.node + "-bmc");
  if (!made) return redfishError(500, "Base.1.8.InternalError", made.error().text());
  return io::ServerResponse::json(
      200, jsonText(json{{"CSRString", *made}, {"Certificate", linkTo(kHttpsCertificate)}}));
}

io::ServerResponse TrustService::generateHpeRequest(const io::ServerRequest& request) {
  constexpr int kReadsUntilShown = 3;
  const auto body = jsonOrNone(request.body, kRequestJson);
  for (const char* field : {"CommonName", "OrgName", "OrgUnit", "City", "State", "Country"})
    if (!body.is_object() || body.value(field, "").empty())
      return redfishError(400, "Base.1.8.ActionParameterMissing",
                          fmt::format("{} is missing.", field));
  const auto made = makeRequest(body["CommonName"].get<std::string>());
  if (!made) return redfishError(500, "Base.1.8.InternalError", made.error().text());
  hpe_request_ = *made;
  hpe_request_reads_ = kReadsUntilShown;
  return redfishError(200, "iLO.2.14.GeneratingCertificate",
                      "The request is being made; it takes up to ten minutes.");
}

io::ServerResponse TrustService::generateRequest(const io::ServerRequest& request) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  for (const char* field :
       {"CommonName", "Organization", "OrganizationalUnit", "City", "State", "Country"})
    if (!body.is_object() || body.value(field, "").empty())
      return redfishError(400, "Base.1.8.ActionParameterMissing",
                          fmt::format("{} is missing.", field));
  const auto made = makeRequest(body["CommonName"].get<std::string>());
  if (!made) return redfishError(500, "Base.1.8.InternalError", made.error().text());
  return io::ServerResponse::json(
      200, jsonText(json{{"CSRString", *made},
                         {"CertificateCollection",
                          linkTo(kManager + "/NetworkProtocol/HTTPS/Certificates")}}));
}

io::ServerResponse TrustService::replaceCertificate(const io::ServerRequest& request,
                                                    const std::string& field) {
  const auto body = jsonOrNone(request.body, kRequestJson);
  const auto pem = body.is_object() ? body.value(field, "") : std::string();
  if (!fits(pem, requested_key_))
    return redfishError(400, "Base.1.8.ActionParameterValueFormatError",
                        "The certificate is not for the key of the last request.");
  certificate_pem_ = pem;
  bmc_.note("a new certificate was installed");
  bmc_.options.new_identity({requested_key_, pem});
  bmc_.save();
  return io::ServerResponse::text(204, "");
}

}  // namespace muster::lab::vbmc
