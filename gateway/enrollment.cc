// SPDX-License-Identifier: Apache-2.0
#include "gateway/enrollment.h"

#include "base/ip_address.h"

#include "base/io/key_id.h"
#include "base/io/side_thread.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "base/log.h"
#include "gateway/gateway_server.h"
#include "inventory/model/cluster.h"
#include "inventory/model/leases.h"
#include "inventory/model/networks.h"
#include "wire/json_reader.h"

namespace muster::gateway {
namespace {

/// A server that does not answer holds up who asks it for as long as its patience lasts: for so
/// long only the journal's thread does.
constexpr std::chrono::seconds kStoreAway{60};

constexpr const char* kTwoKeys =
    "two machines asked to enroll as this node in one arming, each with a key of its own; neither "
    "is listened to";

std::string keyOf(const NodeName& node) { return "agent.enrolment." + node.str(); }

std::string approvalOf(const NodeName& node) { return "agent.approved-key." + node.str(); }

/// The key that the installed agent called with last, as stores of earlier versions have it.
std::string keyOfEarlierStores(const NodeName& node) { return "agent.key." + node.str(); }

std::string hashOf(const NodeName& node, const Mac& mac, std::string_view id) {
  return io::sha256Hex("muster-enrolment/1\n" + node.str() + "\n" + mac.str() + "\n" +
                       std::string(id));
}

}  // namespace

struct Enrollment::Record {
  enum class State { Issued, Used, Void } state = State::Issued;
  std::string hash;
  WallTime expires{};
  std::string csr_hash, key_id;  ///< of the first request that came with a proof
  std::string lease;             ///< expiry of the node's DHCP lease when it was armed

