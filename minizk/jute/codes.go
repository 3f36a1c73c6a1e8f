package jute

import "strconv"

// OpCode names an operation on the wire.
type OpCode int32

// The operations of the client protocol, as numbered by ZooKeeper 3.9.
const (
	OpNotification         OpCode = 0
	OpCreate               OpCode = 1
	OpDelete               OpCode = 2
	OpExists               OpCode = 3
	OpGetData              OpCode = 4
	OpSetData              OpCode = 5
	OpGetACL               OpCode = 6
	OpSetACL               OpCode = 7
	OpGetChildren          OpCode = 8
	OpSync                 OpCode = 9
	OpPing                 OpCode = 11
	OpGetChildren2         OpCode = 12
	OpCheck                OpCode = 13
	OpMulti                OpCode = 14
	OpCreate2              OpCode = 15
	OpReconfig             OpCode = 16
	OpCheckWatches         OpCode = 17
	OpRemoveWatches        OpCode = 18
	OpCreateContainer      OpCode = 19
	OpDeleteContainer      OpCode = 20
	OpCreateTTL            OpCode = 21
	OpMultiRead            OpCode = 22
	OpAuth                 OpCode = 100
	OpSetWatches           OpCode = 101
	OpSASL                 OpCode = 102
	OpGetEphemerals        OpCode = 103
	OpGetAllChildrenNumber OpCode = 104
	OpSetWatches2          OpCode = 105
	OpAddWatch             OpCode = 106
	OpWhoAmI               OpCode = 107
	OpCreateSession        OpCode = -10
	OpCloseSession         OpCode = -11
	OpError                OpCode = -1
)

