"""Runs kernels/ptx/printf.ptx without a GPU: an interpreter of what PTX that file uses, a warp of lanes
that meet at each shfl.sync, and a ring of memory.

usage: printf_ptx.py printf.ptx
"""

import re
import struct
import sys

RING = 0x100000
VARIABLE = 0x1000
HEAD = 64
SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
COMPARE = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
COMPUTE = {
    "mov": lambda x: x,
    "cvt": lambda x: x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "not": lambda x: ~x,
    "mul": lambda x, y: x * y,
    "mad": lambda x, y, z: x * y + z,
    "brev": lambda x: int(format(x, "032b")[::-1], 2),
    "clz": lambda x: 32 - x.bit_length(),
}


class Memory:
    """Separate ranges; an access beyond one is an error."""

    def __init__(self):
        self.ranges = {}

    def add(self, start, data):
        self.ranges[start] = bytearray(data)

    def find(self, at, count):
        for start, data in self.ranges.items():
            if start <= at and at + count <= start + len(data):
                return data, at - start
        raise AssertionError("%d bytes at %#x are nowhere" % (count, at))

    def load(self, at, count):
        data, offset = self.find(at, count)
        return int.from_bytes(data[offset : offset + count], "little")

    def store(self, at, count, value):
        data, offset = self.find(at, count)
        data[offset : offset + count] = (value % (1 << 8 * count)).to_bytes(count, "little")


def read_functions(text):
    """Name: (results, parameters, instructions, labels)."""
    functions = {}
    text = re.sub(r"//.*", "", text)
    for head in re.finditer(r"\.func\s*(?:\(([^)]*)\))?\s*(\w+)\s*\(([^)]*)\)\s*\{", text):
        depth, end = 1, head.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        instructions, labels = [], {}
        parts = re.split(r"(;|^\s*\w+:|^\s*[{}]\s*$)", text[head.end() : end - 1], flags=re.M)
        for part in map(str.strip, parts):
            if re.fullmatch(r"\w+:", part):
                labels[part[:-1]] = len(instructions)
            elif part not in ("", ";", "{", "}") and not part.startswith((".reg", ".param")):
                instructions.append(part)
        names = [[n.split()[-1] for n in (head.group(i) or "").split(",") if n.strip()] for i in (1, 3)]
        functions[head.group(2)] = (names[0], names[1], instructions, labels)
    return functions


def width(operation):
    return SIZES[re.findall(r"\.[usb](8|16|32|64)", operation)[-1]]