  bool used() const { return state == State::Used; }
  std::string str() const {
    const auto* word = state == State::Issued ? "issued" : used() ? "used" : "void";
    return jsonText(nlohmann::json{{"state", word},
                                   {"hash", hash},
                                   {"expires", muster::toString(expires)},
                                   {"csr", csr_hash},
                                   {"key", key_id},
                                   {"lease", lease}});
  }
  static Result<Record> parse(const std::string& text) {
    TRY(object, wire::parseObject(text, wire::kMaxMessageBytes, "stored enrollment"));
    wire::JsonReader reader(object, "enrollment");
    Record record;
    const auto word = reader.text("state", wire::kMaxNameBytes);
    record.state = word == "issued" ? State::Issued : word == "used" ? State::Used : State::Void;
    record.hash = reader.text("hash", wire::kMaxNameBytes);
    record.csr_hash = reader.text("csr", wire::kMaxNameBytes);
    record.key_id = reader.text("key", wire::kMaxNameBytes);
    record.lease = reader.text("lease", wire::kMaxNameBytes);
    auto expires = parseWallTime(reader.text("expires", wire::kMaxNameBytes));
    TRY_OK(reader.finish());
    if (!expires) return fail(expires.error());
    record.expires = *expires;
    return record;
  }
};

Enrollment::Enrollment(const inventory::Cluster& cluster, const signer::Authority& ca,
                       lifecycle::Store& store, Clock& clock, const NetworkEvidence& evidence)
    : ca_(ca),
      store_(store),
      clock_(clock),
      cluster_(cluster),
      evidence_(evidence),
      attestor_(cluster, store, clock),
      journal_(std::make_unique<lifecycle::Journal>(store)) {
  for (const auto& node : cluster.nodes) {
    by_name_[node.name] = &node;
    by_mac_[node.mac] = &node;
  }
  leases_addresses_ =
      !cluster.networks.empty() && inventory::leasesAddresses(cluster.provisioning());
}

const inventory::Node* Enrollment::find(const NodeName& node) const {
  auto it = by_name_.find(node);
  return it == by_name_.end() ? nullptr : it->second;
}

Enrollment::~Enrollment() {
  journal_.reset();
  for (const auto& [key, value] : pending_writes_)
    if (const auto stored = store_.putValue(key, value); !stored)
      logWarning("agent", "{} was not stored: {}", key, stored.error().str());
}

void Enrollment::attach(const asio::any_io_executor& control) {
  journal_->attach(control);
  attached_ = true;
}

Result<void> Enrollment::persist(const std::string& key, const std::string& value,
                                 const std::string& what) {
  if (!attached_) return store_.putValue(key, value);
  pending_writes_[key] = value;
  journal_->post<void>([key, value](lifecycle::Store& store) { return store.putValue(key, value); },
                       [this, key, value, what](const Result<void>& stored) {
                         if (!stored)
                           logWarning("agent", "{} was not stored: {}", what, stored.error().str());
                         if (const auto last = pending_writes_.find(key);
                             last != pending_writes_.end() && last->second == value)
                           pending_writes_.erase(last);
                       });
  return {};
}

Result<std::optional<std::string>> Enrollment::persisted(const std::string& key) {
  const auto fresh = pending_writes_.find(key);
  return fresh == pending_writes_.end() ? store_.getValue(key) : std::optional(fresh->second);
}

Result<std::string> Enrollment::openEnrollment(const NodeName& name, const Mac& mac) {
  const auto* node = find(name);
  if (!node) return fail(ErrorCode::NotFound, "node " + name.str() + " is not in the inventory");
  if (node->mac != mac)
    return fail(ErrorCode::Conflict,
                "the MAC of " + name.str() + " is " + node->mac.str() + ", not " + mac.str());
  std::string id = io::randomToken();
  Record record{Record::State::Issued,
                hashOf(name, mac, id),
                clock_.now() + limitHere(clock_, kEnrollmentWindow),
                {},
                {},
                {}};
  if (leases_addresses_) {
    TRY(lease, evidence_.leaseOf(mac));
    if (lease) record.lease = lease->expires;
  }
  TRY_OK(persist(keyOf(name), record.str(), "the arming of " + name.str()));
  std::erase_if(reported_, [&](const auto& entry) { return entry.first == name; });
  return id;
}

bool Enrollment::isExpectedAddress(const inventory::Node& node,
                                   const std::string& remote_address) const {
  if (!leases_addresses_ || node.address.value() == 0) return true;
  const auto from = Ipv4::parse(remote_address);
  return from && *from == node.address;
}

Result<const inventory::Node*> Enrollment::callerOf(const std::string& told_mac,
                                                    const std::string& remote_address) {
  auto mac = Mac::parse(told_mac);
  if (!mac)
    return fail(ErrorCode::InvalidInput,
                "enrollment with a MAC that is none: " + mac.error().str());
  auto node = by_mac_.find(*mac);
  if (node == by_mac_.end()) {
    logWarning("agent", "enrollment refused: no node of the inventory has the MAC {}", mac->str());
    return fail(ErrorCode::Denied, "no node of the inventory has the MAC " + mac->str());
  }
  if (!isExpectedAddress(*node->second, remote_address)) {
    return refuse(*node->second,
                  fmt::format("{} asked to enroll as this node, but its address is {}",
                              remote_address, node->second->address.str()));
  }
  return node->second;
}

Async<wire::EnrollResponse> Enrollment::enroll(wire::EnrollRequest request,
                                               std::string remote_address) {
  CO_TRY(node, callerOf(request.mac, remote_address));
  co_return co_await redeem(*node, std::move(request), std::nullopt, std::move(remote_address));
}

bool Enrollment::mustAttest(const std::string& told_mac) const {
  const auto mac = Mac::parse(told_mac);
  const auto node = mac ? by_mac_.find(*mac) : by_mac_.end();
  return node != by_mac_.end() && attestor_.policyOf(*node->second);
}

Result<wire::AttestChallenge> Enrollment::challenge(const wire::AttestRequest& request,
                                                    const std::string& remote_address) {
  TRY(node, callerOf(request.mac, remote_address));
  TRY_OK(armedRecord(*node, request.enrollment));
  auto challenge = attestor_.challenge(*node, request);
  if (!challenge && challenge.error().code() != ErrorCode::InvalidInput)
    return refuse(*node, challenge.error().str());
  return challenge;
}

Async<wire::EnrollResponse> Enrollment::enrollAttested(wire::AttestedRequest request,
                                                       std::string remote_address) {
  CO_TRY(node, callerOf(request.mac, remote_address));
  wire::EnrollRequest plain{request.enrollment, request.csr_pem, request.mac};
  co_return co_await redeem(*node, std::move(plain), std::move(request), std::move(remote_address));
}

Result<Enrollment::Record> Enrollment::armedRecord(const inventory::Node& node,
                                                   const std::string& id) {
  TRY(stored, persisted(keyOf(node.name)));
  if (!stored) return refuse(node, "it was not armed");
  TRY(record, Record::parse(*stored));
  if (!io::equalConstantTime(record.hash, hashOf(node.name, node.mac, id))) {
    return refuse(node, "the enrollment id is not that of the node's last arming");
  }
  if (record.state == Record::State::Void) return refuse(node, kTwoKeys);
  if (clock_.now() > record.expires)
    return refuse(node, "the arming has expired at " + muster::toString(record.expires));
  return record;
}

Result<NetworkProof> Enrollment::proofOf(const inventory::Node& node, const Record& record,
                                         const wire::EnrollRequest& request,
                                         const std::string& remote_address) {
  TRY(shows, proofByNetwork(cluster_, node, remote_address, record.lease, evidence_));
  if (shows.proof) return shows;
  TRY(approved, store_.getValue(approvalOf(node.name)));
  if (approved && *approved == wire::requestFingerprint(request.csr_pem))
    return NetworkProof{EnrollmentProof::Approval, ProofGap::None};
  return shows;
}

Async<wire::EnrollResponse> Enrollment::redeem(const inventory::Node& node,
                                               wire::EnrollRequest request,
                                               std::optional<wire::AttestedRequest> attested,
                                               std::string remote_address) {
  CO_TRY(record, armedRecord(node, request.enrollment));
  const bool by_tpm = attestor_.policyOf(node) != nullptr;
  if (by_tpm && !attested)
    co_return fail(ErrorCode::Denied,
                   "this node must prove itself by its TPM");  // every boot begins so: no finding
  CO_TRY(shows, proofOf(node, record, request, remote_address));
  // Before the TPM is looked at: the first one that proves itself is the node's from then on.
  bool tpm_is_known = false;
  if (by_tpm) {
    CO_TRY(known, attestor_.knows(node.name));
    tpm_is_known = known;
  }
  if (!shows.proof && !tpm_is_known) {
    co_return refuse(
        node, describe(shows.gap, node, remote_address),
        fmt::format("is it the node? Compare the key's fingerprint with the one on its console: "
                    "when it is {0}, say: muster bmc approve-key {1} {0}. Otherwise find who uses "
                    "{2}, and power-cycle the node through muster",
                    wire::requestFingerprint(request.csr_pem), node.name.str(), remote_address));
  }
  if (by_tpm) {
    if (const auto proved = attestor_.check(node, *attested); !proved)
      co_return refuse(node, proved.error().str());
  }
  const auto proof = shows.proof.value_or(EnrollmentProof::KnownTpm);

  auto signed_one = co_await sign(
      node.name, request.csr_pem,
      kAgentCertificateLifetime);  // before the arming is used: a bad request costs nothing
  if (!signed_one && signed_one.error().code() == ErrorCode::Unavailable)
    leaveWaiting(node, signed_one.error());
  CO_TRY(made, std::move(signed_one));
  const std::string csr_hash = io::sha256Hex(request.csr_pem);
  attach(co_await asio::this_coro::executor);
  if (record.used() && record.csr_hash != csr_hash) {
    co_return co_await voidArming(node, std::move(record));
  }
  Record used = record;
  used.state = Record::State::Used;
  used.csr_hash = csr_hash;
  used.key_id = made.key_id;
  // A controller that died between the two leaves a used arming; the same request then does the
  // rest.
  CO_TRY(ours, co_await journal_->write<bool>(
                   [name = node.name, was = record.str(), is = used.str(), before = record.used(),
                    key_id = made.key_id](lifecycle::Store& store) -> Result<bool> {
                     if (!before) {
                       TRY(ours, store.exchangeValue(keyOf(name), was, is));
                       if (!ours) return false;
                     }
                     TRY_OK(changeKeys(store, name, [&](NodeKeys& keys) -> Result<bool> {
                       return keys.enrolled(key_id);
                     }));
                     return true;
                   }));
  if (!ours) {
    CO_TRY(now, armedRecord(node, request.enrollment));  // somebody was first at the same moment
    if (!now.used() || now.csr_hash == csr_hash)
      co_return fail(Error(ErrorCode::Conflict,
                           "the node is being armed or enrolled at this moment; ask again")
                         .retryable(true));
    co_return co_await voidArming(node, std::move(now));
  }
  admitted_.erase(node.name);
  if (!record.used())
    logInfo("agent", "{} enrolled (MAC {}, proof: {})", node.name.str(), node.mac.str(),
            describe(proof));
  co_return std::move(made.answer);
}

Async<wire::EnrollResponse> Enrollment::voidArming(const inventory::Node& node, Record record) {
  Record ended = record;
  ended.state = Record::State::Void;
  CO_TRY_OK(co_await journal_->write<bool>(
      [name = node.name, was = record.str(), is = ended.str(),
       key_id = record.key_id](lifecycle::Store& store) -> Result<bool> {
        TRY_OK(store.exchangeValue(
            keyOf(name), was,
            is));  // not ours: it was made void, or the node was armed anew, by another controller
        TRY_OK(changeKeys(store, name,
                          [&](NodeKeys& keys) -> Result<bool> { return keys.endRam(key_id); }));
        return true;
      }));
  admitted_.erase(node.name);
  co_return refuse(
      node, kTwoKeys,
      "a machine answers with this node's MAC and address that is not the node: find it (the "
      "switch's MAC table shows its port), then power-cycle the node through muster");
}

Result<void> approveKey(lifecycle::Store& store, const NodeName& node,
                        const std::string& fingerprint) {
  const bool is_one = fingerprint.size() == wire::requestFingerprint("").size() &&
                      fingerprint.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_one)
    return fail(ErrorCode::InvalidInput,
                "\"" + fingerprint +
                    "\" is no fingerprint: it has 32 hex digits, as on the node's console");
  return store.putValue(approvalOf(node), fingerprint);
}

