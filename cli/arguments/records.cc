// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/records.h"
#include "cli/arguments/arguments.h"
#include "cli/commands/cert.h"

namespace muster::cli {
namespace {

void addAudit(CLI::App& app, Invocation& call) {
  auto& audit = addGroup(app, "audit", "Verify, sign and archive the audit log");
  auto [verify, args] = addCommand(
      audit, "verify",
      "Verify the chain of hashes; exit 1 when an entry was changed, removed, inserted or moved",
      call, auditVerify);
  verify.add_option("file", args.archive, "Verify this archive instead of the log in the store");
  verify.add_option("--expect", args.request.expected,
                    "A hash that was noted elsewhere: it must be in the chain, and an archive must "
                    "end with it");
  verify.add_option("--head", args.request.head,
                    "Signed heads that were exported earlier, as a file (an extract of syslog "
                    "works) or the line itself: the log must still hold each");
  verify
      .add_option("--key", args.request.key,
                  "A public key (PEM) whose heads are accepted too: a retired one, or one of "
                  "another state folder")
      ->check(CLI::ExistingFile);
  asksServer(
      addCommand(audit, "head", "Sign and print the end of the log, to be kept on another machine",
                 call, auditHead),
      call);
  auto [archive, archive_args] =
      addCommand(audit, "archive", "Move old entries into a file; the chain stays verifiable", call,
                 auditArchive);
  archive
      .add_option("--before", archive_args.before,
                  "Entries older than this date (2026-01-31) or time")
      ->required();
  archive
      .add_option("--to", archive_args.to,
                  "A new file; the same file again continues after a crash")
      ->required();
}

void addKeys(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "key",
                         "The site's keys, one for each purpose: images, certificates, firmware, "
                         "audit");
  addCommand(group, "list", "List the keys: which one signs, and which earlier one still verifies",
             call, keyList);
  auto [show, show_args] =
      addCommand(group, "show", "Print the public key (PEM); during a rotation, both public keys",
                 call, keyShow);
  show.add_option("purpose", show_args.purpose)->required();
  auto [rotate, args] = addCommand(
      group, "rotate", "Create a new signing key; the previous one still verifies until --finish",
      call, keyRotate);
  rotate.add_option("purpose", args.purpose)->required();
  auto* finish = rotate.add_flag("--finish", args.finish,
                                 "Finish the rotation: signatures of the previous key are no "
                                 "longer accepted");
  rotate
      .add_flag("--lost", args.lost,
                "The key's file is gone: create a new one; what the lost one has signed no longer "
                "counts")
      ->excludes(finish);
  rotate
      .add_flag("--force", args.force,
                "With --finish: also when nodes have certificates of the previous key; these "
                "become void")
      ->needs(finish);
}

void addCertificates(CLI::App& app, Invocation& call) {
  auto& cert = addGroup(app, "cert", "Certificates of nodes");
  auto [show, show_args] = addCommand(cert, "show", "Show a node's certificate", call, certShow);
  show.add_option("node", show_args.node)->required();
  asksServer(show, call);
  auto [verify, file] = addCommand(
      cert, "verify",
      "Verify one node's certificate, or all; or a certificate file with the site's public key",
      call, certVerify);
  asksServer(verify, call);
  verify.add_option("node", file.node);
  auto* path = verify.add_option("--file", file.certificate,
                                 "A certificate file; needs neither store nor inventory");
  auto* key = verify
                  .add_option("--key", file.key,
                              "The site's public key (PEM, `muster key show certificates`)")
                  ->needs(path);
  path->needs(key);
  verify
      .add_flag("--without-revocations", file.without_revocations,
                "Accept a certificate although no list says whether it was revoked")
      ->needs(path);
  verify.add_option("--as-of", file.as_of,
                    "The signed statement how old the list is; default: the one beside the list");
  verify
      .add_option("--max-list-age", file.max_list_age_hours,
                  "Refuse a list that was not known to be the newest in the last HOURS")
      ->check(CLI::Range(1, 24 * 365));
  verify
      .add_option("--least-number", file.least_number,
                  "Refuse a list with a smaller number: one that is older than another seen before")
      ->check(CLI::NonNegativeNumber);
  verify.add_option("--revocations", file.revocations, "The site's signed revocation list")
      ->needs(path);
  auto [revoke, revoke_args] = addCommand(
      cert, "revoke",
      "Revoke a node's certificate and its passed gates: the node must be validated again", call,
      certRevoke);
  asksServer(revoke, call);
  revoke.add_option("node", revoke_args.node)->required();
  revoke.add_option("--reason", revoke_args.reason, "Why; recorded in the list and in the log")
      ->required();
  auto [export_command, export_args] = addCommand(
      cert, "export", "Write all certificates and the signed revocation list into a folder", call,
      certExport);
  export_command.add_option("--to", export_args.to,
                            "The folder; default: `certificates` in the state folder");
  auto [override_command, override_args] =
      addCommand(cert, "override",
                 "Let a node join although gates have not passed; only for the users that "
                 "certificates.may_override names",
                 call, certOverride);
  asksServer(override_command, call);
  override_command.add_option("node", override_args.node)->required();
  override_command
      .add_option("--reason", override_args.reason,
                  "Why; recorded in the certificate and in the log")
      ->required();
  override_command.add_option("--hours", override_args.hours, "How long it is valid")
      ->check(CLI::Range(1, 72))
      ->capture_default_str();
}

}  // namespace

void addRecordCommands(CLI::App& app, Invocation& call) {
  addAudit(app, call);
  addKeys(app, call);
  addCertificates(app, call);
}

}  // namespace muster::cli
