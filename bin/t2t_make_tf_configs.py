"""Prints the TF_CONFIG of every machine of a cluster, one per line, for t2t-trainer on several machines.

    $ t2t-make-tf-configs --workers=a:2222,b:2222
    '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'
    '{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 1}}'

The first worker writes checkpoints and logs. Start the same command on every machine, but give each machine its own
line: TF_CONFIG=<its line> t2t-trainer …
"""

import sys

from t2t_lite.bin import _app
from t2t_lite.cli.commands import require
from t2t_lite.errors import UserError, located


def define_flags(flags):
    """Declares the command's flags."""
    flags.DEFINE_list("workers", [], "Addresses host:port of the machines; the first machine writes the checkpoints.")
    flags.DEFINE_list("masters", [], "Another name of --workers, as in tensor2tensor.")
    flags.DEFINE_list("ps", [], "Parameter servers. They are not supported: every machine is a worker.")


def check(flags):
    """Raises `UserError` for parameter servers, or if no machine is given."""
    if flags.ps:
        raise UserError(
            f"--ps={','.join(flags.ps)}: parameter servers are not supported. Name these machines in --workers."
        )
    if flags.workers and flags.masters:
        raise UserError("--masters is another name of --workers. Use only one of the two.")
    if not flags.masters:
        require(flags, "workers")


def run(flags):
    """Prints one quoted TF_CONFIG per line."""
    from t2t_lite.training.cluster import Cluster, check_addresses

    workers = tuple(flags.workers or flags.masters)
    with located("--workers" if flags.workers else "--masters"):
        check_addresses(workers)
    for index in range(len(workers)):
        print(f"'{Cluster(workers, index).tf_config()}'")


main = _app.command("t2t-make-tf-configs", define_flags, run, check, tensorflow=False)


if __name__ == "__main__":
    sys.exit(main())
