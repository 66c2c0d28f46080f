"""The viewer's server: hands the page and the frames of a source to a browser, from a thread of its own.

It binds to this machine alone unless told otherwise; then every request must carry a token, which is part of the address that is printed.
Requests that name another host than the one it was bound to are refused, so that no page from elsewhere reaches it by a name of its own.
"""

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import json
import pathlib
import secrets
import socket
import threading

from gravel import checks
from gravel.view import need
from gravel.view.colouring import colouring
from gravel.view.viewer import wire

PAGE = pathlib.Path(__file__).parent / "page"
SCRIPTS = ("viewer.js", "data.js", "draw.js", "shaders.js", "buried.js", "three.js")
STATIC = ("style.css", *SCRIPTS)  # the page's own code, which is no secret
FILES = {"": "index.html", **{name: name for name in STATIC}}
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
LOCAL = ("127.0.0.1", "localhost", "::1")
POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; connect-src 'self'"
START = 10.0  # s to wait for the server to listen
GRACE = 5.0  # s that a paused run waits for a page that was closed, or is being loaded again


class Server:
    """Serves one source; ``url`` is where. ``close()`` ends it."""

    def __init__(self, source, host="127.0.0.1", port=0):
        self.web = need("aiohttp.web")
        self.host, self.port = _host(host), checks.count("port", port)
        if self.port > 65535:
            raise ValueError(f"port must be from 0 (any that is free) to 65535, not {self.port}")
        self.token = "" if is_local(self.host) else secrets.token_urlsafe(18)
        self._sources = []  # all that were shown, the last one now: a page that has not heard of it yet still asks for the one before
        self.bytes_sent = 0
        self._sockets = set()
        self._listener = _bind(self.host, self.port)
        self.port = self._listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="gravel viewer", daemon=True)
        self.show(source)
        self._thread.start()
        if not self._ready.wait(START):
            raise OSError(f"the viewer's server has not started within {START:g} s")

    @property
    def source(self):
        """What is shown now."""
        return self._sources[-1]

    @property
    def url(self):
        """The address to open."""
        name = self.host if self.host not in ("0.0.0.0", "::") else socket.gethostname()
        place = f"http://{f'[{name}]' if ':' in name else name}:{self.port}/"
        return f"{place}?token={self.token}" if self.token else place

    def show(self, source):
        """Serve this source from now on; pages are told."""
        self._sources.append(source)
        if source.live:
            source.changed = lambda: self._tell({"changed": True})
        else:
            self._tell({"reload": True})

    def close(self):
        """Stop serving; pages that are open keep what they have."""
        if not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(START)
        for source in self._sources:
            source.close()

    # --- the thread
    def _serve(self):
        asyncio.set_event_loop(self._loop)
        app = self.web.Application(middlewares=[self._guard()])
        app.add_routes(
            [
                self.web.get("/about", self._about),
                self.web.get("/frame/{number}", self._frame),
                self.web.get("/turns/{number}", self._turns),
                self.web.get("/values/{number}/{colour}", self._values),
                self.web.get("/contacts/{number}", self._contacts),
                self.web.get("/body/{number}/{body}", self._body),
                self.web.get("/template/{kind}", self._template),
                self.web.get("/surface/{geometry}", self._surface),
                self.web.get("/live", self._live),
                self.web.get("/{file}", self._file),
                self.web.get("/", self._file),
            ]
        )
        runner = self.web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(self.web.SockSite(runner, self._listener).start())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._end(runner))
        self._loop.close()

    async def _end(self, runner):
        await asyncio.gather(*(asyncio.wait_for(page.close(), 1.0) for page in list(self._sockets)), return_exceptions=True)
        await runner.cleanup()

    def _guard(self):
        """Who may ask: with the token, or on this machine by a name of this machine; what goes wrong is told in one sentence."""

        @self.web.middleware
        async def guard(request, handler):
            if self.token:
                public = request.path.strip("/") in STATIC
                if not public and not hmac.compare_digest(request.query.get("token", "").encode(), self.token.encode()):
                    raise self.web.HTTPForbidden(text="this viewer asks for the token that was printed with its address")
            elif not _names_this_machine(request.host):
                raise self.web.HTTPForbidden(text=f"this viewer answers to localhost only, not to {request.host}")
            if request.headers.get("Origin", "").split("//")[-1] not in ("", request.host):
                raise self.web.HTTPForbidden(text="this viewer answers to its own page only")
            try:
                response = await handler(request)
            except self.web.HTTPException:
                raise
            except Exception as error:  # whatever is wrong with a request or a file: the page tells it, the server goes on
                raise self.web.HTTPNotFound(text=str(error) or type(error).__name__) from None
            response.headers["Cache-Control"] = "no-store"
            return response

        return guard

    async def _file(self, request):
        name = FILES.get(request.match_info.get("file", ""))
        if name is None:
            raise ValueError(f"there is no page {request.path}")
        path = PAGE / name
        response = self.web.Response(body=path.read_bytes(), content_type=TYPES[path.suffix], charset="utf-8")
        response.headers["Content-Security-Policy"] = POLICY
        return self._counted(response)

    async def _about(self, request):
        number = len(self._sources) - 1
        facts = {**await self._off_loop(self._sources[number].about), "source": number}
        return self._counted(self.web.Response(text=json.dumps(facts), content_type="application/json"))

    async def _frame(self, request):
        number, known, source = int(request.match_info["number"]), request.query.get("layout", ""), self._asked(request)
        name = request.query.get("colour")

        def make():
            data, facts = source.frame(number), {}
            if source.live:
                now = source.now
                data, facts = now.data, {"step": now.step, "paused": source.paused, "finished": source.finished}
            return wire.frame_message(data, known, number, name and colouring(data, name), **facts)

        return self._binary(await self._off_loop(make))

    async def _values(self, request):
        number, name, source = int(request.match_info["number"]), request.match_info["colour"], self._asked(request)

        def make():
            data = source.frame(number)
            found = source.contacts(number) if name == "contacts" else None
            return wire.values_message(colouring(data, name, found and found[0]), data["movable"])

        return self._binary(await self._off_loop(make))

    async def _turns(self, request):
        number = int(request.match_info["number"])
        return self._binary(await self._off_loop(lambda: wire.turns_message(self._asked(request).frame(number))))

    async def _contacts(self, request):
        number, source = int(request.match_info["number"]), self._asked(request)

        def make():
            found = source.contacts(number)
            if found is None:
                raise ValueError("the contacts of this frame are not known")
            return wire.contacts_message(source.frame(number), *found)

        return self._binary(await self._off_loop(make))

    async def _body(self, request):
        number, body, source = int(request.match_info["number"]), int(request.match_info["body"]), self._asked(request)
        facts = await self._off_loop(lambda: body_facts(source.frame(number), source.contacts(number), body))
        return self._counted(self.web.Response(text=json.dumps(facts), content_type="application/json"))

    async def _template(self, request):
        return self._binary(wire.template_message(int(request.match_info["kind"])))

    async def _surface(self, request):
        number = int(request.match_info["geometry"])
        return self._binary(await self._off_loop(lambda: wire.surface_message(*self._asked(request).surface(number))))

    async def _live(self, request):
        """News to the page; from it pause, play and single steps, and that it is ready for another frame."""
        page = self.web.WebSocketResponse(heartbeat=20.0)
        await page.prepare(request)
        self._sockets.add(page)
        try:
            if self._asked(request) is not self.source:  # it was told of the source before
                await page.send_str(json.dumps({"reload": True}))
            async for message in page:
                source, word = self.source, message.data
                if source.live and word in ("pause", "play", "single"):
                    getattr(source, word)()
                elif source.live and word == "next":
                    source.wanted = True
        finally:
            self._sockets.discard(page)
            self._loop.call_later(GRACE, self._release)
        return page

    def _release(self):
        """A run that was paused goes on when nobody looks at it any more."""
        if not self._sockets and self.source.live and self.source.paused:
            self.source.play()

    # --- small things
    def _asked(self, request):
        """The source that a page has been told of, or the present one."""
        return self._sources[int(request.query.get("source", -1))]

    async def _off_loop(self, function):
        return await self._loop.run_in_executor(None, function)

    def _binary(self, body):
        return self._counted(self.web.Response(body=body, content_type="application/octet-stream"))

    def _counted(self, response):
        self.bytes_sent += len(response.body or b"")
        return response

    def _tell(self, news):
        """Send news to all pages, from any thread."""
        if not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it is being closed
                self._loop.call_soon_threadsafe(lambda: [self._loop.create_task(_send(page, news)) for page in list(self._sockets)])


