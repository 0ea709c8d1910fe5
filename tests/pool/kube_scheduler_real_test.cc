// SPDX-License-Identifier: Apache-2.0
// The pool phase against a real API server: set MUSTER_TEST_KUBECONFIG. It makes a node object, a
// namespace and pods of its own (no kubelet runs for them) and removes them again; it touches no
// other node.
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/fakes/fake_process_runner.h"
#include "tests/pool/context.h"
#include "tests/pool/kube_server.h"
#include "tests/run_async.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/parse/document.h"
#include "pool/kube_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::pool::test {
namespace {

using namespace lifecycle;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using json = nlohmann::json;

constexpr std::size_t kMaxFile = 1u << 20;

/// One entry of a named list of a kubeconfig ("clusters", "users"): {name, SECTION: {…}}.
const inventory::Value* entryOf(const inventory::Value& root, std::string_view list,
                                std::string_view name, std::string_view section) {
  const auto* all = root.find(list);
  if (!all) return nullptr;
  for (const auto& one : all->items) {
    const auto* called = one.find("name");
    if (called && called->text == name) return one.find(section);
  }
  return nullptr;
}

/// The same for a real cluster and for the double, so that the double cannot drift away unseen.
class KubeCluster : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const bool real = GetParam() == std::string("real");
    const auto doubled = real ? std::filesystem::path() : startDouble();
    const char* config = real ? std::getenv("MUSTER_TEST_KUBECONFIG") : doubled.c_str();
    if (!config || !*config)
      GTEST_SKIP() << "MUSTER_TEST_KUBECONFIG is not set: no Kubernetes to test with";
    auto text = io::readFile(config, kMaxFile);
    ASSERT_TRUE(text) << text.error().str();
    Diagnostics problems;
    auto root = inventory::parseYaml(*text, config, problems);
    ASSERT_TRUE(root) << config;
    ASSERT_NO_FATAL_FAILURE(readConfig(*root, std::filesystem::path(config).parent_path()));
    api_ = std::make_unique<kube::Api>(*pool().kubernetes, io::makeHttpClient, clock_);
    const auto suffix = io::toHex(io::randomToken(4)).substr(0, 8);
    node_ = "muster-test-" + suffix;
    space_ = "muster-test-" + suffix;
    cluster_.nodes = {cluster_.nodes.front()};
    cluster_.nodes.front().name = NodeName(node_);
    certificates_.valid.insert(NodeName(node_));
    ASSERT_NO_FATAL_FAILURE(
        send("POST", "/api/v1/namespaces",
             {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", space_}}}}));
    ASSERT_NO_FATAL_FAILURE(
        send("POST", "/api/v1/nodes",
             {{"apiVersion", "v1"},
              {"kind", "Node"},
              {"metadata", {{"name", node_}}},
              {"spec", {{"taints", {{{"key", "muster/out"}, {"effect", "NoSchedule"}}}}}}}));
    ASSERT_NO_FATAL_FAILURE(heartbeat());
    phase_ = makePoolPhase(cluster_, agents_, certificates_, processes_, clock_, PoolOptions{});
  }
  void TearDown() override {
    if (!api_) return;
    for (const auto& name : pods_) call("DELETE", podPath(name), {{"gracePeriodSeconds", 0}});
    call("DELETE", "/api/v1/nodes/" + node_, nullptr);
    call("DELETE", "/api/v1/namespaces/" + space_, nullptr);
  }

  /// Answers its kubeconfig.
  std::filesystem::path startDouble() {
    double_ = std::make_unique<KubeServer>(io_.get_executor(), clock_, folder_.path());
    double_->admin = true;
    auto identity = double_->clientIdentity("admin");
    auto text = fmt::format(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\ncontexts:\n- name: test\n  context: "
        "{{cluster: here, user: admin}}\n"
        "clusters:\n- name: here\n  cluster: {{server: \"{}\", certificate-authority-data: {}}}\n"
        "users:\n- name: admin\n  user: {{client-certificate-data: {}, client-key-data: {}}}\n",
        double_->url(), io::toBase64(double_->caPem()), io::toBase64(identity.certificate_pem),
        io::toBase64(identity.key_pem.reveal()));
    EXPECT_TRUE(io::writeFileAtomic(folder_ / "kubeconfig", text, 0600));
    return folder_ / "kubeconfig";
  }
  inventory::Pool& pool() { return cluster_.pools["batch"]; }
  std::string podPath(const std::string& name) const {
    return fmt::format("/api/v1/namespaces/{}/pods/{}", space_, name);
  }

  /// A credential of the kubeconfig: KEY names a file, KEY-data holds it.
  std::filesystem::path fileOf(const inventory::Value& section, const std::string& key,
                               const std::filesystem::path& folder) {
    if (const auto* data = section.find(key + "-data")) {
      auto decoded = io::fromBase64(data->text);
      EXPECT_TRUE(decoded && io::writeFileAtomic(folder_ / key, *decoded, 0600));
      return folder_ / key;
    }
    const auto* named = section.find(key);
    return named ? folder / named->text : std::filesystem::path();
  }

  void readConfig(const inventory::Value& root, const std::filesystem::path& folder) {
    const auto* current = root.find("current-context");
    const auto* context = entryOf(root, "contexts", current ? current->text : "", "context");
    ASSERT_TRUE(context) << "the kubeconfig has no current context";
    const auto* cluster = entryOf(root, "clusters", context->find("cluster")->text, "cluster");
    const auto* user = entryOf(root, "users", context->find("user")->text, "user");
    ASSERT_TRUE(cluster && user) << "the current context names no cluster or user of the file";
    pool().slurm.reset();
    auto& kubernetes = pool().kubernetes.emplace();
    kubernetes.evict.unmanaged =
        inventory::FragilePods::Evict;  // a controller would start others, or collect these
    kubernetes.server = cluster->find("server")->text;
    kubernetes.ca = fileOf(*cluster, "certificate-authority", folder);
    if (const auto* token = user->find("token")) {
      ASSERT_TRUE(io::writeFileAtomic(folder_ / "token", token->text, 0600));
      kubernetes.token.source = std::filesystem::path(folder_ / "token");
    } else {
      kubernetes.client_certificate = fileOf(*user, "client-certificate", folder);
      kubernetes.client_key = fileOf(*user, "client-key", folder);
      ASSERT_FALSE(kubernetes.client_key.empty())
          << "the user of the kubeconfig has neither a token nor a client certificate";
    }
  }

  Result<kube::Answer> call(const std::string& method, const std::string& path, json body,
                            std::string_view type = kube::kJson) {
    kube::Request request;
    request.method = method;
    request.path = path;
    request.content_type = type;
    request.body = std::move(body);
    return muster::test::runAsync(io_, api_->send(std::move(request)));
  }
  void send(const std::string& method, const std::string& path, json body,
            std::string_view type = kube::kJson) {
    auto answer = call(method, path, std::move(body), type);
    ASSERT_TRUE(answer) << answer.error().str();
    ASSERT_TRUE(answer->ok()) << api_->failure(*answer, method + " " + path).str();
  }
  /// What a kubelet would say.
  void heartbeat() {
    const auto now = toString(clock_.now()).substr(0, 19) + "Z";
    send("PATCH", fmt::format("/api/v1/nodes/{}/status", node_),
         {{"status",
           {{"conditions",
             {{{"type", "Ready"},
               {"status", "True"},
               {"reason", "KubeletReady"},
               {"message", "test"},
               {"lastHeartbeatTime", now},
               {"lastTransitionTime", now}}}}}}},
         kube::kMergePatch);
  }
  void addPod(const std::string& name, const std::string& restart_policy) {
    pods_.push_back(name);
    send("POST", fmt::format("/api/v1/namespaces/{}/pods", space_),
         {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"labels", {{"app", "web"}}}}},
          {"spec",
           {{"nodeName", node_},
            {"restartPolicy", restart_policy},
            {"automountServiceAccountToken", false},
            {"tolerations", {{{"operator", "Exists"}}}},
            {"containers", {{{"name", "main"}, {"image", "registry.k8s.io/pause:3.9"}}}}}}});
  }
  std::string step(std::string_view to) {
    auto outcome =
        muster::test::runAsync(io_, phase_->act(poolAction(node_.c_str(), to), context_));
    if (!outcome) return "error: " + outcome.error().str();
    if (const auto* again = std::get_if<Again>(&*outcome)) return "again: " + again->waiting_for;
    if (const auto* blocked = std::get_if<Blocked>(&*outcome)) return "blocked: " + blocked->why;
    return "done";
  }
  std::string observed() {
    auto facts = muster::test::runAsync(io_, phase_->observe(Subject(NodeName(node_))));
    return !facts ? facts.error().str() : facts->front().value;
  }

  muster::test::TempFolder folder_;
  SystemClock clock_;
  asio::io_context io_;
  std::unique_ptr<KubeServer> double_;
  inventory::Cluster cluster_ = poolCluster();
  muster::test::FakeAgentGateway agents_;
  muster::test::FakeProcessRunner processes_;
  Certificates certificates_;
  Context context_;
  std::unique_ptr<kube::Api> api_;
  std::unique_ptr<Phase> phase_;
  std::string node_, space_;
  std::vector<std::string> pods_;
};

TEST_P(KubeCluster, joinsDrainsAndLeavesNoTrace) {
  EXPECT_EQ(observed(), "drained");
  EXPECT_EQ(step("in"), "done");
  EXPECT_EQ(observed(), "in");
  addPod("job", "Never");
  addPod("web", "Always");
  EXPECT_THAT(step("drained"), StartsWith("again"));
  EXPECT_THAT(step("drained"),
              AllOf(HasSubstr("/job runs to its end"), HasSubstr("/web is being evicted")));
  EXPECT_EQ(observed(), "in");
  for (const auto& name : pods_)
    call("DELETE", podPath(name), {{"gracePeriodSeconds", 0}});  // what a kubelet would confirm
  EXPECT_EQ(step("drained"), "done");
  EXPECT_EQ(observed(), "drained");
  heartbeat();
  EXPECT_EQ(step("in"), "done");
}

INSTANTIATE_TEST_SUITE_P(Kubernetes, KubeCluster, ::testing::Values("double", "real"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace muster::pool::test
