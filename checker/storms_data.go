package checker

import "time"

// StormOptions are the limits of a storm.
type StormOptions struct {
	// Limit refusals of one bucket within Window are a storm.
	Limit  int
	Window time.Duration
	// Run: one client refused more often than this running, for the same (bucket,
	// leader epoch), is a storm too.
	Run int
	// SpareLost leaves lost refusals out of the limits above. They are counted and
	// shown; but between the restart of a server and the end of its old session
	// nobody can know better than to ask it, whatever a coordinator does.
	SpareLost bool
	// Session is how long after a server went down its old session may live; a
	// refusal after that is not lost but without a leader. 0 does not bound it.
	Session time.Duration
	// Bucket names the bucket of a key, or is nil: then any success of a client
	// ends its running refusals.
	Bucket func(key string) string
	// Probe tells clients whose refusals do not count: the observer's own.
	Probe func(client string) bool
}

// DefaultStorms are the limits of section 5 of the protocol: 100 refusals of a
// bucket within 10 s, or more than 10 running; lost ones apart.
func DefaultStorms() StormOptions {
	return StormOptions{Limit: 100, Window: 10 * time.Second, Run: 10, SpareLost: true, Probe: func(client string) bool {
		return client == "observer" || client == "control"
	}}
}

// StormCounts are refusals by cause, and hangs.
type StormCounts struct {
	Refusals  int `json:"refusals"`
	Premature int `json:"premature"` // the server was advertised at that leader epoch and had not admitted it
	Stale     int `json:"stale"`     // a newer leader epoch was admitted elsewhere
	Lost      int `json:"lost"`      // the server had admitted it and restarted
	NoLeader  int `json:"no_leader"` // else
	Hangs     int `json:"hangs"`
}

// StormData is the Data of the storms checker. Times are nanoseconds since the
// start of the run, rows are sorted by name.
type StormData struct {
	StormCounts
	Storms []Storm `json:"storms"`
	// Spared are storms that only lost refusals make; they do not count.
	Spared  []Storm        `json:"spared"`
	Buckets []BucketStorms `json:"buckets"`
	Clients []ClientStorms `json:"clients"`
	APIs    []APIStorms    `json:"apis"`
	Minutes []StormCounts  `json:"minutes"` // one for each started minute of the run
	Windows []AdmitWindow  `json:"windows"` // advertised to admitted, longest first
	Ready   []ReadyWindow  `json:"ready"`
	Heat    HeatStrip      `json:"heat"`

	PrematurePerMinute float64 `json:"premature_per_minute"` // the worst minute that slides over the run
	Attempts           int     `json:"attempts"`             // of all client operations, metadata requests included
	MetadataRequests   int     `json:"metadata_requests"`
	Acknowledged       int     `json:"acknowledged"`
	AttemptsPerSuccess float64 `json:"attempts_per_success"`
	MetadataPerSuccess float64 `json:"metadata_per_success"`
	// WorstStale is the most stale refusals of one (client, bucket, leader epoch
	// used): a client that learns from its first refusal stays at one or two.
	WorstStale int `json:"worst_stale"`
}

// Storm is one storm: its bucket, when, how many, and what they came from.
type Storm struct {
	Kind        string `json:"kind"` // rate (of a bucket) or run (of a client)
	Bucket      string `json:"bucket"`
	Client      string `json:"client,omitempty"`
	LeaderEpoch int    `json:"leader_epoch"` // of a run
	From        int64  `json:"from"`
	To          int64  `json:"to"`
	StormCounts
	first, last int // lines
}

// BucketStorms is the row of a bucket.
type BucketStorms struct {
	Bucket string `json:"bucket"`
	StormCounts
	Peak        int   `json:"peak"`         // most refusals within the window
	Window      int64 `json:"window"`       // longest from advertised to admitted
	WindowEpoch int   `json:"window_epoch"` // its leader epoch
}

// ClientStorms is the row of a client.
type ClientStorms struct {
	Client string `json:"client"`
	StormCounts
	LongestRun int `json:"longest_run"`
}

// APIStorms is the row of an API.
type APIStorms struct {
	API string `json:"api"`
	StormCounts
}

// AdmitWindow is the stretch from the first advertisement of a leader at a
// leader epoch to its admission. Open ones never saw it.
type AdmitWindow struct {
	Bucket      string `json:"bucket"`
	LeaderEpoch int    `json:"leader_epoch"`
	Leader      int    `json:"leader"`
	By          int    `json:"by"` // who advertised it first
	Advertised  int64  `json:"advertised"`
	Admitted    int64  `json:"admitted"` // where it ended, if Open
	Width       int64  `json:"width"`    // 0 if it was admitted first
	Open        bool   `json:"open,omitempty"`
	Premature   int    `json:"premature"` // refusals that fell into it
}

// ReadyWindow is the stretch from a server's registration to the admission of
// the last bucket that it was then to lead; 0 buckets if it was to lead none.
type ReadyWindow struct {
	Server       int   `json:"server"`
	Incarnation  int64 `json:"incarnation"`
	Ready        int64 `json:"ready"`
	LastAdmitted int64 `json:"last_admitted"`
	Took         int64 `json:"took"`
	Buckets      int   `json:"buckets"`
	Open         bool  `json:"open,omitempty"` // some were still pending at the end
}

// HeatStrip counts refusals and hangs by bucket and time: Cells[b][i] are those
// of Buckets[b] in the i-th stretch of Width nanoseconds.
type HeatStrip struct {
	Width   int64    `json:"width"`
	Buckets []string `json:"buckets"`
	Cells   [][]int  `json:"cells"`
}

// heatCells is how many stretches a strip has at most.
const heatCells = 120

func (c *StormCounts) add(cause cause) {
	c.Refusals++
	switch cause {
	case premature:
		c.Premature++
	case stale:
		c.Stale++
	case lost:
		c.Lost++
	default:
		c.NoLeader++
	}
}
