"""The viewer's server: hands the page and the frames of a source to a browser, from a thread of its own.

Every request must carry a token, which is part of the address that is printed: other users of this machine can reach its ports, too. It
binds to this machine alone unless told otherwise; then requests that name another host are refused, so that no page from elsewhere reaches
it by a name of its own. Pages of others may not show it within them, but for the notebook that it was asked for.
"""

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import json
import logging
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
HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
UNFRAMED = {"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'"}
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
        self.token = secrets.token_urlsafe(18)
        self.framed = False  # whether a notebook shows the page within its own
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
        return f"{place}?token={self.token}"

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
        self._loop.set_exception_handler(lambda loop, context: None)
        runner = self.web.AppRunner(app, access_log=None, shutdown_timeout=1.0, logger=_silent())
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
        """Who may ask: with the token, and on this machine by a name of this machine; what goes wrong is told in one sentence."""

        @self.web.middleware
        async def guard(request, handler):
            try:
                self._check(request)
                response = await handler(request)
            except self.web.HTTPException as refusal:
                self._add_headers(refusal)
                raise
            except Exception as error:  # whatever is wrong with a request or a file: the page tells it, the server goes on
                refusal = self.web.HTTPNotFound(text=str(error) or type(error).__name__)
                self._add_headers(refusal)
                raise refusal from None
            if not response.prepared:  # a socket has sent its headers
                self._add_headers(response)
            return response

        return guard

    def _check(self, request):
        """Refuse who may not ask."""
        public = request.path.strip("/") in STATIC
        if not public and not hmac.compare_digest(request.query.get("token", "").encode(), self.token.encode()):
            raise self.web.HTTPForbidden(text="this viewer asks for the token that was printed with its address")
        if is_local(self.host) and not _names_this_machine(request.host):
            raise self.web.HTTPForbidden(text=f"this viewer answers to localhost only, not to {request.host}")
        origin = request.headers.get("Origin")  # browsers send it with what pages ask for
        if origin is not None and origin not in (f"http://{request.host}", f"https://{request.host}"):
            raise self.web.HTTPForbidden(text="this viewer answers to its own page only")

    def _add_headers(self, response):
        own = response.headers.get("Content-Security-Policy", "")
        response.headers.update(HEADERS if self.framed else {**HEADERS, **UNFRAMED})
        if own:
            response.headers["Content-Security-Policy"] = own if self.framed else f"{own}; {UNFRAMED['Content-Security-Policy']}"

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
        source = self._sources[number]
        facts = {**await self._off_loop(source.about), **await self._off_loop(source.opening), "source": number}
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
            return wire.values_message(colouring(data, name, found and found[0]), data)

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


def _silent():
    """A log that nobody reads: requests that are no HTTP are answered, and not told of by a traceback each."""
    log = logging.Logger("gravel viewer")
    log.disabled = True
    return log


async def _send(page, news):
    with contextlib.suppress(ConnectionError, RuntimeError):  # the page has gone
        await page.send_str(json.dumps(news))


def body_facts(data, found, body):
    """What a page shows of one body that was picked: its state and its contacts."""
    from gravel.io.layout import SHAPES

    rows = (data["id"] == body).nonzero()[0]
    if not len(rows):
        raise ValueError(f"there is no body {body} in this frame")
    row, names = int(rows[0]), data["body_names"]
    facts = {
        "id": body,
        "name": names.of(body),
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
        facts["contacts"] = [[int(o), float(f), float(g), names.of(int(o))] for o, f, g in zip(others, forces, own.gap)]
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
