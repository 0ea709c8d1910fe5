// SPDX-License-Identifier: Apache-2.0
// An authority of clients as a site has one: openssl's own `ca`, in a folder, with a list of what
// it has revoked.
#pragma once

#include "base/io/process.h"
#include "tests/run_async.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace muster::test {

class ClientPki {
 public:
  /// `name`: of the authority, "/CN=…"
  explicit ClientPki(const std::string& name = "Clients of hall-2") {
    std::ofstream(folder_ / "ca.conf") << kSettings;
    run("touch index.txt; echo 01 > serial; echo 01 > crlnumber; "
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key "
        "-out ca.crt -days 30 -subj '/CN=" +
        name +
        "' -addext basicConstraints=critical,CA:TRUE -addext "
        "keyUsage=critical,keyCertSign,cRLSign");
    renewList();
  }

  /// NAME.crt and NAME.key. `kind`: "client" or "server"; `more`: of `openssl ca`; `names`: of
  /// subjectAltName
  void issue(const std::string& name, const std::string& subject,
             const std::string& kind = "client", const std::string& more = "-days 10",
             const std::string& names = {}) {
    run("openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout " + name +
        ".key -out " + name + ".csr -subj '" + subject + "'" +
        (names.empty() ? "" : " -addext subjectAltName=" + names) +
        "; openssl ca -config ca.conf -batch -notext -extensions " + kind + " " + more + " -in " +
        name + ".csr -out " + name + ".crt");
  }
  /// From now on it is below `root`, which has NAME.crt of it.
  void putBelow(ClientPki& root, const std::string& name) {
    run("openssl req -new -key ca.key -subj '/CN=" + name + "' -out ca.csr; cp ca.csr '" +
        (root / (name + ".csr")).string() + "'");
    root.run("openssl ca -config ca.conf -batch -notext -extensions authority -days 20 -in " +
             name + ".csr -out " + name + ".crt");
    run("cp '" + (root / (name + ".crt")).string() + "' ca.crt");
    renewList();
  }
  void revoke(const std::string& name) {
    run("openssl ca -config ca.conf -revoke " + name + ".crt");
    renewList();
  }
  /// `life`: in words of `openssl ca`
  void renewList(const std::string& life = "-crldays 30") {
    run("openssl ca -config ca.conf -gencrl " + life + " -out new.crl; mv new.crl ca.crl");
  }
  /// In the folder.
  void run(const std::string& script) const {
    io::Command command{"bash", {"-ec", script}};
    command.working_dir = folder_.path();
    const auto ended = io::runBlocking(std::move(command));
    ASSERT_TRUE(ended && ended->code == 0) << script << (ended ? ended->err : ended.error().str());
  }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  static constexpr const char* kSettings = R"([ca]
default_ca = all
[all]
dir = .
database = index.txt
serial = serial
crlnumber = crlnumber
new_certs_dir = .
certificate = ca.crt
private_key = ca.key
default_md = sha256
default_crl_days = 30
unique_subject = no
copy_extensions = copy
policy = any
[any]
organizationName = optional
organizationalUnitName = optional
commonName = optional
[client]
basicConstraints = CA:FALSE
extendedKeyUsage = clientAuth
[server]
basicConstraints = CA:FALSE
extendedKeyUsage = serverAuth
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,cRLSign
[both]
basicConstraints = CA:FALSE
)";
  TempFolder folder_;
};

}  // namespace muster::test
