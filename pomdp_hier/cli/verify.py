"""``pomdp-hier verify``: check a certificate of bounds against its problem, in exact integer arithmetic."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pomdp_hier._io.formats import decoding
from pomdp_hier._text import brief
from pomdp_hier.cli import console, files
from pomdp_hier.cli.exit_codes import ExitCode
from pomdp_hier.errors import Argument, CertificateError, ParameterError

if TYPE_CHECKING:
    from pomdp_hier.planning.certificates.verify import VerifiedBounds

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
    start = 'the belief to start from, as {"STATE": 0.5, ...} (default: the initial belief)'
    add("certificate", type=files.input_file, metavar="CERTIFICATE", help=proof)
    add("problem", type=files.input_file, metavar="MODEL", help="the .pomdp file of the problem")
    add("--belief", metavar="JSON", help=start)
    add("--json", action="store_true", help="print the bounds as JSON, with fractions")


def run(options: argparse.Namespace) -> int:
    """Verify the certificate; return 3 if it does not prove its bounds."""
    from pomdp_hier.planning.certificates import verify
    from pomdp_hier.pomdp.pomdp_file import read_pomdp

    problem = read_pomdp(options.problem)
    belief = None if options.belief is None else _belief(options.belief, {str(s): s for s in problem.states})
    try:
        bounds = verify(_read(options.certificate), problem, belief=belief)
    except CertificateError as error:
        return console.fail(error, ExitCode.CHECK_FAILED)
    if options.json:
        print(json.dumps(_plain(bounds)))
    else:
        print(f"{console.printable(options.problem)}: {bounds}")
    return ExitCode.DONE


def _plain(bounds: "VerifiedBounds") -> dict[str, Any]:
    from pomdp_hier.planning.certificates.exact_model import as_fraction

    return {
        "problem": bounds.problem,
        "belief": {str(state): str(as_fraction(p, "belief")) for state, p in bounds.belief.items()},
        "horizon": bounds.horizon,
        "discount": str(bounds.discount),
        "lower": str(bounds.lower),
        "upper": str(bounds.upper),
    }


def _belief(text: str, states: dict[str, Any]) -> dict[Any, Any]:
    """Return the belief of an option, with the problem's own states for their names.

    Raises:
        ParameterError: The text is not a JSON object.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        raise ParameterError(Argument("belief"), f': got {brief(text)}; expected a JSON object, such as {{"STATE": 1}}')
    return {states.get(name, name): probability for name, probability in given.items()}


def _read(path: str) -> Any:
    """Return the content of a JSON file.

    Raises:
        CertificateError: It is not JSON.
    """
    content = Path(path).read_bytes()
    with decoding(path, CertificateError, "the JSON of a certificate", "Write it again with pomdp-hier solve"):
        return json.loads(content)