class Warp:
    def __init__(self, functions, memory):
        self.functions, self.memory = functions, memory

    def lane(self, name, arguments, number):
        """Runs a function; yields what the whole warp has to answer."""
        results, parameters, instructions, labels = self.functions[name]
        space, registers, at = dict(zip(parameters, arguments)), {"%laneid": number}, 0

        def value(word):
            if re.fullmatch(r"-?\d+", word):
                return int(word)
            return VARIABLE if word == "weir_printf" else registers[word]

        def address(word):
            match = re.fullmatch(r"\[([%\w]+)(?:\+(\d+))?\]", word)
            return value(match.group(1)) + int(match.group(2) or 0)

        while True:
            line = instructions[at]
            at += 1
            guard = re.match(r"@(!?)(\w+)\s+(.*)", line, re.S)
            if guard:
                if bool(registers[guard.group(2)]) == bool(guard.group(1)):
                    continue
                line = guard.group(3)
            operation, _, rest = line.partition(" ")
            kind = operation.split(".")[0]
            words = [w.strip() for w in re.split(r",(?![^{(]*[})])", rest)] if rest else []
            if kind == "ret":
                return [space.get(result) for result in results]
            if kind == "bra":
                at = labels[words[0]]
            elif kind == "call":
                call = re.match(r"(?:\((\w+)\),\s*)?(\w+),\s*\(([^)]*)\)", rest)
                passed = [space[word.strip()] for word in call.group(3).split(",")]
                returned = yield from self.lane(call.group(2), passed, number)
                if call.group(1):
                    space[call.group(1)] = returned[0]
            elif operation.startswith("ld.param"):
                registers[words[0]] = space[words[1][1:-1]]
            elif operation.startswith("st.param"):
                space[words[0][1:-1]] = value(words[1]) % (1 << 8 * width(operation))
            elif kind == "ld":
                registers[words[0]] = self.memory.load(address(words[1]), width(operation))
            elif kind == "st":
                self.memory.store(address(words[0]), width(operation), value(words[1]))
            elif operation == "atom.global.cas.b64":
                registers[words[0]] = self.memory.load(address(words[1]), 8)
                if registers[words[0]] == value(words[2]):
                    self.memory.store(address(words[1]), 8, value(words[3]))
            elif operation == "red.global.add.u64":
                where = address(words[0])
                self.memory.store(where, 8, self.memory.load(where, 8) + value(words[1]))
            elif kind == "activemask":
                registers[words[0]] = yield "mask", 0, 0
            elif operation == "shfl.sync.idx.b32":
                registers[words[0]] = yield "value", value(words[1]), value(words[2])
            elif operation == "mov.b64" and words[0][0] == "{":
                whole = value(words[1])
                low, high = [w.strip() for w in words[0][1:-1].split(",")]
                registers[low], registers[high] = whole % (1 << 32), whole >> 32
            elif operation == "mov.b64" and words[1][0] == "{":
                low, high = [value(w.strip()) for w in words[1][1:-1].split(",")]
                registers[words[0]] = low | high << 32
            elif operation == "mov.pred":
                registers[words[0]] = bool(value(words[1]))
            elif operation == "or.pred":
                registers[words[0]] = registers[words[1]] or registers[words[2]]
            elif kind == "setp":
                limit = 1 << 8 * width(operation)
                result = COMPARE[operation.split(".")[1]](value(words[1]) % limit, value(words[2]) % limit)
                if ".and." in operation:
                    result = result and registers[words[3]]
                registers[words[0]] = result
            elif kind != "membar":
                limit = 1 << 8 * width(operation)
                numbers = [value(word) % limit for word in words[1:]]
                registers[words[0]] = COMPUTE[kind](*numbers) % limit

    def run(self, name, arguments):
        """The results of as many lanes as there are lists of arguments."""
        lanes = {i: self.lane(name, list_, i) for i, list_ in enumerate(arguments)}
        results, asked, answers = {}, {}, dict.fromkeys(lanes)
        while lanes:
            for i in list(lanes):
                try:
                    asked[i] = lanes[i].send(answers[i])
                except StopIteration as end:
                    results[i] = end.value[0]
                    del lanes[i]
            kinds = {asked[i][0] for i in lanes}
            assert len(kinds) <= 1, "lanes of a warp do not meet"
            for i in lanes:
                kind, _, source = asked[i]
                answers[i] = sum(1 << j for j in lanes) if kind == "mask" else asked[source][1]
        return [results[i] for i in sorted(results)]


class Printer:
    def __init__(self, functions, capacity, place=0, ring=RING):
        self.functions, self.capacity, self.memory, self.next = functions, capacity, Memory(), 1 << 32
        self.memory.add(VARIABLE, struct.pack("<Q", ring))
        head = struct.pack("<QQQQ", place, place, capacity, 0)
        self.memory.add(RING, head + bytes(HEAD - len(head) + capacity))

    def put(self, data):
        at, self.next = self.next, self.next + (1 << 20)
        self.memory.add(at, data)
        return at

    def call(self, *calls):
        """Each call: a format, the arguments' bytes, and texts for their offsets."""
        lists = []
        for text, arguments, texts in calls:
            arguments = bytearray(arguments)
            for offset, string in texts.items():
                arguments[offset : offset + 8] = struct.pack("<Q", self.put(string + b"\0"))
            lists.append([self.put(text + b"\0"), self.put(arguments)])
        return Warp(self.functions, self.memory).run("weir_vprintf", lists), lists

    def word(self, index):
        return self.memory.load(RING + 8 * index, 8)

    def records(self):
        """Reads what is there, and gives its bytes back."""
        ring, found = self.memory.ranges[RING], []
        while True:
            tail = self.word(1)
            data = bytes(ring[HEAD + (tail + i) % self.capacity] for i in range(self.capacity))
            size, arguments = struct.unpack_from("<II", data)
            if size == 0:
                return found
            assert size % 8 == 1, "a record is not whole"
            size -= 1
            found.append((data[8 : 8 + arguments], data[8 + arguments : size]))
            for i in range(size):
                ring[HEAD + (tail + i) % self.capacity] = 0
            self.memory.store(RING + 8, 8, tail + size)


def expect(what, got, expected):
    if got != expected:
        sys.exit("%s: %r, expected %r" % (what, got, expected))


def texts_of(rest, *texts):
    """The texts, each with its zero, and less than 8 more zeros."""
    all_ = b"".join(text + b"\0" for text in texts)
    expect("the texts", rest[: len(all_)], all_)
    expect("their end", (rest[len(all_) :].strip(b"\0"), len(rest) - len(all_) < 8), (b"", True))


