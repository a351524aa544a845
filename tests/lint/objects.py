"""Counts the member functions and data members of each class.

Imported by lint.py (check `objects`), which complains of classes beyond the limits; LARGE lists the exceptions.
"""
import re

MOST_FUNCTIONS, MOST_FIELDS = 30, 20

# The larger classes, with a reason and their sizes. The list shrinks: lower a number when its class shrinks.
# class: (functions, fields, reason)
LARGE = {
    # Formats and requests: a field for each of the wire's or the user's.
    'lib/wire/cm_request.hpp:Req': (2, 25, 'the fields of a REQ'),
    'lib/roce/qp/send_queue.hpp:SendWqe': (3, 15, 'a send request as it is kept'),
    'apps/rpcbench/options.hpp:Options': (0, 23, 'an argument each, or those of a system'),
    'apps/perf/options.hpp:Options': (0, 27, 'an argument each'),
    'lib/cm/connection_table.hpp:Connection': (0, 30, 'the state of both ends'),
    # Ports: the interface has 25 functions.
    'pmd_glue/ethdev_port.hpp:EthdevPort': (67, 28, 'receives, sends and knows neighbours for one queue'),
    'lib/port/uring_port.hpp:UringPort': (54, 37, 'a receiver and a transmitter that share a socket'),
    'lib/port/path.hpp:Path': (35, 11, 'geometry, templates and the check of one way'),
    # Protocols, to be cut into parts.
    'lib/cm/manager.hpp:Manager': (67, 12, 'a function for each message and state'),
    'lib/roce/rc/responder.hpp:Responder': (54, 20, 'judges, executes and answers'),
    'lib/roce/engine.hpp:Engine': (57, 31, 'connections, datagrams, memory and turns of a worker'),
    'lib/roce/rc/queue_pair.hpp:QueuePair': (50, 15, 'states of three services'),
    'lib/roce/rc/requester.hpp:Requester': (35, 11, 'sends, and sends again'),
    'lib/roce/qp/memory.hpp:MemoryTable': (33, 10, 'regions and windows'),
    # Simulated worlds: a function for each thing that users do, and for each that must hold.
    'lib/sim/cm/cm_world.hpp:CmWorld': (45, 16, 'users and promises of connection managers'),
    'lib/sim/rc/rc_world.hpp:RcWorld': (40, 14, 'users and promises of two queue pairs'),
    'lib/sim/rc/rc_node.hpp:RcNode': (11, 34, 'one of these, and its model'),
    'lib/sim/ud/ud_scenario.hpp:UdScenario': (48, 13, 'users and promises of datagrams'),
    'rpc/sim/erpc_scenario.hpp:ErpcScenario': (52, 17, 'users and promises of eRPC'),
    'rpc/sim/erpc_node.hpp:ErpcNode': (1, 24, 'a process of it, and its model'),
    # Programs.
    'apps/perf/client.hpp:Client': (54, 35, 'five tests in three transports'),
    'apps/perf/server.hpp:Server': (46, 21, 'guests, their memory and what they share'),
    'apps/perf/server.hpp:Guest': (4, 24, 'the resources and counts of a client'),
}

OPENING = re.compile(r'\b(?:class|struct|union)\s+(?:\[\[.*?\]\]\s*)?(?:alignas\([^()]*\)\s*)?((?:\w+::)*\w+)'
                     r'(?:\s+final)?\s*(?::[^;{}]*)?\{')
NOT_MEMBERS = re.compile(r'(using|friend|typedef|static_assert|enum|class|struct|union|CAIRN_\w+)\b')


def matching(text, at):
    """Returns the position after the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r'[{}]').finditer(text, at):
        depth += 1 if match.group() == '{' else -1
        if depth == 0:
            return match.end()
    return len(text)


def declarations(body):
    """Yields the text of each declaration directly in a class body, with {} for the insides of braces."""
    body = re.sub(r'\b(public|protected|private)\s*:(?!:)', ' ', body)
    parts, at, start = [], 0, 0
    while at < len(body):
        if body[at] == '{':
            end = matching(body, at)
            before = body[start:at]
            following = body[end:].lstrip()
            whole = before + '{}'
            at = end
            # A function's body ends its declaration; a value's or a type's is followed by a semicolon or more.
            if not re.match(r'[;,={]', following) and '(' in stripped(before):
                initialised = re.search(r'\)\s*(noexcept(\(.*?\))?\s*)?:[^:]', before)
                if initialised and re.match(r'\w', following.lstrip(',')) and before.rstrip()[-1:].isalnum():
                    body = body[:start] + whole + body[end:]  # a{} in a list of initialisers: the body follows
                    at = start + len(whole)
                    continue
                parts.append(whole)
                start = at
            else:
                body = body[:start] + whole + body[end:]
                at = start + len(whole)
        elif body[at] == ';':
            parts.append(body[start:at])
            at += 1
            start = at
        else:
            at += 1
    return [part.strip() for part in parts if part.strip()]


def stripped(text):
    """Returns the text without attributes, arguments of templates and of macros."""
    text = re.sub(r'\[\[.*?\]\]|\balignas\([^()]*\)|\bexplicit\([^()]*\)|\bnoexcept\([^()]*\)', ' ', text, flags=re.S)
    while (smaller := re.sub(r'<[^<>]*>', '', text)) != text:
        text = smaller
    return text


def kind_of(declaration):
    """Returns 'function', the number of data members, or 0 for neither."""
    if re.search(r'=\s*(default|delete)\s*$', declaration):
        return 0
    text = re.sub(r'^template\s*', '', stripped(declaration).strip())
    text = re.sub(r'^requires\s*\(.*?\)\s*', '', text)
    if NOT_MEMBERS.match(text):
        return 0
    if 'operator' in text:
        return 'function'
    head = re.split(r'=(?!=)|\{', text, maxsplit=1)[0]
    if '(' in head:
        return 'function'
    if re.match(r'(inline\s+)?static\b.*\bconst(expr)?\b|constexpr\b|static constexpr', text):
        return 0
    depth, fields = 0, 1
    for sign in text:
        depth += (sign in '({[') - (sign in ')}]')
        fields += sign == ',' and depth == 0
    return fields if re.search(r'\w', text) else 0


def objects(code):
    """Yields (line, name, member functions, data members) of each class in text without comments and preprocessor
    lines."""
    for match in OPENING.finditer(code):
        if re.search(r'\benum\s+$', code[:match.start()]):
            continue
        body = code[match.end():matching(code, match.end() - 1) - 1]
        kinds = [kind_of(each) for each in declarations(body)]
        yield (code.count('\n', 0, match.start()) + 1, match.group(1), kinds.count('function'),
               sum(kind for kind in kinds if kind != 'function'))