// ---- whose key is listened to

Async<std::optional<Error>> Enrollment::changeStored(
    NodeName node, std::function<Result<bool>(NodeKeys&)> change) {
  attach(co_await asio::this_coro::executor);
  co_return co_await journal_->write<std::optional<Error>>(
      [node, change = std::move(change)](lifecycle::Store& store) -> Result<std::optional<Error>> {
        std::optional<Error> refused;
        TRY_OK(changeKeys(store, node, [&](NodeKeys& keys) -> Result<bool> {
          auto answer = change(keys);
          if (answer) return answer;
          refused = answer.error();
          return false;
        }));
        return refused;
      });
}

Async<void> Enrollment::admit(NodeName name, std::string key_id, wire::Mode mode, bool ram_calls) {
  if (clock_.steady() >= bypass_store_until_) {
    auto keys = loadKeys(
        store_, name);  // nearly every poll: nothing to be stored, so nobody waits for the disk
    if (!keys && keys.error().canRetry()) bypass_store_until_ = clock_.steady() + kStoreAway;
    const auto change = keys ? keys->admitPoll(key_id, mode, ram_calls) : Result<bool>(true);
    if (change && !*change) {
      admitted_[name] = {key_id, mode};
      co_return Result<void>();
    }
  }
  const auto refused = co_await changeStored(name, [key_id, mode, ram_calls](NodeKeys& keys) {
    return keys.admitPoll(key_id, mode, ram_calls);
  });
  const std::pair mine(key_id, mode);
  if (!refused) {
    const auto last = admitted_.find(name);
    if (refused.error().canRetry() && last != admitted_.end() && last->second == mine)
      co_return Result<void>();  // the store is away, the node is not
    co_return fail(refused.error());
  }
  if (!*refused) {
    admitted_[name] = mine;
    co_return Result<void>();
  }
  const auto* node = find(name);
  if ((*refused)->code() != ErrorCode::Denied || !node) co_return fail(**refused);
  co_return refuse(
      *node, fmt::format("an agent called in {} mode, and {}", toString(mode), (*refused)->text()),
      fmt::format(
          "does {0} start from another disk than the one that was imaged, or has somebody a copy "
          "of its old disk? To image it again: muster bmc revoke-key {0}, muster wipe {0} --reason "
          "…, "
          "muster apply --nodes {0}. When the system is right as it is (nothing was written, or "
          "the controller's store came back from an older backup): muster bmc forget-key {0}",
          name.str()));
}

