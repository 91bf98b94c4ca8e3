#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A peer of rvcm's written from prov/rvcm/DESIGN.md (and RFC 5040, 5041, 5044, 6581) alone.

As opener, then as acceptor, it shakes hands with an endpoint of interop_app's over TCP, exchanges eager messages, lets
a long message be read by RDMA READ and reads one, asks with HEARTBEAT, and closes with BYE.  Nothing of rvcm's code is
used, so this passes if DESIGN.md says all that a peer has to know.  Speaks TAP."""
import os, re, socket, struct, subprocess, sys, tempfile, traceback

DESIGN = os.path.join(os.environ.get("top_srcdir", "."), "prov/rvcm/DESIGN.md")
APP = os.path.join(os.environ.get("top_builddir", "."), "fabtests/interop/interop_app")
KEY = bytes(range(16))
REQUEST, REPLY, REJECT = 1, 2, 3                              # roles
HELLO, DATA, ACK, HEARTBEAT, BYE = 1, 2, 3, 4, 5              # kinds of frames
PATH, END, ENDED = 7, 8, 9
EAGER, RTS, FIN = 1, 2, 3                                     # proto's messages
TAGGED, CQ_DATA = 1, 2                                        # their flags
READ_REQ, READ_RESP, SEND, SEND_SE, TERMINATE = 1, 2, 3, 5, 7 # RFC 5040 figure 4
LONG = 700000
WINDOW = 4
FLOOR, TAKES = 512, 100000                                    # bytes of a message: that all take, that we do
SEGMENT = 32768
STAG, BASE = 0x5eed0100, 0x10000                              # of the memory that we let the peer read

def pattern(tag, n):
    return bytes((i * 7 + tag) & 0xff for i in range(n))

# -- SipHash-2-4 ---------------------------------------------------------------------------------------------------

M64 = (1 << 64) - 1

def rotl(x, n):
    return ((x << n) | (x >> (64 - n))) & M64

def sip_rounds(v, n):
    a, b, c, d = v
    for _ in range(n):
        a = (a + b) & M64; b = rotl(b, 13) ^ a; a = rotl(a, 32)
        c = (c + d) & M64; d = rotl(d, 16) ^ c
        a = (a + d) & M64; d = rotl(d, 21) ^ a
        c = (c + b) & M64; b = rotl(b, 17) ^ c; c = rotl(c, 32)
    return a, b, c, d

def siphash(key, data):
    k0, k1 = struct.unpack("<QQ", key)
    v = (k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573)
    tail = len(data) & ~7
    words = list(struct.unpack("<%dQ" % (tail // 8), data[:tail]))
    words.append(int.from_bytes(data[tail:], "little") | (len(data) & 0xff) << 56)
    for m in words:
        v = sip_rounds((v[0], v[1], v[2], v[3] ^ m), 2)
        v = (v[0] ^ m, v[1], v[2], v[3])
    v = sip_rounds((v[0], v[1], v[2] ^ 0xff, v[3]), 4)
    return struct.pack("<Q", v[0] ^ v[1] ^ v[2] ^ v[3])

# -- the handshake -------------------------------------------------------------------------------------------------

HANDSHAKE = struct.Struct("<HBBHH16s8sIIIIIHH")
SLOT = 5                                                      # of our endpoint

def handshake(role, port, address, incarnation, peer_incarnation, epoch, behind=b"", caps=0, slot=SLOT):
    fields = [0xac01, role, 0, caps, port, address, bytes(8), incarnation, peer_incarnation, epoch, 0, 0, WINDOW, slot]
    fields[6] = siphash(KEY, HANDSHAKE.pack(*fields) + behind)
    return HANDSHAKE.pack(*fields)

def check_handshake(data, role, behind=b""):
    """The fields of a handshake that is as it should be."""
    data = data[:HANDSHAKE.size]
    fields = list(HANDSHAKE.unpack(data))
    mac, fields[6] = fields[6], bytes(8)
    assert fields[0] == 0xac01 and fields[1] & 3 == role and fields[2] == 0, "version, role or link"
    assert mac == siphash(KEY, HANDSHAKE.pack(*fields) + behind), "MAC"
    assert fields[4] and fields[7] and fields[9], "port, incarnation and epoch are not 0"
    return dict(port=fields[4], address=fields[5], incarnation=fields[7], peer_incarnation=fields[8],
                epoch=fields[9], window=fields[12], slot=fields[13])

def hello_mac(role, request, reply, nonce):
    return siphash(KEY, bytes([role]) + request + reply + nonce)

def mapped(ip):
    return bytes(10) + b"\xff\xff" + socket.inet_aton(ip)

# -- MPA, DDP and RDMAP --------------------------------------------------------------------------------------------

class Stream:
    """One TCP connection: set-up, then FPDUs."""

    def __init__(self, sock):
        sock.settimeout(60)
        self.sock = sock
        self.msn = {0: 1, 1: 1, 2: 1}  # of what we send, by queue

    def read(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise EOFError("the stream ended after %d of %d bytes" % (len(data), n))
            data += part
        return data

    def setup_send(self, key, private):
        """Revision 2 with IRD and ORD (flag S, 0x10); no markers, no CRC."""
        self.sock.sendall(key + struct.pack(">BBH", 0x10, 2, 4 + len(private)) + struct.pack(">HH", 16, 16) + private)

    def setup_read(self, key):
        assert self.read(16) == key, "MPA key"
        flags, revision, n = struct.unpack(">BBH", self.read(4))
        assert revision == 2 and flags & 0x10 and not flags & 0x80, "revision 2, S, no markers"
        assert not flags & 0x40, "no CRC"
        return bool(flags & 0x20), self.read(n)[4:]

    def send_segment(self, ulpdu):
        fpdu = struct.pack(">H", len(ulpdu)) + ulpdu
        self.sock.sendall(fpdu + bytes(-len(fpdu) % 4) + bytes(4))

    def send_untagged(self, opcode, queue, body):
        self.send_segment(struct.pack(">BBIIII", 0x41, 0x40 | opcode, 0, queue, self.msn[queue], 0) + body)
        self.msn[queue] += 1

    def send_tagged(self, opcode, stag, offset, body, last):
        self.send_segment(struct.pack(">BBIQ", 0xc1 if last else 0x81, 0x40 | opcode, stag, offset) + body)

    def segment(self):
        """(opcode, last, stag and offset or None, payload) of the next one that is not empty."""
        while True:
            n, = struct.unpack(">H", self.read(2))
            ulpdu = self.read(n)
            self.read(-(2 + n) % 4 + 4)
            if n:
                break
        assert ulpdu[0] & 3 == 1 and ulpdu[1] >> 6 == 1, "versions"
        if ulpdu[0] & 0x80:
            return ulpdu[1] & 15, ulpdu[0] & 0x40, struct.unpack(">IQ", ulpdu[2:14]), ulpdu[14:]
        return ulpdu[1] & 15, ulpdu[0] & 0x40, None, ulpdu[18:]

# -- a conn --------------------------------------------------------------------------------------------------------

class Conn:
    """The conn over a stream that is set up; messages of proto's go in and out."""

    def __init__(self, stream, is_opener, request, reply, told):
        self.stream, self.is_opener, self.request, self.reply = stream, is_opener, request, reply
        self.dst_slot = told["slot"]
        self.tx_seq, self.tx_limit, self.rx_next, self.told = 0, told["window"], 0, 0
        self.tx_bytes = FLOOR          # of a message, until its HELLO says more
        self.nonce = os.urandom(16)
        self.readable = b""            # what the peer may read at BASE
        self.arriving, self.expected = None, 0
        self.partial = b""
        if is_opener:
            self.say_hello(REQUEST)

    def say_hello(self, role):
        mac = hello_mac(role, self.request, self.reply, self.nonce)
        self.send_frame(HELLO, self.nonce + mac + struct.pack("<IHH", os.getpid(), 0, 0))

    def send_frame(self, kind, body=b""):
        seq = self.tx_seq
        slots = SLOT, self.dst_slot
        assert len(body) <= self.tx_bytes, "longer than the peer takes"
        if kind == HELLO:
            slots = TAKES & 0xffff, TAKES >> 16
        elif kind not in (DATA, PATH, END, ENDED):
            slots = 0, 0
        else:
            assert (self.tx_limit - seq) & 0xffffffff not in (0,), "no credit"
            self.tx_seq += 1
        frame = struct.pack("<BBHIIHH", kind, 0, WINDOW, seq, self.rx_next, *slots)
        self.told = self.rx_next
        self.stream.send_untagged(SEND_SE, 0, frame + body)

    def send_message(self, op, flags, op_id, tag, body):
        self.send_frame(DATA, struct.pack("<BBHIQ", op, flags, 0, op_id, tag) + body)

    def serve_read(self, body):
        """RFC 5040 figure 5: sink STag, sink TO, bytes, source STag, source TO."""
        stag, to, n, source_stag, source_to = struct.unpack(">IQIIQ", body)
        assert source_stag == STAG and source_to >= BASE and source_to + n <= BASE + len(self.readable), "bounds"
        data = self.readable[source_to - BASE:source_to - BASE + n]
        for at in range(0, max(n, 1), SEGMENT):
            self.stream.send_tagged(READ_RESP, stag, to + at, data[at:at + SEGMENT], at + SEGMENT >= n)

    def frame(self):
        """(kind, body) of the next frame; RDMA is dealt with on the way."""
        while True:
            opcode, last, tagged, payload = self.stream.segment()
            if opcode == READ_REQ:
                self.serve_read(payload)
            elif opcode == READ_RESP:
                assert tagged[0] == STAG, "STag of the sink"
                self.arriving[tagged[1] - BASE:tagged[1] - BASE + len(payload)] = payload
                self.expected -= len(payload)
                if last:
                    return READ_RESP, b""
            else:
                assert opcode in (SEND, SEND_SE), "opcode %d" % opcode
                self.partial += payload
                if last:
                    break
        message, self.partial = self.partial, b""
        kind, flags, window, seq, ack, src, dst = struct.unpack("<BBHIIHH", message[:16])
        assert flags == 0 and ack <= self.tx_seq, "frame"
        self.tx_limit = max(self.tx_limit, ack + window)
        self.acked = ack
        assert seq == self.rx_next, "sequence"
        assert len(message) - 16 <= TAKES, "longer than we take"
        if kind == HELLO:
            self.tx_bytes = (src | dst << 16) or FLOOR
        if kind in (DATA, PATH, END, ENDED):
            assert (src, dst) == (self.dst_slot, SLOT), "slots"
            self.rx_next += 1
        return kind, message[16:]

    def expect_hello(self):
        kind, body = self.frame()
        nonce, mac, _, rails, _ = struct.unpack("<16s8sIHH", body[:32])
        assert kind == HELLO and len(body) == 32 + 24 * rails, "HELLO"
        if self.is_opener:
            assert nonce == self.nonce, "our nonce"
        self.nonce = nonce
        assert mac == hello_mac(REPLY if self.is_opener else REQUEST, self.request, self.reply, nonce), "MAC of HELLO"
        if not self.is_opener:
            self.say_hello(REPLY)

    def expect(self, wanted):
        """The next frame but control frames that say nothing new."""
        while True:
            kind, body = self.frame()
            if kind == HEARTBEAT:
                self.send_frame(ACK, struct.pack("<II", 0, self.rx_next))
            if kind == DATA and self.rx_next - self.told >= WINDOW // 2:
                self.send_frame(ACK)
            if kind == wanted:
                return body
            assert kind in (ACK, HEARTBEAT), "kind %d instead of %d" % (kind, wanted)

    def expect_message(self, op):
        body = self.expect(DATA)
        got, flags, reserved, op_id, tag = struct.unpack("<BBHIQ", body[:16])
        assert got == op and reserved == 0, "op %d instead of %d" % (got, op)
        return flags, op_id, tag, body[16:]

    # What the application and we have agreed on.

    def send_eager(self, tag):
        self.send_message(EAGER, TAGGED | CQ_DATA, 0, tag, struct.pack("<Q", tag + 1) + pattern(tag, 100))

    def expect_eager(self, tag):
        flags, op_id, got, body = self.expect_message(EAGER)
        assert flags == TAGGED | CQ_DATA and op_id == 0 and got == tag, "header"
        assert body == struct.pack("<Q", tag + 1) + pattern(tag, 100), "data"

    def send_long(self, tag):
        self.readable = pattern(tag, LONG)
        self.send_message(RTS, TAGGED, 77, tag, struct.pack("<QH6x", LONG, 1) + struct.pack("<QIH2x", BASE, STAG, 0))
        _, op_id, _, body = self.expect_message(FIN)
        assert op_id == 77 and body == bytes(8), "FIN"

    def expect_long(self, tag):
        flags, op_id, got, body = self.expect_message(RTS)
        length, rails = struct.unpack("<QH6x", body[:16])
        address, rkey, _ = struct.unpack("<QIH2x", body[16:32])
        assert flags == TAGGED and got == tag and length == LONG and len(body) == 16 + 16 * rails, "RTS"
        self.arriving, self.expected = bytearray(LONG), LONG
        self.stream.send_untagged(READ_REQ, 1, struct.pack(">IQIIQ", STAG, BASE, LONG, rkey, address))
        self.expect(READ_RESP)
        assert self.expected == 0 and bytes(self.arriving) == pattern(tag, LONG), "data read"
        self.send_message(FIN, 0, op_id, 0, bytes(8))

    def ask(self):
        self.send_frame(HEARTBEAT)
        imm_seen, confirmed = struct.unpack("<II", self.expect(ACK))
        assert (imm_seen, confirmed) == (0, self.tx_seq) and self.acked == self.tx_seq, "all has been taken"

