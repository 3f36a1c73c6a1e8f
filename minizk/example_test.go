package minizk_test

import (
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/fencepost-dev/fencepost/minizk"
)

// A server for a test: any ZooKeeper client connects to its address.
func Example() {
	srv, err := minizk.Start(minizk.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = srv.Close() }()

	conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogInfo(false))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/greeting", []byte("hello"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		panic(err)
	}
	data, stat, err := conn.Get("/greeting")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(data), stat.Version)
	// Output: hello 0
}

// A reply is lost after the commit: the client gets an error and cannot know
// whether its node was made.
func ExampleServer_DropReplies() {
	srv, err := minizk.Start(minizk.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = srv.Close() }()
	conn, _, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	srv.DropReplies(minizk.Match{Path: "/job"}, 1)
	_, err = conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println("client:", err)
	_, _, there := srv.Node("/job")
	fmt.Println("server has it:", there)
	// Output:
	// client: zk: connection closed
	// server has it: true
}

// A session expires on demand: its ephemeral nodes are gone at once, and its
// client is told.
func ExampleServer_ExpireSession() {
	srv, err := minizk.Start(minizk.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = srv.Close() }()
	conn, events, err := zk.Connect([]string{srv.Addr()}, 4*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/member", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		panic(err)
	}
	if err := srv.ExpireSession(conn.SessionID()); err != nil {
		panic(err)
	}
	_, _, there := srv.Node("/member")
	fmt.Println("member is there:", there)
	for e := range events {
		if e.State == zk.StateExpired {
			fmt.Println("client: expired")
			return
		}
	}
	// Output:
	// member is there: false
	// client: expired
}
