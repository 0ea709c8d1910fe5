// SPDX-License-Identifier: Apache-2.0
#include "tests/pool/kube_server.h"

#include "base/io/crypto.h"
#include "tests/pool/kube_schema.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace muster::pool::test {

namespace {

using json = nlohmann::json;
using io::ServerResponse;

constexpr std::chrono::hours kLifetime{24};
constexpr std::chrono::seconds kGrace{30};
constexpr const char* kUnschedulableTaint = "node.kubernetes.io/unschedulable";
constexpr const char* kServiceAccount = "system:serviceaccount:muster:muster";

io::CertificateAuthority authority(const std::filesystem::path& folder) {
  auto ca = io::CertificateAuthority::loadOrCreate(folder / "kube-ca", "kubernetes");
  if (!ca) throw std::runtime_error(ca.error().str());
  return std::move(*ca);
}

std::string stamp(WallTime time) {  // metav1.Time has whole seconds
  return toString(std::chrono::floor<std::chrono::seconds>(time)).substr(0, 19) + "Z";
}

ServerResponse answer(int status, const json& body, int retry_after_s = 0) {
  auto response = ServerResponse::json(status, body.dump());
  if (retry_after_s > 0) response.headers["Retry-After"] = std::to_string(retry_after_s);
  return response;
}

json failure(int code, std::string_view reason, std::string_view message, json details = nullptr) {
  json out = {{"kind", "Status"},    {"apiVersion", "v1"}, {"metadata", json::object()},
              {"status", "Failure"}, {"message", message}, {"reason", reason},
              {"code", code}};
  if (!details.is_null()) out["details"] = std::move(details);
  return out;
}

ServerResponse refuse(int code, std::string_view reason, std::string_view message,
                      json details = nullptr, int retry_after_s = 0) {
  return answer(code, failure(code, reason, message, std::move(details)), retry_after_s);
}

json success() {
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"metadata", json::object()},
          {"status", "Success"},
          {"code", 201}};
}

/// "/api/v1/namespaces/NS/pods/NAME[/eviction]" in its parts.
std::vector<std::string> partsOf(const std::string& path) {
  std::vector<std::string> parts;
  for (std::size_t at = 1; at <= path.size();) {
    auto slash = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  return parts;
}

}  // namespace

KubeServer::KubeServer(asio::any_io_executor executor, Clock& clock,
                       const std::filesystem::path& folder)
    : clock_(clock), ca_(authority(folder)) {
  auto identity =
      ca_.issueServer("kube-apiserver", {"127.0.0.1", "kubernetes.default.svc"}, kLifetime);
  if (!identity) throw std::runtime_error(identity.error().str());
  identity_ = *identity;
  io::ServerOptions options;
  options.identity = identity_;
  options.client_ca_pem = ca_.certificatePem();
  auto server = io::startHttpServer(executor, std::move(options));
  if (!server) throw std::runtime_error(server.error().str());
  server_ = std::move(*server);
  io::Handler handler = [this](io::ServerRequest request) { return serve(std::move(request)); };
  server_->addRoutes({{"*", "/", std::move(handler)}});
}

std::string KubeServer::url() const { return fmt::format("https://127.0.0.1:{}", server_->port()); }

std::string KubeServer::serverFingerprint() const {
  return io::describeCertificate(identity_.certificate_pem)->sha256_fingerprint;
}

io::TlsIdentity KubeServer::clientIdentity(const std::string& user) const {
  auto request = io::makeKeyAndRequest(user);
  auto certificate = ca_.signClient(request->csr_pem, user, kLifetime);
  return {request->key_pem, *certificate};
}

// ---- the world

void KubeServer::addNode(const std::string& name, bool ready) {
  nodes_[name] = {
      {"kind", "Node"},
      {"apiVersion", "v1"},
      {"metadata",
       {{"name", name},
        {"uid", fmt::format("node-{}", ++last_uid_)},
        {"resourceVersion", nextVersion()},
        {"labels", {{"kubernetes.io/hostname", name}}},
        {"annotations", {{"volumes.kubernetes.io/controller-managed-attach-detach", "true"}}}}},
      {"spec", {{"podCIDR", "10.244.0.0/24"}}},
      {"status", {{"conditions", json::array()}}}};
  setReady(name, ready ? "True" : "False");
}

