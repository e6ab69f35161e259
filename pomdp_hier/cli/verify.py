"""``pomdp-hier verify``: check a certificate of bounds against its problem, in whole numbers."""

import argparse
import json
from pathlib import Path
from typing import Any

from pomdp_hier.cli import console, paths
from pomdp_hier.cli.console import ExitCode
from pomdp_hier.errors import CertificateError
from pomdp_hier.files.decoding import decoding

NAME = "verify"
SUMMARY = "check that a certificate proves its bounds on a problem's optimal value"
EXAMPLES = (
    "printf 'discount: 0.9\\nstates: 2\\nactions: 2\\nobservations: 2\\n' > walk.pomdp",
    "printf 'values: reward\\nT: * uniform\\nO: * identity\\nR: 1 : 0 : * : * 1\\n' >> walk.pomdp",
    "pomdp-hier solve walk.pomdp --certificate proof.json",
    "pomdp-hier verify proof.json walk.pomdp",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    proof = "the JSON file that pomdp-hier solve --certificate wrote"
    add("certificate", type=paths.input_file, metavar="CERTIFICATE", help=proof)
    add("problem", type=paths.input_file, metavar="MODEL", help="the .pomdp file that it is about")
    add("--json", action="store_true", help="print the bounds as JSON, as fractions")


def run(options: argparse.Namespace) -> int:
    """Verify, and return 3 where the certificate proves nothing."""
    from pomdp_hier.planning.certificates import verify
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    try:
        bounds = verify(_read(options.certificate), read_pomdp(options.problem))
    except CertificateError as error:
        return console.fail(error, ExitCode.CHECK_FAILED)
    if options.json:
        print(json.dumps({"lower": str(bounds.lower), "upper": str(bounds.upper), "horizon": bounds.horizon}))
        return ExitCode.DONE
    print(bounds)
    return ExitCode.DONE


def _read(path: str) -> Any:
    """Return what the file says.

    Raises:
        CertificateError: It is no JSON.
    """
    content = Path(path).read_bytes()
    with decoding(path, CertificateError, "the JSON of a certificate", "Write it again with pomdp-hier solve"):
        return json.loads(content)
