package cluster

import "errors"

// Definite marks an error as definite: the operation did not happen and never
// will. Everything not marked is unknown: it may have happened, or may still.
// An operation is definite only if every attempt of it was.
func Definite(err error) error {
	if err == nil || IsDefinite(err) {
		return err
	}
	return definiteError{err}
}

// IsDefinite reports whether err, or an error it wraps, was marked by Definite.
func IsDefinite(err error) bool {
	var d definiteError
	return errors.As(err, &d)
}

type definiteError struct{ err error }

func (d definiteError) Error() string { return d.err.Error() }
func (d definiteError) Unwrap() error { return d.err }

// ErrUnsupported is what a capability answers when the cluster at hand lacks
// it after all; it is definite.
var ErrUnsupported = Definite(errors.New("not supported by this cluster"))

// ErrNoSession says that a node has no ZooKeeper session that could be ended: it
// has none yet, or another fault was faster.
var ErrNoSession = errors.New("no live session")
