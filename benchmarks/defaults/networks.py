"""`python -m benchmarks.defaults.networks [NAME ...]`: what the groups of networks take without a trial.

Each group is measured as `benchmarks.defaults` does, its weights constant and its operands warm; the sum counts each
as often as the network calls it. `--held-out` takes the thirty layers of `layers` instead, beside onnxruntime and
OpenVINO where these are installed.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.defaults.__main__ import Peers, Row, Table, arguments, measured_module
from benchmarks.defaults.layers import LAYERS, layer
from benchmarks.networks import NETWORKS, Network
from benchmarks.whole import OnnxNetwork, installed, is_data, peers
from compiler.dialects.functions import find_function
from compiler.driver.parts.groups import Group, GroupedProgram, grouped_program

NAMES = ("resnet50", "mobilenet_v2", "efficientnet_b0", "bert layer", "unet", "video")


def groups_of(name: str) -> list[tuple[Group, list[str]]]:
    """Return the groups of a network whose inputs other than X are constant, each with the names of its constant
    inputs."""
    function = NETWORKS[name]()
    weights = [tensor.name for tensor in function.inputs if tensor.name != "X"]
    program = grouped_program(function, weights)
    assert isinstance(program, GroupedProgram)
    return [(group, _weights(group)) for group in program.groups]


def _weights(group: Group) -> list[str]:
    arguments = find_function(group.module).args
    return [arguments[n].name_hint or f"arg{n}" for n in group.constants]


def held_out(table: Table, network: str, database: Path | None, trials: int) -> None:
    """Add to the table the held-out layers of a network, beside other runtimes if onnx is installed."""
    onnx = installed("onnx")
    for name in LAYERS.get(network, ()):
        beside: Peers | None = None
        if onnx is None:
            function = layer(network, name, Network("layer"))
        else:
            function = layer(network, name, written := OnnxNetwork("layer", onnx))
            beside = partial(peers, written, onnx, threads=1)
        weights = [tensor.name for tensor in function.inputs if not is_data(tensor)]
        table.add(name, partial(measured_module, function, weights, database, trials, beside))


def main() -> None:
    """Measure the groups, or with --held-out the layers, of the named networks; print a row each, and their sums."""
    parser = arguments()
    parser.add_argument("networks", nargs="*", default=NAMES, help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--held-out", action="store_true", help="thirty layers only, beside other runtimes")
    options = parser.parse_args()
    table = Table(options.tuned is not None)
    for network in options.networks:
        if options.held_out:
            held_out(table, network, options.tuned, options.trials)
            continue
        group_rows: list[tuple[int, Row]] = []
        for group, weights in groups_of(network):
            measure = partial(measured_module, group.module, weights, options.tuned, options.trials)
            row = table.add(f"{network}.{group.name} x {group.occurrences}", measure)
            group_rows += [] if row is None else [(group.occurrences, row)]
        _print_sum(network, group_rows)
    table.conclude()


def _print_sum(network: str, group_rows: list[tuple[int, Row]]) -> None:
    written, default, bound = (
        sum(count * time for count, time in each)
        for each in zip(
            *([(n, r.written), (n, r.default), (n, max(r.arithmetic, r.copy))] for n, r in group_rows), strict=True
        )
    )
    print(f"{network}: written {written * 1e3:.2f} ms, default {default * 1e3:.2f}, bounds {bound * 1e3:.2f}")


if __name__ == "__main__":
    main()