// Reserved xids: frames that no numbered request belongs to.
const (
	XidNotification int32 = -1 // server: a WatcherEvent
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

// String names the operation as ZooKeeper's own documentation does. An unknown
// code is given as a number.
func (o OpCode) String() string {
	if name := opName(o); name != "" {
		return name
	}
	return "op(" + strconv.Itoa(int(o)) + ")"
}

// opName is a switch, so that no table of the package can be changed.
func opName(o OpCode) string {
	switch o {
	case OpNotification:
		return "notification"
	case OpCreate:
		return "create"
	case OpDelete:
		return "delete"
	case OpExists:
		return "exists"
	case OpGetData:
		return "getData"
	case OpSetData:
		return "setData"
	case OpGetACL:
		return "getACL"
	case OpSetACL:
		return "setACL"
	case OpGetChildren:
		return "getChildren"
	case OpSync:
		return "sync"
	case OpPing:
		return "ping"
	case OpGetChildren2:
		return "getChildren2"
	case OpCheck:
		return "check"
	case OpMulti:
		return "multi"
	case OpCreate2:
		return "create2"
	case OpReconfig:
		return "reconfig"
	case OpCheckWatches:
		return "checkWatches"
	case OpRemoveWatches:
		return "removeWatches"
	case OpCreateContainer:
		return "createContainer"
	case OpDeleteContainer:
		return "deleteContainer"
	case OpCreateTTL:
		return "createTTL"
	case OpMultiRead:
		return "multiRead"
	default:
		return highOpName(o)
	}
}

func highOpName(o OpCode) string {
	switch o {
	case OpAuth:
		return "auth"
	case OpSetWatches:
		return "setWatches"
	case OpSASL:
		return "sasl"
	case OpGetEphemerals:
		return "getEphemerals"
	case OpGetAllChildrenNumber:
		return "getAllChildrenNumber"
	case OpSetWatches2:
		return "setWatches2"
	case OpAddWatch:
		return "addWatch"
	case OpWhoAmI:
		return "whoAmI"
	case OpCreateSession:
		return "createSession"
	case OpCloseSession:
		return "closeSession"
	case OpError:
		return "error"
	default:
		return ""
	}
}

// IsWrite reports whether the operation changes the tree or a session, and so
// gets a zxid of its own.
func (o OpCode) IsWrite() bool {
	switch o {
	case OpCreate, OpCreate2, OpCreateTTL, OpCreateContainer, OpDelete, OpDeleteContainer,
		OpSetData, OpSetACL, OpMulti, OpReconfig, OpCheck, OpCreateSession, OpCloseSession:
		return true
	default:
		return false
	}
}

// Code is the error field of a reply. It is an error, so that the state machine
// can return it as one; OK is never returned as an error.
type Code int32

// The codes of ZooKeeper 3.9.
const (
	OK                       Code = 0
	SystemError              Code = -1
	RuntimeInconsistency     Code = -2
	DataInconsistency        Code = -3
	ConnectionLoss           Code = -4
	MarshallingError         Code = -5
	Unimplemented            Code = -6
	OperationTimeout         Code = -7
	BadArguments             Code = -8
	NewConfigNoQuorum        Code = -13
	ReconfigInProgress       Code = -14
	UnknownSession           Code = -12
	APIError                 Code = -100
	NoNode                   Code = -101
	NoAuth                   Code = -102
	BadVersion               Code = -103
	NoChildrenForEphemerals  Code = -108
	NodeExists               Code = -110
	NotEmpty                 Code = -111
	SessionExpired           Code = -112
	InvalidCallback          Code = -113
	InvalidACL               Code = -114
	AuthFailed               Code = -115
	SessionMoved             Code = -118
	NotReadOnly              Code = -119
	EphemeralOnLocalSession  Code = -120
	NoWatcher                Code = -121
	RequestTimeout           Code = -122
	ReconfigDisabled         Code = -123
	SessionClosedRequireSasl Code = -124
	QuotaExceeded            Code = -125
	ThrottledOp              Code = -127
)

// Error gives the code's name and number.
func (c Code) Error() string { return "zookeeper: " + c.String() }

// String is the code's name.
func (c Code) String() string {
	switch c {
	case OK:
		return "ok"
	case SystemError:
		return "system error"
	case RuntimeInconsistency:
		return "runtime inconsistency"
	case DataInconsistency:
		return "data inconsistency"
	case ConnectionLoss:
		return "connection loss"
	case MarshallingError:
		return "marshalling error"
	case Unimplemented:
		return "unimplemented"
	case OperationTimeout:
		return "operation timeout"
	case BadArguments:
		return "bad arguments"
	case UnknownSession:
		return "unknown session"
	case NoNode:
		return "no node"
	case NoAuth:
		return "not authorized"
	case BadVersion:
		return "bad version"
	case NoChildrenForEphemerals:
		return "ephemerals have no children"
	case NodeExists:
		return "node exists"
	case NotEmpty:
		return "node has children"
	case SessionExpired:
		return "session expired"
	case InvalidACL:
		return "invalid acl"
	case AuthFailed:
		return "authentication failed"
	case SessionMoved:
		return "session moved"
	case NoWatcher:
		return "no such watcher"
	case ReconfigDisabled:
		return "reconfiguration disabled"
	default:
		return "code " + strconv.Itoa(int(c))
	}
}

// EventType is what a watch saw.
type EventType int32

// The types of WatcherEvents. ChildWatchRemoved and the others that end in
// Removed tell a client that a watch of its own was taken away.
const (
	EventNone                   EventType = -1
	EventNodeCreated            EventType = 1
	EventNodeDeleted            EventType = 2
	EventNodeDataChanged        EventType = 3
	EventNodeChildrenChanged    EventType = 4
	EventDataWatchRemoved       EventType = 5
	EventChildWatchRemoved      EventType = 6
	EventPersistentWatchRemoved EventType = 7
)

// String names the event.
func (t EventType) String() string {
	switch t {
	case EventNone:
		return "none"
	case EventNodeCreated:
		return "created"
	case EventNodeDeleted:
		return "deleted"
	case EventNodeDataChanged:
		return "dataChanged"
	case EventNodeChildrenChanged:
		return "childrenChanged"
	case EventDataWatchRemoved:
		return "dataWatchRemoved"
	case EventChildWatchRemoved:
		return "childWatchRemoved"
	case EventPersistentWatchRemoved:
		return "persistentWatchRemoved"
	default:
		return "event(" + strconv.Itoa(int(t)) + ")"
	}
}

// StateSyncConnected is the session state that the server puts into the watch
// events it sends; the others are made up by clients.
const StateSyncConnected int32 = 3

// The flags of a create request.
const (
	FlagPersistent              int32 = 0
	FlagEphemeral               int32 = 1
	FlagPersistentSequential    int32 = 2
	FlagEphemeralSequential     int32 = 3
	FlagContainer               int32 = 4
	FlagPersistentTTL           int32 = 5
	FlagPersistentSequentialTTL int32 = 6
)

// The permissions of an ACL, to be or-ed.
const (
	PermRead   int32 = 1
	PermWrite  int32 = 2
	PermCreate int32 = 4
	PermDelete int32 = 8
	PermAdmin  int32 = 16
	PermAll    int32 = 31
)

// The modes of AddWatchRequest.
const (
	ModePersistent          int32 = 0
	ModePersistentRecursive int32 = 1
)

// The watcher types of CheckWatchesRequest and RemoveWatchesRequest. The last
// two name one kind of persistent watch each.
const (
	WatcherChildren            int32 = 1
	WatcherData                int32 = 2
	WatcherAny                 int32 = 3
	WatcherPersistent          int32 = 4
	WatcherPersistentRecursive int32 = 5
)