void KubeServer::setReady(const std::string& name, std::string_view status,
                          std::string_view reason) {
  auto changed = nodes_.at(name);
  changed["status"]["conditions"] =
      json::array({{{"type", "MemoryPressure"}, {"status", "False"}},
                   {{"type", "Ready"},
                    {"status", status},
                    {"reason", status == "True" ? "KubeletReady" : reason},
                    {"message", status == "True" ? "kubelet is posting ready status"
                                                 : "container runtime is down"}}});
  store(nodes_.at(name), std::move(changed));
}

std::string KubeServer::addPod(const PodSpec& spec) {
  const auto uid = fmt::format("pod-{}", ++last_uid_);
  json pod = {{"metadata",
               {{"name", spec.name},
                {"namespace", spec.name_space},
                {"uid", uid},
                {"resourceVersion", nextVersion()}}},
              {"spec",
               {{"nodeName", spec.node},
                {"restartPolicy", spec.restart_policy},
                {"containers", json::array({{{"name", "main"}, {"image", "busybox"}}})},
                {"volumes", json::array({{{"name", "token"}, {"projected", json::object()}}})}}},
              {"status", {{"phase", spec.phase}}}};
  if (!spec.controller.empty())
    pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "apps/v1"},
                                                       {"kind", spec.controller},
                                                       {"name", "owner"},
                                                       {"uid", "o"},
                                                       {"controller", true},
                                                       {"blockOwnerDeletion", true}}});
  if (!spec.app.empty()) pod["metadata"]["labels"] = {{"app", spec.app}};
  if (!spec.empty_dir.empty())
    pod["spec"]["volumes"].push_back({{"name", spec.empty_dir}, {"emptyDir", json::object()}});
  if (spec.is_static)
    pod["metadata"]["annotations"] = {{"kubernetes.io/config.mirror", "abc"},
                                      {"kubernetes.io/config.source", "file"}};
  pods_[spec.name_space + "/" + spec.name] = std::move(pod);
  return uid;
}

void KubeServer::addBudget(const std::string& name, const std::string& app, int min_available,
                           const std::string& name_space) {
  budgets_[name] = {app, name_space, min_available, false};
}

void KubeServer::patchNode(const std::string& name, const json& merge_patch) {
  auto changed = nodes_.at(name);
  changed.merge_patch(merge_patch);
  store(nodes_.at(name), std::move(changed));
}

void KubeServer::endTerminating() {
  std::erase_if(
      pods_, [](const auto& one) { return one.second["metadata"].contains("deletionTimestamp"); });
}

void KubeServer::endPod(const std::string& name, std::string_view phase) {
  pods_.at("default/" + name)["status"]["phase"] = phase;
}

json KubeServer::taint(const std::string& name, const std::string& key) const {
  const json taints = nodes_.at(name)["spec"].value("taints", json::array());
  for (const auto& taint : taints)
    if (taint["key"] == key) return taint;
  return nullptr;
}

bool KubeServer::hasPod(const std::string& name) const { return pods_.contains("default/" + name); }
bool KubeServer::terminating(const std::string& name) const {
  return pods_.at("default/" + name)["metadata"].contains("deletionTimestamp");
}

int KubeServer::count(const std::string& beginning) const {
  return static_cast<int>(std::count_if(requests.begin(), requests.end(), [&](const auto& one) {
    return one.starts_with(beginning);
  }));
}

/// As the store: what does not change keeps its version. As the node lifecycle controller: a cordon
/// is also a taint.
void KubeServer::store(json& object, json changed) {
  auto& spec = changed["spec"];
  if (changed["kind"] == "Node") {
    if (spec.contains("unschedulable") && spec["unschedulable"] == false)
      spec.erase("unschedulable");
    auto taints = spec.value("taints", json::array()), kept = json::array();
    for (const auto& taint : taints)
      if (taint["key"] != kUnschedulableTaint) kept.push_back(taint);
    if (spec.contains("unschedulable"))
      kept.push_back({{"key", kUnschedulableTaint},
                      {"effect", "NoSchedule"},
                      {"timeAdded", "2026-11-21T13:00:00Z"}});
    spec["taints"] = kept;
    if (kept.empty()) spec.erase("taints");
  }
  if (changed == object) return;
  changed["metadata"]["resourceVersion"] = nextVersion();
  object = std::move(changed);
}

