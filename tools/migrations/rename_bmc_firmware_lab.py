# SPDX-License-Identifier: Apache-2.0
"""Names of bmc/, firmware/ and lab/ become the field's (docs/development/glossary.md): identifiers, in code and in comments."""
import fnmatch
import re

from source_text import SOURCE, code_spans, read, replace_in_code, tracked, write

# identifiers that mean one thing wherever they stand
EVERYWHERE = {
    "OneStranger": "RedfishUndeclaredBmc", "StrangerBmc": "UndeclaredBmcOptions", "makeStranger": "makeUndeclaredBmc",
    "Turnstile": "AsyncSemaphore",
    "UpdateWay": "UpdateMethod", "PushWay": "PushMethod", "RollbackWay": "RollbackMethod", "DiscardWay": "CancelStagedMethod",
    "AcWay": "AcCycleMethod", "AcOwner": "AcCycleOwner", "UploadWords": "OemUpdateParameters", "upload_words": "oem_update_parameters",
    "young_task_reads": "new_task_404_retries", "kStillTrue": "kSystemCacheTtl",
    "CampaignReport": "BulkOperationReport", "kCampaignAtOnce": "kBulkOperationAtOnce", "kCampaignFailures": "kBulkOperationFailures",
    "RestartEar": "RestartNotifier", "ConsoleFinder": "ConsoleFactory", "inventoryConsoles": "makeConsoleFactory",
    "kGoodReads": "kReadsUntilReady", "readsUntilBack": "waitUntilReady", "BackWithin": "ReadyWithin",
    "ToolRefusal": "ToolError", "LogMark": "EventLogCursor", "BootShelf": "BootLogArchive",
    "SerialPlace": "SerialConsoleEndpoint", "SshPlace": "SshConsoleEndpoint", "EventPlace": "EventStreamPosition",
    "serialPlaceOf": "serialConsoleOf", "listedSerialPlace": "listedSerialConsoleOf",
    "consolePlace": "consoleEndpoint", "setConsolePlace": "setConsoleEndpoint",
    "discardStaged": "cancelStaged", "bringsBoth": "sharesPackage",
    "HealthVerdict": "SymptomResponse", "HealthJudge": "SymptomPolicy", "BmcMemory": "BmcTrustState",
    "Personality": "VendorProfile", "findPersonality": "findVendorProfile",
    "Mishap": "UpdateFault", "parseMishap": "parseUpdateFault", "allMishaps": "allUpdateFaults", "drawMishap": "drawFault",
    "tellsOfLeft": "isOrphanedUpdate", "leftOn": "pendingImagesOf", "takeBackFacet": "stagedFacet", "takenBackOf": "stagedComponentOf",
    "takenBackSince": "cancelledSince", "takeBackGoals": "cancelStagedGoals",
    "takeBackOnly": "cancelStagedOnly", "takeOverWhatIsLeft": "resumePendingImages", "seeToWhatIsLeft": "cancelUnwanted",
    "endWhenCalm": "waitUntilStable", "whatElseComes": "coUpdatedWith", "whyNotTogether": "whyNotCoUpdated",
    "roadOf": "upgradePathOf", "learntBy": "measuredBy",
    "settle_gap": "stabilize_gap", "wordsFor": "argumentsFor",
    "beginSettling": "beginStabilizing", "leftWorse": "degradedComponents",
}
# in these files alone: these words mean something else elsewhere
IN = [
    ("bmc/*|tests/bmc/*|discovery/*", {"Stranger": "UndeclaredBmc"}),
    ("bmc/*|tests/bmc/*|cli/commands/bmc_power.cc", {"interrupt": "sendNmi"}),
    ("bmc/*|tests/bmc/*", {"Pace": "RateLimiter", "pace_": "rate_limiter_", "weighs": "isSignificant", "rowIn": "findToolError",
                           "lastWords": "lastMessage", "settle": "stabilize",
                           "finder": "factory", "finder_": "factory_", "come_back": "reconnect_after",
                           "hpeRequest": "hpeSigningRequest"}),
    ("bmc/bulk_operation.*|tests/bmc/trust_test.cc|cli/commands/bmc_trust.cc", {"campaign": "runBulkOperation", "Campaign": "BulkOperation"}),
    ("bmc/console/console_recorder.cc", {"Desk": "ConsoleRecorder"}),
    ("lab/*|tests/lab/*|tests/firmware/*|tests/bmc/*", {
        "personality": "vendor_profile", "personalities": "vendorProfiles", "mishap": "fault", "mishaps_": "faults_", "Pace": "Timings"}),
    ("firmware/*|tests/firmware/*", {
        "Left": "PendingImages", "takeOver": "resumeFrom", "takeBack": "cancelStaged",
        "Verdict": "FailureReport", "verdict": "report", "endBadly": "failWave", "giveUp": "skipComponent", "breakOff": "abortWith",
        "over": "repeatFailure", "say": "reportFinding", "Company": "CoUpdated", "company": "co_updated",
        "Road": "UpgradePath", "Stop": "PathStep", "stops": "steps", "road": "path", "Step": "InstallStep",
        "learnt": "measured", "settle": "stabilize", "whereTo": "rollbackVersion", "goBack": "rollBackComponent",
        "helpAdapter": "restartForAdapter", "stone": "intermediate", "kSettleLimit": "kStabilizeLimit", "kSettlePoll": "kStabilizePoll"}),
    ("firmware/pending_images.*|firmware/phase.cc|firmware/files.*|tests/firmware/pending_images_test.cc", {"left": "pending", "ways": "operations", "way": "operation"}),
    ("cli/commands/firmware.cc|cli/view/firmware_view.*", {"NodeRoad": "NodeUpgradePath", "Road": "UpgradePath", "road": "path", "roads": "paths", "learnt": "measured", "stops": "steps"}),
]


def renamed(text, table):
    if not table:
        return text
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, table)) + r")\b")
    return pattern.sub(lambda match: table[match.group(1)], text)


def in_code_and_unique_comments(text, everywhere, local):
    """Unique identifiers in comments too; common words in code only."""
    out = []
    for start, end, is_code in code_spans(text):
        piece = text[start:end]
        if is_code:
            piece = renamed(renamed(piece, everywhere), local)
        elif piece.startswith(("//", "/*")):
            piece = renamed(piece, everywhere)
        out.append(piece)
    return "".join(out)


for path in tracked(*("*" + ending for ending in SOURCE)):
    local = {}
    for globs, table in IN:
        if any(fnmatch.fnmatch(path, glob) for glob in globs.split("|")):
            local.update(table)
    before = read(path)
    after = in_code_and_unique_comments(before, EVERYWHERE, local)
    if after != before:
        write(path, after)
