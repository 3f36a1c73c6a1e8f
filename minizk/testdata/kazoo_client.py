"""Common operations of kazoo against the server at argv[1].

Prints one word a step. After "expire <session>" it waits for a line on standard
input, which says that the session has been expired.
"""

import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, NoAuthError, NodeExistsError, NoNodeError
from kazoo.protocol.states import KeeperState
from kazoo.security import make_digest_acl

WAIT = 10


def say(*words):
    print(*words, flush=True)


def client(**kwargs):
    c = KazooClient(hosts=sys.argv[1], timeout=4, **kwargs)
    c.start(WAIT)
    return c


def raises(error, f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except error:
        return
    raise AssertionError("%s did not raise %s" % (f, error))


def data(a):
    a.ensure_path("/k/a/b")
    a.create("/k/d", b"1")
    raises(NodeExistsError, a.create, "/k/d")
    value, stat = a.get("/k/d")
    assert (value, stat.version) == (b"1", 0)
    assert a.set("/k/d", b"22", version=0).version == 1
    raises(BadVersionError, a.set, "/k/d", b"3", version=0)
    assert a.create("/k/s-", sequence=True) == "/k/s-0000000002"
    path, stat = a.create("/k/e", b"e", ephemeral=True, include_data=True)
    assert (path, stat.ephemeralOwner) == ("/k/e", a.client_id[0])
    assert sorted(a.get_children("/k")) == ["a", "d", "e", "s-0000000002"]
    assert a.exists("/k/none") is None
    raises(NoNodeError, a.delete, "/k/none")
    a.delete("/k/a", recursive=True)
    assert a.sync("/k") == "/k"
    say("data")


def transactions(a):
    t = a.transaction()
    t.check("/k/d", 1)
    t.create("/k/t", b"t")
    t.set_data("/k/d", b"by transaction")
    results = t.commit()
    assert results[0] is True and results[1] == "/k/t" and results[2].version == 2, results
    t = a.transaction()
    t.delete("/k/t")
    t.check("/k/d", 99)
    t.create("/k/never")
    results = t.commit()
    assert isinstance(results[1], BadVersionError), results
    assert a.exists("/k/t") and not a.exists("/k/never")
    say("transactions")


def watches(a, b):
    seen = threading.Event()
    a.get("/k/d", watch=lambda e: seen.set())
    b.set("/k/d", b"watched")
    assert seen.wait(WAIT)

    values, children = [], []
    enough = threading.Semaphore(0)

    @a.DataWatch("/k/dw")
    def on_data(value, stat):
        values.append(value)
        enough.release()

    @a.ChildrenWatch("/k")
    def on_children(names):
        children.append("dw" in names)
        enough.release()

    b.create("/k/dw", b"one")
    b.set("/k/dw", b"two")
    while values[-1:] != [b"two"] or children[-1:] != [True]:
        assert enough.acquire(timeout=WAIT), (values, children)
    assert values[0] is None
    say("watches")


def acls(a, b):
    a.add_auth("digest", "joe:pw")
    a.create("/k/private", b"p", acl=[make_digest_acl("joe", "pw", all=True)])
    raises(NoAuthError, b.get, "/k/private")
    b.add_auth("digest", "joe:pw")
    assert b.get("/k/private")[0] == b"p"
    say("acls")


def locks(a, b):
    inside, order = [], []

    def work(c, name):
        for _ in range(10):
            with c.Lock("/k/lock", name):
                inside.append(name)
                assert len(inside) == 1
                order.append(name)
                inside.remove(name)

    threads = [threading.Thread(target=work, args=(c, n)) for c, n in ((a, "a"), (b, "b"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(WAIT)
    assert sorted(order) == ["a"] * 10 + ["b"] * 10, order
    say("locks")


def elections(a, b):
    led, done = [], threading.Event()

    def lead(name):
        led.append(name)
        if len(led) == 2:
            done.set()

    threads = [
        threading.Thread(target=c.Election("/k/election", n).run, args=(lead, n)) for c, n in ((a, "a"), (b, "b"))
    ]
    for t in threads:
        t.start()
    assert done.wait(WAIT)
    for t in threads:
        t.join(WAIT)
    assert sorted(led) == ["a", "b"], led
    say("elections")


def expiry(a, b):
    lost, back = threading.Event(), threading.Event()

    def listen(state):
        if state == KazooState.LOST:
            lost.set()
        elif state == KazooState.CONNECTED and lost.is_set():
            back.set()

    a.add_listener(listen)
    gone = threading.Event()
    assert b.exists("/k/e", watch=lambda e: gone.set())
    before = a.client_id[0]
    say("expire", before)
    sys.stdin.readline()
    assert gone.wait(WAIT) and lost.wait(WAIT) and back.wait(WAIT)
    assert a.client_id[0] != before and a.client_state == KeeperState.CONNECTED
    assert a.exists("/k/e") is None
    say("expiry")


def main():
    a, b = client(), client()
    data(a)
    transactions(a)
    watches(a, b)
    acls(a, b)
    locks(a, b)
    elections(a, b)
    expiry(a, b)
    for c in (a, b):
        c.stop()
        c.close()
    say("end")


main()
