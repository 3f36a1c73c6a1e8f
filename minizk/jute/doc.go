// Package jute is ZooKeeper's wire format: the records of the client protocol,
// their binary encoding, and the frames that carry them. It is pure: bytes in,
// values out, no socket and no clock.
//
// Every message is a frame: a length of four bytes, then that many bytes. The
// first frame of a connection is a ConnectRequest, answered by a
// ConnectResponse. All later frames begin with a RequestHeader (client) or a
// ReplyHeader (server), followed by the record that belongs to the operation.
// A reply does not name its operation: a reader of replies has to remember, by
// xid, what was asked. Replies with xid XidNotification carry a WatcherEvent.
//
// Decoding is as strict, and as lenient, as the real server: a record that ends
// early is an error (ErrTorn), an unreasonable length is an error (LengthError),
// bytes after the record are ignored. Numbers are big-endian; a length of -1 is
// a null string, buffer or list, decoded as nil or "".
package jute
