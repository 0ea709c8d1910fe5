// SPDX-License-Identifier: Apache-2.0
// Certificates and TLS of somebody who wants to be a node.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "tests/attack/honest_client.h"
#include "tests/attack/known_open.h"
#include "tests/attack/raw_connection.h"
#include "wire/messages.h"

namespace muster::attack {
namespace {

std::string pollOf(std::string_view boot, std::string_view mode = "disk") {
  return fmt::format(
      R"({{"mode":"{}","boot_id":"{}","agent_version":"0","probes":{{}},"reports":[],"session":"","sequence":1}})",
      mode, boot);
}

/// The status of a poll with this certificate; 0: TLS refused it.
int statusOfPoll(const TlsOffer& offer) {
  return askTls(site().address(), post("/agent/v1/poll", pollOf("attack")), offer).status;
}

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Request = std::unique_ptr<X509_REQ, decltype(&X509_REQ_free)>;

std::string pemOf(const auto& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
  write(memory.get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

/// A certificate request that asks for the name, and for more than is its due.
std::string requestOf(EVP_PKEY* key, const std::string& name, bool as_authority,
                      bool spoilt = false) {
  const Request request(X509_REQ_new(), X509_REQ_free);
  X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_REQ_set_pubkey(request.get(), key);
  if (as_authority) {
    STACK_OF(X509_EXTENSION)* extensions = sk_X509_EXTENSION_new_null();
    for (const auto& [what, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                                      {NID_key_usage, "keyCertSign,cRLSign"},
                                      {NID_subject_alt_name, "DNS:gpu004,IP:127.0.0.1"},
                                      {NID_ext_key_usage, "serverAuth"}})
      sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, what, value));
    X509_REQ_add_extensions(request.get(), extensions);
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  }
  X509_REQ_sign(request.get(), key, EVP_sha256());
  if (spoilt) {  // another name than was signed
    X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request.get()), "O", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>("x"), -1, -1, 0);
  }
  return pemOf([&](BIO* out) { PEM_write_bio_X509_REQ(out, request.get()); });
}

RawConnection::Heard enroll(int node, const std::string& csr) {
  return askTls(site().address(),
                post("/agent/v1/enrol",
                     wire::toJson(wire::EnrollRequest{site().arm(node), csr, macOf(node)})));
}

TEST(AttackTls, whoHasNoCertificateOfThisSiteIsNobody) {
  EXPECT_EQ(statusOfPoll({}), 403);
  test::TempFolder folder;
  const auto other = io::CertificateAuthority::loadOrCreate(
      folder / "ca", "attacked");  // the same name as the site's
  const auto mine = io::makeKeyAndRequest(nodeOf(2));
  const auto foreign = other->signClient(mine->csr_pem, nodeOf(2), std::chrono::hours(1));
  const int status = statusOfPoll({*foreign, mine->key_pem.reveal()});
  EXPECT_TRUE(status == 0 || status == 403) << status;
  const auto own = io::selfSigned(nodeOf(2), {"127.0.0.1"});
  const int self = statusOfPoll({own->certificate_pem, own->key_pem.reveal()});
  EXPECT_TRUE(self == 0 || self == 403) << self;
}

TEST(AttackTls, aServersCertificateIsNoNodes) {
  const auto server = site().ca().issueServer(nodeOf(2), {"127.0.0.1"}, std::chrono::hours(1));
  const int status = statusOfPoll({server->certificate_pem, server->key_pem.reveal()});
  EXPECT_TRUE(status == 0 || status == 403) << status;
}

TEST(AttackTls, anExpiredCertificateOpensNoPoll) {
  const auto mine = io::makeKeyAndRequest(nodeOf(2));
  const auto expired = site().ca().signClient(mine->csr_pem, nodeOf(2), std::chrono::hours(-1));
  if (!expired) return;  // it cannot even be made
  const int status = statusOfPoll({*expired, mine->key_pem.reveal()});
  EXPECT_TRUE(status == 0 || status == 403) << status;
}

TEST(AttackTls, aCertificateOfTheSiteForNoNodeIsRefused) {
  const auto mine = io::makeKeyAndRequest("intruder");
  const auto made = site().ca().signClient(mine->csr_pem, "intruder", std::chrono::hours(1));
  EXPECT_EQ(statusOfPoll({*made, mine->key_pem.reveal()}), 403);
  // Of a node, by the site, but with a key that the node never enrolled.
  const auto second = io::makeKeyAndRequest(nodeOf(1));
  const auto stolen = site().ca().signClient(second->csr_pem, nodeOf(1), std::chrono::hours(1));
  const auto heard = askTls(site().address(), post("/agent/v1/poll", pollOf("attack", "ram")),
                            {*stolen, second->key_pem.reveal()});
  EXPECT_EQ(heard.status, 403) << "as the node's RAM OS, whose only key is the one that enrolled";
}

