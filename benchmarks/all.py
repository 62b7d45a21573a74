"""Everything, one table after the other: `python benchmarks/all.py [part ...] [--quick]`.

Parts: start, workloads, scaling, ops, layers, conv, transforms, script, limits. `limits` writes docs/roofline.svg. --quick takes small sizes
and one round, to see that it runs."""

import pathlib

import conv
import layers
import limits
import ops
import script
import side
import start
import transforms
import workloads

PLOT = pathlib.Path(__file__).parent.parent / "docs" / "roofline.svg"


def parts(quick, plot):
    """name -> (main, arguments)"""
    few = ["--elements", "100000"] if quick else []
    return {
        "start": (start.main, []),
        "workloads": (workloads.main, ["tiny", "policy"] if quick else []),
        "scaling": (workloads.main, ["--scaling"]),
        "ops": (ops.main, ["--sizes", "10", "1000"] if quick else []),
        "layers": (layers.main, ["embedding", "--row", "12x64"] if quick else []),
        "conv": (conv.main, ["tiny"] if quick else []),
        "transforms": (transforms.main, ["16 wide"] if quick else []),
        "script": (script.main, ["1000"] if quick else []),
        "limits": (limits.main, ["--plot", str(plot), *few]),
    }


def main(arguments=None):
    parser = side.parser(__doc__)
    parser.add_argument("part", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--plot", type=pathlib.Path, default=PLOT)
    options = parser.parse_args(arguments)
    known = parts(options.quick, options.plot)
    common = ["--threads", str(options.threads), "--rounds", "1" if options.quick else str(options.rounds)]
    common += ["--module", options.module, "--rival", options.rival]
    for name in options.part or known:
        if name not in known:
            parser.error(f"there is no part {name!r}: {', '.join(known)}")
        print(f"\n== {name}", flush=True)
        run, more = known[name]
        run([*more, *common])


if __name__ == "__main__":
    main()
