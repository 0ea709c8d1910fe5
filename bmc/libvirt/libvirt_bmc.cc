// SPDX-License-Identifier: Apache-2.0
#include "bmc/libvirt/libvirt_bmc.h"

#include "base/limits.h"

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <regex>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kStateLimit = 30s;
constexpr auto kGracefulLimit = 180s;
constexpr auto kStatePoll = 500ms;

// The pending override is kept in the domain's own metadata, so that it survives muster.
constexpr const char* kMetaUri = "urn:muster:boot-once";
constexpr const char* kMetaPrefix = "muster";

template <class T, int (*Free)(T*)>
struct Freed {
  void operator()(T* handle) const { Free(handle); }
};
using Connection = std::unique_ptr<virConnect, Freed<virConnect, virConnectClose>>;
using Domain = std::unique_ptr<virDomain, Freed<virDomain, virDomainFree>>;

Error lastError(const std::string& what) {
  const virError* error = virGetLastError();
  const int number = error ? error->code : 0;
  const std::string text =
      what + ": " + (error && error->message ? error->message : "libvirt gives no reason");
  switch (number) {
    case VIR_ERR_NO_DOMAIN:
      return Error(ErrorCode::NotFound, text);
    case VIR_ERR_OPERATION_DENIED:
    case VIR_ERR_AUTH_FAILED:
      return Error(ErrorCode::Denied, text);
    case VIR_ERR_OPERATION_INVALID:
      return Error(ErrorCode::Conflict, text);
    case VIR_ERR_INVALID_ARG:
    case VIR_ERR_XML_ERROR:
      return Error(ErrorCode::InvalidInput, text);
    default:
      return Error(ErrorCode::Unavailable, text);
  }
}

std::string take(char* text) {
  std::string out = text ? text : "";
  std::free(text);
  return out;
}

PowerState powerOf(virDomainPtr domain) {
  int state = VIR_DOMAIN_NOSTATE;
  if (virDomainGetState(domain, &state, nullptr, 0) < 0) return PowerState::Unknown;
  switch (state) {
    case VIR_DOMAIN_RUNNING:
    case VIR_DOMAIN_BLOCKED:
    case VIR_DOMAIN_PAUSED:
      return PowerState::On;
    case VIR_DOMAIN_SHUTOFF:
    case VIR_DOMAIN_CRASHED:
      return PowerState::Off;
    default:
      return PowerState::Unknown;
  }
}

struct TargetName {
  BootTarget target;
  std::string_view name;    ///< in the metadata
  std::string_view device;  ///< <boot dev='…'/>
};
constexpr std::array<TargetName, 3> kTargets = {{{BootTarget::Pxe, "pxe", "network"},
                                                 {BootTarget::Disk, "disk", "hd"},
                                                 {BootTarget::UefiHttp, "uefi-http", "network"}}};

BootTarget pendingOverride(virDomainPtr domain) {
  const std::string xml = take(virDomainGetMetadata(domain, VIR_DOMAIN_METADATA_ELEMENT, kMetaUri,
                                                    VIR_DOMAIN_AFFECT_CONFIG));
  virResetLastError();  // no metadata is no error
  for (const auto& known : kTargets) {
    if (xml.find("'" + std::string(known.name) + "'") != std::string::npos ||
        xml.find("\"" + std::string(known.name) + "\"") != std::string::npos)
      return known.target;
  }
  return BootTarget::None;
}

Result<void> setPending(virDomainPtr domain, BootTarget target) {
  std::string element;
  for (const auto& known : kTargets) {
    if (known.target == target) element = "<boot once='" + std::string(known.name) + "'/>";
  }
  if (element.empty() && target != BootTarget::None)
    return fail(ErrorCode::NotFound, "a virtual machine of muster has no virtual CD");
  const char* text = element.empty() ? nullptr : element.c_str();
  if (virDomainSetMetadata(domain, VIR_DOMAIN_METADATA_ELEMENT, text, text ? kMetaPrefix : nullptr,
                           kMetaUri, VIR_DOMAIN_AFFECT_CONFIG) == 0)
    return {};
  const virError* error = virGetLastError();
  if (!text && error && error->code == VIR_ERR_NO_DOMAIN_METADATA) return {};
  return fail(lastError("setting the boot override"));
}

