# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Starts a host for a measurement, and sends requests to it."""
import http.client
import json
import os
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager


class Asked(http.client.HTTPConnection):
    """A connection to a host. Its requests take negligible time compared to the measured ones."""

    def __init__(self, path):
        super().__init__("levada")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def get(self, what):
        try:
            return self.answer(what)
        except ConnectionError:  # an idle connection is not kept
            self.close()
            return self.answer(what)

    def await_ends(self, count):
        """Waits until this number of applications has ended. The host is not polled meanwhile: even twenty times a
        second, that takes one part in a hundred of a core from what is measured."""
        self.request("GET", "/events?follow=true")
        with self.getresponse() as lines:
            while count and (line := lines.readline()):
                count -= bool(line.strip()) and json.loads(line)["event"] in ("ended", "failed")
        self.close()

    def answer(self, what):
        self.request("GET", what)
        return json.loads(self.getresponse().read())

    def load(self, request):
        self.request("POST", "/applications", json.dumps(request), {"content-type": "application/json"})
        self.done(201)

    def unload(self, name):
        self.request("DELETE", f"/applications/{name}?now=true")
        self.done(200)

    def done(self, status):
        with self.getresponse() as answer:
            text = answer.read().decode()
            if answer.status != status:
                raise RuntimeError(text)
        self.close()


def answers(path):
    """Whether a host listens there: its socket has a name a little before."""
    with socket.socket(socket.AF_UNIX) as sock:
        return sock.connect_ex(path) == 0


@contextmanager
def serving(levada, *options):
    """A folder that goes with it, and its socket."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/host.sock"
        served = subprocess.Popen([levada, "host", "--socket", path, "--state", f"{folder}/state", *options],
                                  stderr=subprocess.DEVNULL)
        try:
            while not answers(path):
                if served.poll() is not None:
                    raise RuntimeError(f"levada host {' '.join(options)} has ended: {served.returncode}")
                time.sleep(0.002)
            yield folder, path
        finally:
            served.terminate()
            served.wait()


def entry(name, network, project, files, more=""):
    """An application of a manifest that drops what it makes."""
    said = f'project = "{project}"\n' if project else ""
    return f'[[application]]\nnetwork = "{network}"\n{said}name = "{name}"\nin = "{files}"\nout = "/dev/null"\n{more}'
