package history

// SchemaVersion numbers the shapes of the events below; it stands in
// test.json. A change that an old reader would misread raises it.
const SchemaVersion = 1

// Event is something that a node reports of itself, or that an observer saw
// of it. It enters the history as an Op of process Observer, type Info, with
// F = Kind() and Value = the event as JSON. docs/events.md is the reference;
// the list is section 5 of the protocol.
type Event interface{ Kind() string }

// The kinds of events, and so the F of an observer's Op.
const (
	KindTerm       = "term"
	KindSession    = "session"
	KindLAI        = "lai"
	KindNotify     = "notify"
	KindRole       = "role"
	KindAdvertised = "advertised"
	KindRefused    = "refused"
	KindHung       = "hung"
	KindHW         = "hw"
	KindEpochStart = "epoch_start"
	KindTruncate   = "truncate"
	KindRecovery   = "recovery"
	KindReady      = "ready"
	KindTxn        = "txn"
	KindFault      = "fault"
	KindObeyed     = "obeyed"
	KindNode       = "node"
	KindViolation  = "violation"
)

// Term is one coordinator's stay in office. Zxid is that of the transaction
// that opened it; (Coordinator, Zxid) names the term, Epoch is only claimed.
type Term struct {
	Coordinator string `json:"coordinator"`
	Epoch       int64  `json:"epoch"`
	Zxid        int64  `json:"zxid"`
	Session     int64  `json:"session"` // ZooKeeper session the term was opened in
	State       string `json:"state"`   // elected, serving, fenced, resigned
	Reason      string `json:"reason,omitempty"`
}

// The states of a Term.
const (
	TermElected  = "elected"
	TermServing  = "serving"
	TermFenced   = "fenced"
	TermResigned = "resigned"
)

// Session is a change of a node's ZooKeeper session.
type Session struct {
	Node  string `json:"node"`
	ID    int64  `json:"id"`
	State string `json:"state"` // connected, suspended, expired, closed
}

// The states of a Session.
const (
	SessionConnected = "connected"
	SessionSuspended = "suspended"
	SessionExpired   = "expired"
	SessionClosed    = "closed"
)

// LAI is a LeaderAndIsr that ZooKeeper is known to hold. Leader is -1 for none.
type LAI struct {
	Bucket           string `json:"bucket"`
	Leader           int    `json:"leader"`
	LeaderEpoch      int    `json:"leader_epoch"`
	BucketEpoch      int    `json:"bucket_epoch"`
	ISR              []int  `json:"isr"`
	Replicas         []int  `json:"replicas,omitempty"`
	CoordinatorEpoch int64  `json:"coordinator_epoch"`
	Zxid             int64  `json:"zxid"`
}

// Notify is one try of a coordinator to tell a server its role, and the result.
type Notify struct {
	Bucket      string `json:"bucket"`
	LeaderEpoch int    `json:"leader_epoch"`
	Server      int    `json:"server"`
	Try         int    `json:"try"`
	Result      string `json:"result"` // sent, ok, in progress, or an error's text
}

// Role is a change of a server's role for a bucket. Admitted means: it would
// serve as leader now.
type Role struct {
	Bucket      string `json:"bucket"`
	LeaderEpoch int    `json:"leader_epoch"`
	Server      int    `json:"server"`
	Incarnation int64  `json:"incarnation"` // czxid of the server's registration node
	State       string `json:"state"`       // activating, admitted, following, resigned, failed
}

// The states of a Role.
const (
	RoleActivating = "activating"
	RoleAdmitted   = "admitted"
	RoleFollowing  = "following"
	RoleResigned   = "resigned"
	RoleFailed     = "failed"
)

// Advertised is a change of the answer that a client would get from server By
// if it asked who leads the bucket. Poll is the polling interval in
// milliseconds where the answer was polled, 0 where the server itself told.
type Advertised struct {
	Bucket      string `json:"bucket"`
	Leader      int    `json:"leader"`
	LeaderEpoch int    `json:"leader_epoch"`
	By          int    `json:"by"`
	Poll        int    `json:"poll,omitempty"`
}

// Refused is an attempt of a client that a server answered with a code that
// says "not I" (12, 21, 44).
type Refused struct {
	Bucket      string `json:"bucket"`
	Server      int    `json:"server"`
	Client      string `json:"client"`
	API         string `json:"api"` // fetch, put, lookup, metadata
	Code        int    `json:"code"`
	ClientEpoch int    `json:"client_epoch"` // the leader epoch that the client used
	ServerEpoch int    `json:"server_epoch"` // the server's own
	Process     int    `json:"process"`
}