/// The domain's XML with this device first among <os><boot dev=…>.
Result<std::string> bootFirst(const std::string& xml, std::string_view device) {
  const auto end = xml.find("</os>");
  const auto begin = xml.find("<os");
  if (begin == std::string::npos || end == std::string::npos)
    return fail(ErrorCode::InvalidInput, "the domain has no <os> element");
  if (xml.find("<boot order=") != std::string::npos) {
    return fail(ErrorCode::InvalidInput,
                "the domain orders its devices by <boot order=…>; muster overrides only <os><boot "
                "dev=…/></os>");
  }
  // std::regex calls itself once a character: every repetition in this file has a bound
  static const std::regex boot_device("\\s{0,64}<boot dev=['\"]([a-z]{1,16})['\"]/>");
  std::string os = xml.substr(begin, end - begin);
  std::vector<std::string> devices{std::string(device)};
  for (std::sregex_iterator it(os.begin(), os.end(), boot_device), last; it != last; ++it) {
    if ((*it)[1].str() != device) devices.push_back((*it)[1].str());
  }
  os = std::regex_replace(os, boot_device, "");
  for (const auto& name : devices) os += "<boot dev='" + name + "'/>";
  return xml.substr(0, begin) + os + xml.substr(end);
}

class LibvirtBmc final : public Bmc {
 public:
  LibvirtBmc(std::string domain, std::string uri, Clock& clock, Workers& workers)
      : host_(std::make_shared<Host>(std::move(domain), std::move(uri))),
        clock_(clock),
        workers_(workers) {}

  std::string address() const override { return "libvirt:" + host_->name; }

  Async<SystemInfo> system() override {
    return blocking<SystemInfo>([](Host& host) { return host.system(); });
  }

  Async<void> power(PowerAction action) override {
    CO_TRY_OK(co_await blocking<void>([action](Host& host) { return host.power(action); }));
    const auto wanted = action == PowerAction::On || action == PowerAction::ForceRestart
                            ? PowerState::On
                            : PowerState::Off;
    const auto until =
        clock_.steady() +
        limitHere(clock_, action == PowerAction::GracefulShutdown ? kGracefulLimit : kStateLimit);
    while (true) {
      CO_TRY(now, co_await blocking<PowerState>([](Host& host) { return host.state(); }));
      if (now == wanted) co_return Result<void>();
      if (clock_.steady() >= until) break;
      co_await clock_.sleep(kStatePoll);
    }
    co_return fail(ErrorCode::Timeout, address() + " did not reach the wanted power state");
  }

  Async<void> bootOnce(BootTarget target) override {
    return blocking<void>([target](Host& host) { return host.bootOnce(target); });
  }
  Async<std::vector<FirmwareItem>> firmware() override { co_return std::vector<FirmwareItem>(); }
  Async<std::string> startUpdate(FirmwareUpdate update) override {
    co_return fail(ErrorCode::InvalidInput,
                   address() + " is a virtual machine without firmware to update; take " +
                       update.component + " out of its baseline");
  }
  Async<TaskStatus> task(std::string uri) override {
    co_return fail(ErrorCode::NotFound, address() + " has no task " + uri);
  }
  Async<TaskList> tasks() override { co_return TaskList(); }
  Async<void> resetBmc() override {
    co_return fail(ErrorCode::InvalidInput, address() + " has no BMC of its own to reset");
  }

 private:
  /// Everything that blocks; used on worker threads, one call at a time.
  struct Host {
    Host(std::string domain, std::string connect_uri)
        : name(std::move(domain)), uri(std::move(connect_uri)) {}

    Result<Domain> find() {
      if (connection && virConnectIsAlive(connection.get()) != 1) connection.reset();
      if (!connection) connection.reset(virConnectOpen(uri.empty() ? nullptr : uri.c_str()));
      if (!connection) return fail(lastError("connecting to libvirt"));
      Domain domain(virDomainLookupByName(connection.get(), name.c_str()));
      if (!domain) return fail(lastError("domain " + name));
      return domain;
    }

