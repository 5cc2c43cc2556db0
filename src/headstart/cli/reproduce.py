"""``headstart reproduce``: the paper's figures and tables. Parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headstart.cli.output import errors_in_one_line, interruptible, print_sheets, say, watching


def reproduce(
    name: Annotated[
        str,
        typer.Argument(
            metavar="LIST|fig1|fig2|fig3|fig4|one-dim|runtime|ablation|order|gc3p|complexity|all",
            help="Which experiment; LIST says what they are.",
        ),
    ] = "LIST",
    runs: Annotated[
        int | None, typer.Option(help="Runs of the cheaper methods.", show_default="the paper's number, or 50")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Cheap methods, 5 runs, 15 evaluations, small sizes.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Units at once.")] = 1,
    engine: Annotated[str, typer.Option(help="process, or ray.")] = "process",
    out: Annotated[Path, typer.Option(help="Folder of the figures and tables.")] = Path("out"),
    store: Annotated[Path | None, typer.Option(help="Folder of the runs.", show_default="that of --out")] = None,
) -> None:
    """Run an experiment of the paper and write its figures and tables. Stop it at any time; a rerun continues."""
    with errors_in_one_line():
        from headstart.bench.reproduce import EXPERIMENTS, HowToRun, possible
        from headstart.bench.reproduce import reproduce as run

        if name.lower() == "list":
            for known, what in EXPERIMENTS.items():
                typer.echo(f"{known:<12} {what}")
            return
        failed = 0
        chosen, left_out = possible() if name == "all" else ([name], [])
        say(left_out)
        for each in chosen:
            with interruptible(store or out), watching(each) as watch:
                work = HowToRun(
                    runs=runs,
                    quick=quick,
                    device=device,
                    jobs=jobs,
                    engine=engine,
                    on_start=watch.on_start,
                    on_unit=watch.on_unit,
                    on_timings=watch.on_timings,
                    on_timing=watch.on_timing,
                )
                done = run(each, out, store=store, work=work)
            say(done.remarks)
            print_sheets(done.sheets)
            for path in done.files:
                typer.echo(f"Written: {path}")
            failed += len(done.failed)
        if failed:
            typer.echo(f"headstart: {failed} units failed; a rerun tries them again.", err=True)
            raise typer.Exit(1)
