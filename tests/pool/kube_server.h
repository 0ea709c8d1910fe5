// SPDX-License-Identifier: Apache-2.0
// KubeServer: an API server in memory behind real HTTPS, as strict as the published API: it knows
// verbs, rights, content types, fields, resourceVersions, pages of lists and disruption budgets,
// and refuses everything else. It also plays, when told, what lives around an API server: the
// controllers that mark cordoned nodes and keep budgets, kubelets that end pods.
#pragma once

#include "base/clock.h"
#include "base/io/http.h"

#include <nlohmann/json.hpp>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::pool::test {

struct PodSpec {
  std::string name;
  std::string node = "gpu001";
  std::string name_space = "default";
  std::string controller = "ReplicaSet";  ///< empty: none
  std::string restart_policy = "Always";
  std::string phase = "Running";
  std::string app;  ///< label "app"
  std::string empty_dir;
  bool is_static = false;
};

class KubeServer {
 public:
  using json = nlohmann::json;

  /// The next requests that match end like this instead.
  struct Fault {
    std::string match;  ///< the beginning of "METHOD /path"
    int status = 500;
    std::string reason = "InternalError", message = "etcdserver: request timed out";
    int retry_after_s = 0;
    bool done_first = false;  ///< the request has its effect, only its answer is lost
    int skip = 0;             ///< so many matching requests pass first
  };

  KubeServer(asio::any_io_executor executor, Clock& clock, const std::filesystem::path& folder);

  // ---- the world
  void addNode(const std::string& name, bool ready = true);
  void setReady(const std::string& name, std::string_view status,
                std::string_view reason = "KubeletNotReady");
  std::string addPod(const PodSpec& spec);  ///< answers its uid
  void addBudget(const std::string& name, const std::string& app, int min_available,
                 const std::string& name_space = "default");
  void staleBudget(const std::string& name) { budgets_.at(name).stale = true; }
  /// Somebody else patches the node: kubectl cordon.
  void patchNode(const std::string& name, const json& merge_patch);
  /// The kubelets end what is being deleted; ReplicaSets have started others elsewhere.
  void endTerminating();
  void endPod(const std::string& name, std::string_view phase);

  const json& node(const std::string& name) const { return nodes_.at(name); }
  json taint(const std::string& name, const std::string& key) const;
  bool hasPod(const std::string& name) const;
  bool terminating(const std::string& name) const;

  // ---- the front
  std::string url() const;
  const std::string& caPem() const { return ca_.certificatePem(); }
  std::string serverFingerprint() const;
  io::TlsIdentity clientIdentity(const std::string& user) const;
  std::string token = "token-1";
  std::set<std::string> rights{"get nodes", "list nodes", "patch nodes", "list pods",
                               "create pods/eviction"};
  std::string eviction_version = "v1";  ///< of group policy; v1beta1 before Kubernetes 1.22
  bool admin = false;  ///< whoever is known may also make and remove namespaces, nodes and pods,
                       ///< and speak for a kubelet
  std::size_t page_items = 500;
  std::deque<Fault> faults;
  int expire_lists = 0;  ///< so many continuations answer 410
  std::function<void(KubeServer&)>
      before_patch;  ///< called once, after the client has read and before its patch arrives
  std::function<void(KubeServer&)> before_request;  ///< every time

  // ---- what was seen
  std::vector<std::string> requests;          ///< "PATCH /api/v1/nodes/gpu001", in order
  std::vector<std::string> evicted, deleted;  ///< names of pods, when accepted
  std::vector<std::string>
      broken_budgets;  ///< a budget that was broken by an answer of this server; must stay empty
  int count(const std::string& beginning) const;

 private:
  struct Budget {
    std::string app, name_space;
    int min_available = 0;
    bool stale = false;  ///< its controller has not caught up
  };
  struct Call {
    io::ServerRequest request;
    std::string path, user;
    std::map<std::string, std::string> query;
    json body;
  };

  Task<io::ServerResponse> serve(io::ServerRequest request);
  io::ServerResponse route(Call& call);
  std::optional<io::ServerResponse> authorize(Call& call, const std::string& verb,
                                              const std::string& resource,
                                              std::set<std::string> query,
                                              std::set<std::string> content_types);
  std::optional<io::ServerResponse> administer(Call& call, const std::vector<std::string>& parts);
  io::ServerResponse getNode(const std::string& name);
  io::ServerResponse patch(const std::string& name, Call& call);
  io::ServerResponse listPods(Call& call);
  io::ServerResponse listOf(Call& call, const char* kind, const std::vector<json>& found);
  io::ServerResponse evict(const std::string& name_space, const std::string& name, Call& call);
  io::ServerResponse remove(const std::string& name_space, const std::string& name, Call& call);
  io::ServerResponse terminate(json& pod, const json& options, json success, int status);
  json* findPod(const std::string& name_space, const std::string& name);
  const Budget* budgetOf(const json& pod, int& matching) const;
  int healthy(const Budget& budget) const;
  void store(json& object, json changed);
  std::string nextVersion() { return std::to_string(++version_); }

  Clock& clock_;
  io::CertificateAuthority ca_;
  io::TlsIdentity identity_;
  std::unique_ptr<io::HttpServer> server_;
  std::map<std::string, json> nodes_;
  std::map<std::string, json> pods_;  // by namespace/name
  std::map<std::string, Budget> budgets_;
  long version_ = 1000;
  long last_uid_ = 0;
};

}  // namespace muster::pool::test
