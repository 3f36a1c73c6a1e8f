package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/fencepost-dev/fencepost/cluster/host"
	"github.com/fencepost-dev/fencepost/cluster/inproc/protocol"
	"github.com/fencepost-dev/fencepost/history"
)

// candidate stands for election once: it joins, waits for its turn, holds a
// term, and takes its own child of the election away again, so that a process
// which has stepped down does not bar the others (p).
func (c *coordinator) candidate(ctx context.Context, z zk) error {
	for _, path := range []string{protocol.Root, protocol.Root + "/coordinators", protocol.ElectionPath} {
		if err := z.ensure(ctx, path, nil); err != nil {
			return err
		}
	}
	child, err := c.join(ctx, z)
	if err != nil {
		return err
	}
	err = c.awaitTurn(ctx, z, child)
	if err == nil {
		err = c.holdTerm(ctx, z)
	}
	return errors.Join(err, c.leave(ctx, z, child))
}

// join creates this process's child of the election. If the answer is lost the
// child is found again by the guid in its name.
func (c *coordinator) join(ctx context.Context, z zk) (string, error) {
	guid := fmt.Sprintf("%016x%016x", c.h.Rand().Uint64(), c.h.Rand().Uint64())
	data := protocol.NewCoordinatorNode(c.h.ID()).Encode()
	for {
		if err := z.connected(ctx); err != nil {
			return "", err
		}
		name, _, err := z.s.Create(ctx, protocol.ElectionPrefix(guid), data, host.EphemeralSequential)
		switch {
		case err == nil:
			return name[strings.LastIndex(name, "/")+1:], nil
		case errors.Is(err, host.ErrConnectionLoss):
			child, err := c.findChild(ctx, z, guid)
			if err != nil || child != "" {
				return child, err
			}
		case !z.repeat(ctx, err):
			return "", fmt.Errorf("join election: %w", over(err))
		}
	}
}

func (c *coordinator) findChild(ctx context.Context, z zk, guid string) (string, error) {
	if err := z.sync(ctx, protocol.ElectionPath); err != nil {
		return "", err
	}
	children, err := z.children(ctx, protocol.ElectionPath)
	if err != nil {
		return "", err
	}
	for _, child := range children {
		if strings.Contains(child, guid) {
			return child, nil
		}
	}
	return "", nil
}

var errChildGone = errors.New("own child of the election is gone")

