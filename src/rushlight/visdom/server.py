"""`python -m rushlight visdom [folder] [--port 8097]`, or `-m visdom.server` under the alias: shows a folder of logs."""

import argparse
import os
import signal

from ._server import Server


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="rushlight visdom", description="Shows windows logged by rushlight.visdom."
    )
    parser.add_argument(
        "folder", nargs="?", help="of the logs (default: visdom_logs, or $RUSHLIGHT_VISDOM_LOGS)"
    )
    parser.add_argument("-port", "--port", type=int, default=8097)
    args = parser.parse_args(argv)
    folder = args.folder or os.environ.get("RUSHLIGHT_VISDOM_LOGS") or "visdom_logs"
    try:
        server = Server(folder, args.port)
    except OSError as error:
        parser.exit(1, f"port {args.port}: {error.strerror}\n")
    print(f"http://localhost:{server.server_address[1]} shows {os.path.abspath(folder)}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # how services and containers are told to stop
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
