// SPDX-License-Identifier: Apache-2.0
#include "lab/virt.h"

#include <libvirt/libvirt-qemu.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include <mutex>

namespace muster::lab {

namespace {

/// QEMU's id of the NIC, and boot indices after the disk's and the NIC's first (1 to 3).
constexpr const char* kPeripheral = "/machine/peripheral/";
constexpr const char* kNic = "net0";
constexpr int kNicLast = 4, kCdLast = 5;

struct CloseConnection {
  void operator()(virConnectPtr connection) const { virConnectClose(connection); }
};
struct FreeDomain {
  void operator()(virDomainPtr domain) const { virDomainFree(domain); }
};
using Connection = std::shared_ptr<std::remove_pointer_t<virConnectPtr>>;
using Domain = std::unique_ptr<std::remove_pointer_t<virDomainPtr>, FreeDomain>;

Error lastError(const std::string& doing) {
  auto* error = virGetLastError();
  auto text = error && error->message ? error->message : "unknown reason";
  auto code = ErrorCode::Internal;
  if (error && error->code == VIR_ERR_NO_DOMAIN) code = ErrorCode::NotFound;
  if (error && (error->domain == VIR_FROM_RPC || error->code == VIR_ERR_SYSTEM_ERROR))
    code = ErrorCode::Unavailable;
  return Error(code, fmt::format("libvirt: {}: {}", doing, text));
}

/// QEMU writes the boot order for the firmware at machine reset; the first boot has its copy
/// already.
Result<void> bootLater(virDomainPtr domain, const char* device, int index) {
  const auto command = fmt::format(
      R"({{"execute":"qom-set","arguments":{{"path":"{}{}","property":"bootindex","value":{}}}}})",
      kPeripheral, device, index);
  char* answer = nullptr;
  const int sent = virDomainQemuMonitorCommand(domain, command.c_str(), &answer,
                                               VIR_DOMAIN_QEMU_MONITOR_COMMAND_DEFAULT);
  const std::string said = answer ? answer : "";
  free(answer);
  if (sent != 0) return fail(lastError("changing the boot order"));
  if (said.find("\"error\"") != std::string::npos)
    return fail(ErrorCode::Internal, "QEMU refused the boot order: " + said);
  return {};
}

}  // namespace

struct Virt::State {
  std::string uri;
  std::mutex mutex;
  Connection connection;

  Result<Connection> get() {
    std::lock_guard lock(mutex);
    if (connection && virConnectIsAlive(connection.get()) == 1) return connection;
    virSetErrorFunc(nullptr,
                    [](void*, virErrorPtr) {});  // errors are values here, not lines on stderr
    connection.reset(virConnectOpen(uri.c_str()), CloseConnection());
    if (!connection)
      return fail(Error(ErrorCode::Unavailable, lastError("cannot connect to " + uri).text()));
    return connection;
  }

  Result<Domain> domain(const std::string& name) {
    TRY(open, get());
    Domain found(virDomainLookupByName(open.get(), name.c_str()));
    if (!found) return fail(lastError("no domain " + name));
    return found;
  }
};

Virt::Virt(std::unique_ptr<State> state) : state_(std::move(state)) {}
Virt::~Virt() = default;

Result<std::unique_ptr<Virt>> Virt::connect(std::string uri) {
  auto state = std::make_unique<State>();
  state->uri = std::move(uri);
  TRY_OK(state->get());
  return std::unique_ptr<Virt>(new Virt(std::move(state)));
}

Result<bool> Virt::running(const std::string& domain) {
  TRY(found, state_->domain(domain));
  int active = virDomainIsActive(found.get());
  if (active < 0) return fail(lastError("state of " + domain));
  return active == 1;
}

Result<void> Virt::define(const std::string& xml) {
  TRY(connection, state_->get());
  Domain defined(virDomainDefineXML(connection.get(), xml.c_str()));
  if (!defined) return fail(lastError("cannot define the domain"));
  return {};
}

Result<void> Virt::start(const DomainSpec& spec, const vbmc::StartOptions& options) {
  TRY_OK(define(domainXml(spec, options)));
  TRY(domain, state_->domain(spec.name));
  if (virDomainCreateWithFlags(domain.get(), VIR_DOMAIN_START_PAUSED) != 0)
    return fail(lastError("cannot start " + spec.name));
  Result<void> ordered;
  if (options.first == vbmc::BootDevice::Network) ordered = bootLater(domain.get(), kNic, kNicLast);
  if (ordered && !options.cd_file.empty()) ordered = bootLater(domain.get(), kCdAlias, kCdLast);
  if (!ordered) {
    virDomainDestroy(domain.get());
    return fail(std::move(ordered).error().within("boot order of " + spec.name));
  }
  if (virDomainResume(domain.get()) != 0) {
    auto error = lastError("cannot resume " + spec.name);
    virDomainDestroy(domain.get());
    return fail(std::move(error));
  }
  return {};
}

Result<void> Virt::destroy(const std::string& domain) {
  TRY(found, state_->domain(domain));
  if (virDomainIsActive(found.get()) != 1) return {};
  if (virDomainDestroy(found.get()) != 0 && virDomainIsActive(found.get()) == 1)
    return fail(lastError("cannot stop " + domain));
  return {};
}

Result<void> Virt::emptyDrive(const DomainSpec& spec) {
  TRY(found, state_->domain(spec.name));
  if (virDomainIsActive(found.get()) != 1) return {};
  char* described = virDomainGetXMLDesc(found.get(), 0);
  const std::string xml = described ? described : "";
  free(described);
  if (xml.find(kCdAlias) == std::string::npos) return {};
  const auto empty = fmt::format(
      "<disk type='file' device='cdrom'><target dev='{}' bus='{}'/><readonly/><alias "
      "name='{}'/></disk>",
      kCdTarget, spec.arch == Architecture::Arm64 ? "scsi" : "sata", kCdAlias);
  constexpr unsigned kLive = VIR_DOMAIN_AFFECT_LIVE, kForced = VIR_DOMAIN_DEVICE_MODIFY_FORCE;
  if (virDomainUpdateDeviceFlags(found.get(), empty.c_str(), kLive | kForced) != 0)
    return fail(lastError("cannot empty the virtual CD of " + spec.name));
  return {};
}

Result<void> Virt::pressButton(const std::string& domain) {
  TRY(found, state_->domain(domain));
  if (virDomainIsActive(found.get()) != 1) return {};
  if (virDomainShutdownFlags(found.get(), VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN) != 0)
    return fail(lastError("cannot press the button of " + domain));
  return {};
}

}  // namespace muster::lab
