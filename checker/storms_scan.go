package checker

import (
	"slices"
	"time"

	"github.com/fencepost-dev/fencepost/history"
)

// stormScan is what one pass over the history gathers.
type stormScan struct {
	refusals []refusal
	hangs    []history.Record[history.Hung]
	runs     []Storm
	spared   []Storm        // runs that only lost refusals make
	longest  map[string]int // by client: longest run of refusals
	attempts int
	metadata int
	acked    int
}

// runKey is what a client is refused running for.
type runKey struct {
	client string
	bucket string
}

// runs follows the refusals of clients that follow each other without a success.
type runs struct {
	opts    StormOptions
	open    map[runKey][]refusal
	clients map[int]map[string]bool // by process: the clients that it spoke through
	scan    *stormScan
}

func (c storms) scan(h history.History) (*stormScan, error) {
	scan := &stormScan{longest: map[string]int{}}
	r := &runs{opts: c.opts, open: map[runKey][]refusal{}, clients: map[int]map[string]bool{}, scan: scan}
	why := newCauses(c.opts.Session)
	for _, op := range h.Ops() {
		switch {
		case op.Client():
			scan.operation(op)
			r.success(op)
		case op.Process != history.Observer:
		case op.F == history.KindRefused:
			e, err := history.Decode[history.Refused](op)
			if err != nil {
				return nil, err
			}
			if c.opts.Probe != nil && c.opts.Probe(e.Client) {
				continue
			}
			cause, place := why.of(op.Time, e)
			ref := refusal{op.Time, op.Index, e, cause, place}
			scan.refusals = append(scan.refusals, ref)
			r.refused(ref)
		case op.F == history.KindHung:
			e, err := history.Decode[history.Hung](op)
			if err != nil {
				return nil, err
			}
			if c.opts.Probe == nil || !c.opts.Probe(e.Client) {
				scan.hangs = append(scan.hangs, history.Record[history.Hung]{Op: op, Event: e})
			}
		default:
			if err := why.see(op); err != nil {
				return nil, err
			}
		}
	}
	for key := range r.open {
		r.close(key)
	}
	return scan, nil
}

func (s *stormScan) operation(op history.Op) {
	if op.Type == history.Invoke {
		return
	}
	s.attempts += op.Tries
	s.metadata += op.Metadata
	if op.Type == history.Ok {
		s.acked++
	}
}

func (r *runs) refused(ref refusal) {
	if r.clients[ref.Process] == nil {
		r.clients[ref.Process] = map[string]bool{}
	}
	r.clients[ref.Process][ref.Client] = true
	key := runKey{ref.Client, ref.Bucket}
	if open := r.open[key]; len(open) > 0 && open[0].place.epoch != ref.place.epoch {
		r.close(key)
	}
	r.open[key] = append(r.open[key], ref)
	r.scan.longest[ref.Client] = max(r.scan.longest[ref.Client], len(r.open[key]))
}

// success ends the runs of the clients that the process spoke through: of the
// operation's bucket if that is known, else of all.
func (r *runs) success(op history.Op) {
	clients := r.clients[int(op.Process)]
	if op.Type != history.Ok || len(clients) == 0 {
		return
	}
	bucket := ""
	if r.opts.Bucket != nil {
		if kv, err := history.KeyValueOf(op); err == nil {
			bucket = r.opts.Bucket(kv.Key)
		}
	}
	for key := range r.open { // the runs are sorted in the end: order does not matter
		if clients[key.client] && (bucket == "" || key.bucket == bucket) {
			r.close(key)
		}
	}
}

func (r *runs) close(key runKey) {
	list := r.open[key]
	delete(r.open, key)
	judged := r.opts.judged(list)
	switch {
	case len(judged) > r.opts.Run:
		r.scan.runs = append(r.scan.runs, newStorm("run", judged))
	case len(list) > r.opts.Run:
		r.scan.spared = append(r.scan.spared, newStorm("run", list))
	}
}

// judged are the refusals that may make a storm.
func (o StormOptions) judged(list []refusal) []refusal {
	if !o.SpareLost || !slices.ContainsFunc(list, func(r refusal) bool { return r.cause == lost }) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(r refusal) bool { return r.cause == lost })
}

