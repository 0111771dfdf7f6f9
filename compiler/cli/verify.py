"""`strata verify LIBRARY`: check a library against its certificate: hashes, and the proofs of its schedules anew."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import indent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("library", help="the library: libNAME.so or NAME.o, written by `strata build`")
    parser.add_argument("--certificate", help="its certificate (default: NAME.certificate.json beside it)")
    parser.add_argument("--scripts", action="store_true", help="also print the script of each group's schedule")
    parser.add_argument("--emit-again", action="store_true", help="also compile the loops anew, and compare the code")


def run(options: argparse.Namespace) -> int:
    """Check a library: print the findings and what is not proved; return 1 if a hash differs, a proof fails, or with
    `--emit-again` the code is another, else 0. Raises InputError for files that cannot be read, and for a certificate
    that is none."""
    from compiler.certificate.text import NOT_PROVED
    from compiler.pipeline.certified import check_certificate

    certificate = None if options.certificate is None else Path(options.certificate)
    findings = list[bool]()
    for finding in check_certificate(Path(options.library), certificate):
        print(finding)
        if options.scripts and finding.script:
            print(indent(finding.script, "  "))
        findings.append(finding.holds)
    if options.emit_again:
        from compiler.driver.emission_again import emitted_again

        for finding in emitted_again(Path(options.library), certificate):
            print(finding)
            findings.append(finding.holds)
    print(f"not proved: {'; '.join(NOT_PROVED)}")
    return 0 if all(findings) else 1
