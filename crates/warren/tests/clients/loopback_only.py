"""Run a command with loopback up, in a network namespace that has nothing else.

    unshare --net python3 loopback_only.py COMMAND [ARGUMENT…]
"""
import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
IFF_UP = 1


def main():
    others = [name for _, name in socket.if_nameindex() if reachable(name)]
    if others:
        sys.exit(f"this is no namespace of its own: {', '.join(others)}")
    set_flags("lo", flags("lo") | IFF_UP)
    os.execvp(sys.argv[1], sys.argv[1:])


def reachable(name):
    """Some kernels put tunnel devices into every namespace, but they are down."""
    return name != "lo" and flags(name) & IFF_UP


def flags(name):
    request = struct.pack("16sh14x", name.encode(), 0)
    return struct.unpack("16sh14x", call(SIOCGIFFLAGS, request))[1]


def set_flags(name, wanted):
    call(SIOCSIFFLAGS, struct.pack("16sh14x", name.encode(), wanted))


def call(number, request):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        return fcntl.ioctl(handle, number, request)


if __name__ == "__main__":
    main()
