package real

import (
	"errors"
	"net"
	"time"

	"github.com/fencepost-dev/fencepost/cluster/host"
)

// dial is the library's dialer.
func (d *zkDoor) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	for {
		if err := d.gate.awaitDial(d); err != nil {
			d.refuse()
			return nil, err
		}
		raw, err := d.gate.connect(network, address, timeout)
		if err != nil {
			return nil, err
		}
		c, err := d.admit(raw)
		if c != nil || err != nil {
			return c, err
		}
	}
}

// refusalTime is how long a refusal takes. In that time the one who closes the
// library, woken by the first refusal, hands it its last request; the next
// round of dialing then answers that at once, not after a second.
const refusalTime = time.Millisecond

func (d *zkDoor) refuse() {
	poke(d.refused)
	timer := time.NewTimer(refusalTime)
	defer timer.Stop()
	<-timer.C
}

// admit puts a connection behind the gate; nil if dials are held by now.
func (d *zkDoor) admit(raw net.Conn) (net.Conn, error) {
	d.lock()
	defer d.unlock()
	if d.shut {
		return nil, errors.Join(errZKShut, raw.Close())
	}
	if v := d.gate.view(); v.dialsHeld {
		return nil, raw.Close()
	}
	d.dials++
	c := &zkConn{
		door: d, raw: raw, number: d.dials, pending: map[int32]*zkPending{},
		sendable: make(chan struct{}, 1), readable: make(chan struct{}, 1), room: make(chan struct{}, 1),
	}
	c.readers.Store(2)
	if !d.gate.spawn(c.sendAll) {
		return nil, errors.Join(errZKShut, raw.Close())
	}
	if !d.gate.spawn(c.receiveAll) {
		c.fail(errZKShut)
		return nil, errZKShut
	}
	d.conns[c] = struct{}{}
	return c, nil
}

// closing ends the session in good order, with the server's help if it can be
// reached within a second. It blocks.
func (d *zkDoor) closing() {
	d.lock()
	d.leaving = true
	d.unlock()
	d.sayGoodbye()
	d.lock()
	d.setState(host.Closed)
	d.unlock()
	d.shutNow()
}

// goodbyeTimeout is how long a close tries to reach the server.
const goodbyeTimeout = time.Second

// sayGoodbye has the server close the session. The door says it, not the
// library, which would set its transaction number while it renews watches, and
// ask for them from too new a one.
func (d *zkDoor) sayGoodbye() {
	timer := time.NewTimer(goodbyeTimeout)
	defer timer.Stop()
	for {
		d.lock()
		live, greeted := d.live, d.greeted
		d.unlock()
		if live != nil {
			if done, err := live.inject(false); err == nil {
				select {
				case err := <-done:
					if err == nil {
						return
					}
				case <-timer.C:
					return
				}
			}
		}
		select {
		case <-greeted:
		case <-d.shutC:
			return
		case <-timer.C:
			return
		}
	}
}