/// The keys that it ends are refused, and the new one is known, before anybody has it.
Async<wire::EnrollResponse> Enrollment::issue(NodeName name, std::string csr_pem,
                                              std::chrono::hours lifetime, Change change) {
  CO_TRY(made, co_await sign(name, std::move(csr_pem), lifetime));
  CO_TRY(refused, co_await changeStored(name, [change = std::move(change), fresh = made.key_id](
                                                  NodeKeys& keys) { return change(keys, fresh); }));
  if (!refused) co_return std::move(made.answer);
  const auto* node = find(name);
  if (!node) co_return fail(*refused);
  co_return refuse(*node, "it asked for a certificate, and " + refused->text());
}

Async<wire::EnrollResponse> Enrollment::certify(NodeName node, std::string key_id,
                                                std::string csr_pem) {
  co_return co_await issue(
      std::move(node), std::move(csr_pem), kInstalledCertificateLifetime,
      [key_id](NodeKeys& keys, const std::string& fresh) { return keys.certified(key_id, fresh); });
}

Async<wire::EnrollResponse> Enrollment::renewRam(NodeName node, std::string key_id,
                                                 std::string csr_pem) {
  co_return co_await issue(std::move(node), std::move(csr_pem), kAgentCertificateLifetime,
                           [key_id](NodeKeys& keys, const std::string& fresh) {
                             return keys.renewedRam(key_id, fresh);
                           });
}