    Result<PowerState> state() {
      TRY(domain, find());
      return powerOf(domain.get());
    }

    Result<SystemInfo> system() {
      TRY(domain, find());
      SystemInfo info;
      info.power = powerOf(domain.get());
      info.manufacturer = "libvirt";
      info.boot_override = pendingOverride(domain.get());
      std::array<char, VIR_UUID_STRING_BUFLEN> uuid{};
      if (virDomainGetUUIDString(domain.get(), uuid.data()) == 0) info.uuid = uuid.data();
      const std::string xml = take(virDomainGetXMLDesc(domain.get(), 0));
      if (xml.empty()) return fail(lastError("reading " + name));
      static const std::regex mac("<mac address=['\"]([0-9a-fA-F:]{1,17})['\"]");
      for (std::sregex_iterator it(xml.begin(), xml.end(), mac), last; it != last; ++it)
        info.macs.push_back((*it)[1].str());
      std::smatch found;
      static const std::regex serial("<entry name=['\"]serial['\"]>([^<]{1,256})</entry>");
      if (std::regex_search(xml, found, serial)) info.serial = found[1].str();
      static const std::regex product("<entry name=['\"]product['\"]>([^<]{1,256})</entry>");
      if (std::regex_search(xml, found, product)) info.model = found[1].str();
      return info;
    }

    Result<void> power(PowerAction action) {
      TRY(domain, find());
      const bool on = powerOf(domain.get()) == PowerState::On;
      switch (action) {
        case PowerAction::On:
          return on ? Result<void>() : start(domain.get());
        case PowerAction::GracefulShutdown:
          if (on && virDomainShutdown(domain.get()) < 0)
            return fail(lastError("shutting down " + name));
          return {};
        case PowerAction::ForceOff:
        case PowerAction::ForceRestart:
          if (on && virDomainDestroy(domain.get()) < 0)
            return fail(lastError("switching off " + name));
          return action == PowerAction::ForceOff ? Result<void>() : start(domain.get());
      }
      return {};
    }

    Result<void> bootOnce(BootTarget target) {
      TRY(domain, find());
      return setPending(domain.get(), target);
    }

    /// A pending override boots the changed definition; the lasting one is put back while the
    /// domain runs.
    Result<void> start(virDomainPtr domain) {
      const BootTarget target = pendingOverride(domain);
      if (target == BootTarget::None) return create(domain);
      TRY_OK(setPending(domain, BootTarget::None));
      const std::string lasting =
          take(virDomainGetXMLDesc(domain, VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE));
      std::string_view device;
      for (const auto& known : kTargets) {
        if (known.target == target) device = known.device;
      }
      TRY(once, bootFirst(lasting, device));
      Domain changed(virDomainDefineXML(connection.get(), once.c_str()));
      if (!changed) return fail(lastError("setting the boot device of " + name));
      auto started = create(changed.get());
      Domain restored(virDomainDefineXML(connection.get(), lasting.c_str()));
      if (!restored && started) return fail(lastError("restoring the definition of " + name));
      return started;
    }

    Result<void> create(virDomainPtr domain) {
      if (virDomainCreate(domain) < 0) return fail(lastError("starting " + name));
      return {};
    }

    std::string name, uri;
    std::mutex one_at_a_time;
    Connection connection;
  };

  template <class T>
  Async<T> blocking(std::function<Result<T>(Host&)> work) {
    return offload<Result<T>>(workers_, [host = host_, work = std::move(work)] {
      std::lock_guard lock(host->one_at_a_time);
      return work(*host);
    });
  }

  std::shared_ptr<Host> host_;
  Clock& clock_;
  Workers& workers_;
};

}  // namespace

std::unique_ptr<Bmc> makeLibvirtBmc(std::string domain, std::string uri, Clock& clock,
                                    Workers& workers) {
  // libvirt prints to stderr by default; muster reports errors itself.
  static const int quiet = (virSetErrorFunc(nullptr, [](void*, virErrorPtr) {}), 0);
  (void)quiet;
  return std::make_unique<LibvirtBmc>(std::move(domain), std::move(uri), clock, workers);
}

}  // namespace muster::bmc