// ---- the front

Task<ServerResponse> KubeServer::serve(io::ServerRequest request) {
  Call call;
  call.path = request.path();
  call.query = io::queryOf(request.target);
  call.request = std::move(request);
  const auto line = call.request.method + " " + call.path;
  requests.push_back(line);
  if (before_request) before_request(*this);
  auto fault = std::find_if(faults.begin(), faults.end(), [&line](Fault& one) {
    return line.starts_with(one.match) && one.skip-- <= 0;
  });
  if (fault == faults.end()) co_return route(call);
  auto kept = *fault;
  faults.erase(fault);
  if (kept.done_first) (void)route(call);
  co_return refuse(kept.status, kept.reason, kept.message, nullptr, kept.retry_after_s);
}

ServerResponse KubeServer::route(Call& call) {
  const auto bearer = call.request.headers.contains("Authorization")
                          ? call.request.headers.at("Authorization")
                          : std::string();
  if (!call.request.client_common_name.empty()) call.user = call.request.client_common_name;
  if (bearer == "Bearer " + token) call.user = kServiceAccount;
  if (call.user.empty() || (!bearer.empty() && bearer != "Bearer " + token))
    return refuse(401, "Unauthorized", "Unauthorized");
  const auto parts = partsOf(call.path);
  const auto& method = call.request.method;
  const bool core = parts.size() >= 3 && parts[0] == "api" && parts[1] == "v1";
  if (admin && core)
    if (auto done = administer(call, parts)) return *done;
  const std::set<std::string> merges{"application/merge-patch+json",
                                     "application/strategic-merge-patch+json"};
  if (core && parts.size() == 4 && parts[2] == "nodes") {
    if (method == "GET") {
      if (auto no = authorize(call, "get", "nodes", {"pretty"}, {})) return *no;
      return getNode(parts[3]);
    }
    if (method == "PATCH") {
      if (auto no =
              authorize(call, "patch", "nodes",
                        {"pretty", "dryRun", "fieldManager", "fieldValidation", "force"}, merges))
        return *no;
      return patch(parts[3], call);
    }
    return refuse(405, "MethodNotAllowed",
                  "the server does not allow this method on the requested resource");
  }
  if (call.path == "/api/v1" && method == "GET")  // discovery: whoever is known may read it
    return answer(200, {{"kind", "APIResourceList"},
                        {"groupVersion", "v1"},
                        {"resources",
                         {{{"name", "pods"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"kind", "Pod"},
                           {"verbs", {"delete", "get", "list"}}},
                          {{"name", "pods/eviction"},
                           {"singularName", ""},
                           {"namespaced", true},
                           {"group", "policy"},
                           {"version", eviction_version},
                           {"kind", "Eviction"},
                           {"verbs", {"create"}}}}}});
  const std::set<std::string> of_lists{"fieldSelector", "labelSelector",   "limit",
                                       "continue",      "resourceVersion", "resourceVersionMatch",
                                       "timeoutSeconds"};
  if (core && parts.size() == 3 && parts[2] == "pods" && method == "GET") {
    if (auto no = authorize(call, "list", "pods", of_lists, {})) return *no;
    return listPods(call);
  }
  if (core && parts.size() == 3 && parts[2] == "nodes" && method == "GET") {
    if (auto no = authorize(call, "list", "nodes", of_lists, {})) return *no;
    std::vector<json> found;
    for (const auto& [name, node] : nodes_) found.push_back(node);
    return listOf(call, "NodeList", found);
  }
  const bool pod = core && parts.size() >= 6 && parts[2] == "namespaces" && parts[4] == "pods";
  if (pod && parts.size() == 7 && parts[6] == "eviction" && method == "POST") {
    if (auto no = authorize(call, "create", "pods/eviction",
                            {"dryRun", "fieldManager", "fieldValidation", "pretty"},
                            {"application/json"}))
      return *no;
    return evict(parts[3], parts[5], call);
  }
  if (pod && parts.size() == 6 && method == "DELETE") {
    if (auto no = authorize(call, "delete", "pods",
                            {"dryRun", "gracePeriodSeconds", "propagationPolicy", "pretty"},
                            {"application/json"}))
      return *no;
    return remove(parts[3], parts[5], call);
  }
  return refuse(404, "NotFound", "the server could not find the requested resource");
}