TEST(AttackTls, aNodesCertificateSignsNoOther) {
  const auto& own = honest().identity();
  const std::unique_ptr<BIO, decltype(&BIO_free)> chain(
      BIO_new_mem_buf(own.certificate_pem.data(), -1), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> issuer(
      PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr), X509_free);
  const auto secret = own.key_pem.reveal();
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new_mem_buf(secret.data(), -1),
                                                         BIO_free);
  const Key issuing(PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr),
                    EVP_PKEY_free);
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 7);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>("gpu003"), -1, -1, 0);
  X509_set_issuer_name(made.get(), X509_get_subject_name(issuer.get()));
  X509_set_pubkey(made.get(), key.get());
  X509_sign(made.get(), issuing.get(), EVP_sha256());
  const auto leaf = pemOf([&](BIO* out) { PEM_write_bio_X509(out, made.get()); });
  const auto key_pem = pemOf([&](BIO* out) {
    PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  const int status = statusOfPoll({leaf + own.certificate_pem, key_pem});
  EXPECT_TRUE(status == 0 || status == 403) << status;
}

TEST(AttackTls, oldProtocolsAreNotSpoken) {
  for (const int version : {TLS1_VERSION, TLS1_1_VERSION}) {
    RawConnection connection(site().address(), kTlsPort);
    EXPECT_FALSE(connection.startTls({"", "", version, version})) << version;
  }
}

TEST(AttackTls, handshakesThatAreRubbishEndSoon) {
  for (const auto& bytes : {std::string(4'096, '\x16'),
                            std::string("\x16\x03\x01\xff\xff", 5) + std::string(70'000, 'a'),
                            std::string("\x16\x03\x01\x00\x05\x01\xff\xff\xff\x03", 10),
                            std::string("\x15\x03\x03\x00\x02\x02\x28", 7),
                            std::string("\x80\x2e\x01\x03\x01", 5) + std::string(60, 'x')}) {
    RawConnection connection(site().address(), kTlsPort);
    connection.say(bytes);
    connection.endSending();
    EXPECT_TRUE(connection.hear(5s, false).closed);
  }
}

TEST(AttackTls, renegotiationIsRefused) {
  // The library's own client does not offer it in 1.3; in 1.2 the server must not follow.
  RawConnection connection(site().address(), kTlsPort);
  EXPECT_TRUE(connection.startTls({"", "", TLS1_2_VERSION, TLS1_2_VERSION})) << "1.2 is spoken";
}

// ---- certificate requests

TEST(AttackTls, aRequestGetsNothingButItsNodesName) {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const auto heard = enroll(2, requestOf(key.get(), "gpu004", true));
  if (heard.status != 200) return;  // refused as a whole is as right
  const auto answer =
      wire::parseEnrollResponse(heard.bytes.substr(heard.bytes.find("\r\n\r\n") + 4));
  ASSERT_TRUE(answer) << heard.bytes;
  EXPECT_EQ(answer->node, "gpu002");
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(answer->certificate_pem.data(), -1), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> made(
      PEM_read_bio_X509(memory.get(), nullptr, nullptr, nullptr), X509_free);
  ASSERT_TRUE(made);
  EXPECT_EQ(io::describeCertificate(answer->certificate_pem)->common_name, "gpu002");
  EXPECT_EQ(X509_check_ca(made.get()), 0);
  EXPECT_NE(X509_check_host(made.get(), "gpu004", 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr),
            1);
  EXPECT_EQ(X509_get_extended_key_usage(made.get()) & XKU_SSL_SERVER, 0u);
}

TEST(AttackTls, requestsThatProveNoKeyAreRefused) {
  const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  for (const auto& csr :
       {requestOf(key.get(), "gpu003", false, true),
        std::string(
            "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"),
        std::string(60'000, 'A'), std::string()}) {
    const auto heard = enroll(3, csr);
    EXPECT_EQ(heard.status / 100, 4) << heard.bytes;
  }
}

TEST(AttackTls, weakKeysGetNoCertificate) {
  const Key weak(EVP_RSA_gen(1024), EVP_PKEY_free);
  const auto heard = enroll(4, requestOf(weak.get(), "gpu004", false));
  expectRefused("tls.weak-rsa-request", heard.status / 100 == 4,
                fmt::format("RSA 1024: status {}", heard.status));
}

}  // namespace
}  // namespace muster::attack
