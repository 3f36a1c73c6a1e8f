package zookeeper

import (
	"context"
	"errors"
	"fmt"
)

// Auto takes Docker when its API answers, else the embedded server, and says
// which, and why, in the Info. A Docker that answers and then fails is an error:
// what was asked for silently being something else would be worse.
type Auto struct {
	Docker, Embedded Provider
}

// Start starts the one or the other.
func (a Auto) Start(ctx context.Context, c Config) (Server, error) {
	s, err := a.Docker.Start(ctx, c)
	if err == nil {
		return chosen{s, "docker answers"}, nil
	}
	if !errors.Is(err, ErrNoDocker) {
		return nil, err
	}
	s, embeddedErr := a.Embedded.Start(ctx, c)
	if embeddedErr != nil {
		return nil, fmt.Errorf("start embedded zookeeper: %w (docker was not available either: %w)", embeddedErr, err)
	}
	return chosen{s, "docker does not answer"}, nil
}

// chosen adds the reason for the choice.
type chosen struct {
	Server
	reason string
}

func (c chosen) Info() Info {
	i := c.Server.Info()
	if i.Detail != "" {
		i.Detail += ", "
	}
	i.Detail += c.reason
	return i
}

// Unwrap is the server as its own provider made it, for As.
func (c chosen) Unwrap() Server { return c.Server }

// As finds a capability of a server (Witness, Members) through what wraps it.
func As[T any](s Server) (T, bool) {
	for {
		if t, ok := s.(T); ok {
			return t, true
		}
		w, ok := s.(interface{ Unwrap() Server })
		if !ok {
			var none T
			return none, false
		}
		s = w.Unwrap()
	}
}