async def _send(page, news):
    with contextlib.suppress(ConnectionError, RuntimeError):  # the page has gone
        await page.send_str(json.dumps(news))


def body_facts(data, found, body):
    """What a page shows of one body that was picked: its state and its contacts."""
    from gravel.io.layout import SHAPES

    rows = (data["id"] == body).nonzero()[0]
    if not len(rows):
        raise ValueError(f"there is no body {body} in this frame")
    row = int(rows[0])
    facts = {
        "id": body,
        "shape": SHAPES[int(data["shape"][row])].lower(),
        "material": colouring(data, "material").name_of(int(data["material"][row])),
        "movable": bool(data["movable"][row]),
        "mass": float(data["mass"][row]),
        "radius": float(data["radius"][row]),
        **{name: data[name][row].tolist() for name in ("position", "quaternion", "velocity", "angular_velocity")},
        "rank": int(data["rank"][row]),
    }
    if found is not None:
        table, dt = found
        own = table[(table.body_a == body) | (table.body_b == body)]
        others = own.body_a + own.body_b - body
        forces = (own.impulse**2).sum(axis=1) ** 0.5 / dt
        facts["contacts"] = [[int(o), float(f), float(g)] for o, f, g in zip(others, forces, own.gap)]
    return facts


# --- addresses
def is_local(host):
    """Whether an address is reached from this machine alone."""
    return host in LOCAL


def _host(host):
    if not isinstance(host, str) or not host:
        raise TypeError(f"host must be a name or an address such as 127.0.0.1, not {host!r}")
    return host


def _names_this_machine(host):
    """Whether the Host of a request is a name of this machine: others lead here by tricks with name servers."""
    name = host.rsplit(":", 1)[0].strip("[]") if not host.endswith("]") else host.strip("[]")
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _bind(host, port):
    """A socket that listens there; says what to do where it cannot."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise OSError(f"host {host!r} is no name or address: {getattr(error, 'strerror', None) or error}") from None
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise OSError(f"host {host} is no address of this machine; 127.0.0.1 is reached from here, 0.0.0.0 from everywhere") from None
        raise OSError(f"port {port} of {host} cannot be used ({error.strerror}): give another --port, or 0 for any that is free") from None
    return listener