// Hung is an attempt that a server did not answer in time. From and To are
// nanoseconds since the start of the run.
type Hung struct {
	Bucket string `json:"bucket"`
	Server int    `json:"server"`
	Client string `json:"client"`
	API    string `json:"api"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
}

// HW is a move of a replica's high watermark.
type HW struct {
	Bucket      string `json:"bucket"`
	Server      int    `json:"server"`
	Incarnation int64  `json:"incarnation"`
	LeaderEpoch int    `json:"leader_epoch"`
	From        int64  `json:"from"`
	To          int64  `json:"to"`
	Leading     bool   `json:"leading"` // served by an admitted leader
}

// EpochStart is the log end that a new leader had at its election.
type EpochStart struct {
	Bucket      string `json:"bucket"`
	Server      int    `json:"server"`
	LeaderEpoch int    `json:"leader_epoch"`
	Offset      int64  `json:"offset"`
}

// Truncate is a replica dropping the end of its log. HW is its own high
// watermark at that moment: To < HW is an invariant violation.
type Truncate struct {
	Bucket      string `json:"bucket"`
	Server      int    `json:"server"`
	LeaderEpoch int    `json:"leader_epoch"`
	From        int64  `json:"from"`
	To          int64  `json:"to"`
	HW          int64  `json:"hw"`
}

// Recovery is the start or end of a recovery: of a server's log before it
// registers (no bucket), or of a KV tablet inside its activation.
type Recovery struct {
	Server int    `json:"server"`
	Bucket string `json:"bucket,omitempty"`
	What   string `json:"what"`  // log, kv
	State  string `json:"state"` // start, end
	Bytes  int64  `json:"bytes"`
}

// Ready says that a server has registered in ZooKeeper.
type Ready struct {
	Server      int   `json:"server"`
	Incarnation int64 `json:"incarnation"`
}

// Txn is a transaction that a node sent to ZooKeeper and its answer. Guard is
// the path of a check inside a multi, with the expected version, or empty.
// Error is empty for a committed transaction; "unknown" if no answer came.
type Txn struct {
	Node    string   `json:"node"`
	Session int64    `json:"session"`
	Zxid    int64    `json:"zxid"`
	Op      string   `json:"op"` // create, set, delete, multi, closeSession
	Paths   []string `json:"paths"`
	Guard   string   `json:"guard,omitempty"`
	Error   string   `json:"error,omitempty"`
	// Ephemeral is set if every path is an ephemeral node of this session, or an election node.
	Ephemeral bool `json:"ephemeral,omitempty"`
}

// Obeyed is a tablet acting on a control RPC: it changed role, LAI, metadata
// or files because of Term, while Newest is the newest term it had processed.
type Obeyed struct {
	Server      int    `json:"server"`
	API         string `json:"api"` // NotifyLeaderAndIsr, UpdateMetadata, StopReplica
	Coordinator string `json:"coordinator"`
	TermZxid    int64  `json:"term_zxid"` // names the sender's term
	Epoch       int64  `json:"epoch"`     // the coordinator epoch that the request claims
	Bucket      string `json:"bucket,omitempty"`
}

// Fault is the start or end of a fault as injected. Effect says in words what
// it did.
type Fault struct {
	Name   string   `json:"name"`
	ID     int      `json:"id"` // the schedule entry
	Target []string `json:"target"`
	State  string   `json:"state"` // start, end
	Effect string   `json:"effect,omitempty"`
}

// The states of a Fault or a Recovery.
const (
	StateStart = "start"
	StateEnd   = "end"
)

// Node is a change of a node's process: up, down (killed or stopped), paused,
// resumed, panicked (Error holds the message and stack).
type Node struct {
	Node  string `json:"node"`
	State string `json:"state"`
	Error string `json:"error,omitempty"`
}

// The states of a Node.
const (
	NodeUp       = "up"
	NodeDown     = "down"
	NodePaused   = "paused"
	NodeResumed  = "resumed"
	NodePanicked = "panicked"
)

// Violation is an invariant that a node found broken in itself.
type Violation struct {
	Invariant string `json:"invariant"`
	Bucket    string `json:"bucket,omitempty"`
	Server    int    `json:"server"`
	Detail    string `json:"detail"`
}

// Kind names the event.
func (Term) Kind() string { return KindTerm }

// Kind names the event.
func (Session) Kind() string { return KindSession }

// Kind names the event.
func (LAI) Kind() string { return KindLAI }

// Kind names the event.
func (Notify) Kind() string { return KindNotify }

// Kind names the event.
func (Role) Kind() string { return KindRole }

// Kind names the event.
func (Advertised) Kind() string { return KindAdvertised }

// Kind names the event.
func (Refused) Kind() string { return KindRefused }

// Kind names the event.
func (Hung) Kind() string { return KindHung }

// Kind names the event.
func (HW) Kind() string { return KindHW }

// Kind names the event.
func (EpochStart) Kind() string { return KindEpochStart }

// Kind names the event.
func (Truncate) Kind() string { return KindTruncate }

// Kind names the event.
func (Recovery) Kind() string { return KindRecovery }

// Kind names the event.
func (Ready) Kind() string { return KindReady }

// Kind names the event.
func (Txn) Kind() string { return KindTxn }

// Kind names the event.
func (Fault) Kind() string { return KindFault }

// Kind names the event.
func (Obeyed) Kind() string { return KindObeyed }

// Kind names the event.
func (Node) Kind() string { return KindNode }

// Kind names the event.
func (Violation) Kind() string { return KindViolation }