/// Rights, content types, queries, bodies. Answers the refusal, if any.
std::optional<ServerResponse> KubeServer::authorize(Call& call, const std::string& verb,
                                                    const std::string& resource,
                                                    std::set<std::string> query,
                                                    std::set<std::string> content_types) {
  if (!rights.contains(verb + " " + resource))
    return refuse(
        403, "Forbidden",
        fmt::format("{} is forbidden: User \"{}\" cannot {} resource \"{}\" in API group \"\"",
                    resource, call.user, verb, resource));
  const auto accept =
      call.request.headers.contains("Accept") ? call.request.headers.at("Accept") : std::string();
  if (accept != "application/json")
    return refuse(406, "NotAcceptable", "only application/json is known here");
  for (const auto& [key, value] : call.query)
    if (!query.contains(key))
      return refuse(400, "BadRequest", fmt::format("unknown query parameter {}={}", key, value));
  if (content_types.empty() && !call.request.body.empty())
    return refuse(400, "BadRequest", "this verb has no body");
  if (content_types.empty()) return std::nullopt;
  const auto type = call.request.headers.contains("Content-Type")
                        ? call.request.headers.at("Content-Type")
                        : std::string();
  if (!content_types.contains(type))
    return refuse(415, "UnsupportedMediaType",
                  fmt::format("the body of the request was in an unknown format: {}", type));
  call.body = json::parse(call.request.body, nullptr, false);
  if (!call.body.is_object()) return refuse(400, "BadRequest", "the body is no JSON object");
  return std::nullopt;
}

/// What the tests of a real cluster need to set their stage.
std::optional<ServerResponse> KubeServer::administer(Call& call,
                                                     const std::vector<std::string>& parts) {
  const auto& method = call.request.method;
  const auto body = json::parse(call.request.body, nullptr, false);
  if (parts[2] == "namespaces" && parts.size() <= 4 && (method == "POST" || method == "DELETE"))
    return answer(200, success());
  if (parts[2] == "nodes" && method == "POST") {
    const auto name = body["metadata"]["name"].get<std::string>();
    addNode(name, false);
    patchNode(name, json{{"spec", body["spec"]}});
    return answer(201, nodes_.at(name));
  }
  if (parts[2] == "nodes" && method == "DELETE")
    return answer(nodes_.erase(parts[3]) ? 200 : 404, success());
  if (parts[2] == "nodes" && method == "PATCH" && parts.size() == 5 && parts[4] == "status") {
    patchNode(parts[3], body);
    return answer(200, nodes_.at(parts[3]));
  }
  if (parts.size() == 5 && parts[4] == "pods" && method == "POST") {
    PodSpec spec;
    spec.name = body["metadata"]["name"];
    spec.name_space = parts[3];
    spec.node = body["spec"]["nodeName"];
    spec.restart_policy = body["spec"]["restartPolicy"];
    spec.controller.clear();
    spec.phase = "Pending";
    addPod(spec);
    return answer(201, pods_.at(spec.name_space + "/" + spec.name));
  }
  const bool at_once = method == "DELETE" && parts.size() == 6 && body.is_object() &&
                       body.value("gracePeriodSeconds", -1) == 0;
  if (at_once) return answer(pods_.erase(parts[3] + "/" + parts[5]) ? 200 : 404, success());
  return std::nullopt;
}

ServerResponse KubeServer::getNode(const std::string& name) {
  if (!nodes_.contains(name))
    return refuse(404, "NotFound", fmt::format("nodes \"{}\" not found", name),
                  {{"name", name}, {"kind", "nodes"}});
  return answer(200, nodes_.at(name));
}

