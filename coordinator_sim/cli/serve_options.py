"""The options of `serve`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_sim.listening import TOKEN_VARIABLE

MAX_PORT: Final = 65_535
MAX_BROKERS: Final = 1_000
MAX_PARTITIONS: Final = 100_000
"""Of one topic; the control surface has the same bound."""

HostOption = Annotated[str, typer.Option(help="Address to bind.")]
PortOption = Annotated[
    int,
    typer.Option(min=0, max=MAX_PORT, help="Of broker 1, the others follow; 0: free ones."),
]
BrokersOption = Annotated[int, typer.Option(min=1, max=MAX_BROKERS, help="How many.")]
ProfileOption = Annotated[str, typer.Option(help="The Kafka to behave like.")]
TopicsOption = Annotated[
    str, typer.Option(help="Topics to begin with; may be repeated.", metavar="NAME:PARTITIONS,...")
]
SeedOption = Annotated[int, typer.Option(help="Of member ids and whatever else is drawn.")]
ControlHostOption = Annotated[str, typer.Option(help="Address of the control surface.")]
ControlPortOption = Annotated[
    int, typer.Option(min=0, max=MAX_PORT, help="Its port; 0: a free one.")
]
NoControlOption = Annotated[
    bool, typer.Option("--no-control", help="No HTTP: no control, page or metrics.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A broker's setting, as group.initial.rebalance.delay.ms=0; may be repeated.",
    ),
]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="NAME=LEVEL",
        help="A feature's level in a new cluster, as group.version=0; may be repeated.",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="A broker's server.properties.", metavar="FILE")
]
ListenersOption = Annotated[
    str,
    typer.Option(help="Instead of --host and --port: of broker 1.", metavar="NAME://HOST:PORT,..."),
]
AdvertisedOption = Annotated[
    str,
    typer.Option(help="What clients are told instead.", metavar="NAME://HOST:PORT,..."),
]
ClockOption = Annotated[
    str,
    typer.Option(help="Of groups: wall, 'scaled F', virtual or 'virtual auto'.", metavar="CLOCK"),
]
ReadyOption = Annotated[
    Path | None,
    typer.Option(help="Write the line of JSON here too, when all answers.", metavar="FILE"),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(help="Record what is served, for explain, report and replay.", metavar="DIR"),
]
PcapOption = Annotated[
    Path | None, typer.Option(help="Write all bytes as a capture for Wireshark.", metavar="FILE")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the trace of --trace, the file of --pcap.")
]
UserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--user",
        metavar="NAME:PASSWORD",
        help="Who may log in, by PLAIN or SCRAM; may be repeated.",
    ),
]
UsersFileOption = Annotated[
    Path | None, typer.Option(help="The same, one a line of a file.", metavar="FILE")
]
TlsOption = Annotated[Path | None, typer.Option(help="Of listeners with TLS: PEM.", metavar="FILE")]
LogDirOption = Annotated[
    Path | None,
    typer.Option(
        "--log-dir", help="Keep topics, records and groups here, as a broker.", metavar="DIR"
    ),
]
FsyncOption = Annotated[
    str,
    typer.Option(
        help="always: answer when the medium has it; never: the system has.",
        metavar="always|never",
    ),
]
AcceptLossOption = Annotated[
    bool,
    typer.Option(
        "--accept-loss", help="Serve a damaged --log-dir without what it has lost; default: refuse."
    ),
]
ControlTokenOption = Annotated[
    str,
    typer.Option(
        envvar=TOKEN_VARIABLE,
        help="What callers of the control surface must have; needed off the loopback address.",
    ),
]
