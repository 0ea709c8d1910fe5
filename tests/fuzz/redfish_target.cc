// SPDX-License-Identifier: Apache-2.0
// Whatever a BMC answers, the client ends, within its bounds, with a value or an error. The input
// is a JSON object path → resource, as a capture is; a path that it lacks answers the whole input.
// A resource that is a text is sent as it stands, so that it need not be JSON; a pair [status,
// resource] is an answer of that status.
#include "bmc/redfish/event_stream.h"
#include "bmc/redfish/redfish_bmc.h"
#include "bmc/redfish/tasks.h"
#include "tests/bmc/values_store.h"
#include "tests/fuzz/targets.h"

#include <boost/asio/io_context.hpp>

#include <array>
#include <unordered_map>

namespace muster::fuzz {
namespace {

using bmc::Json;

constexpr std::size_t kMaxInput = 8192;
// Of one input; then every answer is 404, so that a collection of itself ends.
constexpr int kMaxRequests = 200;
constexpr std::size_t kMaxAnsweredBytes = 128u << 10;
/// Waits of a client come to an end: each of its operations has at most minutes, one a request.
constexpr int kMaxWaits = 20'000;

/// Nobody works beside the one coroutine, so that what waits need not be put aside.
class SkippingClock final : public Clock {
 public:
  WallTime now() const override {
    return std::chrono::sys_days(std::chrono::year(2026) / 1 / 1) +
           std::chrono::duration_cast<std::chrono::milliseconds>(elapsed_.time_since_epoch());
  }
  std::chrono::steady_clock::time_point steady() const override { return elapsed_; }
  using Clock::waitFor;
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken*) override {
    require(++waits_ < kMaxWaits, "a client does not wait for ever");
    elapsed_ += std::max(duration, std::chrono::milliseconds(0));
    co_return true;
  }

 private:
  std::chrono::steady_clock::time_point elapsed_;
  int waits_ = 0;
};

/// The BMC. Each resource is made text once.
class Answers {
 public:
  explicit Answers(const Json& resources) : resources_(resources) {}

  io::HttpResponse to(const io::HttpRequest& request) {
    if (request.method == "POST" && request.url.target.find("Sessions") != std::string::npos)
      return {201, {{"X-Auth-Token", "t"}, {"Content-Type", "application/json"}}, "{}"};
    if (request.method != "GET") return plain(405);
    if (++requests_ > kMaxRequests || answered_bytes_ > kMaxAnsweredBytes) return plain(404);
    const Json& answer = of(request.url.target);
    const bool pair = answer.is_array() && answer.size() == 2 && answer[0].is_number_integer();
    const int status = pair ? std::clamp(answer[0].get<int>(), 200, 599) : 200;
    const auto& body = textOf(pair ? answer[1] : answer);
    answered_bytes_ += body.size();
    return {status, {{"Content-Type", "application/json"}}, body};
  }

 private:
  static io::HttpResponse plain(int status) {
    return {status, {{"Content-Type", "application/json"}}, "{}"};
  }

  const Json& of(std::string path) const {
    if (path.size() > 1 && path.back() == '/') path.pop_back();
    if (!resources_.is_object()) return resources_;
    const auto found = resources_.find(path);
    return found == resources_.end() ? resources_ : *found;
  }

  const std::string& textOf(const Json& json) {
    if (json.is_string()) return json.get_ref<const std::string&>();
    const auto [known, fresh] = texts_.try_emplace(&json);
    if (fresh) known->second = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    return known->second;
  }

  const Json& resources_;
  std::unordered_map<const Json*, std::string> texts_;
  int requests_ = 0;
  std::size_t answered_bytes_ = 0;
};

class Connection final : public io::HttpClient {
 public:
  explicit Connection(Answers& bmc) : bmc_(bmc) {}
  Async<io::HttpResponse> send(io::HttpRequest request) override { co_return bmc_.to(request); }
  Async<io::HttpResponse> fetch(io::HttpRequest request,
                                std::function<Result<void>(std::string_view)> sink) override {
    auto response = bmc_.to(request);
    if (response.status < 300) {
      CO_TRY_OK(sink(response.body));
      response.body.clear();
    }
    co_return std::move(response);
  }
  std::string peerFingerprint() const override { return std::string(64, 'a'); }

