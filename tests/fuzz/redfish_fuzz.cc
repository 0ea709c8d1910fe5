// SPDX-License-Identifier: Apache-2.0
// Whatever a BMC answers, the client ends, within its bounds, with a value or an error. The input
// is a JSON object path → resource, as a capture is; a path that it lacks answers the whole input.
#include "tests/bmc/redfish_rig.h"

#include <cstdint>

namespace muster {
namespace {

constexpr std::size_t kMaxInput = 8192;
constexpr int kMaxRequests =
    400;  ///< of one input; then every answer is 404, so that a collection of itself ends

void ask(const bmc::Json& resources) {
  test::VirtualLoop loop;
  test::FakeHttp net;
  test::RedfishRig rig{loop, net};
  int requests = 0;
  net.handle = [&](io::HttpRequest request) -> Async<io::HttpResponse> {
    if (request.method == "POST" && request.url.target.find("Sessions") != std::string::npos)
      co_return test::FakeHttp::json(201, "{}", {{"X-Auth-Token", "t"}});
    if (request.method != "GET") co_return test::FakeHttp::json(405, "{}");
    if (++requests > kMaxRequests) co_return test::FakeHttp::json(404, "{}");
    std::string path = request.url.target;
    if (path.size() > 1 && path.back() == '/') path.pop_back();
    const auto found = resources.is_object() ? resources.find(path) : resources.end();
    co_return test::FakeHttp::json(
        200, (resources.is_object() && found != resources.end() ? *found : resources)
                 .dump(-1, ' ', false, bmc::Json::error_handler_t::replace));
  };
  auto bmc = rig.bmc();
  (void)loop.run(bmc->system());
  (void)loop.run(bmc->firmware());
  (void)loop.run(bmc->tasks());
  (void)loop.run(bmc->task("/redfish/v1/TaskService/Tasks/1"));
  (void)loop.run(bmc->eventLog(20));
  (void)loop.run(bmc->sensors());
  (void)loop.run(bmc->survey());
  (void)loop.run(bmc->biosAttributes());
  (void)loop.run(bmc->backgroundCopies());
  (void)loop.run(bmc->listen({}, [] {}, [](std::vector<bmc::LogEntry>) {}));
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > muster::kMaxInput) return -1;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = muster::bmc::parseLenient(text);
  muster::bmc::RedfishReply reply{202, {{"Location", std::string(text.substr(0, 80))}}, json};
  (void)muster::bmc::taskStatusOf(reply, "Stopping");
  (void)muster::bmc::taskUriOf(reply);
  (void)muster::bmc::errorOf(reply, "fuzz");
  muster::bmc::EventReader reader;
  if (const auto events = reader.take(text))
    for (const auto& event : *events)
      (void)muster::bmc::entriesOf(muster::bmc::parseLenient(event.data));
  (void)muster::bmc::entriesOf(json);
  if (json.is_structured()) muster::ask(json);
  return 0;
}