ServerResponse KubeServer::patch(const std::string& name, Call& call) {
  if (auto meddle = std::exchange(before_patch, nullptr)) meddle(*this);
  if (!nodes_.contains(name))
    return refuse(404, "NotFound", fmt::format("nodes \"{}\" not found", name));
  if (auto bad = schemaOffence("NodePatch", call.body); !bad.empty())
    return refuse(400, "BadRequest", bad);
  auto& node = nodes_.at(name);
  auto changed = node;
  changed.merge_patch(
      call.body);  // of what muster patches, every list is atomic also in a strategic merge
  for (const char* fixed : {"name", "uid"})
    if (changed["metadata"][fixed] != node["metadata"][fixed])
      return refuse(422, "Invalid", fmt::format("metadata.{}: field is immutable", fixed));
  if (changed["metadata"]["resourceVersion"] != node["metadata"]["resourceVersion"])
    return refuse(409, "Conflict",
                  fmt::format("Operation cannot be fulfilled on nodes \"{}\": the object has been "
                              "modified; please apply your changes to "
                              "the latest version and try again",
                              name));
  if (changed["status"] != node["status"])
    return refuse(400, "BadRequest", "status is a subresource");
  if (auto bad = nodeOffence(changed); !bad.empty())
    return refuse(422, "Invalid", fmt::format("Node \"{}\" is invalid: {}", name, bad));
  store(node, std::move(changed));
  return answer(200, node);
}

ServerResponse KubeServer::listPods(Call& call) {
  constexpr std::string_view kByNode = "spec.nodeName=";
  auto selector = call.query["fieldSelector"];
  if (!selector.empty() && !selector.starts_with(kByNode))
    return refuse(400, "BadRequest", "field label not supported: " + selector);
  std::vector<json> found;
  for (const auto& [name, pod] : pods_)
    if (selector.empty() || pod["spec"]["nodeName"] == selector.substr(kByNode.size()))
      found.push_back(pod);
  return listOf(call, "PodList", found);
}

ServerResponse KubeServer::listOf(Call& call, const char* kind, const std::vector<json>& found) {
  std::size_t begin = 0, limit = page_items;
  if (call.query.contains("limit"))
    limit = std::min(limit, static_cast<std::size_t>(std::stoul(call.query["limit"])));
  if (call.query.contains("continue")) {
    if (expire_lists > 0) {
      --expire_lists;
      return refuse(
          410, "Expired",
          "The provided continue parameter is too old to display a consistent list result");
    }
    auto place = io::fromBase64(call.query["continue"]);
    if (!place) return refuse(400, "BadRequest", "continue key is not valid");
    begin = std::stoul(*place);
  }
  json list = {{"kind", kind},
               {"apiVersion", "v1"},
               {"metadata", {{"resourceVersion", std::to_string(version_)}}},
               {"items", json::array()}};
  for (auto i = begin; i < std::min(found.size(), begin + limit); ++i) {
    list["items"].push_back(found[i]);
    list["items"].back().erase("kind");  // as the real server: only the list says what it holds
    list["items"].back().erase("apiVersion");
  }
  if (begin + limit < found.size()) {
    list["metadata"]["continue"] = io::toBase64(std::to_string(begin + limit));
    list["metadata"]["remainingItemCount"] = found.size() - begin - limit;
  }
  return answer(200, list);
}

json* KubeServer::findPod(const std::string& name_space, const std::string& name) {
  auto found = pods_.find(name_space + "/" + name);
  return found == pods_.end() ? nullptr : &found->second;
}

const KubeServer::Budget* KubeServer::budgetOf(const json& pod, int& matching) const {
  const Budget* found = nullptr;
  for (const auto& [name, budget] : budgets_) {
    if (pod["metadata"]["namespace"] != budget.name_space ||
        budget.app != pod["metadata"].value("labels", json::object()).value("app", ""))
      continue;
    ++matching;
    found = &budget;
  }
  return found;
}

