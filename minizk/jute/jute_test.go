package jute

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// samples has one filled record of every kind, beside an empty one to decode
// into.
func samples() map[string][2]Record {
	stat := Stat{
		Czxid: 1, Mzxid: 2, Ctime: 3, Mtime: 4, Version: 5, Cversion: 6, Aversion: 7,
		EphemeralOwner: 8, DataLength: 9, NumChildren: 10, Pzxid: 11,
	}
	acl := []ACL{{Perms: PermRead, ID: ID{"digest", "u:x"}}, {Perms: PermAll, ID: ID{"world", "anyone"}}}
	return map[string][2]Record{
		"connect request":     {&ConnectRequest{ProtocolVersion: 0, LastZxidSeen: 7, TimeOut: 3000, SessionID: 1 << 60, Passwd: []byte("p"), ReadOnly: true, HasReadOnly: true}, &ConnectRequest{}},
		"old connect request": {&ConnectRequest{TimeOut: 3000, Passwd: make([]byte, 16)}, &ConnectRequest{}},
		"connect response":    {&ConnectResponse{TimeOut: 3000, SessionID: 9, Passwd: []byte("pw"), HasReadOnly: true}, &ConnectResponse{}},
		"request header":      {&RequestHeader{Xid: -8, Op: OpSetWatches}, &RequestHeader{}},
		"reply header":        {&ReplyHeader{Xid: 4, Zxid: 1 << 40, Err: NoNode}, &ReplyHeader{}},
		"auth":                {&AuthPacket{Scheme: "digest", Auth: []byte("a:b")}, &AuthPacket{}},
		"event":               {&WatcherEvent{Type: EventNodeDeleted, State: StateSyncConnected, Path: "/a"}, &WatcherEvent{}},
		"create":              {&CreateRequest{Path: "/a", Data: []byte{}, ACL: acl, Flags: FlagEphemeralSequential}, NewRequest(OpCreate)},
		"create ttl":          {&CreateRequest{Path: "/a", Data: []byte("x"), ACL: acl, Flags: FlagPersistentTTL, TTL: 99, HasTTL: true}, NewRequest(OpCreateTTL)},
		"delete":              {&PathVersionRequest{Path: "/a", Version: -1}, NewRequest(OpDelete)},
		"exists":              {&PathWatchRequest{Path: "/a", Watch: true}, NewRequest(OpExists)},
		"set data":            {&SetDataRequest{Path: "/a", Data: nil, Version: 3}, NewRequest(OpSetData)},
		"get acl":             {&PathRequest{Path: "/a"}, NewRequest(OpGetACL)},
		"set acl":             {&SetACLRequest{Path: "/a", ACL: acl, Version: 1}, NewRequest(OpSetACL)},
		"set watches":         {&SetWatchesRequest{RelativeZxid: 5, Data: []string{"/a"}, Exist: []string{}, Child: []string{"/b", "/c"}}, NewRequest(OpSetWatches)},
		"set watches 2": {&SetWatchesRequest{
			Two: true, RelativeZxid: 5, Data: []string{}, Exist: []string{}, Child: []string{},
			Persistent: []string{"/p"}, PersistentRecursive: []string{"/r"},
		}, NewRequest(OpSetWatches2)},
		"add watch": {&PathTypeRequest{Path: "/a", Type: ModePersistentRecursive}, NewRequest(OpAddWatch)},
		"reconfig":  {&ReconfigRequest{Joining: "a", Leaving: "b", NewMembers: "c", CurConfigID: 2}, NewRequest(OpReconfig)},
		"multi": {&MultiRequest{Ops: []MultiOp{
			{OpCheck, &PathVersionRequest{Path: "/e", Version: 2}},
			{OpCreate, &CreateRequest{Path: "/e/a", Data: []byte("1"), ACL: acl}},
			{OpSetData, &SetDataRequest{Path: "/e/a", Data: []byte("2"), Version: 0}},
			{OpDelete, &PathVersionRequest{Path: "/e/a", Version: 1}},
		}}, NewRequest(OpMulti)},
		"multi response": {&MultiResponse{Results: []MultiResult{
			{OpCheck, OK, &NoBody{}},
			{OpCreate, OK, &PathResponse{Path: "/e/a"}},
			{OpCreate2, OK, &Create2Response{Path: "/e/b", Stat: stat}},
			{OpSetData, OK, &StatResponse{Stat: stat}},
			{OpError, NoNode, &ErrorResponse{Err: NoNode}},
		}}, NewResponse(OpMulti)},
		"get data response":   {&GetDataResponse{Data: []byte("d"), Stat: stat}, NewResponse(OpGetData)},
		"get acl response":    {&GetACLResponse{ACL: acl, Stat: stat}, NewResponse(OpGetACL)},
		"children response":   {&ChildrenResponse{Children: []string{"a", "b"}}, NewResponse(OpGetChildren)},
		"children 2 response": {&Children2Response{Children: []string{}, Stat: stat}, NewResponse(OpGetChildren2)},
		"number response":     {&NumberResponse{Number: 4}, NewResponse(OpGetAllChildrenNumber)},
		"ephemerals response": {&EphemeralsResponse{Ephemerals: []string{"/x"}}, NewResponse(OpGetEphemerals)},
		"who am i response":   {&WhoAmIResponse{Clients: []ClientInfo{{"ip", "127.0.0.1"}}}, NewResponse(OpWhoAmI)},
		"create 2 response":   {&Create2Response{Path: "/a", Stat: stat}, NewResponse(OpCreate2)},
	}
}

