"""The frame of a peer that is a command of `weir`, started anew for each round."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

import torch_peer


def arguments(name, about):
    parser = torch_peer.arguments(name, about)
    parser.add_argument("--weir", required=True, help="the weir command")
    return parser


def once(commands, read, number):
    """Runs the commands of a round, and gives how many results were checked, and all figures."""
    checked, ms = 0, {}
    for name, command in commands(number):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        words = result.stderr.decode(errors="replace").strip()
        if result.returncode == 3:
            raise torch_peer.Skipped(words.split("\n")[0])
        if result.returncode != 0:
            raise torch_peer.Failed(words[-400:])
        more, figures = read(name, json.loads(result.stdout.decode()))
        checked += more
        ms.update(figures)
    return checked, ms


def run(name, parsed, commands, read):
    """`commands(number)` gives the (name, command)s of round `number`, from 0, of which the first one
    warms up."""
    try:
        checked, _ = once(commands, read, 0)
        torch_peer.say(peer=name, device="that of weir", checked=checked)
        rounds = sys.stdin if parsed.serve else range(parsed.rounds)
        for number, _ in enumerate(rounds):
            torch_peer.say(round=number, ms=once(commands, read, number + 1)[1])
    except torch_peer.Skipped as reason:
        torch_peer.say(peer=name, skipped=str(reason))
    except torch_peer.Failed as reason:
        torch_peer.say(peer=name, failed=str(reason))
        return 1
    return 0