Async<wire::EnrollResponse> Enrollment::certifyLate(NodeName name, std::string key_id,
                                                    std::string csr_pem,
                                                    std::string remote_address) {
  const auto* node = find(name);
  if (!node) co_return fail(ErrorCode::Denied, "node " + name.str() + " is not in the inventory");
  if (!isExpectedAddress(*node, remote_address))
    co_return refuse(*node, fmt::format("{} showed its expired certificate, but its address is {}",
                                        remote_address, node->address.str()));
  CO_TRY(before, store_.getValue(keyOfEarlierStores(name)));
  CO_TRY(
      answer,
      co_await issue(
          name, std::move(csr_pem), kInstalledCertificateLifetime,
          [key_id, before](NodeKeys& keys, const std::string& fresh) -> Result<bool> {
            if (keys.disk.holds(key_id) || (keys.disk.open && before == key_id && !key_id.empty()))
              return keys.certified(key_id, fresh);
            return fail(ErrorCode::Denied,
                        "its own has expired, and is not the one that its agent called with last");
          }));
  logInfo("agent", "{} renews a certificate that has expired", name.str());
  co_return answer;
}

Async<void> Enrollment::endInstalled(NodeName node, std::string order) {
  const auto done = co_await changeStored(
      node, [order](NodeKeys& keys) -> Result<bool> { return keys.endInstalled(order); });
  if (!done)
    co_return fail(
        Error(done.error()).within("the key of the installed system could not be ended"));
  co_return Result<void>();
}

Async<void> Enrollment::restoreInstalled(NodeName node, std::vector<std::string> orders) {
  CO_TRY(keys, loadKeys(store_, node));  // an old report, nearly always
  const auto ours = std::find(orders.begin(), orders.end(), keys.retired.order);
  if (keys.retired.order.empty() || ours == orders.end()) co_return Result<void>();
  CO_TRY_OK(co_await changeStored(node, [order = *ours](NodeKeys& now) -> Result<bool> {
    return now.restoreInstalled(order);
  }));
  logInfo("agent", "{} touched no disk: the key of its installed system is accepted again",
          node.str());
  co_return Result<void>();
}

Async<Enrollment::Issued> Enrollment::sign(NodeName node, std::string csr_pem,
                                           std::chrono::hours lifetime) {
  co_return co_await io::aside<Result<Issued>>(
      [ca = ca_, node, csr_pem, lifetime]() -> Result<Issued> {
        TRY(certificate, ca.signAgent(csr_pem, node.str(), lifetime));
        TRY(key_id, io::keyIdOf(certificate));
        return Issued{wire::EnrollResponse{certificate, ca.certificatePem(), node.str()}, key_id};
      });
}

void Enrollment::leaveWaiting(const inventory::Node& node, const Error& why) {
  if (!reported_.insert({node.name, "the signer"}).second) return;
  const auto text = "enrollment of " + node.name.str() + " waits: " + why.str();
  logWarning("agent", "{}", text);
  const lifecycle::Finding finding{{lifecycle::Subject(node.name), FacetName("enrolled")},
                                   Severity::Warning,
                                   text,
                                   "MAC " + node.mac.str(),
                                   "its agent asks again by itself; look at the signer: systemctl "
                                   "status muster-signer",
                                   clock_.now(),
                                   lifecycle::kEnrollmentSource};
  if (auto persisted = store_.addFinding(finding); !persisted)
    logWarning("agent", "finding not stored: {}", persisted.error().str());
}

std::unexpected<Error> Enrollment::refuse(const inventory::Node& node, const std::string& why) {
  return refuse(
      node, why,
      "if no one else uses this MAC, power-cycle the node through muster: it is armed again");
}

std::unexpected<Error> Enrollment::refuse(const inventory::Node& node, const std::string& why,
                                          const std::string& what_to_do) {
  std::string text = "enrollment of " + node.name.str() + " refused: " + why;
  if (reported_.insert({node.name, why}).second) {
    logWarning("agent", "{}", text);
    lifecycle::Finding finding{{lifecycle::Subject(node.name), FacetName("enrolled")},
                               Severity::Warning,
                               text,
                               "MAC " + node.mac.str(),
                               what_to_do,
                               clock_.now(),
                               lifecycle::kEnrollmentSource};
    if (auto persisted = store_.addFinding(finding); !persisted)
      logWarning("agent", "finding not stored: {}", persisted.error().str());
  }
  return fail(ErrorCode::Denied, text);
}

}  // namespace muster::gateway