 private:
  Answers& bmc_;
};

/// One loop for all inputs: each coroutine ends before the next begins.
template <class T>
T run(Task<T> work) {
  static asio::io_context loop{1};
  std::optional<T> answer;
  std::exception_ptr thrown;
  bool done = false;
  async::start(loop, async::answerInto(answer, std::move(work)), [&](std::exception_ptr e) {
    thrown = e;
    done = true;
  });
  loop.restart();
  loop.poll();
  require(done, "a client waits for nothing but the BMC and the clock");
  if (thrown) std::rethrow_exception(thrown);
  return std::move(*answer);
}

void ask(const Json& resources) {
  static Workers workers{1};
  static bmc::FirmwareImages images{workers};
  SkippingClock clock;
  Answers answers(resources);
  test::ValuesStore store;
  bmc::RedfishSession::Options options;
  options.node = NodeName("gpu001");
  options.base_url = "https://10.20.250.1";
  options.username = "admin";
  options.password = []() -> Result<Secret> { return Secret("right"); };
  bmc::RedfishDrivers bmc(
      std::make_unique<bmc::RedfishSession>(std::move(options), store, clock,
                                            [&](io::TlsTrust) -> std::unique_ptr<io::HttpClient> {
                                              return std::make_unique<Connection>(answers);
                                            }),
      inventory::BootMode::Uefi, clock, images, "");

  (void)run(bmc.events_.listen({}, [] {}, [](std::vector<bmc::LogEntry>) {}));
  if (!run(bmc.resources_.uris())) return;  // every other driver begins with it, and says the same
  (void)run(bmc.inventory_.system());
  (void)run(bmc.inventory_.firmware());
  (void)run(bmc.updates_.tasks());
  (void)run(bmc.updates_.task("/redfish/v1/TaskService/Tasks/1"));
  (void)run(bmc.events_.eventLog(20));
  (void)run(bmc.sensors_.sensors());
  (void)run(bmc.inventory_.survey());
  (void)run(bmc.bios_.biosAttributes());
  (void)run(bmc.bios_.stagedBiosAttributes());
  (void)run(bmc.inventory_.backgroundCopies());
  (void)run(bmc.inventory_.devicesNotReady());
  (void)run(bmc.console_.serialConsole());
}

void redfish(std::string_view input) {
  const auto json = bmc::parseLenient(input);
  const bmc::RedfishReply reply{202, {{"Location", std::string(input.substr(0, 80))}}, json};
  (void)bmc::taskStatusOf(reply, "Stopping");
  (void)bmc::taskUriOf(reply);
  (void)bmc::errorOf(reply, "fuzz");
  bmc::EventReader reader;
  if (const auto events = reader.take(input))
    for (const auto& event : *events) (void)bmc::entriesOf(bmc::parseLenient(event.data));
  (void)bmc::entriesOf(json);
  if (json.is_structured()) ask(json);
}

constexpr std::array<std::string_view, 40> kWords = {
    "\"/redfish/v1\":{",
    "\"/redfish/v1/Systems\":{",
    "\"/redfish/v1/Chassis\":{",
    "\"/redfish/v1/Managers\":{",
    "\"/redfish/v1/UpdateService\":{",
    "\"/redfish/v1/TaskService/Tasks\":{",
    "\"Members\":[{\"@odata.id\":\"/",
    "\"Members@odata.nextLink\":\"/",
    "\"@odata.id\":\"",
    "\"Id\":\"",
    "[503,{",
    "[401,{",
    "\"Links\":{\"Chassis\":[\"",
    "\"Links\":{\"ComputerSystems\":[\"",
    "\"EthernetInterfaces\":{\"@odata.id\":\"/",
    "\"PermanentMACAddress\":\"52:54:00:20:00:07\"",
    "\"BootOptions\":{\"@odata.id\":\"/",
    "\"UefiDevicePath\":\"PciRoot(0x0)/MAC(525400200007,0x1)\"",
    "\"NetworkAdapters\":{\"@odata.id\":\"/",
    "\"NetworkDeviceFunctions\":{\"@odata.id\":\"/",
    "\"Processors\":{\"@odata.id\":\"/",
    "\"PCIeDevices\":{\"@odata.id\":\"/",
    "\"ProcessorType\":\"GPU\"",
    "\"Thermal\":{\"@odata.id\":\"/",
    "\"Temperatures\":[{\"ReadingCelsius\":40",
    "\"PowerSubsystem\":{\"@odata.id\":\"/",
    "\"PowerSupplies\":{\"@odata.id\":\"/",
    "\"Sensors\":{\"@odata.id\":\"/",
    "\"Reading\":1e308",
    "\"ThermalSubsystem\":{\"@odata.id\":\"/",
    "\"LogServices\":{\"@odata.id\":\"/",
    "\"Entries\":{\"@odata.id\":\"/",
    "\"Attributes\":{\"",
    "\"@Redfish.Settings\":{\"SettingsObject\":{\"@odata.id\":\"/",
    "\"EventService\":{\"@odata.id\":\"/",
    "\"ServerSentEventUri\":\"/",
    "data: {\"Events\":[{\"Message\":\"",
    "\"ProtocolFeaturesSupported\":{\"ExpandQuery\":{\"NoLinks\":true}}",
    "\"@Message.ExtendedInfo\":[{\"Message\":\"",
    "\"Status\":{\"State\":\"Absent\"}"};

}  // namespace

Target redfishTarget() { return {"redfish", kMaxInput, redfish, kWords}; }

}  // namespace muster::fuzz
