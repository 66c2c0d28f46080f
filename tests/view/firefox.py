"""Debian's Firefox, driven by WebDriver BiDi, the protocol that it speaks itself: no driver and no build of its own are needed.

Firefox draws 3D graphics only where there is a screen, so it gets one that nobody sees (Xvfb).
"""

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess

BROWSERS = ("firefox-esr", "firefox")
PREFERENCES = {
    "webgl.force-enabled": True,  # by a software renderer, too
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}
WAIT = 60.0  # s


def missing():
    """What is not installed, in a sentence; None if all is there."""
    if not any(map(shutil.which, BROWSERS)):
        return f"there is no Firefox here: none of {', '.join(BROWSERS)} was found"
    return None if shutil.which("Xvfb") else "Firefox needs a screen to draw on: Xvfb was not found"


class Screen:
    """An X server that draws into memory, at any number that is free."""

    def __enter__(self):
        end, other = os.pipe()
        words = ["Xvfb", "-displayfd", str(other), "-screen", "0", "1280x900x24", "-nolisten", "tcp"]
        self.process = subprocess.Popen(words, pass_fds=[other], stderr=subprocess.DEVNULL)
        os.close(other)
        with os.fdopen(end) as told:
            self.name = f":{told.readline().strip()}"
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


async def visit(url, folder, screen, ready, asked):
    """Open a page, wait until ``ready`` is true: (the values of ``asked``, expressions in JavaScript, its picture as PNG, its errors)."""
    (folder / "user.js").write_text(
        "".join(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in PREFERENCES.items())
    )
    path = next(filter(None, map(shutil.which, BROWSERS)))
    words = [path, "--profile", str(folder), "--remote-debugging-port", "0", "--no-remote"]
    environment = {**os.environ, "DISPLAY": screen.name, "LIBGL_ALWAYS_SOFTWARE": "1", "MOZ_CRASHREPORTER_DISABLE": "1"}
    log = folder / "log"
    with open(log, "w") as file:
        process = subprocess.Popen(words, stderr=file, stdout=file, env=environment)
    try:
        return await asyncio.wait_for(_look(url, log, ready, asked), 2 * WAIT)
    finally:
        process.terminate()
        process.wait()


async def _look(url, log, ready, asked):
    import aiohttp

    while not (found := re.search(r"BiDi listening on (ws://\S+)", log.read_text())):
        await asyncio.sleep(0.1)
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{found[1]}/session", max_msg_size=0) as socket:
        talk = Talk(socket)
        await talk.call("session.new", capabilities={})
        await talk.call("session.subscribe", events=["log.entryAdded"])
        talk.context = (await talk.call("browsingContext.getTree"))["contexts"][0]["context"]
        await talk.call("browsingContext.setViewport", context=talk.context, viewport={"width": 900, "height": 600})
        await talk.call("browsingContext.navigate", context=talk.context, url=url, wait="complete")
        for _ in range(int(WAIT / 0.2)):
            if await talk.evaluate(f"Boolean({ready})"):
                break
            await asyncio.sleep(0.2)
        values = [await talk.evaluate(one) for one in asked]
        shot = await talk.call("browsingContext.captureScreenshot", context=talk.context)
        return values, base64.b64decode(shot["data"]), talk.errors


class Talk:
    """Commands to the browser, and their answers in turn; errors of the page in between are kept."""

    def __init__(self, socket):
        self.socket, self.number, self.errors, self.context = socket, 0, [], None

    async def call(self, method, **arguments):
        self.number += 1
        await self.socket.send_json({"id": self.number, "method": method, "params": arguments})
        while True:
            news = await self.socket.receive_json()
            if news.get("id") == self.number:
                assert news["type"] == "success", news
                return news["result"]
            if news.get("method") == "log.entryAdded" and news["params"]["level"] == "error":
                self.errors.append(news["params"]["text"])

    async def evaluate(self, script):
        """The value of an expression that is a number, a text or a truth."""
        target = {"context": self.context}
        return (await self.call("script.evaluate", expression=script, target=target, awaitPromise=True))["result"].get("value")