int KubeServer::healthy(const Budget& budget) const {
  return static_cast<int>(std::count_if(pods_.begin(), pods_.end(), [&budget](const auto& one) {
    const auto& meta = one.second["metadata"];
    return meta["namespace"] == budget.name_space &&
           meta.value("labels", json::object()).value("app", "") == budget.app &&
           one.second["status"]["phase"] == "Running" && !meta.contains("deletionTimestamp");
  }));
}

ServerResponse KubeServer::evict(const std::string& name_space, const std::string& name,
                                 Call& call) {
  if (auto bad = schemaOffence("Eviction", call.body); !bad.empty())
    return refuse(400, "BadRequest", bad);
  const auto version = call.body.value("apiVersion", "");
  if (call.body.value("kind", "") != "Eviction" || version != "policy/" + eviction_version)
    return refuse(
        400, "BadRequest",
        fmt::format("no kind \"Eviction\" is registered for version \"{}\" in scheme", version));
  auto* pod = findPod(name_space, name);
  if (!pod) return refuse(404, "NotFound", fmt::format("pods \"{}\" not found", name));
  if (call.body["metadata"].value("name", "") != name)
    return refuse(400, "BadRequest", "name in URL does not match name in Eviction object");
  const auto options = call.body.value("deleteOptions", json::object());
  const auto phase = (*pod)["status"]["phase"].get<std::string>();
  const bool ignores_budget =
      phase != "Running" || (*pod)["metadata"].contains("deletionTimestamp");
  int matching = 0;
  const auto* budget = budgetOf(*pod, matching);
  if (!ignores_budget && matching > 1) {  // with 201, as the real one
    auto odd = failure(500, "",
                       "This pod has more than one PodDisruptionBudget, which the eviction "
                       "subresource does not support.");
    odd.erase("reason");
    return answer(201, odd);
  }
  if (!ignores_budget && budget) {
    const auto budget_name =
        std::find_if(budgets_.begin(), budgets_.end(), [budget](const auto& one) {
          return &one.second == budget;
        })->first;
    auto held = [&](std::string why, int retry_after_s) {
      json details = {
          {"causes", json::array({{{"reason", "DisruptionBudget"}, {"message", std::move(why)}}})}};
      if (retry_after_s > 0) details["retryAfterSeconds"] = retry_after_s;
      return refuse(429, "TooManyRequests",
                    "Cannot evict pod as it would violate the pod's disruption budget.",
                    std::move(details), retry_after_s);
    };
    if (budget->stale)
      return held(fmt::format("The disruption budget {} is still being processed by the server.",
                              budget_name),
                  10);
    if (healthy(*budget) - budget->min_available <= 0)
      return held(fmt::format("The disruption budget {} needs {} healthy pods and has {} currently",
                              budget_name, budget->min_available, healthy(*budget)),
                  0);
  }
  auto response = terminate(*pod, options, success(), 201);
  if (response.status == 201) evicted.push_back(name);
  if (response.status == 201 && budget && healthy(*budget) < budget->min_available)
    broken_budgets.push_back(name);
  return response;
}

ServerResponse KubeServer::remove(const std::string& name_space, const std::string& name,
                                  Call& call) {
  if (auto bad = schemaOffence("DeleteOptions", call.body); !bad.empty())
    return refuse(400, "BadRequest", bad);
  auto* pod = findPod(name_space, name);
  if (!pod) return refuse(404, "NotFound", fmt::format("pods \"{}\" not found", name));
  auto response = terminate(*pod, call.body, *pod, 200);
  if (response.status == 200) deleted.push_back(name);
  return response;
}

ServerResponse KubeServer::terminate(json& pod, const json& options, json success, int status) {
  const auto wanted = options.value("preconditions", json::object()).value("uid", "");
  if (!wanted.empty() && pod["metadata"]["uid"] != wanted)
    return refuse(
        409, "Conflict",
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}", wanted,
                    pod["metadata"]["uid"].get<std::string>()));
  if (pod["metadata"].contains("deletionTimestamp")) return answer(status, success);
  pod["metadata"]["deletionTimestamp"] = stamp(clock_.now() + kGrace);
  pod["metadata"]["deletionGracePeriodSeconds"] = kGrace.count();
  pod["metadata"]["resourceVersion"] = nextVersion();
  return answer(status, success);
}

}  // namespace muster::pool::test
