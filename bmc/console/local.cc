// SPDX-License-Identifier: Apache-2.0
// Consoles on this host: a socket or terminal device that is named, or that of a libvirt domain.
#include "bmc/console/source.h"

#include <fmt/format.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <regex>

namespace muster::bmc {
namespace {

class SocketConsole final : public ConsoleSource {
 public:
  explicit SocketConsole(std::filesystem::path path) : path_(std::move(path)) {}
  std::string name() const override { return path_.string(); }
  Async<std::unique_ptr<io::Dialogue>> open() override {
    auto executor = co_await asio::this_coro::executor;
    co_return io::dialDialogue(executor, path_);
  }

 private:
  std::filesystem::path path_;
};

/// Blocking. Errors: NotFound (no such domain), Unavailable (libvirt, or the domain is off)
Result<std::filesystem::path> findSerial(const std::string& domain, const std::string& uri) {
  const auto why = [&](const char* what) {
    const auto* error = virGetLastError();
    return fail(
        error && error->code == VIR_ERR_NO_DOMAIN ? ErrorCode::NotFound : ErrorCode::Unavailable,
        fmt::format("{} {}: {}", what, domain,
                    error && error->message ? error->message : "libvirt gives no reason"));
  };
  const std::unique_ptr<virConnect, int (*)(virConnectPtr)> connection(
      virConnectOpen(uri.empty() ? nullptr : uri.c_str()), virConnectClose);
  if (!connection) return why("asking libvirt for");
  const std::unique_ptr<virDomain, int (*)(virDomainPtr)> found(
      virDomainLookupByName(connection.get(), domain.c_str()), virDomainFree);
  if (!found) return why("finding domain");
  const std::unique_ptr<char, void (*)(void*)> xml(virDomainGetXMLDesc(found.get(), 0), std::free);
  if (!xml) return why("reading domain");
  auto serial = serialOfDomain(xml.get());
  if (!serial) serial.error().within("domain " + domain);
  return serial;
}

class DomainConsole final : public ConsoleSource {
 public:
  DomainConsole(std::string domain, std::string uri, Workers& workers)
      : domain_(std::move(domain)), uri_(std::move(uri)), workers_(workers) {}
  std::string name() const override { return "the serial port of domain " + domain_; }
  Async<std::unique_ptr<io::Dialogue>> open() override {
    CO_TRY(path, co_await offload<Result<std::filesystem::path>>(
                     workers_, [domain = domain_, uri = uri_] { return findSerial(domain, uri); }));
    auto executor = co_await asio::this_coro::executor;
    co_return io::dialDialogue(executor, path);
  }

 private:
  std::string domain_, uri_;
  Workers& workers_;
};

class NoConsole final : public ConsoleSource {
 public:
  explicit NoConsole(std::string why) : why_(std::move(why)) {}
  std::string name() const override { return "no console"; }
  Async<std::unique_ptr<io::Dialogue>> open() override {
    co_return fail(ErrorCode::NotFound, why_);
  }

 private:
  std::string why_;
};

}  // namespace

Result<std::filesystem::path> serialOfDomain(const std::string& domain_xml) {
  const auto begin = domain_xml.find("<serial type=");
  const auto end = begin == std::string::npos ? begin : domain_xml.find("</serial>", begin);
  if (end == std::string::npos) return fail(ErrorCode::NotFound, "it has no serial port");
  const auto serial = domain_xml.substr(begin, end - begin);
  static const std::regex source(R"re(<source\b[^>]{0,512}\bpath=['"]([^'"]{1,1024})['"])re");
  std::smatch found;
  if (serial.find("type='tcp'") == std::string::npos && std::regex_search(serial, found, source))
    return std::filesystem::path(found[1].str());
  return fail(ErrorCode::NotFound,
              "its serial port is neither a terminal device nor a socket, or the domain is off");
}

std::unique_ptr<ConsoleSource> makeSocketConsole(std::filesystem::path path) {
  return std::make_unique<SocketConsole>(std::move(path));
}

std::unique_ptr<ConsoleSource> makeDomainConsole(std::string domain, std::string uri,
                                                 Workers& workers) {
  return std::make_unique<DomainConsole>(std::move(domain), std::move(uri), workers);
}

std::unique_ptr<ConsoleSource> makeNoConsole(std::string why) {
  return std::make_unique<NoConsole>(std::move(why));
}

}  // namespace muster::bmc