def test_lanes(functions):
    printer = Printer(functions, 1 << 16)
    calls = [
        (b"lane %d %s\n", struct.pack("<ixxxxQ", i, 0), {8: b"x" * i})
        for i in range(32)
    ]
    results, _ = printer.call(*calls)
    expect("results", results, [0] * 32)
    records = printer.records()
    expect("records", len(records), 32)
    for i, (arguments, rest) in enumerate(records):
        expect("the lane", struct.unpack_from("<i", arguments)[0], i)
        texts_of(rest, b"lane %d %s\n", b"x" * i)
    expect("all is read", printer.word(0), printer.word(1))


def test_sizes(functions):
    """The bytes of the arguments of a format."""
    cases = {
        b"": 0, b"%%": 0, b"%d": 4, b"%hd%hhu": 8, b"%ld": 8, b"%d%ld": 16, b"%c%d%i%o%u%x%X": 28,
        b"%f": 8, b"%d%F": 16, b"%e%E%g%G%a%A": 48, b"%p": 8, b"%lf": 8, b"%-+ #05.3d|": 4,
        b"%v4hlf": 16, b"%v4f": 16, b"%v3hlf%d": 20, b"%d%v16hlf%d": 132, b"%v2lf": 16, b"%v8lf": 64,
        b"%v4hd": 8, b"%v3hhd%d": 8, b"%v16hhx": 16, b"%v4c": 4, b"%v2hu": 4, b"%v2ld": 16,
        b"%d%v2d%c": 20, b"%5.2v4hlf": 16, b"%k%d": 0, b"%d%n%d": 4, b"%d%": 4, b"%v5": 0, b"%v17d%d": 0,
        b"%vd%d": 0, b"%d %*d": 4,
    }
    for text, size in cases.items():
        printer = Printer(functions, 4096)
        results, _ = printer.call((text, bytes(1024), {}))
        (arguments, rest), = printer.records()
        expect(text, (results, len(arguments)), ([0], size))
        texts_of(rest, text)


def test_texts(functions):
    printer = Printer(functions, 8192)
    printer.call((b"%s%d%s%s", bytes(32), {0: b"one", 24: b"t" * 3000}))
    (arguments, rest), = printer.records()
    expect("arguments", len(arguments), 32)
    texts_of(rest, b"%s%d%s%s", b"one", b"t" * 1023)
    printer.call((b"f" * 3000 + b"%d", b"", {}))
    (arguments, rest), = printer.records()
    expect("arguments", len(arguments), 0)
    texts_of(rest, b"f" * 1023)


def test_room(functions):
    """Records that end where the ring does, wrap, and find no room."""
    for place in (0, 4096 - 8, 4096 - 16, (1 << 40) + 4096 - 24):
        printer = Printer(functions, 4096, place)
        call = (b"%ld\n", struct.pack("<q", -5), {})  # 24 bytes
        results, _ = printer.call(*[call] * 20)
        expect("results", results, [0] * 20)
        expect("what is reserved", printer.word(0), place + 480)
        results, _ = printer.call(*[call] * 32)
        results += printer.call(*[call] * 32)[0]
        results += printer.call(*[call] * 32)[0]
        results += printer.call(*[call] * 32)[0]
        expect("results", results, [0] * 128)
        # 4096 - 148 * 24 = 544 bytes are left, for 22 of 32.
        results, _ = printer.call(*[call] * 32)
        expect("those with room", results.count(0), 22)
        expect("others", results.count((1 << 32) - 1), 10)
        expect("lost ones", printer.word(3), 10)
        records = printer.records()
        expect("records", len(records), 170)
        for arguments, rest in records:
            expect("arguments", arguments, struct.pack("<q", -5))
            texts_of(rest, b"%ld\n")
        results, _ = printer.call(call)
        expect("afterwards", (results, len(printer.records())), ([0], 1))


def test_full(functions):
    """128 records of 32 bytes fill the ring."""
    printer = Printer(functions, 4096)
    call = (b"%ld and text\n", bytes(8), {})
    for _ in range(4):
        expect("results", printer.call(*[call] * 32)[0], [0] * 32)
    expect("what is reserved", printer.word(0), 4096)
    expect("one more", printer.call(call)[0], [(1 << 32) - 1])
    expect("records", len(printer.records()), 128)


def test_no_ring(functions):
    printer = Printer(functions, 4096, ring=0)
    results, _ = printer.call((b"x", b"", {}))
    expect("without a ring", (results, printer.word(0)), ([(1 << 32) - 1], 0))


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        functions = read_functions(file.read())
    for test in (test_lanes, test_sizes, test_texts, test_room, test_full, test_no_ring):
        test(functions)


main()