// data counts what was gathered.
func (s *stormScan) data(h history.History, opts StormOptions) StormData {
	d := StormData{
		Storms: []Storm{}, Spared: []Storm{}, Attempts: s.attempts, MetadataRequests: s.metadata, Acknowledged: s.acked,
		Minutes: make([]StormCounts, int(h.End()/time.Minute)+1),
	}
	if s.acked > 0 {
		d.AttemptsPerSuccess = float64(s.attempts) / float64(s.acked)
		d.MetadataPerSuccess = float64(s.metadata) / float64(s.acked)
	}
	tables := stormTables{buckets: map[string]*BucketStorms{}, clients: map[string]*ClientStorms{}, apis: map[string]*APIStorms{}}
	worst := map[runKeyEpoch]int{}
	for _, r := range s.refusals {
		bucket, client, api := tables.rows(r.Bucket, r.Client, r.API)
		for _, counts := range []*StormCounts{&d.StormCounts, &d.Minutes[int(r.at/time.Minute)], &bucket.StormCounts, &client.StormCounts, &api.StormCounts} {
			counts.add(r.cause)
		}
		if r.cause == stale {
			key := runKeyEpoch{runKey{r.Client, r.Bucket}, r.place.epoch}
			worst[key]++
			d.WorstStale = max(d.WorstStale, worst[key])
		}
	}
	for _, e := range s.hangs {
		bucket, client, api := tables.rows(e.Event.Bucket, e.Event.Client, e.Event.API)
		for _, counts := range []*StormCounts{&d.StormCounts, &d.Minutes[int(e.Op.Time/time.Minute)], &bucket.StormCounts, &client.StormCounts, &api.StormCounts} {
			counts.Hangs++
		}
	}
	tables.fill(&d, s, opts)
	d.PrematurePerMinute = float64(mostWithin(s.refusals, time.Minute, func(r refusal) bool { return r.cause == premature }))
	d.Heat = s.heat(h.End())
	return d
}

type runKeyEpoch struct {
	runKey
	epoch int
}

// stormTables are the rows by bucket, client and API while they are counted.
type stormTables struct {
	buckets map[string]*BucketStorms
	clients map[string]*ClientStorms
	apis    map[string]*APIStorms
}

func (t stormTables) rows(bucket, client, api string) (*BucketStorms, *ClientStorms, *APIStorms) {
	if t.buckets[bucket] == nil {
		t.buckets[bucket] = &BucketStorms{Bucket: bucket}
	}
	if t.clients[client] == nil {
		t.clients[client] = &ClientStorms{Client: client}
	}
	if t.apis[api] == nil {
		t.apis[api] = &APIStorms{API: api}
	}
	return t.buckets[bucket], t.clients[client], t.apis[api]
}

func (t stormTables) fill(d *StormData, s *stormScan, opts StormOptions) {
	d.Buckets, d.Clients, d.APIs = []BucketStorms{}, []ClientStorms{}, []APIStorms{}
	peaks := peaksByBucket(s.refusals, opts.Window)
	for _, name := range sortedKeys(t.buckets) {
		row := *t.buckets[name]
		row.Peak = peaks[name]
		d.Buckets = append(d.Buckets, row)
	}
	for _, name := range sortedKeys(t.clients) {
		row := *t.clients[name]
		row.LongestRun = s.longest[name]
		d.Clients = append(d.Clients, row)
	}
	for _, name := range sortedKeys(t.apis) {
		d.APIs = append(d.APIs, *t.apis[name])
	}
}

func peaksByBucket(refusals []refusal, window time.Duration) map[string]int {
	peaks := map[string]int{}
	recent := map[string][]time.Duration{}
	for _, r := range refusals {
		list := append(recent[r.Bucket], r.at)
		for r.at-list[0] > window {
			list = list[1:]
		}
		recent[r.Bucket] = list
		peaks[r.Bucket] = max(peaks[r.Bucket], len(list))
	}
	return peaks
}

// mostWithin is the most refusals of a kind within any stretch of the width.
func mostWithin(refusals []refusal, width time.Duration, want func(refusal) bool) int {
	most := 0
	var recent []time.Duration
	for _, r := range refusals {
		if !want(r) {
			continue
		}
		recent = append(recent, r.at)
		for r.at-recent[0] >= width {
			recent = recent[1:]
		}
		most = max(most, len(recent))
	}
	return most
}

func (s *stormScan) heat(end time.Duration) HeatStrip {
	width := max(end/heatCells, 100*time.Millisecond)
	strip := HeatStrip{Width: int64(width), Buckets: []string{}, Cells: [][]int{}}
	rows := map[string][]int{}
	count := func(bucket string, at time.Duration) {
		if rows[bucket] == nil {
			rows[bucket] = make([]int, int(end/width)+1)
		}
		rows[bucket][int(at/width)]++
	}
	for _, r := range s.refusals {
		count(r.Bucket, r.at)
	}
	for _, e := range s.hangs {
		count(e.Event.Bucket, e.Op.Time)
	}
	for _, bucket := range sortedKeys(rows) {
		strip.Buckets = append(strip.Buckets, bucket)
		strip.Cells = append(strip.Cells, rows[bucket])
	}
	return strip
}
