// SPDX-License-Identifier: Apache-2.0
// The tables of pools: Slurm, Kubernetes, and how a node is drained.
#include "base/io/regular_file.h"
#include "inventory/model/pools.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

namespace muster::inventory {

namespace {

constexpr int kMaxDrainMinutes = 60 * 24 * 30;
constexpr int kMaxReserveHours = 24 * 30;
constexpr int kMaxCheckHours = 24 * 90;
constexpr int kMaxCheckedNodes = 1'000;
constexpr std::size_t kMaxPemBytes = 1u << 20;
constexpr std::string_view kOwnPrefix = "muster/";

ObjectSpec make_activeChecksSpec() {
  return Table<ActiveChecks>("active_checks", "active_checks",
                             "Checks on idle nodes of the pool, by `muster monitor`. A short "
                             "reservation keeps jobs away meanwhile; as soon as one waits that may "
                             "want the node, the check ends and the reservation is deleted.")
      .required("gate", &ActiveChecks::gate, reference("gates"),
                "The gate whose checks of the node itself are run; of level quick.")
      .optional("every_hours", &ActiveChecks::every_hours, integer(1, kMaxCheckHours),
                "Hours from one check of a node to its next.")
      .optional("nodes", &ActiveChecks::nodes, integer(1, kMaxCheckedNodes),
                "At most so many nodes at the same time.")
      .optional("idle_percent", &ActiveChecks::idle_percent, integer(1, 100),
                "And at most this share of the idle nodes, but always one.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(activeChecksSpec)

ObjectSpec make_slurmSpec() {
  return Table<SlurmPool>("slurm", "slurm", "A Slurm cluster.")
      .required("partition", &SlurmPool::partition, text(kEntryName),
                "The partition that the nodes belong to.")
      .optional("config", &SlurmPool::config, text(kPath),
                "slurm.conf of the controller's side; absent: the lab's, or /etc/slurm/slurm.conf.")
      .optional("reserve_hours", &SlurmPool::reserve_hours, integer(1, kMaxReserveHours),
                "So many hours before a maintenance window opens, the nodes of a run that waits "
                "for it are reserved in Slurm, so that jobs end before; absent: never.")
      .optional("active_checks", &SlurmPool::active_checks, object(activeChecksSpec),
                "Checks on idle nodes; absent: none.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(slurmSpec)

enum class Pem { Certificate, PrivateKey };

/// A PEM file that is not what it should be would show only when the first node joins.
void checkPem(const std::filesystem::path& path, Pem kind, const Value& where, Reader& reader) {
  const bool is_key = kind == Pem::PrivateKey;
  const std::string_view wanted = is_key ? "private key" : "certificate";
  auto say = [&](std::string_view what, std::string hint) {
    reader.error(where, fmt::format("the file {} {}", path.string(), what), std::move(hint));
  };
  const auto read = io::readRegularFile(path, kMaxPemBytes);
  if (!read) return say("cannot be read", fmt::format("put a PEM file with a {} there", wanted));
  const std::string& pem = *read;
  const bool found =
      pem.find(is_key ? "PRIVATE KEY-----" : "-----BEGIN CERTIFICATE-----") != std::string::npos;
  if (!found)
    say(fmt::format("holds no {} in PEM form", wanted),
        is_key ? "it begins with -----BEGIN PRIVATE KEY-----, or EC/RSA PRIVATE KEY"
               : "it begins with -----BEGIN CERTIFICATE-----");
}

/// A key that names a PEM file.
template <class T>
void pemFile(Table<T>& table, std::string_view key, std::filesystem::path T::* member, Pem kind,
             std::string_view doc) {
  table.custom(key, false, text(kPath), doc,
               [member, kind](T& object, const Value& value, const Shape& shape, Reader& reader) {
                 readInto(object.*member, value, shape, reader);
                 if ((object.*member).empty() || !reader.sees_secrets) return;
                 if (kind == Pem::PrivateKey) checkSecretFile(object.*member, value, reader);
                 checkPem(object.*member, kind, value, reader);
               });
  table.prints(member);
}

ObjectSpec make_evictSpec() {
  return Table<EvictionRules>(
             "evict", "evict",
             "Which pods a drain asks Kubernetes to evict; their PodDisruptionBudgets decide when. "
             "Pods of DaemonSets and static pods are "
             "always left alone.")
      .optional("jobs", &EvictionRules::jobs, choice({"wait", "evict"}),
                "Pods with restartPolicy Never or OnFailure: wait until they have ended, or evict "
                "them, which ends what they compute.")
      .optional("empty_dir", &EvictionRules::empty_dir, choice({"hold", "evict"}),
                "Pods with an emptyDir volume, whose content is lost: hold the drain and name "
                "them, or evict them.")
      .optional(
          "unmanaged", &EvictionRules::unmanaged, choice({"hold", "evict"}),
          "Pods that no controller starts again: hold the drain and name them, or evict them.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(evictSpec)

ObjectSpec make_kubernetesSpec() {
  Table<KubernetesPool> table("kubernetes", "kubernetes",
                              "A Kubernetes cluster, through its API server. docs/pools.md says "
                              "which rights muster needs there.");
  table.required("server", &KubernetesPool::server, text(kServerUrl), "Its API server.");
  pemFile(table, "ca", &KubernetesPool::ca, Pem::Certificate,
          "PEM file of the authority that signed the server's certificate.");
  table
      .optional("pin", &KubernetesPool::pin, text(kSha256),
                "SHA-256 of the server's own certificate (DER), instead of ca.")
      .optional("token", &KubernetesPool::token, object(secretSpec),
                "The bearer token of muster's service account.");
  pemFile(table, "client_certificate", &KubernetesPool::client_certificate, Pem::Certificate,
          "PEM file of a client certificate, instead of a token.");
  pemFile(table, "client_key", &KubernetesPool::client_key, Pem::PrivateKey,
          "PEM file of its key.");
  return table
      .optional("domain", &KubernetesPool::domain, text(kDomain),
                "Nodes are called NAME.domain there; absent: NAME.")
      .optional("taint", &KubernetesPool::taint, text(kTaint),
                "On nodes that muster keeps out. Start the kubelets with --register-with-taints "
                "and this taint, so that no pod comes "
                "before the certificate.")
      .optional("labels", &KubernetesPool::labels, mapOf(text(kLabelValue), kLabelKey),
                "Labels that a node gets when it joins.")
      .optional("evict", &KubernetesPool::evict, object(evictSpec), "What a drain may evict.")
      .printsAlways({"domain", "taint", "labels", "evict"})
      .exactlyOne({"ca", "pin"})
      .exactlyOne({"token", "client_certificate"})
      .needs("client_certificate", "client_key")
      .needs("client_key", "client_certificate")
      .check([](KubernetesPool&, const Value& map, Reader& reader) {
        for (const auto& [key, value] : place(map, "labels").entries)
          if (key.text.starts_with(kOwnPrefix))
            reader.error(key, fmt::format("the label {} is muster's own", shorten(key.text)),
                         "take another prefix than muster/");
      })
      .spec();
}
MUSTER_SPEC(kubernetesSpec)

ObjectSpec make_drainSpec() {
  return Table<DrainPolicy>("drain", "drain",
                            "How long a drain may take, and what happens then. What runs on a node "
                            "is never ended silently.")
      .required("deadline_minutes", &DrainPolicy::deadline_minutes, integer(1, kMaxDrainMinutes),
                "Minutes from the order to drain.")
      .optional("on_timeout", &DrainPolicy::on_timeout, choice({"wait", "undrain", "delete-pods"}),
                "wait: the node stays drained of new work, and muster says what holds it. undrain: "
                "it takes work again, if its certificate is "
                "valid. delete-pods (Kubernetes): what is left is deleted, against its disruption "
                "budgets, and a finding names it.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(drainSpec)

ObjectSpec make_poolSpec() {
  return Table<Pool>("pool", "pool", "Where certified nodes work.")
      .optional("slurm", &Pool::slurm, object(slurmSpec), "Slurm.")
      .optional("kubernetes", &Pool::kubernetes, object(kubernetesSpec), "Kubernetes.")
      .optional("drain", &Pool::drain, object(drainSpec),
                "Draining; absent: a drain waits as long as it takes.")
      .optional("maintenance", &Pool::maintenance, listOf(object(maintenanceSpec), 1),
                "Windows in which runs may begin to take its nodes out of work; absent: always.")
      .exactlyOne({"slurm", "kubernetes"})
      .check([](Pool& pool, const Value& map, Reader& reader) {
        if (pool.slurm && pool.drain.on_timeout == OnTimeout::DeletePods)
          reader.error(place(place(map, "drain"), "on_timeout"),
                       "Slurm has no pods, and muster never ends a Slurm job",
                       "write wait or undrain");
      })
      .spec();
}

}  // namespace

MUSTER_SPEC(poolSpec)

}  // namespace muster::inventory
