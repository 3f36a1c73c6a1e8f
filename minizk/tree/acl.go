package tree

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // the digest scheme of ZooKeeper is defined with it
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/fencepost-dev/fencepost/minizk/jute"
)

// Digest is the id of scheme digest that the credentials "user:password" give.
func Digest(credentials string) string {
	user, _, _ := strings.Cut(credentials, ":")
	sum := sha1.Sum([]byte(credentials)) //nolint:gosec // see above
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// auth adds an identity to the connection. A failure ends the connection.
func (t *Tree) auth(r *request, req jute.Record) Reply {
	p, _ := req.(*jute.AuthPacket)
	if p == nil {
		return Reply{Silent: true, Close: true}
	}
	rep := Reply{Header: jute.ReplyHeader{Xid: r.xid}}
	switch {
	case p.Scheme == "ip":
	case p.Scheme == "digest" && p.Auth != nil:
		id := Digest(string(bytes.ToValidUTF8(p.Auth, []byte("\ufffd"))))
		if t.opts.SuperDigest != "" && id == t.opts.SuperDigest {
			r.conn.add(jute.ID{Scheme: "super"})
		}
		r.conn.add(jute.ID{Scheme: "digest", ID: id})
	default:
		rep.Header.Err = jute.AuthFailed
		rep.Close = true
	}
	return rep
}

func (c *conn) add(id jute.ID) {
	if !slices.Contains(c.auth, id) {
		c.auth = append(c.auth, id)
	}
}

// allowed decides whether one of the ids has one of the permissions. An empty
// ACL protects nothing.
func (t *Tree) allowed(acl []jute.ACL, perm int32, ids []jute.ID) bool {
	if t.opts.SkipACL || len(acl) == 0 {
		return true
	}
	for i := range acl {
		a := &acl[i]
		if a.Perms&perm == 0 {
			continue
		}
		if a.ID.Scheme == "world" && a.ID.ID == "anyone" {
			return true
		}
		for _, id := range ids {
			if id.Scheme == a.ID.Scheme && matches(id, a.ID.ID) {
				return true
			}
		}
	}
	return slices.ContainsFunc(ids, func(id jute.ID) bool { return id.Scheme == "super" })
}

func matches(id jute.ID, expr string) bool {
	switch id.Scheme {
	case "digest":
		return id.ID == expr
	case "ip":
		prefix, ok := parseIP(expr)
		addr, err := netip.ParseAddr(id.ID)
		return ok && err == nil && prefix.Contains(addr.Unmap().WithZone(""))
	default:
		return false
	}
}

// parseIP reads an address with an optional number of leading bits.
func parseIP(expr string) (netip.Prefix, bool) {
	text, bitText, masked := strings.Cut(expr, "/")
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, false
	}
	bits := addr.BitLen()
	if masked {
		bits, err = strconv.Atoi(bitText)
		if err != nil || bits < 0 || bits > addr.BitLen() {
			return netip.Prefix{}, false
		}
	}
	return netip.PrefixFrom(addr, bits).Masked(), true
}

// fixACL checks a list that a client sent, drops repetitions, and replaces the
// scheme "auth" by the client's own identities.
func fixACL(list []jute.ACL, auth []jute.ID) ([]jute.ACL, jute.Code) {
	if len(list) == 0 {
		return nil, jute.InvalidACL
	}
	out := make([]jute.ACL, 0, len(list))
	for i, a := range list {
		if slices.Contains(list[:i], a) {
			continue
		}
		switch a.ID.Scheme {
		case "world":
			if a.ID.ID != "anyone" {
				return nil, jute.InvalidACL
			}
			out = append(out, a)
		case "auth":
			valid := false
			for _, id := range auth {
				if id.Scheme == "digest" {
					out = append(out, jute.ACL{Perms: a.Perms, ID: id})
					valid = true
				}
			}
			if !valid {
				return nil, jute.InvalidACL
			}
		case "digest":
			if !validDigest(a.ID.ID) {
				return nil, jute.InvalidACL
			}
			out = append(out, a)
		case "ip":
			if _, ok := parseIP(a.ID.ID); !ok {
				return nil, jute.InvalidACL
			}
			out = append(out, a)
		default:
			return nil, jute.InvalidACL
		}
	}
	return out, jute.OK
}

// validDigest: two parts around a colon, where trailing empty parts do not
// count, as in Java's split.
func validDigest(id string) bool {
	parts := strings.Split(id, ":")
	for len(parts) > 0 && parts[len(parts)-1] == "" {
		parts = parts[:len(parts)-1]
	}
	return len(parts) == 2
}

// hideDigests is what a client sees of an ACL that it may read but not
// administer: the hashes of passwords are not its business.
func hideDigests(list []jute.ACL) []jute.ACL {
	out := slices.Clone(list)
	for i := range out {
		if out[i].ID.Scheme != "digest" {
			continue
		}
		if user, _, found := strings.Cut(out[i].ID.ID, ":"); found {
			out[i].ID.ID = user + ":x"
		}
	}
	return out
}

// whoAmI lists the identities of a connection, without secrets.
func whoAmI(auth []jute.ID) *jute.WhoAmIResponse {
	r := &jute.WhoAmIResponse{Clients: make([]jute.ClientInfo, 0, len(auth))}
	for _, id := range auth {
		user := id.ID
		if id.Scheme == "digest" {
			user, _, _ = strings.Cut(user, ":")
		}
		r.Clients = append(r.Clients, jute.ClientInfo{Scheme: id.Scheme, User: user})
	}
	return r
}
