// Package minizk is a ZooKeeper server inside a Go process. It speaks
// ZooKeeper's own protocol over TCP, so any client library works against it,
// and it behaves as ZooKeeper 3.9 does in standalone mode: the same replies,
// error codes, stats, watches, sessions and order of things. A differential
// test against the real server holds it to that.
//
//	srv, err := minizk.Start(minizk.Config{})
//	…
//	defer srv.Close()
//	conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second)
//
// It is made for tests of ZooKeeper clients: it starts in a millisecond, keeps
// everything in memory, and does the unpleasant things that a client must
// survive, on demand (see the methods of Server that take a Match): expire a
// session, cut or stall a connection, lose the reply to a write that was
// committed, delay a watch event, refuse connections, skip time.
//
// # What it is not
//
// It is one server, not an ensemble: reconfig answers that it is disabled, and
// sync returns at once. SASL and TLS are not spoken. Quotas are not kept: the
// nodes under /zookeeper/quota are ordinary nodes. Node names and data live in
// memory; Config.Dir keeps them over restarts.
//
// # How it is made
//
// minizk/jute is the wire format and minizk/tree the state machine, pure and
// deterministic. This package adds sockets, a clock and faults. One mutex
// orders everything: a request is carried out, and its reply and the events that
// it sets off are put into the connections' queues, under it; so no reply can
// overtake an event that it must follow. Each connection has one goroutine, which reads;
// it also writes, unless another one has something for the connection.
package minizk