# -- the tests -----------------------------------------------------------------------------------------------------

class App:
    """interop_app, and the port we are known by."""

    def __init__(self, first):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(60)
        self.port = self.listener.getsockname()[1]
        env = dict(os.environ, FI_RVCM_JOB_KEY=KEY.hex(), FI_RVCM_IFACE="lo", FI_LOG_LEVEL="warn", FI_LOG_PROV="rvcm")
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([APP, "127.0.0.1", str(self.port), first], env=env, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        self.name = self.process.stdout.readline().split()
        assert self.name[:1] == ["name"], "interop_app has not started"

    def connect(self):
        return Stream(socket.create_connection((self.name[1], int(self.name[2]))))

    def end(self):
        """Have it close its endpoint."""
        self.process.stdin.close()

    def said(self):
        """What it has written on its standard error: (lines of the log, its own)."""
        self.errors.seek(0)
        lines = self.errors.read().splitlines()
        return [line for line in lines if ":rvcm:" in line], [line for line in lines if line.startswith("interop_app:")]

    def wait(self, code=0):
        got = self.process.wait(60)
        assert got == code, "interop_app ended with %d: %s" % (got, self.said())

    def kill(self):
        self.listener.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.errors.close()

def open_to(app):
    """Connect to the application; our HELLO is on its way."""
    stream = app.connect()
    request = handshake(REQUEST, app.port, mapped("127.0.0.1"), 0x1234, 0, 1)
    stream.setup_send(b"MPA ID Req Frame", request)
    rejected, private = stream.setup_read(b"MPA ID Rep Frame")
    assert not rejected, "rejected"
    reply = private[:56]
    told = check_handshake(reply, REPLY, request)
    assert told["port"] == int(app.name[2]) and told["peer_incarnation"] == 0x1234 and told["epoch"] == 1
    return stream, request, reply, told

def opener(app):
    stream, request, reply, told = open_to(app)
    conn = Conn(stream, True, request, reply, told)
    conn.send_eager(1)                 # right behind HELLO
    conn.expect_hello()
    conn.expect_eager(2)
    conn.send_long(3)
    conn.expect_long(4)
    conn.ask()
    conn.send_frame(BYE)
    stream.sock.shutdown(socket.SHUT_WR)
    while stream.sock.recv(4096):      # until the application has seen it
        pass
    app.end()
    app.wait()

def accept_from(app):
    """The application connects; its HELLO is to come."""
    stream = Stream(app.listener.accept()[0])
    _, private = stream.setup_read(b"MPA ID Req Frame")
    request = private[:56]
    asked = check_handshake(request, REQUEST)
    assert asked["port"] == int(app.name[2]) and asked["address"] == mapped(app.name[1]), "its name"
    reply = handshake(REPLY, app.port, os.urandom(16), 0x5678, asked["incarnation"], asked["epoch"], request)
    stream.setup_send(b"MPA ID Rep Frame", reply)
    return stream, Conn(stream, False, request, reply, asked)

def acceptor(app):
    stream, conn = accept_from(app)
    conn.expect_hello()
    conn.expect_eager(2)
    conn.send_eager(1)
    conn.send_long(3)
    conn.expect_long(4)
    conn.ask()
    app.end()
    conn.expect(BYE)
    try:
        stream.segment()
        raise AssertionError("something behind BYE")
    except EOFError:
        stream.sock.close()
    app.wait()

def other_key(app):
    """Who has another key is rejected with reason 2."""
    stream = app.connect()
    request = bytearray(handshake(REQUEST, app.port, mapped("127.0.0.1"), 0x1234, 0, 1))
    request[24] ^= 1
    stream.setup_send(b"MPA ID Req Frame", bytes(request))
    rejected, private = stream.setup_read(b"MPA ID Rep Frame")
    assert rejected and private[2] & 3 == REJECT and struct.unpack("<H", private[4:6]) == (2,), "REJECT for KEY"
    app.end()
    app.wait()

def guessed_key(app):
    """
    Who announces memory under a key that is none is asked for it, and ends the stream with a TERMINATE; the
    application hears that its receive has failed, and why, and nothing is in its way.
    """
    stream, request, reply, told = open_to(app)
    conn = Conn(stream, True, request, reply, told)
    conn.send_eager(1)
    conn.expect_hello()
    conn.expect_eager(2)
    guess = 0x12345678
    conn.send_message(RTS, TAGGED, 77, 3, struct.pack("<QH6x", LONG, 1) + struct.pack("<QIH2x", BASE, guess, 0))
    opcode, last, _, body = stream.segment()
    while opcode != READ_REQ:              # an ACK, perhaps
        opcode, last, _, body = stream.segment()
    assert struct.unpack(">IQIIQ", body)[3:] == (guess, BASE), "the READ of what was announced"
    # RFC 5040 section 4.8: RDMAP, remote protection error, invalid STag; no headers follow.
    stream.send_untagged(TERMINATE, 2, bytes([0x01, 0x00, 0, 0]))
    app.wait(1)
    log, own = app.said()
    assert own and "remote access error" in own[0], "the error entry: %s" % own
    # prov_errno has what it was, and the device's own code: here that a TERMINATE said it, and which.
    assert "0x10100 (prov_errno: 6, of the device: 0x10100)" in own[0], "the error entry: %s" % own
    assert any("invalid STag" in line for line in log), "the log: %s" % log
    stream.sock.close()

def no_proof(app):
    """Whose HELLO proves nothing hears BYE with reason 2, and the end."""
    stream, request, reply, told = open_to(app)
    conn = Conn(stream, True, request[:-1] + b"\xff", reply, told)
    assert conn.frame() == (BYE, struct.pack("<HH", 2, 0)), "BYE for KEY"
    try:
        stream.segment()
        raise AssertionError("something behind BYE")
    except EOFError:
        stream.sock.close()
    app.end()
    app.wait()

def too_late(app):
    """Who is told that its HELLO was overdue says so: once in the log, and to whoever asks what became of a send."""
    stream, conn = accept_from(app)
    conn.send_frame(BYE, struct.pack("<HH", 11, 0))
    stream.sock.shutdown(socket.SHUT_WR)
    app.wait(1)
    log, own = app.said()
    words = "peer 127.0.0.1:%d by soft-lo: rejected: no HELLO in the peer's FI_RVCM_HELLO_TIMEOUT" % app.port
    assert len(log) == 1 and log[0].endswith(words + "; what is under way fails"), "the log: %s" % log
    assert own and own[0] == "interop_app: %s (prov_errno: 50, of the device: 0x0)" % words, "the error entry: %s" % own
    stream.sock.close()

def vectors():
    """The worked example of DESIGN.md."""
    text = open(DESIGN).read()
    have, name = {}, None
    for line in re.findall(r"^    (.*)$", text[text.index("### A worked example"):].split("\n###")[0], flags=re.M):
        name, digits = re.match(r"([A-Z]*) *([0-9a-f ]+)$", line).groups() if line[0] != " " else (name, line)
        have[name] = have.get(name, b"") + bytes.fromhex(digits)
    request = handshake(REQUEST, 4660, mapped("192.0.2.1"), 0x01020304, 0, 1, caps=0x18, slot=7)
    reply = handshake(REPLY, 22136, bytes(range(16, 32)), 0x05060708, 0x01020304, 1, request, caps=0x18, slot=9)
    nonce = bytes(range(32, 48))
    assert have["KEY"] == KEY and have["REQUEST"] == request and have["REPLY"] == reply and have["NONCE"] == nonce
    assert have["OPENER"] == hello_mac(REQUEST, request, reply, nonce)
    assert have["ACCEPTOR"] == hello_mac(REPLY, request, reply, nonce)

def with_app(first, fn):
    app = App(first)
    try:
        fn(app)
    finally:
        app.kill()

TESTS = [
    ("the worked example of DESIGN.md", vectors),
    ("as opener", lambda: with_app("second", opener)),
    ("as acceptor", lambda: with_app("first", acceptor)),
    ("with another key", lambda: with_app("none", other_key)),
    ("as opener without proof", lambda: with_app("none", no_proof)),
    ("as acceptor that has waited", lambda: with_app("long", too_late)),
    ("with a key that is none", lambda: with_app("second", guessed_key)),
]

def main():
    print("1..%d" % len(TESTS))
    failed = False
    for i, (name, fn) in enumerate(TESTS, 1):
        try:
            fn()
            print("ok %d - %s" % (i, name), flush=True)
        except Exception:
            failed = True
            print("not ok %d - %s" % (i, name), flush=True)
            print("# " + traceback.format_exc().replace("\n", "\n# "))
    return failed

if __name__ == "__main__":
    sys.exit(main())