// awaitTurn waits until the child is the lowest (p). It watches its predecessor
// only, so that one end wakes one participant.
func (c *coordinator) awaitTurn(ctx context.Context, z zk, child string) error {
	for {
		children, err := z.children(ctx, protocol.ElectionPath)
		if err != nil {
			return err
		}
		before, found := predecessor(children, child)
		switch {
		case !found:
			return errChildGone
		case before == "":
			return nil
		}
		_, watch, err := z.existsW(ctx, protocol.ElectionPath+"/"+before)
		if errors.Is(err, host.ErrNoNode) {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := watch.Wait(ctx); err != nil {
			return fmt.Errorf("wait for the turn: %w", err)
		}
	}
}

// predecessor is the child right before the given one by sequence, "" if it is
// the lowest.
func predecessor(children []string, child string) (before string, found bool) {
	sorted := slices.DeleteFunc(slices.Clone(children), func(c string) bool { return protocol.ElectionSequence(c) < 0 })
	slices.SortFunc(sorted, func(a, b string) int {
		return int(protocol.ElectionSequence(a) - protocol.ElectionSequence(b))
	})
	at := slices.Index(sorted, child)
	if at <= 0 {
		return "", at == 0
	}
	return sorted[at-1], true
}

// leave deletes the own child. A session that is over has taken it along.
func (c *coordinator) leave(ctx context.Context, z zk, child string) error {
	for {
		if err := z.connected(ctx); err != nil {
			return nil //nolint:nilerr // the session is over, and the child with it
		}
		_, err := z.s.Delete(ctx, protocol.ElectionPath+"/"+child, -1)
		if err == nil || errors.Is(err, host.ErrNoNode) {
			return nil
		}
		if !z.repeat(ctx, err) {
			return fmt.Errorf("leave election: %w", over(err))
		}
	}
}

// holdTerm opens a term, serves it, and cleans up behind it (p). Its end has
// stopped the event loop and the channels already when ZooKeeper is asked to
// clean up, which may wait for a connection.
func (c *coordinator) holdTerm(ctx context.Context, z zk) error {
	t, err := c.open(ctx, z)
	if err != nil {
		return fmt.Errorf("open term: %w", err)
	}
	c.h.Go(t.work, "events", t.run)
	if !t.await(ctx) {
		t.resign("session over")
		return nil
	}
	// Guarded, because a successor may have made the active node its own by now.
	_, err = z.s.Multi(ctx, host.Check(protocol.EpochPath, t.token), host.DeleteOp(protocol.ActivePath, -1))
	c.log.Info("cleaned up after the term", zap.Error(err)) // a successor removes what is left
	return nil
}

// open takes the next coordinator epoch and the active node.
func (c *coordinator) open(ctx context.Context, z zk) (*term, error) {
	epoch, token, zxid, err := c.takeEpoch(ctx, z)
	if err != nil {
		return nil, err
	}
	t := newTerm(c, z, epoch, token)
	if c.policy.BumpEpoch {
		t.ref.Zxid = zxid
		t.report(history.TermElected, "")
	}
	active, err := c.takeActive(ctx, z, t)
	if err != nil {
		if c.policy.BumpEpoch {
			t.end(history.TermResigned, err.Error())
		}
		return nil, err
	}
	if !c.policy.BumpEpoch {
		t.ref.Zxid = active
		t.report(history.TermElected, "")
	}
	return t, nil
}

// takeEpoch takes the epoch after the one it reads by compare-and-set. An
// outcome that is unknown is never claimed: the next try reads again, and takes
// the next.
func (c *coordinator) takeEpoch(ctx context.Context, z zk) (epoch int64, token int32, zxid int64, err error) {
	if err := z.ensure(ctx, protocol.EpochPath, protocol.EncodeEpoch(-1)); err != nil {
		return 0, 0, 0, err
	}
	for {
		if err := z.sync(ctx, protocol.EpochPath); err != nil {
			return 0, 0, 0, err
		}
		data, stat, err := z.get(ctx, protocol.EpochPath)
		if err != nil {
			return 0, 0, 0, err
		}
		if !c.policy.BumpEpoch {
			return 0, stat.Version, 0, nil
		}
		epoch, err := protocol.DecodeEpoch(data)
		if err != nil {
			return 0, 0, 0, err
		}
		now, err := z.s.Set(ctx, protocol.EpochPath, protocol.EncodeEpoch(epoch+1), stat.Version)
		switch {
		case err == nil:
			return epoch + 1, now.Version, now.Mzxid, nil
		case errors.Is(err, host.ErrBadVersion) || z.repeat(ctx, err):
		default:
			return 0, 0, 0, fmt.Errorf("take epoch %d: %w", epoch+1, over(err))
		}
	}
}

// takeActive creates the active node, guarded. One that is left of an earlier
// term, whose epoch is past, is removed.
func (c *coordinator) takeActive(ctx context.Context, z zk, t *term) (zxid int64, err error) {
	data := protocol.NewCoordinatorNode(c.h.ID()).Encode()
	check := host.Check(protocol.EpochPath, t.token)
	for {
		if err := z.sync(ctx, protocol.ActivePath); err != nil {
			return 0, err
		}
		stat, err := z.exists(ctx, protocol.ActivePath)
		switch {
		case err == nil && stat.EphemeralOwner == z.s.ID():
			return stat.Czxid, nil // by the try before
		case err == nil:
			_, err = z.s.Multi(ctx, check, host.DeleteOp(protocol.ActivePath, -1))
		case errors.Is(err, host.ErrNoNode):
			var made host.MultiResult
			made, err = z.s.Multi(ctx, check, host.CreateOp(protocol.ActivePath, data, host.Ephemeral))
			if err == nil {
				return made.Zxid, nil
			}
		default:
			return 0, err
		}
		switch {
		case errors.Is(err, host.ErrBadVersion):
			return 0, errFenced
		case err == nil || errors.Is(err, host.ErrNoNode) || errors.Is(err, host.ErrNodeExists) || z.repeat(ctx, err):
		default:
			return 0, fmt.Errorf("take the active node: %w", over(err))
		}
	}
}