func TestRecordsSurviveTheWire(t *testing.T) {
	for name, s := range samples() {
		t.Run(name, func(t *testing.T) {
			b := Marshal(s[0])
			require.NoError(t, Unmarshal(append(bytes.Clone(b), "trailing bytes are ignored"...)[:len(b)], s[1]))
			require.Equal(t, s[0], s[1])
		})
	}
}

func TestEveryTornRecordIsRefused(t *testing.T) {
	for name, s := range samples() {
		if strings.Contains(name, "connect") {
			continue // their last field is optional
		}
		b := Marshal(s[0])
		for n := range b {
			require.ErrorIs(t, Unmarshal(b[:n], s[1]), ErrTorn, "%s cut at %d of %d", name, n, len(b))
		}
	}
}

func TestLengths(t *testing.T) {
	var e Encoder
	e.Int32(-2)
	require.EqualError(t, Unmarshal(e.Bytes(), &PathRequest{}), "Unreasonable length = -2")
	e.Reset()
	e.Int32(2*DefaultMaxBuffer + 1)
	require.Equal(t, LengthError{2*DefaultMaxBuffer + 1}, Unmarshal(e.Bytes(), &PathRequest{}))

	// A forged list length must not reserve memory.
	e.Reset()
	e.Int64(0)
	e.Int32(1 << 30)
	require.ErrorIs(t, Unmarshal(e.Bytes(), &SetWatchesRequest{}), ErrTorn)
}

func TestFrames(t *testing.T) {
	b := AppendFrame(nil, &RequestHeader{Xid: 1, Op: OpGetData}, &PathWatchRequest{Path: "/a"})
	b = AppendFrame(b, &RequestHeader{Xid: 2, Op: OpPing}, nil)
	r := bytes.NewReader(b)
	first, err := ReadFrame(r, nil, 100)
	require.NoError(t, err)
	require.Len(t, first, 8+4+2+1)
	second, err := ReadFrame(r, first[:0], 100)
	require.NoError(t, err)
	var h RequestHeader
	require.NoError(t, Unmarshal(second, &h))
	require.Equal(t, RequestHeader{2, OpPing}, h)
	_, err = ReadFrame(r, nil, 100)
	require.Equal(t, io.EOF, err)

	_, err = ReadFrame(bytes.NewReader(b[:10]), nil, 100)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = ReadFrame(bytes.NewReader(b), nil, 14)
	require.Equal(t, FrameError{Len: 15, Max: 14}, err)
	_, err = ReadFrame(bytes.NewReader(b), nil, 15)
	require.NoError(t, err, "a frame of exactly the limit passes")
	_, err = ReadFrame(strings.NewReader("\xff\xff\xff\xff"), nil, 15)
	require.Equal(t, FrameError{Len: -1, Max: 15}, err)
}

func TestMultiRefusesOtherOperations(t *testing.T) {
	b := Marshal(&MultiRequest{Ops: []MultiOp{{OpSetACL, &NoBody{}}}})
	require.ErrorContains(t, Unmarshal(b, &MultiRequest{}), "invalid type of op in a multi: 7")
}

func TestPaths(t *testing.T) {
	require.Equal(t, []string{"/e", "/e/a", "/e/a", "/e/a"}, Paths(samples()["multi"][0]))
	require.Nil(t, Paths(&NoBody{}))
}

func TestNames(t *testing.T) {
	require.Equal(t, "getData", OpGetData.String())
	require.Equal(t, "op(55)", OpCode(55).String())
	require.Equal(t, "zookeeper: no node", NoNode.Error())
}

// FuzzRequests: whatever bytes come, decoding ends without a panic, and what it
// accepts survives another trip.
func FuzzRequests(f *testing.F) {
	for _, s := range samples() {
		for _, op := range []OpCode{OpCreate, OpMulti, OpSetWatches2, OpGetData} {
			f.Add(int32(op), Marshal(s[0]))
		}
	}
	f.Fuzz(func(t *testing.T, op int32, b []byte) {
		for _, make := range []func(OpCode) Record{NewRequest, NewResponse} {
			r, again := make(OpCode(op)), make(OpCode(op))
			if r == nil || Unmarshal(b, r) != nil {
				continue
			}
			once := Marshal(r)
			require.NoError(t, Unmarshal(once, again))
			require.Equal(t, once, Marshal(again))
		}
	})
}

// FuzzFrames: a stream of rubbish is read or refused, never a panic.
func FuzzFrames(f *testing.F) {
	f.Add(AppendFrame(nil, &RequestHeader{Xid: 1, Op: OpPing}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			frame, err := ReadFrame(r, nil, 1<<16)
			if err != nil {
				return
			}
			_ = Unmarshal(frame, &ConnectRequest{})
		}
	})
}
